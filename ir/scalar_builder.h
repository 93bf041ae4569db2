// SPDX-License-Identifier: Apache-2.0
#pragma once
// What ops say of one element, in arith and math: the vocabulary of the emissions in ir/*.td.
//
// A value is a scalar or a vector of one axis. Values are computed in the type of their elements,
// with f32 for bf16 and f16, and i8 for ui8; in memory i1 and ui8 are i8, and others are
// themselves.
#include "lathe/runtime/enums.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/TypeUtilities.h"

namespace lathe {

mlir::Type computedType(mlir::Type element);
mlir::Type storedType(mlir::Type element);
/// ui8 and i1; of a tensor, vector or scalar type the elements.
bool isUnsigned(mlir::Type type);
/// The type with another element type, vector or not.
mlir::Type withElementOf(mlir::Type type, mlir::Type element);
int64_t widthOf(mlir::Type type);

class ScalarBuilder {
 public:
  using Values = llvm::SmallVector<mlir::Value, 4>;

  ScalarBuilder(mlir::OpBuilder& builder, mlir::Location at) : b(builder), loc(at) {}
  ScalarBuilder(const ScalarBuilder&) = delete;
  ScalarBuilder& operator=(const ScalarBuilder&) = delete;
  virtual ~ScalarBuilder() = default;

  mlir::OpBuilder& b;
  mlir::Location loc;

  template <class Op, class... Args>
  Op make(Args&&... args) {
    return Op::create(b, loc, std::forward<Args>(args)...);
  }

  // Constants; `type` may be a scalar or a vector type.
  mlir::Value number(mlir::Type type, double value);
  mlir::Value integer(mlir::Type type, int64_t value);
  /// A whole number of a float or integer type.
  mlir::Value whole(mlir::Type type, int64_t value);
  /// What loses against every number: an infinity, or the end of an integer type.
  mlir::Value lowest(mlir::Type type, bool isUnsigned);
  mlir::Value highest(mlir::Type type, bool isUnsigned);
  virtual mlir::Value splat(mlir::Value scalar, int64_t width);

  // Arithmetic on numbers of users: integers wrap, and no operand makes it undefined.
  mlir::Value sum(mlir::Value x, mlir::Value y);
  mlir::Value difference(mlir::Value x, mlir::Value y);
  mlir::Value product(mlir::Value x, mlir::Value y);
  /// Integers: toward zero, and 0 by zero.
  mlir::Value quotient(mlir::Value x, mlir::Value y, bool isUnsigned = false);
  /// With the sign of y, also of a zero; integers: 0 by zero.
  mlir::Value flooredRemainder(mlir::Value x, mlir::Value y, bool isUnsigned);
  mlir::Value negative(mlir::Value x);
  mlir::Value magnitude(mlir::Value x, bool isUnsigned);
  /// -1, x where it is a zero or a NaN, or 1
  mlir::Value sign(mlir::Value x, bool isUnsigned);
  /// NaN if either is.
  mlir::Value larger(mlir::Value x, mlir::Value y, bool isUnsigned);
  mlir::Value smaller(mlir::Value x, mlir::Value y, bool isUnsigned);
  /// The count is unsigned; bits from outside are 0, and so is all at or beyond the width.
  mlir::Value shiftLeft(mlir::Value x, mlir::Value count);
  mlir::Value shiftRight(mlir::Value x, mlir::Value count);
  /// A backend may compute it with less than full precision where the result is rounded to 16 bits
  /// anyway: the flag `afn` says so, here and in `sigmoid`, and `arcp` on the latter's quotient.
  mlir::Value exponential(mlir::Value x);
  /// 1 / (1 + exp(-x))
  mlir::Value sigmoid(mlir::Value x);

  // Truth.
  mlir::Value compare(Compare predicate, mlir::Value x, mlir::Value y, bool isUnsigned = false);
  mlir::Value isNan(mlir::Value x);
  mlir::Value opposite(mlir::Value x);

  // Element types: of tensors, as in `lathe.cast`.
  mlir::Value convert(mlir::Value x, mlir::Type from, mlir::Type to);
  mlir::Value bitcast(mlir::Value x, mlir::Type from, mlir::Type to);
  /// A value that came from memory goes back with the same bits, whatever it is.
  mlir::Value fromStored(mlir::Value stored, mlir::Type element);
  mlir::Value toStored(mlir::Value value, mlir::Type element);

  // Reductions: a number of elements, and pairs of a value and its position.
  mlir::Value fromCount(mlir::Value count, mlir::Type type);
  /// The position, beyond all, that stands beside the start of values of `type`.
  mlir::Value noPosition(mlir::Type type);
  mlir::Value positionOrZero(mlir::Value position);
  /// The greatest or least value; a NaN beats the others, and the first place its equals.
  Values best(mlir::ValueRange a, mlir::ValueRange b, bool isLeast, bool isUnsigned);

 protected:
  /// Where a constant is put; a scalar or a vector.
  virtual mlir::Value constant(mlir::TypedAttr value);

 private:
  mlir::Value integerQuotient(mlir::Value x, mlir::Value y, bool isUnsigned);
  mlir::Value integerRemainder(mlir::Value x, mlir::Value y, bool isUnsigned);
  mlir::Value shifted(mlir::Value x, mlir::Value count, bool left);
  /// lathe/runtime/odd_rounding.h for a value of f64, i32 or i64.
  mlir::Value oddFloat(mlir::Value x, mlir::Type from);
};

}  // namespace lathe
