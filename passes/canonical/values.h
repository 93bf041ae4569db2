// SPDX-License-Identifier: Apache-2.0
#pragma once
// What canonical rewrites ask about values.
#include <optional>

#include "ir/op_builder.h"
#include "lathe/passes/numbers.h"

namespace lathe {

/// The one value of all elements of a constant (splatValue); casts are not seen through: they
/// round.
std::optional<double> constantOf(mlir::Value value);
bool isConstant(mlir::Value value, double number);
bool isFloat(mlir::Value value);
mlir::Type elementOf(mlir::Value value);
bool isRepresentable(mlir::Type element, double number);
/// True if x / number and x * (1 / number) are the same bits for every x.
bool hasExactReciprocal(mlir::Type element, double number);
/// True if elementwise ops on `operands` (NumPy broadcasting) have the dims of `result`.
bool broadcastTo(mlir::Value result, llvm::ArrayRef<mlir::Value> operands);
/// A scalar constant of one element.
mlir::Value scalarOf(OpMaker& m, mlir::TypedAttr element);
/// A scalar constant with the element type of `like`.
mlir::Value scalarLike(OpMaker& m, mlir::Value like, double number);
/// No element can be below 0 or -0: squares, magnitudes, exponentials, their sums and means. NaN
/// may be.
bool isNeverNegative(mlir::Value value);
/// The operand that `op` scales or shifts by a constant, and the constant: op(x, c) or op(c, x).
struct WithConstant {
  mlir::Value x;
  double c = 0;
};
template <class Op>
std::optional<WithConstant> withConstant(mlir::Value value) {
  auto op = value.getDefiningOp<Op>();
  if (!op) return std::nullopt;
  for (unsigned i : {1u, 0u})
    if (auto c = constantOf(op->getOperand(i)); c && !constantOf(op->getOperand(1 - i)))
      return WithConstant{op->getOperand(1 - i), *c};
  return std::nullopt;
}

/// A reduction that can keep its dims in place of a reshape.
bool isKeepingReduction(mlir::Operation* op);
/// The reshape gives the axes of such a reduction back, behind elementwise ops or at once: it moves
/// in front of them, and no other rewrite may move it away.
bool movesToReduction(ReshapeOp op);

}  // namespace lathe
