// SPDX-License-Identifier: Apache-2.0
#pragma once
// Kernels in scf, arith, math and the LLVM dialect to machine code.
#include <functional>
#include <string>

#include "backends/cpu/lowering/tier.h"

namespace mlir {
class ModuleOp;
}

namespace lathe::cpu {

/// Told each kernel's text: kernel, tier, "vector" (MLIR) | "llvm" | "asm", text. Must not throw.
using CodeObserver = std::function<void(std::string, std::string, std::string, std::string)>;

/// Bytes of an x86-64 shared object that exports every kernel of the module. The module is lowered
/// in place and is of no further use. Throws Error with the collected diagnostics.
std::string compileKernels(mlir::ModuleOp kernels, const Tier& tier,
                           const CodeObserver& onCode = {});

}  // namespace lathe::cpu
