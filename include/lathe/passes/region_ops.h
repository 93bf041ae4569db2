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
/// Elementwise, of one op or several.
inline bool isPointwise(mlir::Operation* op) {
  return isElementwise(op) || op->hasTrait<fact::IsPointwise>();
}
/// A cast whose operand or result has two elements in a byte: no vector is loaded from such.
inline bool isPackedCast(mlir::Operation* op) {
  auto isPackedType = [](mlir::Type type) {
    auto dtype = dtypeOf(llvm::cast<mlir::RankedTensorType>(type).getElementType());
    return dtype && isPacked(*dtype);
  };
  return llvm::isa<CastOp>(op) &&
         (isPackedType(op->getOperand(0).getType()) || isPackedType(op->getResult(0).getType()));
}
inline bool hasOwnKernel(mlir::Operation* op) {
  return op->hasTrait<fact::HasOwnKernel>() || isPackedCast(op);
}
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
