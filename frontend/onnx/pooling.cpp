// SPDX-License-Identifier: Apache-2.0
// Pooling: one slice for each element of the window, combined element by element.
#include <cmath>
#include <limits>
#include <numeric>

#include <fmt/format.h>

#include "frontend/onnx/convolved.h"

namespace lathe::onnx {
namespace {

double lowestOf(DType dtype) {
  if (isFloat(dtype)) return -std::numeric_limits<double>::infinity();
  return dtype == DType::U8 ? 0 : dtype == DType::I8 ? -128 : -2147483648.0;
}

using Combine = Tensor (*)(const Tensor&, const Tensor&, std::source_location);
Tensor overTaps(Node& n, const Tensor& padded, const Windows& w, const Dims& counts,
                Combine combine) {
  Tensor y;
  const int64_t taps = tapsOf(n, w);
  for (int64_t tap = 0; tap < taps; ++tap) {
    const Tensor part = tapOf(padded, w, counts, tap);
    y = y.defined() ? combine(y, part, std::source_location::current()) : part;
  }
  return y;
}

// The index of every element of x among all, spatial axes in one of two orders.
Tensor placesOf(const Tensor& x, bool columnMajor) {
  const Dims shape = x.shape();
  const Tensor flat = iota(x, {product(shape)}, 0);
  if (!columnMajor) return reshape(flat, shape);
  Dims turned{shape[0], shape[1]};
  Axes order{0, 1};
  for (size_t i = shape.size(); i-- > 2;) {
    turned.push_back(shape[i]);
    order.push_back(int64_t(i));
  }
  return permuted(reshape(flat, turned), order);
}

void maxPool(Node& n) {
  const Tensor x = n.in(0);
  const Windows w = windowsOf(n, x.shape(), n.list("kernel_shape"));
  const Dims counts = windowCounts(n, x.shape(), w);
  const Tensor padded = paddedFor(x, w, like(x, lowestOf(x.dtype())));
  if (!n.wants(1)) return n.set(overTaps(n, padded, w, counts, max));
  const Tensor all = placesOf(x, n.attribute("storage_order", 0));
  const Tensor places = paddedFor(all, w, like(all, -1));
  const int64_t taps = tapsOf(n, w);
  Tensor best, at;
  for (int64_t tap = 0; tap < taps; ++tap) {
    const Tensor value = tapOf(padded, w, counts, tap), place = tapOf(places, w, counts, tap);
    if (!best.defined()) {
      best = value;
      at = place;
      continue;
    }
    // A padding is never the place of a largest element.
    const Tensor isMore = logicalOr(compare(value, best, Compare::gt), at < 0);
    at = select(isMore, place, at);
    best = max(best, value);
  }
  n.set(0, best);
  n.set(1, at);
}

void averagePool(Node& n) {
  const Tensor given = n.in(0), x = as(given, wide(given.dtype()));
  const Windows w = windowsOf(n, x.shape(), n.list("kernel_shape"));
  const Dims counts = windowCounts(n, x.shape(), w);
  const Tensor sum = overTaps(n, paddedFor(x, w, like(x, 0)), w, counts, add);
  // How many elements each window has: of the image, or of its paddings, too.
  Dims ones{1, 1};
  const Dims shape = x.shape();
  ones.insert(ones.end(), shape.begin() + 2, shape.end());
  Tensor inside = broadcasted(like(x, 1), ones);
  Windows rest = w;
  if (n.attribute("count_include_pad", 0)) {
    Windows explicitPads = w;
    explicitPads.high = w.highGiven;
    inside = paddedFor(inside, explicitPads, like(x, 1));
    for (size_t i = 0; i < rest.low.size(); ++i) {
      rest.low[i] = 0;
      rest.high[i] = w.high[i] - w.highGiven[i];
    }
  }
  const Tensor many = overTaps(n, paddedFor(inside, rest, like(x, 0)), w, counts, add);
  n.set(as(div(sum, many), given.dtype()));
}

Tensor powerOf(const Tensor& x, double p) {
  return p == 2 ? mul(x, x) : p == 1 ? x : pow(x, like(x, p));
}
Tensor rootOf(const Tensor& x, double p) {
  return p == 2 ? sqrt(x) : p == 1 ? x : pow(x, like(x, 1 / p));
}

void lpPool(Node& n) {
  const Tensor x = n.in(0);
  const double p = double(n.attribute("p", 2));
  if (p < 1) n.fail("attribute 'p': expected at least 1");
  const Windows w = windowsOf(n, x.shape(), n.list("kernel_shape"));
  const Tensor padded = paddedFor(powerOf(abs(x), p), w, like(x, 0));
  n.set(rootOf(overTaps(n, padded, w, windowCounts(n, x.shape(), w), add), p));
}

Axes spatialAxes(Node& n, const Tensor& x) {
  if (x.rank() < 3) n.fail("expected [n, c, d1, ...]");
  Axes axes(size_t(x.rank() - 2));
  std::iota(axes.begin(), axes.end(), 2);
  return axes;
}
void globalMax(Node& n) { n.set(reduceMax(n.in(0), spatialAxes(n, n.in(0)), true)); }
void globalAverage(Node& n) { n.set(reduceMean(n.in(0), spatialAxes(n, n.in(0)), true)); }
void globalLp(Node& n) {
  const Tensor x = n.in(0);
  const double p = double(n.attribute("p", 2));
  if (p < 1) n.fail("attribute 'p': expected at least 1");
  n.set(rootOf(reduceSum(powerOf(abs(x), p), spatialAxes(n, x), true), p));
}

// Values back to the places that a MaxPool took them from.
void maxUnpool(Node& n) {
  const Tensor x = n.in(0), indices = n.in(1, DType::I64);
  Dims shape = x.shape();
  const Windows w = windowsOf(n, shape, n.list("kernel_shape"));
  // The indices count in the shape that the kernel makes; an output_shape only adds room behind.
  Dims made = shape;
  for (size_t i = 0; i < w.kernel.size(); ++i)
    made[i + 2] = (shape[i + 2] - 1) * w.strides[i] + w.kernel[i] - w.low[i] - w.high[i];
  Dims result = made;
  if (n.has(2)) result = n.dims(2);
  if (result.size() != made.size()) n.fail("an output shape of another rank");
  const Dim count = product(shape);
  Tensor flat = broadcasted(like(x, 0), {product(made)});
  flat = scatter(flat, reshape(indices, {count}), reshape(x, {count}), 0);
  Tensor y = reshape(flat, made);
  Axes low(made.size(), 0), high = low;
  for (size_t i = 0; i < made.size(); ++i) {
    const auto more = (result[i] - made[i]).asConstant();
    if (!more || *more < 0) n.refuse("an output shape smaller than what the kernel makes");
    high[i] = *more;
  }
  n.set(zeroPadded(y, low, high));
}

const Lowering kTable[] = {
    {"AveragePool",
     {"auto_pad", "ceil_mode", "count_include_pad", "dilations", "kernel_shape", "pads", "strides"},
     averagePool,
     "strides along axes of symbolic size, kernels of more than 1,024 elements"},
    {"GlobalAveragePool", {}, globalAverage},
    {"GlobalLpPool", {"p"}, globalLp},
    {"GlobalMaxPool", {}, globalMax},
    {"LpPool",
     {"auto_pad", "ceil_mode", "dilations", "kernel_shape", "p", "pads", "strides"},
     lpPool,
     "as AveragePool"},
    {"MaxPool",
     {"auto_pad", "ceil_mode", "dilations", "kernel_shape", "pads", "storage_order", "strides"},
     maxPool,
     "as AveragePool"},
    {"MaxUnpool", {"kernel_shape", "pads", "strides"}, maxUnpool}};

}  // namespace

std::span<const Lowering> poolingLowerings() { return kTable; }

}  // namespace lathe::onnx
