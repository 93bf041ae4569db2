// SPDX-License-Identifier: Apache-2.0
#pragma once
// What backends that generate code for fusion regions share: which ops go into one kernel, the
// elementary form of a region, and how its results are cut into rows.
#include <string>

#include "lathe/passes/region_ops.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace lathe {

DimExpr productOf(llvm::ArrayRef<DimExpr> sizes);
/// The largest number that divides a size whatever its symbols are; 0 if it is 0.
int64_t divisorOf(const DimExpr& size);

inline mlir::OperandRange resultsOf(mlir::func::FuncOp region) {
  return region.getBody().front().getTerminator()->getOperands();
}

/// Empty if the op can be computed row by row, else the reason why not.
std::string whyNotInRows(mlir::Operation* op);

/// Marks a softmax's division in its elementary form: by a sum of powers that is at least 1 or NaN,
/// so that the product with its inverse is as good.
inline constexpr llvm::StringLiteral kBySum = "by_sum";

/// A copy of the region in elementary ops without dead ones. Fails with a diagnostic at an op for
/// which `whyNot` has a reason, and for a region without results.
llvm::FailureOr<mlir::OwningOpRef<mlir::func::FuncOp>> elementaryRegion(
    mlir::func::FuncOp region, llvm::function_ref<std::string(mlir::Operation*)> whyNot);

/// A tensor without elements, whatever its symbols are.
bool isEmpty(mlir::Value tensor);

struct RowPlan {
  bool flat = false;    // one long row of elements, and any part of it is a range of rows
  bool scalar = false;  // every element of the results is a row of its own
  llvm::SmallVector<DimExpr> rowDims;
};
/// Fails with a diagnostic if the results do not share their rows.
llvm::FailureOr<RowPlan> rowPlanOf(mlir::func::FuncOp region);

/// Dims [from, fromEnd) of a reshape's operand and dims [to, toEnd) of its result hold as many
/// elements, in the same order.
struct ReshapeRun {
  size_t from, fromEnd, to, toEnd;
};
/// The shortest such runs, innermost first; most are one to one.
llvm::SmallVector<ReshapeRun> reshapeRuns(llvm::ArrayRef<DimExpr> from, llvm::ArrayRef<DimExpr> to);

}  // namespace lathe
