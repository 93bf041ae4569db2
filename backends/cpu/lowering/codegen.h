// SPDX-License-Identifier: Apache-2.0
#pragma once
// Kernels in scf, arith, math and the LLVM dialect to machine code.
#include <functional>
#include <future>
#include <shared_mutex>
#include <string>

#include "backends/cpu/lowering/tier.h"

namespace mlir {
class ModuleOp;
}

namespace lathe::cpu {

/// Told each kernel's text: kernel, tier, "vector" (MLIR) | "llvm" | "asm", text. Must not throw.
using CodeObserver = std::function<void(std::string, std::string, std::string, std::string)>;

/// Bytes of an x86-64 shared object that exports every kernel of the module. The module is lowered
/// in place and is of no further use. LLVM's part, which takes the most time, runs on a thread of
/// its own, so that tiers are compiled beside each other; with an observer it is done on return.
/// `get` throws Error with the collected diagnostics.
std::future<std::string> compileKernels(mlir::ModuleOp kernels, const Tier& tier,
                                        const CodeObserver& onCode = {});

/// LLVM's linker keeps its state in globals, and sets options that code generation reads: it holds
/// this alone, code generation shares it.
std::shared_mutex& linkerGlobals();

/// Bytes of the shared object of one ELF object, by LLVM's linker inside this process. The object
/// may call libm and the C library's memory functions only; those are resolved in the process that
/// loads it. Throws Error.
std::string linkShared(const std::string& object);

}  // namespace lathe::cpu
