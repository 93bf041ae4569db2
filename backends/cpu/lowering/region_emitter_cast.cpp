// SPDX-License-Identifier: Apache-2.0
// Element types: in memory, in registers, and from one to another.
#include "backends/cpu/lowering/region_emitter_evaluator.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace lathe::cpu {

Type computeType(Type element) {
  if (element.isBF16() || element.isF16()) return Float32Type::get(element.getContext());
  if (element.isUnsignedInteger()) return IntegerType::get(element.getContext(), 8);
  return element;
}

Type storageType(Type element) {
  if (element.isBF16() || element.isF16()) return IntegerType::get(element.getContext(), 16);
  if (element.isUnsignedInteger() || element.isInteger(1))
    return IntegerType::get(element.getContext(), 8);
  return element;
}

Value Evaluator::fromStorage(Value stored, Type element) {
  auto as = [&](Type e) { return withElementOf(stored.getType(), e); };
  Type i32 = as(k.b.getI32Type()), f32 = as(k.b.getF32Type());
  // Storing the value unchanged must give the same bits: not even a denormal may be rounded.
  auto keepBits = [&](Value value) {
    rounded_[value] = {stored, element};
    return value;
  };
  if (element.isBF16()) {
    Value wide = k.make<arith::ExtUIOp>(i32, stored);
    return keepBits(k.make<arith::BitcastOp>(f32, k.make<arith::ShLIOp>(wide, k.integer(i32, 16))));
  }
  if (element.isF16())
    return keepBits(
        k.make<arith::ExtFOp>(f32, Value(k.make<arith::BitcastOp>(as(k.b.getF16Type()), stored))));
  if (element.isInteger(1))
    return k.make<arith::CmpIOp>(arith::CmpIPredicate::ne, stored, k.integer(stored.getType(), 0));
  return stored;
}

Value Evaluator::roundBf16(Value x) {
  Type type = x.getType();
  Type i16 = withElementOf(type, k.b.getI16Type()), i32 = withElementOf(type, k.b.getI32Type());
  if (k.tier.avx512Bf16 && widthOf(type) >= 8)
    return k.make<arith::BitcastOp>(
        i16, k.make<arith::TruncFOp>(withElementOf(type, k.b.getBF16Type()), x));
  // Nearest even by adding just under half; a NaN must not carry into infinity.
  Value bits = k.make<arith::BitcastOp>(i32, x);
  Value high = k.make<arith::ShRUIOp>(bits, k.integer(i32, 16));
  Value odd = k.make<arith::AndIOp>(high, k.integer(i32, 1));
  Value sum = k.make<arith::AddIOp>(k.make<arith::AddIOp>(bits, k.integer(i32, 0x7fff)), odd);
  Value rounded = k.make<arith::ShRUIOp>(sum, k.integer(i32, 16));
  Value nan = k.make<arith::CmpFOp>(arith::CmpFPredicate::UNO, x, x);
  rounded = k.make<arith::SelectOp>(nan, k.make<arith::OrIOp>(high, k.integer(i32, 0x40)), rounded);
  return k.make<arith::TruncIOp>(i16, rounded);
}

// runtime/odd_rounding.h for a value of f64, i32 or i64.
Value Evaluator::oddFloat(Value x, Type from) {
  auto as = [&](Type e) { return withElementOf(x.getType(), e); };
  Type i32 = as(k.b.getI32Type()), f32 = as(k.b.getF32Type()), f64 = as(k.b.getF64Type());
  if (from.isInteger(64)) {
    auto whole = [&](int64_t n) { return k.integer(x.getType(), n); };
    constexpr int64_t kHeld = int64_t(1) << 53;
    Value lost = k.make<arith::CmpIOp>(arith::CmpIPredicate::ne,
                                       k.make<arith::AndIOp>(x, whole(0x7ff)), whole(0));
    Value odd = k.make<arith::OrIOp>(k.make<arith::ShRSIOp>(x, whole(11)),
                                     k.make<arith::ExtUIOp>(x.getType(), lost));
    // -2^53 < x < 2^53 with one comparison.
    Value held = k.make<arith::CmpIOp>(arith::CmpIPredicate::ult,
                                       k.make<arith::AddIOp>(x, whole(kHeld)), whole(2 * kHeld));
    x = k.make<arith::SelectOp>(held, x, k.make<arith::ShLIOp>(odd, whole(11)));
  }
  if (!from.isF64()) x = k.make<arith::SIToFPOp>(f64, x);
  Value near = k.make<arith::TruncFOp>(f32, x);
  Value has = k.make<math::AbsFOp>(k.make<arith::ExtFOp>(f64, near)),
        wants = k.make<math::AbsFOp>(x);
  auto step = [&](arith::CmpFPredicate predicate) {
    return k.make<arith::ExtUIOp>(i32, k.make<arith::CmpFOp>(predicate, has, wants));
  };
  Value bits = k.make<arith::BitcastOp>(i32, near);
  Value moved = k.make<arith::SubIOp>(k.make<arith::AddIOp>(bits, step(arith::CmpFPredicate::OLT)),
                                      step(arith::CmpFPredicate::OGT));
  Value isOdd = k.make<arith::CmpIOp>(
      arith::CmpIPredicate::ne, k.make<arith::AndIOp>(bits, k.integer(i32, 1)), k.integer(i32, 0));
  return k.make<arith::BitcastOp>(f32, k.make<arith::SelectOp>(isOdd, bits, moved));
}

