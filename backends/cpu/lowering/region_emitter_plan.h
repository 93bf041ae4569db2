// SPDX-License-Identifier: Apache-2.0
#pragma once
// Kinds of ops, and how the results of a region are cut into rows.
#include "ir/types.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace lathe::cpu {

bool isElementwise(mlir::Operation* op);
bool isMovement(mlir::Operation* op);
bool isReduction(mlir::Operation* op);
/// A fused op whose elementary form is row kernels.
bool isFusedRowOp(mlir::Operation* op);
llvm::SmallVector<int64_t> reducedAxes(mlir::Operation* reduction);

/// The dims of a tensor, none of which is anonymous.
llvm::SmallVector<DimExpr> dimExprs(mlir::Value tensor);

struct RowPlan {
  bool flat = false;    // one long row of elements, and any part of it is a range of rows
  bool scalar = false;  // every element of the results is a row of its own
  llvm::SmallVector<DimExpr> rowDims;
};
/// Fails with a diagnostic if the results do not share their rows.
llvm::FailureOr<RowPlan> rowPlanOf(mlir::func::FuncOp region);

}  // namespace lathe::cpu
