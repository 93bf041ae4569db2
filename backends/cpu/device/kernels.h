// SPDX-License-Identifier: Apache-2.0
#pragma once
// The kernels of a CPU program, one factory per family of calls.
#include <memory>
#include <string>

#include "lathe/runtime/call_config.h"
#include "lathe/runtime/device.h"
#include "lathe/runtime/error.h"
#include "lathe/runtime/thread_pool.h"

namespace lathe::cpu {

/// What a factory knows about the call: the dtypes are of operands, then results.
struct CallInfo {
  const Call& call;
  JsonValue config;
  std::vector<DType> dtypes;
  ThreadPool& pool;

  DType in(size_t i) const { return dtypes.at(i); }
  DType out(size_t i = 0) const { return dtypes.at(call.operands.size() + i); }
};

std::unique_ptr<Kernel> makeLinear(const CallInfo& info);
std::unique_ptr<Kernel> makeGroupedLinear(const CallInfo& info);
std::unique_ptr<Kernel> makePack(const CallInfo& info);
std::unique_ptr<Kernel> makeQuantizedLinear(const CallInfo& info);
std::unique_ptr<Kernel> makeGatedLinear(const CallInfo& info);
std::unique_ptr<Kernel> makeGatedQuantizedLinear(const CallInfo& info);
std::unique_ptr<Kernel> makeQuantizedPack(const CallInfo& info);
std::unique_ptr<Kernel> makePackedCast(const CallInfo& info);
std::unique_ptr<Kernel> makeMatmul(const CallInfo& info);
/// A linear layer whose weight is dense, which LinearConfig says with its layout.
std::unique_ptr<Kernel> makeDenseLinear(const CallInfo& info);
std::unique_ptr<Kernel> makeAttention(const CallInfo& info);
std::unique_ptr<Kernel> makePagedAttention(const CallInfo& info);
std::unique_ptr<Kernel> makeUpdate(const CallInfo& info);
std::unique_ptr<Kernel> makePagedUpdate(const CallInfo& info);
std::unique_ptr<Kernel> makeCopy(const CallInfo& info);
std::unique_ptr<Kernel> makeConvolution(const CallInfo& info);
std::unique_ptr<Kernel> makeTopK(const CallInfo& info);
std::unique_ptr<Kernel> makeCumSum(const CallInfo& info);
std::unique_ptr<Kernel> makeRandomBits(const CallInfo& info);

/// "module path file:line: ", to put in front of an error of a running kernel.
inline std::string at(const Call& call) { return call.origin.empty() ? "" : call.origin + ": "; }
/// Of a table of sequences, whose entry names a block that there is not; `where` as at() gives it.
inline Error outsideOfBlocks(const std::string& where, int64_t block, int64_t entry,
                             int64_t sequence, int64_t blocks) {
  return Error(ErrorCode::InvalidArgument, where + "block " + std::to_string(block) + " at entry " +
                                               std::to_string(entry) + " of sequence " +
                                               std::to_string(sequence) + " is outside of " +
                                               std::to_string(blocks) + " blocks");
}

}  // namespace lathe::cpu
