// SPDX-License-Identifier: Apache-2.0
// Norms. Those over the last axes become the dialect's own ops.
#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "frontend/onnx/node.h"

namespace lathe::onnx {
namespace {

// An operand of the normalized axes as one axis.
Tensor flat(Node& n, size_t i, const Dims& normalized, DType dtype) {
  if (!n.has(i)) return {};
  return reshaped(broadcasted(n.in(i, dtype), normalized), {product(normalized)});
}

template <bool isLayer>
void overLastAxes(Node& n) {
  const Tensor given = n.in(0);
  const Dims shape = given.shape();
  const DType dtype = given.dtype();
  // f32, what the dialect's ops compute in, or f64.
  const int64_t stash = n.attribute("stash_type", 1);
  if (stash != 1 && stash != 11)
    n.refuse(fmt::format("attribute 'stash_type': expected 1 or 11, got {}", stash));
  const double epsilon = n.real("epsilon", 1e-5);
  if (epsilon < 0) n.fail("a negative epsilon");
  const int64_t axis = n.axis(n.attribute("axis", -1), given.rank());
  const Dims normalized(shape.begin() + axis, shape.end());
  Dims rows(shape.begin(), shape.begin() + axis);
  Dims ones = rows;
  ones.resize(shape.size(), Dim(1));
  rows.push_back(product(normalized));
  // An RMS norm has the dtype of its gain, which may be another than that of x.
  const DType result = isLayer ? dtype : n.in(1).dtype();
  const DType arithmetic =
      result == dtype ? dtype : wide(sizeOf(result) > sizeOf(dtype) ? result : dtype);
  const Tensor x = as(reshaped(given, rows), arithmetic);
  const Tensor gain = flat(n, 1, normalized, arithmetic);
  const Tensor y = isLayer ? fused::layerNorm(x, gain, flat(n, 2, normalized, dtype), epsilon)
                           : fused::rmsNorm(x, gain, epsilon);
  n.set(0, as(reshaped(y, shape), result));
  if (!n.wants(1) && !n.wants(2)) return;
  // Mean and inverse deviation, for training.
  const DType kept = stash == 11 ? DType::F64 : DType::F32;
  const Tensor real = as(x, stash == 11 ? kept : wide(dtype));
  const Tensor mean = reduceMean(real, {-1}, true), d = sub(real, mean);
  n.set(1, as(reshaped(mean, ones), kept));
  n.set(2, as(reshaped(rsqrt(reduceMean(mul(d, d), {-1}, true) + epsilon), ones), kept));
}

// (x - mean) / deviation over axes, computed in f32 at least.
Tensor standardized(const Tensor& x, const Axes& axes, double epsilon) {
  const Tensor d = sub(x, reduceMean(x, axes, true));
  return mul(d, rsqrt(reduceMean(mul(d, d), axes, true) + epsilon));
}
Axes spatial(const Tensor& x, int64_t first) {
  Axes axes(size_t(x.rank() - first));
  std::iota(axes.begin(), axes.end(), first);
  return axes;
}

void instanceNorm(Node& n) {
  const Tensor given = n.in(0), x = as(given, wide(given.dtype()));
  if (x.rank() < 3) n.fail("expected [n, c, d1, ...]");
  const Tensor y = standardized(x, spatial(x, 2), n.real("epsilon", 1e-5));
  const Tensor gain = alongChannels(n.in(1, x.dtype()), x.rank());
  n.set(as(add(mul(y, gain), alongChannels(n.in(2, x.dtype()), x.rank())), given.dtype()));
}

void groupNorm(Node& n) {
  const Tensor given = n.in(0), x = as(given, wide(given.dtype()));
  const int64_t groups = n.attribute("num_groups", 0);
  const Dims shape = x.shape();
  if (shape.size() < 3 || groups < 1) n.fail("expected [n, c, d1, ...] and a number of groups");
  const auto each = shape[1].dividedBy(Dim(groups));
  if (!each) n.fail("the groups do not divide the channels");
  Dims split = {shape[0], Dim(groups), *each * product(shape, 2)};
  Tensor y = reshape(standardized(reshape(x, split), {2}, n.real("epsilon", 1e-5)), shape);
  auto perChannel = [&](size_t i) {
    Tensor p = n.in(i, x.dtype());
    // Before opset 21 there was one for each group.
    if (n.opset() < 21) p = reshape(broadcast(unsqueeze(p, 1), {Dim(groups), *each}), {shape[1]});
    return alongChannels(p, x.rank());
  };
  n.set(as(add(mul(y, perChannel(1)), perChannel(2)), given.dtype()));
}

void batchNorm(Node& n) {
  const Tensor given = n.in(0), x = as(given, wide(given.dtype()));
  n.expectOperands(5);
  if (n.hasAttribute("spatial")) n.expect("spatial", 1);
  const double epsilon = n.real("epsilon", 1e-5), momentum = n.real("momentum", 0.9);
  auto perChannel = [&](const Tensor& p) { return x.rank() > 1 ? alongChannels(p, x.rank()) : p; };
  Tensor mean = n.in(3, x.dtype()), variance = n.in(4, x.dtype());
  if (n.attribute("training_mode", 0)) {
    Axes axes = spatial(x, 1);
    axes[0] = 0;
    for (size_t i = 1; i < axes.size(); ++i) axes[i] = int64_t(i) + 1;
    const Tensor own = reduceMean(x, axes, true), d = sub(x, own);
    const Tensor ownVariance = reduceMean(mul(d, d), axes);
    const Tensor ownMean = reshaped(own, {x.dim(1)});
    auto moved = [&](const Tensor& old, const Tensor& next) {
      return add(old * momentum, next * (1 - momentum));
    };
    n.set(1, as(moved(mean, ownMean), n.in(3).dtype()));
    n.set(2, as(moved(variance, ownVariance), n.in(4).dtype()));
    mean = ownMean;
    variance = ownVariance;
  }
  const Tensor scale = mul(rsqrt(variance + epsilon), n.in(1, x.dtype()));
  const Tensor y =
      add(mul(sub(x, perChannel(mean)), perChannel(scale)), perChannel(n.in(2, x.dtype())));
  n.set(0, as(y, given.dtype()));
}

// x / (bias + alpha / size * sum of squares of neighbouring channels)^beta
void localResponse(Node& n) {
  const Tensor x = n.in(0);
  const int64_t size = n.attribute("size", 0);
  const auto channels = x.rank() > 1 ? x.dim(1).asConstant() : std::nullopt;
  if (size < 1 || size > 1024 || !channels)
    n.refuse("expected a size of 1 to 1024 and channels that are a number");
  Axes low(size_t(x.rank()), 0), high = low;
  low[1] = (size - 1) / 2;
  high[1] = size - 1 - low[1];
  const Tensor squares = zeroPadded(mul(x, x), low, high);
  Tensor sum = sliceAxis(squares, 1, 0, *channels);
  for (int64_t i = 1; i < size; ++i) sum = add(sum, sliceAxis(squares, 1, i, *channels));
  const Tensor base = sum * (n.real("alpha", 1e-4) / double(size)) + n.real("bias", 1);
  n.set(div(x, pow(base, like(base, n.real("beta", 0.75)))));
}

// A row of zeros stays zeros.
void lpNorm(Node& n) {
  const Tensor x = n.in(0);
  const int64_t axis = n.axis(n.attribute("axis", -1), x.rank()), p = n.attribute("p", 2);
  if (p != 1 && p != 2) n.refuse(fmt::format("attribute 'p': expected 1 or 2, got {}", p));
  const Tensor size =
      p == 1 ? reduceSum(abs(x), {axis}, true) : sqrt(reduceSum(mul(x, x), {axis}, true));
  n.set(select(size == 0.0, like(x, 0), div(x, size)));
}

void meanVariance(Node& n) {
  const Tensor x = n.in(0);
  Axes axes = n.hasAttribute("axes") ? n.list("axes") : Axes{0, 2, 3};
  for (int64_t& a : axes) a = n.axis(a, x.rank());
  std::ranges::sort(axes);
  const Tensor d = sub(x, reduceMean(x, axes, true));
  n.set(div(d, sqrt(reduceMean(mul(d, d), axes, true)) + 1e-9));
}

const Lowering kTable[] = {
    {"BatchNormalization", {"epsilon", "momentum", "training_mode", "spatial"}, batchNorm},
    {"GroupNormalization", {"epsilon", "num_groups", "stash_type"}, groupNorm},
    {"InstanceNormalization", {"epsilon"}, instanceNorm},
    {"LRN", {"alpha", "beta", "bias", "size"}, localResponse},
    {"LayerNormalization", {"axis", "epsilon", "stash_type"}, overLastAxes<true>},
    {"LpNormalization", {"axis", "p"}, lpNorm},
    {"MeanVarianceNormalization", {"axes"}, meanVariance},
    {"RMSNormalization", {"axis", "epsilon", "stash_type"}, overLastAxes<false>}};

}  // namespace

std::span<const Lowering> normalizationLowerings() { return kTable; }

}  // namespace lathe::onnx
