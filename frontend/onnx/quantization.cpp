// SPDX-License-Identifier: Apache-2.0
// Reals as integers with a scale and a zero point, per tensor, per axis or per block.
#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "frontend/onnx/quantized.h"

namespace lathe::onnx {

static std::pair<double, double> rangeOf(DType dtype) {
  switch (dtype) {
    case DType::U8:
      return {0, 255};
    case DType::I8:
      return {-128, 127};
    case DType::I16:
      return {-32768, 32767};
    case DType::I4:
      return {-8, 7};
    case DType::U4:
      return {0, 15};
    default:
      return {-2147483648.0, 2147483647.0};
  }
}

Tensor rounded(const Tensor& x, const Tensor& zero, DType dtype) {
  const auto [lo, hi] = rangeOf(dtype);
  Tensor y = round(x);
  if (zero.defined()) y = add(y, as(zero, y.dtype()));
  y = clamp(y, lo, hi);
  if (!isPacked(dtype)) return cast(y, dtype);
  return cast(cast(y, dtype == DType::I4 ? DType::I8 : DType::U8), dtype);
}

namespace {

// 4-bit integers have no arithmetic.
Tensor widened(const Tensor& x, DType to) {
  if (x.dtype() == DType::I4) return as(cast(x, DType::I8), to);
  if (x.dtype() == DType::U4) return as(cast(x, DType::U8), to);
  return as(x, to);
}

// A scale or zero point as what stretches to x: of all, of an axis's places, or of blocks of them.
Tensor stretched(Node& n, const Tensor& s, const Tensor& x, int64_t axis, int64_t block) {
  if (s.rank() == 0 || (s.rank() == 1 && s.dim(0) == Dim(1) && !block)) return reshaped(s, {});
  if (!block) {
    if (s.rank() != 1) n.fail("expected a scale, or one for each place of an axis");
    Dims shape(size_t(x.rank()), Dim(1));
    shape[size_t(axis)] = s.dim(0);
    return reshaped(s, shape);
  }
  const auto size = x.dim(axis).asConstant(),
             blocks = s.rank() == x.rank() ? s.dim(axis).asConstant() : std::nullopt;
  if (!size || !blocks || block < 1) n.refuse("blocks along an axis of symbolic size");
  Dims split = s.shape(), wide = split, joined = split;
  split.insert(split.begin() + axis + 1, Dim(1));
  wide.insert(wide.begin() + axis + 1, Dim(block));
  joined[size_t(axis)] = *blocks * block;
  if (*blocks * block < *size) n.fail("fewer blocks than the axis has");
  const Tensor all = reshape(broadcast(reshape(s, split), wide), joined);
  return *blocks * block == *size ? all : sliceAxis(all, axis, 0, *size);
}
int64_t axisOf(Node& n, const Tensor& x) {
  const int64_t axis = n.attribute("axis", 1);
  return x.rank() == 0 || (axis >= x.rank() && n.value(1).shape().size() == 0)
             ? 0
             : n.axis(std::min(axis, axis == 1 && x.rank() == 1 ? int64_t(0) : axis), x.rank());
}

void quantizeLinear(Node& n) {
  const Tensor x = n.in(0);
  const int64_t axis = axisOf(n, x), block = n.attribute("block_size", 0);
  DType to = n.has(2) ? n.value(2).dtype() : n.dtypeAttribute("output_dtype", DType::U8);
  if (isFloat(to)) n.refuse("quantization to floats");
  const Tensor given = n.in(1);
  DType in = wide(given.dtype());
  if (isFloat(x.dtype()) && x.dtype() != DType::F64 && n.hasAttribute("precision"))
    in = n.dtypeAttribute("precision", in);
  const Tensor scale = stretched(n, as(given, in), x, axis, block);
  Tensor zero;
  if (n.has(2)) zero = stretched(n, widened(n.in(2), in), x, axis, block);
  n.set(rounded(div(as(x, in), scale), zero, to));
}

// Onto the dialect's own op where that has the form: constants in few bits stay so until a kernel
// reads them.
void dequantizeLinear(Node& n) {
  const Tensor x = n.in(0), scale = n.in(1);
  const int64_t axis = axisOf(n, x), block = n.attribute("block_size", 0);
  const DType to = n.dtypeAttribute("output_dtype", scale.dtype());
  if (!isFloat(scale.dtype())) n.fail("expected a scale of floats");
  const bool isSmall = isPacked(x.dtype()) || x.dtype() == DType::I8 || x.dtype() == DType::U8;
  const auto size = x.rank() ? x.dim(axis).asConstant() : std::nullopt;
  const bool isOne = scale.rank() == 0 || (scale.rank() == 1 && scale.dim(0) == Dim(1) && !block);
  const Tensor zero = n.maybe(2);
  if (isSmall && size && *size && !isOne && block && scale.rank() == x.rank()) {
    Tensor bytes = zero;
    if (bytes.defined() && isPacked(bytes.dtype()))
      bytes = widened(bytes, bytes.dtype() == DType::I4 ? DType::I8 : DType::U8);
    return n.set(dequantize(x, scale, bytes, axis, block, to));
  }
  const DType in = wide(scale.dtype());
  Tensor y;
  if (x.dtype() == DType::I32 || x.dtype() == DType::I16 || isSmall) {
    Tensor whole = widened(x, DType::I32);
    if (zero.defined()) whole = sub(whole, stretched(n, widened(zero, DType::I32), x, axis, block));
    y = as(whole, in);
  } else {
    n.refuse("operands of element type " + std::string(nameOf(x.dtype())));
  }
  n.set(as(mul(y, stretched(n, as(scale, in), x, axis, block)), to));
}

// To u8 over the range of the values, 0 included.
void dynamicQuantize(Node& n) {
  const Tensor x = n.in(0);
  Axes all;
  for (int64_t i = 0; i < x.rank(); ++i) all.push_back(i);
  const Tensor hi = max(reduceMax(x, all), n.scalar(0, DType::F32));
  const Tensor lo = min(reduceMin(x, all), n.scalar(0, DType::F32));
  const Tensor scale = div(sub(hi, lo), like(hi, 255));
  const Tensor zero = rounded(neg(div(lo, scale)), Tensor(), DType::U8);
  n.set(0, rounded(div(x, scale), zero, DType::U8));
  n.set(1, scale);
  n.set(2, zero);
}

const Lowering kTable[] = {{"DequantizeLinear",
                            {"axis", "block_size", "output_dtype"},
                            dequantizeLinear,
                            "8-bit and 4-bit floats, unsigned integers of more than 8 bits"},
                           {"DynamicQuantizeLinear", {}, dynamicQuantize},
                           {"QuantizeLinear",
                            {"axis", "block_size", "output_dtype", "precision", "saturate"},
                            quantizeLinear,
                            "8-bit and 4-bit floats, unsigned integers of more than 8 bits"}};

}  // namespace

std::span<const Lowering> quantizationLowerings() { return kTable; }

}  // namespace lathe::onnx
