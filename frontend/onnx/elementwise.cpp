// SPDX-License-Identifier: Apache-2.0
// Arithmetic, comparisons, logic, bits and casts, element by element.
#include <cmath>
#include <limits>

#include "frontend/onnx/node.h"

namespace lathe::onnx {
namespace {

template <Tensor (*function)(const Tensor&, std::source_location)>
void unary(Node& n) {
  n.set(function(n.in(0), std::source_location::current()));
}
template <Tensor (*function)(const Tensor&, const Tensor&, std::source_location)>
void binary(Node& n) {
  n.set(function(n.in(0), n.in(1), std::source_location::current()));
}
template <Compare predicate>
void comparison(Node& n) {
  n.set(compare(n.in(0), n.in(1), predicate));
}
// Of any number of operands.
template <Tensor (*function)(const Tensor&, const Tensor&, std::source_location)>
void several(Node& n) {
  Tensor y = n.in(0);
  for (size_t i = 1; i < n.operands(); ++i)
    y = function(y, n.in(i), std::source_location::current());
  n.set(y);
}

void mean(Node& n) {
  several<add>(n);
  const Tensor sum = n.made()[0].tensor;
  n.set(div(sum, like(sum, double(n.operands()))));
}

// ONNX's reference leaves integer division by zero open, as the dialect's op fixes it.
void absolute(Node& n) {
  const Tensor x = n.in(0);
  n.set(x.dtype() == DType::U8 ? x : abs(x));
}

// Remainders: of floored division, or C's fmod with the sign of the first operand.
void modulo(Node& n) {
  const Tensor a = n.in(0), b = n.in(1);
  if (!n.attribute("fmod", 0)) return n.set(mod(a, b));
  if (!isFloat(a.dtype())) return n.set(sub(a, mul(div(a, b), b)));
  const Tensor size = mod(abs(a), abs(b));
  n.set(select(a < 0, neg(size), size));
}

// Whole powers of integers by squaring: exact, and wraps as products do.
Tensor integerPower(const Tensor& base, const Tensor& exponent) {
  Tensor size = abs(exponent);
  // Beyond 63 only bases of -1, 0 and 1 have a power: that of 62 or 63.
  size = select(size > 63, bitwiseAnd(size, like(size, 1)) + 62.0, size);
  Tensor y = like(base, 1), square = base;
  for (int bit = 0; bit < 6; ++bit) {
    const Tensor isSet = bitwiseAnd(shiftRight(size, like(size, bit)), like(size, 1)) == 1;
    y = select(isSet, mul(y, square), broadcasted(y, y.shape()));
    square = mul(square, square);
  }
  const Tensor isOne = mul(y, y) == 1;
  return select(exponent < 0, select(isOne, y, like(y, 0)), y);
}

void power(Node& n) {
  const Tensor a = n.in(0), b = n.in(1);
  const DType dtype = a.dtype();
  if (isFloat(dtype)) {
    if (!isFloat(b.dtype())) return n.set(pow(a, as(b, dtype)));
    const DType common = b.dtype() == DType::F64 ? DType::F64 : dtype;
    return n.set(as(pow(as(a, common), as(b, common)), dtype));
  }
  if (isFloat(b.dtype())) return n.set(as(pow(as(a, DType::F64), as(b, DType::F64)), dtype));
  n.set(as(integerPower(as(a, DType::I64), as(b, DType::I64)), dtype));
}

void negative(Node& n) { n.set(neg(n.in(0))); }

void bitShift(Node& n) {
  const std::string direction = n.text("direction", "");
  if (direction != "LEFT" && direction != "RIGHT")
    n.fail("attribute 'direction': expected LEFT or RIGHT, got '" + direction + "'");
  const Tensor a = n.in(0), b = n.in(1);
  if (a.dtype() != DType::U8 && direction == "RIGHT") {
    // Signed numbers keep their sign.
    const Tensor ones = bitwiseXor(a, like(a, -1));
    return n.set(select(a < 0, bitwiseXor(shiftRight(ones, b), like(a, -1)), shiftRight(a, b)));
  }
  n.set(direction == "LEFT" ? shiftLeft(a, b) : shiftRight(a, b));
}
void bitwiseNot(Node& n) {
  const Tensor x = n.in(0);
  n.set(bitwiseXor(x, like(x, x.dtype() == DType::U8 ? 255 : -1)));
}
void exclusiveOr(Node& n) { n.set(compare(n.in(0), n.in(1), Compare::ne)); }

void choice(Node& n) { n.set(select(n.in(0), n.in(1), n.in(2))); }

void isInfinite(Node& n) {
  const Tensor x = n.in(0);
  const double infinity = std::numeric_limits<double>::infinity();
  const Tensor up = x == infinity, down = x == -infinity;
  const bool wantsUp = n.attribute("detect_positive", 1),
             wantsDown = n.attribute("detect_negative", 1);
  if (wantsUp && wantsDown) return n.set(up | down);
  if (wantsUp || wantsDown) return n.set(wantsUp ? up : down);
  n.set(logicalAnd(up, down));
}

// A bound that is NaN or left out does not bound; where both are there the upper one counts.
void clip(Node& n) {
  Tensor x = n.in(0);
  if (n.hasAttribute("min")) x = max(x, like(x, n.real("min", 0)));
  if (n.has(1)) x = max(x, n.in(1));
  if (n.hasAttribute("max")) x = min(x, like(x, n.real("max", 0)));
  if (n.has(2)) x = min(x, n.in(2));
  n.set(x);
}

// --- casts

// Floats to integers saturate nowhere in ONNX's text; integers to narrower ones keep low bits.
Tensor converted(const Tensor& x, DType to) {
  if (x.dtype() == to) return x;
  if (isPacked(x.dtype()) || isPacked(to)) {
    const DType stored = to == DType::U4 || x.dtype() == DType::U4 ? DType::U8 : DType::I8;
    const Tensor bytes = isPacked(x.dtype()) ? cast(x, stored) : converted(x, stored);
    return isPacked(to) ? cast(bytes, to) : converted(bytes, to);
  }
  // Reals outside of a narrow integer's range keep the low bits of the whole number.
  if (isFloat(x.dtype()) && (to == DType::I8 || to == DType::U8 || to == DType::I16))
    return cast(cast(x, DType::I32), to);
  return cast(x, to);
}
void castTo(Node& n) { n.set(converted(n.in(0), n.dtypeAttribute("to", DType::F32))); }
void castLike(Node& n) {
  const Value& target = n.value(1);
  if (target.kind == Value::Kind::Sizes || target.kind == Value::Kind::Sequence)
    return n.set(converted(n.in(0), n.in(1).dtype()));
  n.set(converted(n.in(0), target.dtype()));
}
void bitCast(Node& n) {
  const DType to = n.dtypeAttribute("to", DType::F32);
  const Tensor x = n.in(0);
  if (isPacked(x.dtype()) || isPacked(to)) n.refuse("4-bit integers");
  n.set(x.dtype() == to ? x : bitcast(x, to));
}

void same(Node& n) { n.set(n.value(0)); }

void binarize(Node& n) {
  const Tensor x = n.in(0);
  n.set(as(x > n.real("threshold", 0), x.dtype()));
}

const Lowering kTable[] = {{"Abs", {}, absolute},
                           {"Add", {}, binary<add>},
                           {"And", {}, binary<logicalAnd>},
                           {"Binarizer", {"threshold"}, binarize, {}, "ai.onnx.ml"},
                           {"BitCast", {"to"}, bitCast, "element types of another width"},
                           {"BitShift", {"direction"}, bitShift},
                           {"BitwiseAnd", {}, binary<bitwiseAnd>},
                           {"BitwiseNot", {}, bitwiseNot},
                           {"BitwiseOr", {}, binary<bitwiseOr>},
                           {"BitwiseXor", {}, binary<bitwiseXor>},
                           {"Cast",
                            {"to", "saturate"},
                            castTo,
                            "8-bit and 4-bit floats, unsigned integers of more than 8 bits"},
                           {"CastLike", {"saturate"}, castLike, "as Cast"},
                           {"Ceil", {}, unary<ceil>},
                           {"Clip", {"min", "max"}, clip},
                           {"Cos", {}, unary<cos>},
                           {"Div", {}, binary<div>},
                           {"Equal", {}, comparison<Compare::eq>},
                           {"Erf", {}, unary<erf>},
                           {"Exp", {}, unary<exp>},
                           {"Floor", {}, unary<floor>},
                           {"Greater", {}, comparison<Compare::gt>},
                           {"GreaterOrEqual", {}, comparison<Compare::ge>},
                           {"Identity", {}, same},
                           {"IsInf", {"detect_negative", "detect_positive"}, isInfinite},
                           {"IsNaN", {}, unary<isNan>},
                           {"Less", {}, comparison<Compare::lt>},
                           {"LessOrEqual", {}, comparison<Compare::le>},
                           {"Log", {}, unary<log>},
                           {"Max", {}, several<max>},
                           {"Mean", {}, mean},
                           {"Min", {}, several<min>},
                           {"Mod", {"fmod"}, modulo},
                           {"Mul", {}, binary<mul>},
                           {"Neg", {}, negative},
                           {"Not", {}, unary<logicalNot>},
                           {"Or", {}, binary<logicalOr>},
                           {"Pow", {}, power},
                           {"Reciprocal", {}, unary<reciprocal>},
                           {"Round", {}, unary<round>},
                           {"Sigmoid", {}, unary<sigmoid>},
                           {"Sign", {}, unary<sign>},
                           {"Sin", {}, unary<sin>},
                           {"Sqrt", {}, unary<sqrt>},
                           {"Sub", {}, binary<sub>},
                           {"Sum", {}, several<add>},
                           {"Tanh", {}, unary<tanh>},
                           {"Where", {}, choice},
                           {"Xor", {}, exclusiveOr}};

}  // namespace

std::span<const Lowering> elementwiseLowerings() { return kTable; }

}  // namespace lathe::onnx
