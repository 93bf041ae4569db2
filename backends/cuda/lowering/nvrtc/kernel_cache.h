// SPDX-License-Identifier: Apache-2.0
#pragma once
// Kernel texts to machine code, each compiled once per machine: a folder per kernel holds its
// source, its code and a report, so that a cache is also something to read.
#include <string>
#include <vector>

#include "backends/cuda/lowering/kernel/kernel_text.h"
#include "backends/cuda/lowering/nvrtc/nvrtc.h"
#include "backends/cuda/lowering/nvrtc/ptx_gates.h"

namespace lathe::cuda {

struct CompiledKernel {
  std::string cubin;  ///< sm_90a
  std::string ptx;    ///< compute_90; empty for a kernel that only sm_90a can run
  KernelReport report;
};

/// `cuda` below the runtime's cache folder; empty where there is none.
std::string kernelCacheFolder();

/// Compiles `kernels`, two at a time, or takes them from this process's memory or the cache on disk
/// (`folder`; empty: none). The result is in the order of `kernels`. Throws the Error of the first
/// text that does not compile. A cache that cannot be read or written costs time and nothing else:
/// every entry carries a hash of what it holds, and is made again where that differs.
std::vector<CompiledKernel> compileKernels(const std::vector<KernelText>& kernels,
                                           const Headers& headers = deviceHeaders(),
                                           const std::string& folder = kernelCacheFolder());

/// Everything that a kernel's code depends on, as 64 hexadecimal digits.
std::string kernelKey(const KernelText& kernel, const Headers& headers);

}  // namespace lathe::cuda
