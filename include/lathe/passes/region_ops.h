// SPDX-License-Identifier: Apache-2.0
#pragma once
// What fusion regions, and the code made from them, ask of ops.
#include "lathe/ir/types.h"

namespace lathe {

// Facts of the ops' definitions (lathe/ir/facts.h).
inline bool isElementwise(mlir::Operation* op) { return op->hasTrait<fact::IsElementwise>(); }
inline bool isMovement(mlir::Operation* op) { return op->hasTrait<fact::IsMovement>(); }
inline bool isReduction(mlir::Operation* op) { return op->hasTrait<fact::IsReduction>(); }
inline bool isFusedRowOp(mlir::Operation* op) { return op->hasTrait<fact::IsRowOp>(); }
inline bool hasOwnKernel(mlir::Operation* op) { return op->hasTrait<fact::HasOwnKernel>(); }
/// Moves or converts the elements of its one operand.
inline bool passesElements(mlir::Operation* op) {
  return op->getNumOperands() == 1 && (isMovement(op) || llvm::isa<CastOp>(op));
}

llvm::SmallVector<int64_t> reducedAxes(mlir::Operation* reduction);
/// Reduced axes stay as literal 1s.
bool keepsDims(mlir::Operation* reduction);

/// The dims of a tensor, none of which is anonymous.
llvm::SmallVector<DimExpr> dimExprs(mlir::Value tensor);

}  // namespace lathe
