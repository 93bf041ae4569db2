// SPDX-License-Identifier: Apache-2.0
// Element types: in memory, in registers, and from one to another.
#include <cmath>

#include "ir/scalar_builder.h"

using namespace mlir;

namespace lathe {
namespace {

bool isSmallFloat(Type element) { return element.isBF16() || element.isF16(); }

// Toward zero; what the integer type cannot hold goes to its nearest value, NaN to 0.
Value truncated(ScalarBuilder& k, Value x, Type to) {
  const Type type = x.getType();
  auto integerLike = [&](unsigned bits) { return withElementOf(type, k.b.getIntegerType(bits)); };
  const bool isDouble = getElementTypeOrSelf(type).isF64();
  const int bits = int(to.getIntOrFloatBitWidth()) - (to.isUnsignedInteger() ? 0 : 1);
  const double end = std::ldexp(1.0, bits);
  const double most =
      isDouble ? std::nextafter(end, 0.0) : double(std::nextafter(float(end), 0.0f));
  // In this order a NaN becomes a bound, and each is one instruction.
  auto bounded = [&](Compare p, double bound) {
    Value limit = k.number(type, bound);
    return Value(k.make<arith::SelectOp>(k.compare(p, x, limit), x, limit));
  };
  const Value given = x;
  x = bounded(Compare::gt, to.isUnsignedInteger() ? 0 : -end);
  x = bounded(Compare::lt, most);
  // Narrow integers by way of i32.
  const Type wide = integerLike(to.isInteger(64) ? 64 : 32);
  Value y = k.make<arith::FPToSIOp>(wide, x);
  // The highest integer, where no float is as near to it.
  if (bits > (isDouble ? 53 : 24)) {
    const int64_t highest = bits == 63 ? INT64_MAX : INT32_MAX;
    y = k.make<arith::SelectOp>(k.compare(Compare::ge, given, k.number(type, end)),
                                k.integer(wide, highest), y);
  }
  y = k.make<arith::SelectOp>(k.isNan(given), k.integer(wide, 0), y);
  const Type target = integerLike(to.getIntOrFloatBitWidth());
  return wide == target ? y : Value(k.make<arith::TruncIOp>(target, y));
}

}  // namespace

Type computedType(Type element) {
  if (isSmallFloat(element)) return Float32Type::get(element.getContext());
  if (element.isUnsignedInteger()) return IntegerType::get(element.getContext(), 8);
  return element;
}
Type storedType(Type element) {
  return isUnsigned(element) ? IntegerType::get(element.getContext(), 8) : element;
}

Value ScalarBuilder::fromStored(Value stored, Type element) {
  if (isSmallFloat(element))
    return make<arith::ExtFOp>(withElementOf(stored.getType(), b.getF32Type()), stored);
  if (element.isInteger(1)) return compare(Compare::ne, stored, integer(stored.getType(), 0));
  return stored;
}

Value ScalarBuilder::toStored(Value value, Type element) {
  Type type = withElementOf(value.getType(), storedType(element));
  if (isSmallFloat(element)) {
    // Not even a denormal or the payload of a NaN may change on the way through f32.
    if (auto wide = value.getDefiningOp<arith::ExtFOp>(); wide && wide.getIn().getType() == type)
      return wide.getIn();
    return make<arith::TruncFOp>(type, value);
  }
  if (element.isInteger(1)) return make<arith::ExtUIOp>(type, value);
  return value;
}

Value ScalarBuilder::oddFloat(Value x, Type from) {
  auto as = [&](Type e) { return withElementOf(x.getType(), e); };
  Type i32 = as(b.getI32Type()), f32 = as(b.getF32Type()), f64 = as(b.getF64Type());
  if (from.isInteger(64)) {
    auto whole = [&](int64_t n) { return integer(x.getType(), n); };
    constexpr int64_t kHeld = int64_t(1) << 53;
    Value lost = compare(Compare::ne, make<arith::AndIOp>(x, whole(0x7ff)), whole(0));
    Value odd = make<arith::OrIOp>(make<arith::ShRSIOp>(x, whole(11)),
                                   make<arith::ExtUIOp>(x.getType(), lost));
    // -2^53 < x < 2^53 with one comparison.
    Value held = compare(Compare::lt, sum(x, whole(kHeld)), whole(2 * kHeld), true);
    x = make<arith::SelectOp>(held, x, make<arith::ShLIOp>(odd, whole(11)));
  }
  if (!from.isF64()) x = make<arith::SIToFPOp>(f64, x);
  Value near = make<arith::TruncFOp>(f32, x);
  Value has = make<math::AbsFOp>(make<arith::ExtFOp>(f64, near)), wants = make<math::AbsFOp>(x);
  auto step = [&](Compare p) { return make<arith::ExtUIOp>(i32, compare(p, has, wants)); };
  Value bits = make<arith::BitcastOp>(i32, near);
  Value moved = difference(sum(bits, step(Compare::lt)), step(Compare::gt));
  Value isOdd = compare(Compare::ne, make<arith::AndIOp>(bits, integer(i32, 1)), integer(i32, 0));
  return make<arith::BitcastOp>(f32, make<arith::SelectOp>(isOdd, bits, moved));
}

Value ScalarBuilder::convert(Value x, Type from, Type to) {
  if (from == to) return x;
  Type source = x.getType(), target = withElementOf(source, computedType(to));
  const bool fromReal = isa<FloatType>(from);
  if (to.isInteger(1)) return compare(Compare::ne, x, whole(source, 0));
  if (!isa<FloatType>(to)) {
    if (fromReal) return truncated(*this, x, to);
    unsigned had = getElementTypeOrSelf(source).getIntOrFloatBitWidth();
    unsigned wants = getElementTypeOrSelf(target).getIntOrFloatBitWidth();
    if (had == wants) return x;
    if (had > wants) return make<arith::TruncIOp>(target, x);
    if (isUnsigned(from)) return make<arith::ExtUIOp>(target, x);
    return make<arith::ExtSIOp>(target, x);
  }
  // f32 holds narrower integers; from the others it must not round to a tie.
  const bool wide = from.isF64() || from.isInteger(32) || from.isInteger(64);
  if (wide && isSmallFloat(to))
    x = oddFloat(x, from);
  else if (!fromReal)
    x = isUnsigned(from) ? Value(make<arith::UIToFPOp>(target, x))
                         : make<arith::SIToFPOp>(target, x);
  else if (from.isF64() && !to.isF64())
    x = make<arith::TruncFOp>(target, x);
  else if (!from.isF64() && to.isF64())
    x = make<arith::ExtFOp>(target, x);
  // An explicit rounding; a store of its result needs no second one.
  return isSmallFloat(to) ? fromStored(toStored(x, to), to) : x;
}

Value ScalarBuilder::bitcast(Value x, Type from, Type to) {
  if (from == to) return x;
  Value bits = toStored(x, from);
  Type stored = withElementOf(bits.getType(), storedType(to));
  if (bits.getType() != stored) bits = make<arith::BitcastOp>(stored, bits);
  return fromStored(bits, to);
}

}  // namespace lathe
