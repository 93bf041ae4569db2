// SPDX-License-Identifier: Apache-2.0
#pragma once
// Values that a user wants to see although a fusion would remove them.
//
// An observed value is a result of its entry point with the attribute `lathe.observed`. Kept as an
// output ("output"), its second user makes fusions around it decline. Recomputed ("recompute"), it
// leaves the fusions alone: its producers are copied into a region that no rewrite looks across,
// rewritten there on their own, and copied back after the fusions; what both have in common is then
// merged again, so that only the part that the fusion hides is computed twice.
#include <string>
#include <vector>

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace lathe {

inline constexpr llvm::StringLiteral kObserved = "lathe.observed";
inline constexpr llvm::StringLiteral kObservedAsOutput = "output";
inline constexpr llvm::StringLiteral kObservedAgain = "recompute";

/// An observed result of an entry point.
struct ObservedResult {
  mlir::func::FuncOp function;
  unsigned index = 0;
  std::string name() const;
};
std::vector<ObservedResult> observedResults(mlir::ModuleOp module);

/// Copies the producers of every result that is marked "recompute" into a region before the return.
void isolateObserved(mlir::ModuleOp module);
/// Copies them back.
void inlineObserved(mlir::ModuleOp module);

}  // namespace lathe
