// SPDX-License-Identifier: Apache-2.0
// Resizing: along each axis a product with a constant matrix, or a gather for the nearest element.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "frontend/onnx/node.h"
#include "frontend/onnx/quantized.h"

namespace lathe::onnx {
namespace {

constexpr int64_t kMostWeights = 1 << 22;

// Before opset 11 places were scaled from the first element on and rounded down.
bool isOldForm(Node& n) { return n.op() == "Upsample" || n.opset() < 11; }

struct Axis {
  int64_t axis = 0, in = 0, out = 0;
  double scale = 1, roiStart = 0, roiEnd = 1;
};

/// Where output place `y` lies in the input.
double sourceOf(Node& n, const std::string& mode, const Axis& a, double y) {
  const double in = double(a.in), width = a.scale * in;
  if (mode == "align_corners") return width == 1 ? 0 : y * (in - 1) / (width - 1);
  if (mode == "asymmetric") return y / a.scale;
  if (mode == "tf_crop_and_resize") {
    const double part = a.roiEnd - a.roiStart;
    const double along = width == 1 ? part * (in - 1) / 2 : y * part * (in - 1) / (width - 1);
    return along + a.roiStart * (in - 1);
  }
  const double half = (y + 0.5) / a.scale - 0.5;
  if (mode == "pytorch_half_pixel") return width == 1 ? -0.5 : half;
  if (mode == "half_pixel") return half;
  if (mode == "half_pixel_symmetric") return in / 2 * (1 - double(a.out) / width) + half;
  n.refuse("attribute 'coordinate_transformation_mode': got " + mode);
}

double cubic(double x, double a) {
  x = std::abs(x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

struct Kernel {
  int64_t first = 0;  // of the neighbours, from the element at or left of the place
  std::vector<double> weights;
};
// `ratio` is in (0, 1]: the place is that far right of element 0. A kernel that shrinks is
// stretched over more neighbours where it must not alias.
Kernel kernelAt(double ratio, double scale, bool isCubic, double a) {
  Kernel k;
  const double s = std::min(scale, 1.0), reach = isCubic ? 2 : 1;
  k.first = int64_t(std::floor(-reach / s)) + 1;
  const int64_t last = 1 - k.first;
  double sum = 0;
  for (int64_t i = k.first; i <= last; ++i) {
    const double x = s * (double(i) - ratio);
    k.weights.push_back(isCubic ? cubic(x, a) : std::max(1 - std::abs(x), 0.0));
    sum += k.weights.back();
  }
  if (s < 1)
    for (double& w : k.weights) w /= sum;
  return k;
}

int64_t nearest(Node& n, const std::string& mode, double x) {
  const double left = std::floor(x), ratio = x - left;
  if (ratio == 0) return int64_t(left);
  if (mode == "round_prefer_floor") return int64_t(left) + (ratio > 0.5);
  if (mode == "round_prefer_ceil") return int64_t(left) + (ratio >= 0.5);
  if (mode == "floor") return int64_t(left);
  if (mode == "ceil") return int64_t(left) + 1;
  n.refuse("attribute 'nearest_mode': got " + mode);
}

Tensor resizedAlong(Node& n, const Tensor& x, const Axis& a, const std::string& mode,
                    const std::string& coordinates) {
  const bool crops = coordinates == "tf_crop_and_resize";
  Array outside(DType::Bool, {a.out});
  bool anyOutside = false;
  std::vector<double> sources;
  for (int64_t y = 0; y < a.out; ++y) {
    sources.push_back(sourceOf(n, coordinates, a, double(y)));
    if (!std::isfinite(sources.back()) || std::abs(sources.back()) > 1e12)
      n.fail("a place that is no number");
    const bool isOut = crops && (sources.back() < 0 || sources.back() > double(a.in - 1));
    outside.set(y, isOut);
    anyOutside |= isOut;
  }
  Tensor result;
  if (mode == "nearest") {
    const std::string rounding =
        n.text("nearest_mode", isOldForm(n) ? "floor" : "round_prefer_floor");
    std::vector<int64_t> places;
    for (double s : sources)
      places.push_back(std::clamp(nearest(n, rounding, s), int64_t(0), a.in - 1));
    result = gather(x, n.constant(Array::fromInts(places, {a.out})), a.axis);
  } else {
    if (a.out * a.in > kMostWeights) n.refuse("a matrix of more than 2^22 weights along an axis");
    const bool isCubic = mode == "cubic", antialias = n.attribute("antialias", 0);
    const bool exclude = n.attribute("exclude_outside", 0);
    const DType in = wide(x.dtype());
    Array weights(in, {a.in, a.out});
    for (int64_t y = 0; y < a.out; ++y) {
      const double s = sources[size_t(y)], left = std::ceil(s) - 1;
      Kernel k =
          kernelAt(s - left, antialias ? a.scale : 1, isCubic, n.real("cubic_coeff_a", -0.75));
      double kept = 0;
      auto place = [&](size_t i) { return int64_t(left) + k.first + int64_t(i); };
      for (size_t i = 0; i < k.weights.size() && exclude; ++i) {
        if (place(i) < 0 || place(i) >= a.in) k.weights[i] = 0;
        kept += k.weights[i];
      }
      for (size_t i = 0; i < k.weights.size(); ++i) {
        const int64_t at = std::clamp(place(i), int64_t(0), a.in - 1) * a.out + y;
        const double w = exclude && kept != 0 ? k.weights[i] / kept : k.weights[i];
        weights.set(at, weights.at(at) + w);
      }
    }
    const Tensor last = a.axis == x.rank() - 1 ? x : swapAxes(x, a.axis, -1);
    Tensor y = matrixProduct(as(last, in), n.constant(weights));
    result = a.axis == x.rank() - 1 ? y : swapAxes(y, a.axis, -1);
  }
  if (!anyOutside) return result;
  Dims shape(size_t(x.rank()), Dim(1));
  shape[size_t(a.axis)] = a.out;
  return select(reshape(n.constant(outside), shape), like(result, n.real("extrapolation_value", 0)),
                result);
}

void resize(Node& n) {
  const Tensor x = n.in(0);
  const std::string mode = n.text("mode", "nearest");
  const std::string coordinates =
      n.text("coordinate_transformation_mode", isOldForm(n) ? "asymmetric" : "half_pixel");
  if (mode != "nearest" && mode != "linear" && mode != "cubic")
    n.refuse("attribute 'mode': got " + mode);
  const size_t scalesAt = isOldForm(n) ? 1 : 2;
  std::vector<int64_t> axes = n.list("axes");
  if (!n.hasAttribute("axes"))
    for (int64_t i = 0; i < x.rank(); ++i) axes.push_back(i);
  for (int64_t& a : axes) a = n.axis(a, x.rank());
  std::vector<double> scales;
  std::vector<int64_t> sizes;
  if (n.has(scalesAt)) {
    const Array given = n.numbers(scalesAt);
    for (int64_t i = 0; i < given.size(); ++i) scales.push_back(given.at(i));
  }
  if (scales.empty() && n.has(3)) sizes = n.ints(3);
  if (scales.empty() && n.hasAttribute("scales")) scales = n.reals("scales");
  if (scales.size() + sizes.size() != axes.size())
    n.fail("expected a scale or a size for each axis");
  std::vector<Axis> plan;
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto size = x.dim(axes[i]).asConstant();
    const bool isSame = !scales.empty() && scales[i] == 1 && coordinates != "tf_crop_and_resize";
    if (isSame) continue;
    if (!size)
      n.refuse(fmt::format("axis {} has the symbolic size {}", axes[i], x.dim(axes[i]).text()));
    Axis a{.axis = axes[i], .in = *size, .out = 0};
    a.scale = sizes.empty() ? scales[i] : double(sizes[i]) / double(*size);
    const double out = sizes.empty() ? std::floor(a.scale * double(*size)) : double(sizes[i]);
    if (!(a.scale > 0) || !(out >= 1 && out <= double(1 << 22)))
      n.fail("a scale or size out of range");
    a.out = int64_t(out);
    plan.push_back(a);
  }
  const std::string policy = n.text("keep_aspect_ratio_policy", "stretch");
  if (policy != "stretch" && !sizes.empty()) {
    if (policy != "not_larger" && policy != "not_smaller")
      n.refuse("attribute 'keep_aspect_ratio_policy': got " + policy);
    double scale = plan.empty() ? 1 : plan[0].scale;
    for (const Axis& a : plan)
      scale = policy == "not_larger" ? std::min(scale, a.scale) : std::max(scale, a.scale);
    for (Axis& a : plan) {
      a.scale = scale;
      a.out = int64_t(std::floor(scale * double(a.in) + 0.5));
    }
  }
  if (coordinates == "tf_crop_and_resize") {
    const Array roi = n.numbers(1);
    if (roi.size() != 2 * int64_t(axes.size()))
      n.fail("operand roi: expected a start and an end for each axis");
    for (size_t i = 0; i < plan.size(); ++i) {
      plan[i].roiStart = roi.at(int64_t(i));
      plan[i].roiEnd = roi.at(int64_t(i + axes.size()));
    }
  }
  Tensor y = x;
  for (const Axis& a : plan)
    if (a.in != a.out || a.scale != 1 || coordinates == "tf_crop_and_resize")
      y = resizedAlong(n, y, a, mode, coordinates);
  if (isFloat(x.dtype()) || mode == "nearest") return n.set(as(y, x.dtype()));
  n.refuse("interpolation of integers");
}

// Places of [-1, 1] in each direction, moved by an affine matrix for each image.
void affineGrid(Node& n) {
  const Tensor theta = n.in(0);
  const std::vector<int64_t> size = n.ints(1);
  if (size.size() != 4 && size.size() != 5) n.fail("expected 4 or 5 sizes");
  const std::vector<int64_t> spatial(size.begin() + 2, size.end());
  const int64_t places = countOf(spatial), axes = int64_t(spatial.size());
  if (places < 1 || places > 1 << 18) n.refuse("a grid of more than 2^18 places");
  const bool corners = n.attribute("align_corners", 0);
  Array grid(wide(theta.dtype()), {axes + 1, places});
  for (int64_t p = 0; p < places; ++p) {
    int64_t rest = p;
    for (int64_t i = axes; i-- > 0;) {
      const int64_t d = spatial[size_t(i)], at = rest % d;
      rest /= d;
      const double value = corners ? (d > 1 ? -1 + 2.0 * double(at) / double(d - 1) : -1)
                                   : (2.0 * double(at) + 1) / double(d) - 1;
      grid.set((axes - 1 - i) * places + p, value);  // x first
    }
    grid.set(axes * places + p, 1);
  }
  const Tensor y = matmul(as(theta, grid.dtype()), n.constant(grid));  // [n, axes, places]
  Dims shape{theta.dim(0)};
  for (int64_t d : spatial) shape.push_back(d);
  shape.push_back(axes);
  n.set(as(reshape(transpose(y, {0, 2, 1}), shape), theta.dtype()));
}

const Lowering kTable[] = {
    {"AffineGrid", {"align_corners"}, affineGrid},
    {"Resize",
     {"antialias", "axes", "coordinate_transformation_mode", "cubic_coeff_a", "exclude_outside",
      "extrapolation_value", "keep_aspect_ratio_policy", "mode", "nearest_mode", "scales"},
     resize,
     "axes of symbolic size"},
    {"Upsample", {"mode", "scales"}, resize, "axes of symbolic size"}};

}  // namespace

std::span<const Lowering> resizeLowerings() { return kTable; }

}  // namespace lathe::onnx
