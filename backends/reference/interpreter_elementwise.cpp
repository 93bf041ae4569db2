// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <utility>

#include "backends/reference/interpreter_ops.h"
#include "lathe/runtime/odd_rounding.h"

using namespace mlir;

namespace lathe::reference {
namespace {

template <class F>
Dense mapReals(const Context& cx, const Dense& x, F f) {
  std::vector<double> y(x.reals->size());
  std::transform(x.reals->begin(), x.reals->end(), y.begin(), f);
  return cx.reals(x.dtype, x.shape, std::move(y));
}

template <class F>
Dense mapIntegers(const Context& cx, const Dense& x, F f) {
  std::vector<int64_t> y(x.integers->size());
  std::transform(x.integers->begin(), x.integers->end(), y.begin(), f);
  return cx.integers(x.dtype, x.shape, std::move(y));
}

// Both operands under their common shape.
std::pair<Dense, Dense> aligned(Operands o) {
  Shape shape = broadcastShape(o[0].shape, o[1].shape);
  return {stretch(o[0], shape), stretch(o[1], shape)};
}

template <class F>
Dense zipReals(const Context& cx, Operands o, F f) {
  auto [a, b] = aligned(o);
  std::vector<double> y(a.reals->size());
  std::transform(a.reals->begin(), a.reals->end(), b.reals->begin(), y.begin(), f);
  return cx.reals(a.dtype, a.shape, std::move(y));
}

template <class F>
Dense zipIntegers(const Context& cx, Operands o, F f) {
  auto [a, b] = aligned(o);
  std::vector<int64_t> y(a.integers->size());
  std::transform(a.integers->begin(), a.integers->end(), b.integers->begin(), y.begin(), f);
  return cx.integers(a.dtype, a.shape, std::move(y));
}

template <class F, class G>
Dense zipNumbers(const Context& cx, Operands o, F reals, G integers) {
  return o[0].isReal() ? zipReals(cx, o, reals) : zipIntegers(cx, o, integers);
}

double sigmoid(double x) {
  // exp of a negative number only: it cannot overflow.
  double e = std::exp(-std::abs(x));
  return x >= 0 ? 1 / (1 + e) : e / (1 + e);
}

double flooredMod(double a, double b) {
  double r = std::fmod(a, b);
  if (r == 0) return std::copysign(0.0, b);
  return (r < 0) != (b < 0) ? r + b : r;
}

int64_t flooredMod(int64_t a, int64_t b) {
  if (b == 0 || b == -1) return 0;  // the lowest value by -1 traps
  int64_t r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

int64_t quotient(int64_t a, int64_t b) {
  if (b == 0) return 0;
  return b == -1 ? wrappingSub(0, a) : a / b;
}

template <class T>
bool holds(Compare p, T a, T b) {
  switch (p) {
    case Compare::eq:
      return a == b;
    case Compare::ne:
      return a != b;
    case Compare::lt:
      return a < b;
    case Compare::le:
      return a <= b;
    case Compare::gt:
      return a > b;
    case Compare::ge:
      return a >= b;
  }
  return false;
}

Dense compare(Compare p, Operands o) {
  auto [a, b] = aligned(o);
  std::vector<int64_t> y(size_t(a.size()));
  for (size_t i = 0; i < y.size(); ++i)
    y[i] = a.isReal() ? holds(p, (*a.reals)[i], (*b.reals)[i])
                      : holds(p, (*a.integers)[i], (*b.integers)[i]);
  return makeIntegers(DType::Bool, a.shape, std::move(y));
}

Dense select(Operands o) {
  Shape shape = broadcastShape(broadcastShape(o[0].shape, o[1].shape), o[2].shape);
  Dense condition = stretch(o[0], shape);
  Dense branches[] = {stretch(o[1], shape), stretch(o[2], shape)};
  int64_t n = condition.size();
  std::vector<int64_t> from(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) from[size_t(i)] = (*condition.integers)[size_t(i)] ? i : n + i;
  return pick(branches, shape, from);
}

Dense isNanOf(const Dense& x) {
  std::vector<int64_t> y(size_t(x.size()));
  for (size_t i = 0; i < y.size(); ++i) y[i] = std::isnan((*x.reals)[i]);
  return makeIntegers(DType::Bool, x.shape, std::move(y));
}

// Toward zero; what the type cannot hold goes to its nearest value, NaN to 0.
int64_t truncated(DType to, double v) {
  if (std::isnan(v)) return 0;
  if (to == DType::Bool) return v != 0;
  // 2^63 is a double, the highest i64 is not.
  if (v >= double(highestInteger(to))) return highestInteger(to);
  if (v <= double(lowestInteger(to))) return lowestInteger(to);
  return int64_t(v);
}

Dense cast(const Context& cx, DType to, const Dense& x) {
  if (x.isReal() && isFloat(to)) return cx.reals(to, x.shape, *x.reals);
  size_t n = size_t(x.size());
  if (isFloat(to)) {
    // One rounding from the integer, which double would make two.
    bool rounds = cx.precision == Precision::OwnDtype && to != DType::F64;
    std::vector<double> y(n);
    for (size_t i = 0; i < n; ++i) {
      int64_t v = (*x.integers)[i];
      y[i] = !rounds ? double(v) : to == DType::F32 ? float(v) : oddFloat(v);
    }
    return cx.reals(to, x.shape, std::move(y));
  }
  std::vector<int64_t> y(n);
  for (size_t i = 0; i < n; ++i) {
    if (!x.isReal())
      y[i] = (*x.integers)[i];
    else if (to == DType::Bool)
      y[i] = (*x.reals)[i] != 0;
    else
      y[i] = truncated(to, (*x.reals)[i]);
  }
  return cx.integers(to, x.shape, std::move(y));
}

int64_t bitsOf(DType dtype, double v) {
  switch (dtype) {
    case DType::F64:
      return std::bit_cast<int64_t>(v);
    case DType::F32:
      return std::bit_cast<int32_t>(float(v));
    case DType::BF16:
      return doubleToBf16(v);
    default:
      return doubleToF16(v);
  }
}

double realOf(DType dtype, int64_t bits) {
  switch (dtype) {
    case DType::F64:
      return std::bit_cast<double>(bits);
    case DType::F32:
      return std::bit_cast<float>(int32_t(bits));
    case DType::BF16:
      return bf16ToFloat(uint16_t(bits));
    default:
      return f16ToFloat(uint16_t(bits));
  }
}

Dense bitcast(const Context& cx, DType to, const Dense& x) {
  std::vector<int64_t> bits(size_t(x.size()));
  for (size_t i = 0; i < bits.size(); ++i)
    bits[i] = x.isReal() ? bitsOf(x.dtype, (*x.reals)[i]) : (*x.integers)[i];
  if (!isFloat(to)) return cx.integers(to, x.shape, std::move(bits));
  std::vector<double> y(bits.size());
  for (size_t i = 0; i < y.size(); ++i) y[i] = realOf(to, bits[i]);
  return makeReals(to, x.shape, std::move(y));
}

// Shifts read the count as unsigned, so a negative one is beyond the width.
Dense shiftLeft(const Context& cx, Operands o) {
  uint64_t width = 8 * sizeOf(o[0].dtype);
  return zipIntegers(cx, o, [=](int64_t a, int64_t b) {
    return uint64_t(b) < width ? int64_t(uint64_t(a) << b) : 0;
  });
}
Dense shiftRight(const Context& cx, Operands o) {
  uint64_t width = 8 * sizeOf(o[0].dtype), mask = ~uint64_t(0) >> (64 - width);
  return zipIntegers(cx, o, [=](int64_t a, int64_t b) {
    return uint64_t(b) < width ? int64_t((uint64_t(a) & mask) >> b) : 0;
  });
}

std::optional<Dense> evalUnary(const Context& cx, Operation* op, Operands o) {
  auto reals = [&](auto f) { return mapReals(cx, o[0], f); };
  auto numbers = [&](auto f, auto g) {
    return o[0].isReal() ? mapReals(cx, o[0], f) : mapIntegers(cx, o[0], g);
  };
  auto negated = [](int64_t v) { return wrappingSub(0, v); };
  auto sign = [](auto v) -> decltype(v) { return isNan(v) ? v : decltype(v)((v > 0) - (v < 0)); };
  return llvm::TypeSwitch<Operation*, std::optional<Dense>>(op)
      .Case([&](NegOp) { return numbers([](double v) { return -v; }, negated); })
      .Case([&](AbsOp) {
        return numbers([](double v) { return std::abs(v); },
                       [&](int64_t v) { return v < 0 ? negated(v) : v; });
      })
      .Case([&](SignOp) { return numbers(sign, sign); })
      .Case([&](ExpOp) { return reals([](double v) { return std::exp(v); }); })
      .Case([&](LogOp) { return reals([](double v) { return std::log(v); }); })
      .Case([&](SqrtOp) { return reals([](double v) { return std::sqrt(v); }); })
      .Case([&](RsqrtOp) { return reals([](double v) { return 1 / std::sqrt(v); }); })
      .Case([&](ReciprocalOp) { return reals([](double v) { return 1 / v; }); })
      .Case([&](SinOp) { return reals([](double v) { return std::sin(v); }); })
      .Case([&](CosOp) { return reals([](double v) { return std::cos(v); }); })
      .Case([&](TanhOp) { return reals([](double v) { return std::tanh(v); }); })
      .Case([&](ErfOp) { return reals([](double v) { return std::erf(v); }); })
      .Case([&](SigmoidOp) { return reals(sigmoid); })
      .Case([&](FloorOp) { return reals([](double v) { return std::floor(v); }); })
      .Case([&](CeilOp) { return reals([](double v) { return std::ceil(v); }); })
      // In the default rounding mode, which nothing here changes: ties to even.
      .Case([&](RoundOp) { return reals([](double v) { return std::nearbyint(v); }); })
      .Case([&](LogicalNotOp) { return mapIntegers(cx, o[0], [](int64_t v) { return v == 0; }); })
      .Case([&](IsNanOp) { return isNanOf(o[0]); })
      .Case([&](CastOp) { return cast(cx, resultDType(op), o[0]); })
      .Case([&](BitcastOp) { return bitcast(cx, resultDType(op), o[0]); })
      .Default([](Operation*) -> std::optional<Dense> { return std::nullopt; });
}

}  // namespace

std::optional<Dense> evalElementwise(const Context& cx, Operation* op, Operands o) {
  if (auto y = evalUnary(cx, op, o)) return y;
  auto both = [&](auto f, auto g) { return zipNumbers(cx, o, f, g); };
  auto integers = [&](auto f) { return zipIntegers(cx, o, f); };
  auto mod = [](auto a, auto b) { return flooredMod(a, b); };
  auto max = [](auto a, auto b) { return larger(a, b); };
  auto min = [](auto a, auto b) { return smaller(a, b); };
  return llvm::TypeSwitch<Operation*, std::optional<Dense>>(op)
      .Case([&](AddOp) { return both(std::plus<>(), wrappingAdd); })
      .Case([&](SubOp) { return both(std::minus<>(), wrappingSub); })
      .Case([&](MulOp) { return both(std::multiplies<>(), wrappingMul); })
      .Case([&](DivOp) { return both(std::divides<>(), quotient); })
      .Case([&](MaxOp) { return both(max, max); })
      .Case([&](MinOp) { return both(min, min); })
      .Case(
          [&](PowOp) { return zipReals(cx, o, [](double a, double b) { return std::pow(a, b); }); })
      .Case([&](ModOp) { return both(mod, mod); })
      .Case<LogicalAndOp, BitwiseAndOp>([&](auto) { return integers(std::bit_and<>()); })
      .Case<LogicalOrOp, BitwiseOrOp>([&](auto) { return integers(std::bit_or<>()); })
      .Case([&](BitwiseXorOp) { return integers(std::bit_xor<>()); })
      .Case([&](ShiftLeftOp) { return shiftLeft(cx, o); })
      .Case([&](ShiftRightOp) { return shiftRight(cx, o); })
      .Case([&](CompareOp c) { return compare(c.getPredicate(), o); })
      .Case([&](SelectOp) { return select(o); })
      .Default([](Operation*) -> std::optional<Dense> { return std::nullopt; });
}

}  // namespace lathe::reference
