// SPDX-License-Identifier: Apache-2.0
#include "ir/scalar_builder.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace lathe {
namespace {

bool isReal(Value v) { return isa<FloatType>(getElementTypeOrSelf(v)); }
unsigned bitsOf(Type type) { return getElementTypeOrSelf(type).getIntOrFloatBitWidth(); }

arith::CmpFPredicate floatPredicate(Compare p) {
  using P = arith::CmpFPredicate;
  switch (p) {
    case Compare::eq:
      return P::OEQ;
    case Compare::ne:
      return P::UNE;
    case Compare::lt:
      return P::OLT;
    case Compare::le:
      return P::OLE;
    case Compare::gt:
      return P::OGT;
    case Compare::ge:
      return P::OGE;
  }
  llvm_unreachable("a predicate");
}
arith::CmpIPredicate integerPredicate(Compare p, bool isUnsigned) {
  using P = arith::CmpIPredicate;
  switch (p) {
    case Compare::eq:
      return P::eq;
    case Compare::ne:
      return P::ne;
    case Compare::lt:
      return isUnsigned ? P::ult : P::slt;
    case Compare::le:
      return isUnsigned ? P::ule : P::sle;
    case Compare::gt:
      return isUnsigned ? P::ugt : P::sgt;
    case Compare::ge:
      return isUnsigned ? P::uge : P::sge;
  }
  llvm_unreachable("a predicate");
}

/// A divisor that no division is undefined for: 1 in place of 0, and of -1, by which the least
/// integer does not fit.
struct Divisor {
  Value byZero, byMinusOne, safe;
};
Divisor divisorOf(ScalarBuilder& k, Value y, bool isUnsigned) {
  Divisor d;
  Value one = k.integer(y.getType(), 1), replaced;
  replaced = d.byZero = k.compare(Compare::eq, y, k.integer(y.getType(), 0));
  if (!isUnsigned) {
    d.byMinusOne = k.compare(Compare::eq, y, k.integer(y.getType(), -1));
    replaced = k.make<arith::OrIOp>(d.byZero, d.byMinusOne);
  }
  d.safe = k.make<arith::SelectOp>(replaced, one, y);
  return d;
}

}  // namespace

Type withElementOf(Type type, Type element) {
  auto vector = dyn_cast<VectorType>(type);
  return vector ? Type(VectorType::get(vector.getShape(), element)) : element;
}
int64_t widthOf(Type type) {
  auto vector = dyn_cast<VectorType>(type);
  return vector ? vector.getDimSize(0) : 1;
}
bool isUnsigned(Type type) {
  Type element = getElementTypeOrSelf(type);
  return element.isUnsignedInteger() || element.isInteger(1);
}

Value ScalarBuilder::constant(TypedAttr value) { return make<arith::ConstantOp>(value); }
Value ScalarBuilder::number(Type type, double value) {
  TypedAttr scalar = b.getFloatAttr(getElementTypeOrSelf(type), value);
  if (auto vector = dyn_cast<VectorType>(type))
    return constant(DenseElementsAttr::get(vector, scalar));
  return constant(scalar);
}
Value ScalarBuilder::integer(Type type, int64_t value) {
  APInt word(64, uint64_t(value), true);
  TypedAttr scalar = b.getIntegerAttr(getElementTypeOrSelf(type), word.trunc(bitsOf(type)));
  if (auto vector = dyn_cast<VectorType>(type))
    return constant(DenseElementsAttr::get(vector, scalar));
  return constant(scalar);
}
Value ScalarBuilder::whole(Type type, int64_t value) {
  return isa<FloatType>(getElementTypeOrSelf(type)) ? number(type, double(value))
                                                    : integer(type, value);
}
Value ScalarBuilder::lowest(Type type, bool isUnsigned) {
  if (isa<FloatType>(getElementTypeOrSelf(type))) return number(type, -INFINITY);
  return integer(type, isUnsigned ? 0 : APInt::getSignedMinValue(bitsOf(type)).getSExtValue());
}
Value ScalarBuilder::highest(Type type, bool isUnsigned) {
  if (isa<FloatType>(getElementTypeOrSelf(type))) return number(type, INFINITY);
  return integer(type, isUnsigned ? -1 : APInt::getSignedMaxValue(bitsOf(type)).getSExtValue());
}
Value ScalarBuilder::splat(Value scalar, int64_t width) {
  return make<vector::BroadcastOp>(VectorType::get({width}, scalar.getType()), scalar);
}

