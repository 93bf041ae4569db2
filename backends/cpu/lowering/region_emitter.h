// SPDX-License-Identifier: Apache-2.0
#pragma once
// Fusion regions to row kernels: one loop over rows, vectors along the last axis, every op of the
// region inlined by index maps.
#include <cstdint>
#include <string>
#include <vector>

#include "backends/cpu/lowering/tier.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace lathe::cpu {

/// A kernel `void name(char* const* pointers, const int64_t* sizes, int64_t begin, int64_t end,
/// char* scratch, int64_t* status)` that computes rows [begin, end). `pointers` are the operands,
/// then the results, all dense and row-major. `scratch` is private to the caller's thread.
/// `*status` is left alone, or set to the word of an index (runtime/status_word.h) when a gather
/// met one out of range (the kernel then reads row 0 instead).
struct RegionKernel {
  std::string name;
  std::vector<std::string> sizes;  ///< texts of DimExpr, in the order of the `sizes` argument
  std::string rows;                ///< text of a DimExpr: the rows of the whole result
  std::string scratchBytes;        ///< text of a DimExpr; "0" if `scratch` may be null
  std::string costPerRow;          ///< text of a DimExpr: elements that one row touches
  /// (operand, result) pairs that may be one buffer. Several of them may be used together.
  std::vector<std::pair<unsigned, unsigned>> inPlace;
};

/// What emitRegion and compileKernels create; a pass that calls them depends on these dialects.
void registerKernelDialects(mlir::DialectRegistry& registry);

/// Appends the kernel of `region` (a function over elementary or decomposable ops, on tensors whose
/// dims are all numbers or named) to `kernels`. Fails with a diagnostic at the op that is at fault.
llvm::FailureOr<RegionKernel> emitRegion(mlir::func::FuncOp region, const Tier& tier,
                                         mlir::ModuleOp kernels);

}  // namespace lathe::cpu
