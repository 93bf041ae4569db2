// SPDX-License-Identifier: Apache-2.0
#pragma once
// What Lathe uses of NCCL, declared by hand. Sizes and values are compared with nccl.h in
// tests/unit/cuda/nccl_ranks_test.cpp.
#include <cstddef>
#include <cstdint>

namespace lathe::cuda::nccl {

using Result = int;
constexpr Result kSuccess = 0, kInProgress = 7;
using Handle = struct HandleTag*;  // ncclComm_t
using Stream = void*;

enum DataType : int {
  kInt8 = 0,
  kUint8 = 1,
  kInt32 = 2,
  kInt64 = 4,
  kFloat16 = 6,
  kFloat32 = 7,
  kFloat64 = 8,
  kBfloat16 = 9,
};
enum Reduction : int { kSum = 0, kMax = 2 };

/// The lowest version, whose form of Config this is: later ones read as much of it as there is.
constexpr int kLowestVersion = 21400;
constexpr unsigned kConfigMagic = 0xcafebeef;

struct UniqueId {
  char bytes[128];
};
struct Config {
  size_t size = sizeof(Config);
  unsigned magic = kConfigMagic;
  unsigned version = kLowestVersion;
  /// 0: calls may return kInProgress, and asyncError() says when they are done.
  int blocking = 0;
};

// F(member, name in the library, parameters)
#define LATHE_NCCL_FUNCTIONS(F)                                                                  \
  F(getVersion, ncclGetVersion, (int*))                                                          \
  F(getUniqueId, ncclGetUniqueId, (UniqueId*))                                                   \
  F(initRank, ncclCommInitRankConfig, (Handle*, int, UniqueId, int, Config*))                    \
  F(finalize, ncclCommFinalize, (Handle))                                                        \
  F(destroy, ncclCommDestroy, (Handle))                                                          \
  F(abort, ncclCommAbort, (Handle))                                                              \
  F(asyncError, ncclCommGetAsyncError, (Handle, Result*))                                        \
  F(allReduce, ncclAllReduce, (const void*, void*, size_t, DataType, Reduction, Handle, Stream)) \
  F(reduceScatter, ncclReduceScatter,                                                            \
    (const void*, void*, size_t, DataType, Reduction, Handle, Stream))                           \
  F(allGather, ncclAllGather, (const void*, void*, size_t, DataType, Handle, Stream))            \
  F(send, ncclSend, (const void*, size_t, DataType, int, Handle, Stream))                        \
  F(receive, ncclRecv, (void*, size_t, DataType, int, Handle, Stream))                           \
  F(groupStart, ncclGroupStart, ())                                                              \
  F(groupEnd, ncclGroupEnd, ())

struct Api {
#define LATHE_NCCL_MEMBER(member, name, parameters) Result(*member) parameters = nullptr;
  LATHE_NCCL_FUNCTIONS(LATHE_NCCL_MEMBER)
#undef LATHE_NCCL_MEMBER
  const char* (*errorString)(Result) = nullptr;
  const char* (*lastError)(Handle) = nullptr;
};

}  // namespace lathe::cuda::nccl