Value ScalarBuilder::sum(Value x, Value y) {
  return isReal(x) ? Value(make<arith::AddFOp>(x, y)) : make<arith::AddIOp>(x, y);
}
Value ScalarBuilder::difference(Value x, Value y) {
  return isReal(x) ? Value(make<arith::SubFOp>(x, y)) : make<arith::SubIOp>(x, y);
}
Value ScalarBuilder::product(Value x, Value y) {
  return isReal(x) ? Value(make<arith::MulFOp>(x, y)) : make<arith::MulIOp>(x, y);
}
Value ScalarBuilder::negative(Value x) {
  return isReal(x) ? Value(make<arith::NegFOp>(x)) : difference(integer(x.getType(), 0), x);
}
Value ScalarBuilder::magnitude(Value x, bool isUnsigned) {
  if (isReal(x)) return make<math::AbsFOp>(x);
  if (isUnsigned) return x;
  Value isNegative = compare(Compare::lt, x, integer(x.getType(), 0));
  return make<arith::SelectOp>(isNegative, negative(x), x);
}
Value ScalarBuilder::sign(Value x, bool isUnsigned) {
  Value zero = whole(x.getType(), 0);
  Value y =
      make<arith::SelectOp>(compare(Compare::gt, x, zero, isUnsigned), whole(x.getType(), 1), x);
  if (isUnsigned) return y;
  if (isReal(x)) y = make<arith::SelectOp>(compare(Compare::eq, x, zero), zero, y);  // of -0, too
  return make<arith::SelectOp>(compare(Compare::lt, x, zero), whole(x.getType(), -1), y);
}
Value ScalarBuilder::larger(Value x, Value y, bool isUnsigned) {
  if (isReal(x)) return make<arith::MaximumFOp>(x, y);
  return isUnsigned ? Value(make<arith::MaxUIOp>(x, y)) : make<arith::MaxSIOp>(x, y);
}
Value ScalarBuilder::smaller(Value x, Value y, bool isUnsigned) {
  if (isReal(x)) return make<arith::MinimumFOp>(x, y);
  return isUnsigned ? Value(make<arith::MinUIOp>(x, y)) : make<arith::MinSIOp>(x, y);
}

Value ScalarBuilder::quotient(Value x, Value y, bool isUnsigned) {
  return isReal(x) ? Value(make<arith::DivFOp>(x, y)) : integerQuotient(x, y, isUnsigned);
}
Value ScalarBuilder::flooredRemainder(Value x, Value y, bool isUnsigned) {
  if (!isReal(x)) return integerRemainder(x, y, isUnsigned);
  Value r = make<arith::RemFOp>(x, y), zero = number(x.getType(), 0);
  Value crosses = make<arith::XOrIOp>(compare(Compare::lt, r, zero), compare(Compare::lt, y, zero));
  Value floored = make<arith::SelectOp>(crosses, sum(r, y), r);
  Value isZero = compare(Compare::eq, r, zero);
  return make<arith::SelectOp>(isZero, make<math::CopySignOp>(zero, y), floored);
}
Value ScalarBuilder::integerQuotient(Value x, Value y, bool isUnsigned) {
  Value zero = integer(x.getType(), 0);
  const Divisor d = divisorOf(*this, y, isUnsigned);
  Value q = isUnsigned ? Value(make<arith::DivUIOp>(x, d.safe)) : make<arith::DivSIOp>(x, d.safe);
  if (!isUnsigned) q = make<arith::SelectOp>(d.byMinusOne, negative(x), q);
  return make<arith::SelectOp>(d.byZero, zero, q);
}
Value ScalarBuilder::integerRemainder(Value x, Value y, bool isUnsigned) {
  Value zero = integer(x.getType(), 0);
  const Divisor d = divisorOf(*this, y, isUnsigned);
  if (isUnsigned) return make<arith::SelectOp>(d.byZero, zero, make<arith::RemUIOp>(x, d.safe));
  Value r = make<arith::RemSIOp>(x, d.safe);
  Value crosses = compare(Compare::lt, make<arith::XOrIOp>(r, d.safe), zero);
  crosses = make<arith::AndIOp>(crosses, compare(Compare::ne, r, zero));
  return make<arith::SelectOp>(crosses, sum(r, d.safe), r);
}
Value ScalarBuilder::shifted(Value x, Value count, bool left) {
  Value zero = integer(x.getType(), 0);
  Value fits = compare(Compare::lt, count, integer(x.getType(), bitsOf(x.getType())), true);
  Value by = make<arith::SelectOp>(fits, count, zero);
  Value y = left ? Value(make<arith::ShLIOp>(x, by)) : make<arith::ShRUIOp>(x, by);
  return make<arith::SelectOp>(fits, y, zero);
}
Value ScalarBuilder::shiftLeft(Value x, Value count) { return shifted(x, count, true); }
Value ScalarBuilder::shiftRight(Value x, Value count) { return shifted(x, count, false); }

