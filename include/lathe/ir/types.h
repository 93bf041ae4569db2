// SPDX-License-Identifier: Apache-2.0
#pragma once
// Tensor types with named dims, and the inference rules that several ops share.
#include <optional>
#include <string>

#include "lathe/ir/dialect.h"
#include "lathe/runtime/dim_expr.h"
#include "lathe/runtime/dtype.h"

namespace lathe {

/// The dim of an axis: a number, the encoding's polynomial, or null for an anonymous `?`.
mlir::StringAttr dimOf(mlir::RankedTensorType type, int64_t axis);
llvm::SmallVector<mlir::StringAttr> dimsOf(mlir::RankedTensorType type);
/// The same as an expression; `?` gives nothing.
std::optional<DimExpr> dimExprOf(mlir::RankedTensorType type, int64_t axis);
DimExpr exprOf(mlir::StringAttr dim);
mlir::StringAttr dimAttr(mlir::MLIRContext* context, const DimExpr& expr);
bool isOne(mlir::StringAttr dim);
/// A tensor type from dims; the encoding is left out when every dim is a number or one is unnamed.
mlir::RankedTensorType tensorOf(llvm::ArrayRef<mlir::StringAttr> dims, mlir::Type element);
mlir::RankedTensorType tensorOf(DimsAttr dims, mlir::Type element);
mlir::RankedTensorType withElement(mlir::RankedTensorType type, mlir::Type element);
/// The product of all dims; nothing if one is anonymous.
std::optional<DimExpr> elementCountOf(mlir::RankedTensorType type);
/// "f32[batch, seq, 64]"
std::string shortType(mlir::Type type);

/// What fused ops compute in: f32, or f64 when the operands are.
mlir::Type computeType(mlir::Type element);
mlir::Type elementTypeOf(mlir::MLIRContext* context, DType dtype);
/// The runtime's name of an element type; nothing for one that tensors cannot have.
std::optional<DType> dtypeOf(mlir::Type element);
inline mlir::RankedTensorType tensorType(mlir::Value value) {
  return llvm::cast<mlir::RankedTensorType>(value.getType());
}

/// NumPy broadcasting of all operands ([C2]), whose element types agree ([C1]) unless `element`
/// gives the result's. An operand of element type i1 in front of others is a condition and exempt.
llvm::LogicalResult inferBroadcast(std::optional<mlir::Location> loc, llvm::StringRef op,
                                   llvm::ArrayRef<mlir::Value> operands, mlir::Type element,
                                   llvm::SmallVectorImpl<mlir::Type>& result,
                                   bool firstIsCondition = false);
/// True if `from` stretches to `to` (aligned at the last axis).
bool broadcastsTo(mlir::RankedTensorType from, llvm::ArrayRef<mlir::StringAttr> to);
llvm::LogicalResult inferReduce(std::optional<mlir::Location> loc, llvm::StringRef op,
                                mlir::Value x, llvm::ArrayRef<int64_t> axes, bool keepDims,
                                llvm::SmallVectorImpl<mlir::Type>& result);
llvm::LogicalResult inferArgReduce(std::optional<mlir::Location> loc, llvm::StringRef op,
                                   mlir::Value x, int64_t axis,
                                   llvm::SmallVectorImpl<mlir::Type>& result);

}  // namespace lathe
