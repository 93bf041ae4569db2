// SPDX-License-Identifier: Apache-2.0
#pragma once
// Kinds of ops, as far as fusion regions and the code made from them go: one list for all passes
// and backends.
#include "ir/types.h"

namespace lathe {

/// Every element of the result depends on the operands' elements at the same place.
bool isElementwise(mlir::Operation* op);
/// Only moves elements, or makes them from their indices.
bool isMovement(mlir::Operation* op);
bool isReduction(mlir::Operation* op);
/// A fused op whose elementary form is row kernels.
bool isFusedRowOp(mlir::Operation* op);

llvm::SmallVector<int64_t> reducedAxes(mlir::Operation* reduction);
/// Reduced axes stay as literal 1s.
bool keepsDims(mlir::Operation* reduction);

/// The dims of a tensor, none of which is anonymous.
llvm::SmallVector<DimExpr> dimExprs(mlir::Value tensor);

}  // namespace lathe