Value ScalarBuilder::exponential(Value x) {
  return make<math::ExpOp>(x, arith::FastMathFlags::afn);
}
Value ScalarBuilder::sigmoid(Value x) {
  // exp(-|x|) cannot overflow, and the quotient is exact into the denormals on both sides.
  Value e = exponential(make<arith::NegFOp>(make<math::AbsFOp>(x)));
  Value one = number(x.getType(), 1);
  Value isNegative = compare(Compare::lt, x, number(x.getType(), 0));
  Value numerator = make<arith::SelectOp>(isNegative, e, one);
  return make<arith::DivFOp>(numerator, sum(one, e), arith::FastMathFlags::arcp);
}

Value ScalarBuilder::compare(Compare p, Value x, Value y, bool isUnsigned) {
  if (isReal(x)) return make<arith::CmpFOp>(floatPredicate(p), x, y);
  return make<arith::CmpIOp>(integerPredicate(p, isUnsigned), x, y);
}
Value ScalarBuilder::isNan(Value x) { return make<arith::CmpFOp>(arith::CmpFPredicate::UNO, x, x); }
Value ScalarBuilder::opposite(Value x) { return make<arith::XOrIOp>(x, integer(x.getType(), 1)); }

Value ScalarBuilder::fromCount(Value count, Type type) {
  Value n = b.createOrFold<arith::SIToFPOp>(loc, getElementTypeOrSelf(type), count);
  return isa<VectorType>(type) ? splat(n, widthOf(type)) : n;
}
Value ScalarBuilder::noPosition(Type type) {
  return integer(withElementOf(type, b.getI64Type()), INT64_MAX);
}
Value ScalarBuilder::positionOrZero(Value position) {
  Value none = compare(Compare::eq, position, integer(position.getType(), INT64_MAX));
  return make<arith::SelectOp>(none, integer(position.getType(), 0), position);
}
ScalarBuilder::Values ScalarBuilder::best(ValueRange a, ValueRange b, bool isLeast,
                                          bool isUnsigned) {
  Value x = a[0], y = b[0];
  auto both = [&](Value p, Value q) -> Value { return make<arith::AndIOp>(p, q); };
  auto either = [&](Value p, Value q) -> Value { return make<arith::OrIOp>(p, q); };
  Value takes = compare(isLeast ? Compare::lt : Compare::gt, y, x, isUnsigned);
  Value ties = compare(Compare::eq, y, x);
  if (isReal(x)) {
    Value nanX = isNan(x), nanY = isNan(y);
    takes = either(takes, both(nanY, opposite(nanX)));
    ties = either(ties, both(nanX, nanY));
  }
  takes = either(takes, both(ties, compare(Compare::lt, b[1], a[1])));
  return {make<arith::SelectOp>(takes, y, x), make<arith::SelectOp>(takes, b[1], a[1])};
}

}  // namespace lathe