Value Evaluator::toStorage(Value value, Type element) {
  auto as = [&](Type e) { return withElementOf(value.getType(), e); };
  if (auto it = rounded_.find(value); it != rounded_.end() && it->second.second == element)
    return it->second.first;
  if (element.isBF16()) return roundBf16(value);
  if (element.isF16())
    return k.make<arith::BitcastOp>(as(k.b.getI16Type()),
                                    k.make<arith::TruncFOp>(as(element), value));
  if (element.isInteger(1)) return k.make<arith::ExtUIOp>(as(k.b.getI8Type()), value);
  return value;
}

Value Evaluator::convert(Value x, Type from, Type to) {
  if (from == to) return x;
  Type target = withElementOf(x.getType(), computeType(to)), source = x.getType();
  bool fromReal = isa<FloatType>(from), toReal = isa<FloatType>(to);
  bool isUnsigned = from.isUnsignedInteger() || from.isInteger(1);
  if (to.isInteger(1)) {
    if (fromReal) return k.make<arith::CmpFOp>(arith::CmpFPredicate::UNE, x, k.number(source, 0));
    return k.make<arith::CmpIOp>(arith::CmpIPredicate::ne, x, k.integer(source, 0));
  }
  if (!toReal) {
    if (fromReal) {
      // Narrow integers by way of i32: a negative number for ui8 then wraps.
      Type wide = withElementOf(source, to.isInteger(64) ? k.b.getI64Type() : k.b.getI32Type());
      Value whole = k.make<arith::FPToSIOp>(wide, x);
      return wide == target ? whole : Value(k.make<arith::TruncIOp>(target, whole));
    }
    unsigned had = getElementTypeOrSelf(source).getIntOrFloatBitWidth();
    unsigned wants = getElementTypeOrSelf(target).getIntOrFloatBitWidth();
    if (had == wants) return x;
    if (had > wants) return k.make<arith::TruncIOp>(target, x);
    if (isUnsigned) return k.make<arith::ExtUIOp>(target, x);
    return k.make<arith::ExtSIOp>(target, x);
  }
  // f32 holds narrower integers; from the others it must not round to a tie.
  const bool wide = from.isF64() || from.isInteger(32) || from.isInteger(64);
  if (wide && (to.isBF16() || to.isF16()))
    x = oddFloat(x, from);
  else if (!fromReal)
    x = isUnsigned ? Value(k.make<arith::UIToFPOp>(target, x)) : k.make<arith::SIToFPOp>(target, x);
  else if (from.isF64() && !to.isF64())
    x = k.make<arith::TruncFOp>(target, x);
  else if (!from.isF64() && to.isF64())
    x = k.make<arith::ExtFOp>(target, x);
  if (!to.isBF16() && !to.isF16()) return x;
  // An explicit rounding; a store of its result needs no second one.
  return fromStorage(toStorage(x, to), to);
}

Value Evaluator::bitcast(Value x, Type from, Type to) {
  if (from == to) return x;
  Value bits = toStorage(x, from);
  Type stored = withElementOf(bits.getType(), storageType(to));
  return fromStorage(k.make<arith::BitcastOp>(stored, bits), to);
}

}  // namespace lathe::cpu
