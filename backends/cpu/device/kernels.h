// SPDX-License-Identifier: Apache-2.0
#pragma once
// The kernels of a CPU program, one factory per family of calls.
#include <memory>

#include "lathe/runtime/call_config.h"
#include "lathe/runtime/device.h"
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
std::unique_ptr<Kernel> makePack(const CallInfo& info);
std::unique_ptr<Kernel> makeQuantizedLinear(const CallInfo& info);
std::unique_ptr<Kernel> makeGatedLinear(const CallInfo& info);
std::unique_ptr<Kernel> makeGatedQuantizedLinear(const CallInfo& info);
std::unique_ptr<Kernel> makeQuantizedPack(const CallInfo& info);
std::unique_ptr<Kernel> makePackedCast(const CallInfo& info);
std::unique_ptr<Kernel> makeMatmul(const CallInfo& info);
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

}  // namespace lathe::cpu
