// SPDX-License-Identifier: Apache-2.0
// Choices and reductions.
#include <limits>

#include "ir/composing.h"
#include "ir/operand_checks.h"
#include "lathe/ir/ops.h"

namespace lathe {
namespace {

// Bool [rows, columns] of the last two axes: true on and below the diagonal.
Tensor lower(const char* function, const Tensor& x, int64_t diagonal, std::source_location at) {
  expectTensor(function, x, at);
  if (x.rank(at) < 2) failIn(function, "expected [..., rows, columns], got " + typeTextOf(x), at);
  Tensor row = iota(x, {x.dim(-2), 1}, 0, DType::I64, at);
  Tensor column = iota(x, {1, x.dim(-1)}, 1, DType::I64, at);
  if (diagonal) row = add(row, scalarLike(row, double(diagonal), at), at);
  return compare(column, row, Compare::le, at);
}

Tensor inDType(const Tensor& x, DType dtype, std::source_location at) {
  return x.dtype(at) == dtype ? x : cast(x, dtype, at);
}
DType wideOf(const Tensor& x) { return x.dtype() == DType::F64 ? DType::F64 : DType::F32; }

// The number of elements along axes, as a scalar of the dtype.
Tensor countAlong(const Tensor& x, const Axes& axes, DType dtype, std::source_location at) {
  Dim count(1);
  for (int64_t axis : axes) count = count * x.dim(axis, at);
  if (auto number = count.asConstant()) return full(x, {}, double(*number), dtype, at);
  return inDType(reduceSum(full(x, {count}, 1, DType::I64, at), {0}, false, at), dtype, at);
}

// The dtype, or nothing where a pattern leaves it open.
std::optional<DType> knownDType(const Tensor& x, std::source_location at) {
  try {
    return x.dtype(at);
  } catch (const Error&) {
    return {};
  }
}

}  // namespace

Tensor divide(const Tensor& a, const Tensor& b, std::source_location at) {
  for (const Tensor* x : {&a, &b})
    if (std::optional<DType> dtype = knownDType(*x, at); dtype && !isFloat(*dtype))
      throw Error(ErrorCode::InvalidArgument,
                  "division: expected floats, got " + std::string(nameOf(*dtype)) +
                      "; cast to a float for what PyTorch's `/` gives, or call div(a, b), which "
                      "rounds toward zero",
                  at);
  return div(a, b, at);
}

Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b, std::source_location at) {
  const Composing composing("where");
  expectMask("where", condition, at);
  return select(condition, a, b, at);
}
Tensor where(const Tensor& condition, const Tensor& a, double b, std::source_location at) {
  const Composing composing("where");
  expectMask("where", condition, at);
  return select(condition, a, scalarLike(a, b, at), at);
}
Tensor where(const Tensor& condition, double a, const Tensor& b, std::source_location at) {
  const Composing composing("where");
  expectMask("where", condition, at);
  return select(condition, scalarLike(b, a, at), b, at);
}

Tensor maskedFill(const Tensor& x, const Tensor& mask, double value, std::source_location at) {
  const Composing composing("maskedFill");
  expectTensor("maskedFill", x, at);
  expectMask("maskedFill", mask, at);
  Tensor y = select(mask, scalarLike(x, value, at), x, at);
  if (y.shape(at) != x.shape(at))
    failIn("maskedFill",
           "expected a mask that broadcasts to " + typeTextOf(x) + ", got " + typeTextOf(mask) +
               "; unsqueeze or reshape it, or use where to stretch x",
           at);
  return y;
}

Tensor clamp(const Tensor& x, std::optional<double> lo, std::optional<double> hi,
             std::source_location at) {
  const Composing composing("clamp");
  expectTensor("clamp", x, at);
  if (!lo && !hi) failIn("clamp", "expected a lower or an upper bound, got none", at);
  Tensor y = lo ? max(x, scalarLike(x, *lo, at), at) : x;
  return hi ? min(y, scalarLike(x, *hi, at), at) : y;
}

Tensor tril(const Tensor& x, int64_t diagonal, std::source_location at) {
  const Composing composing("tril");
  return select(lower("tril", x, diagonal, at), x, scalarLike(x, 0, at), at);
}
Tensor triu(const Tensor& x, int64_t diagonal, std::source_location at) {
  const Composing composing("triu");
  return select(lower("triu", x, diagonal - 1, at), scalarLike(x, 0, at), x, at);
}

Tensor logsumexp(const Tensor& x, Axes axes, bool keepDims, std::source_location at) {
  const Composing composing("logsumexp");
  expectReals("logsumexp", x, at);
  Tensor wide = inDType(x, wideOf(x), at);
  Tensor top = reduceMax(wide, axes, true, at);
  // A row of -infinity, or with an infinity, would give NaN as infinity less infinity.
  Tensor endless = compare(
      abs(top, at), scalarLike(top, std::numeric_limits<double>::infinity(), at), Compare::eq, at);
  Tensor shift = select(endless, scalarLike(top, 0, at), top, at);
  Tensor sum = reduceSum(exp(sub(wide, shift, at), at), axes, keepDims, at);
  Tensor back = keepDims ? shift : reduceMax(shift, axes, false, at);
  return inDType(add(log(sum, at), back, at), x.dtype(), at);
}

Tensor var(const Tensor& x, Axes axes, bool keepDims, int64_t correction, std::source_location at) {
  const Composing composing("var");
  expectReals("var", x, at);
  if (correction < 0)
    failIn("var", "expected a correction of 0 or more, got " + std::to_string(correction), at);
  Tensor wide = inDType(x, wideOf(x), at);
  Tensor centred = sub(wide, reduceMean(wide, axes, true, at), at);
  Tensor squares = mul(centred, centred, at);
  if (!correction) return inDType(reduceMean(squares, axes, keepDims, at), x.dtype(), at);
  Tensor sum = reduceSum(squares, axes, keepDims, at);
  Tensor count = countAlong(x, axes, wide.dtype(), at);
  count = sub(count, scalarLike(count, double(correction), at), at);
  return inDType(div(sum, max(count, scalarLike(count, 0, at), at), at), x.dtype(), at);
}

}  // namespace lathe
