// SPDX-License-Identifier: Apache-2.0
#include "lathe/frontend/nn/rope.h"

#include <cmath>

#include "lathe/runtime/error.h"

namespace lathe::nn {
namespace {

using Frequencies = RopeOptions::Frequencies;

int64_t rotated(const RopeOptions& o) { return o.rotaryDim ? o.rotaryDim : o.headDim; }

std::vector<float> powersOf(const RopeOptions& o) {
  std::vector<float> values(size_t(rotated(o) / 2));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = std::pow(float(o.theta), 2 * float(i) / float(rotated(o)));
  return values;
}

void expectValid(const RopeOptions& o, const std::string& module, std::source_location at) {
  auto fail = [&](const std::string& text) {
    throw Error(ErrorCode::InvalidArgument, module + ": " + text, at);
  };
  if (o.rotaryDim && (o.rotaryDim < 0 || o.rotaryDim % 2 || o.rotaryDim > o.headDim))
    fail("expected an even rotaryDim up to headDim " + std::to_string(o.headDim) + ", got " +
         std::to_string(o.rotaryDim));
  if (!o.rotaryDim && (o.headDim < 2 || o.headDim % 2))
    fail("expected an even head size to pair its elements, got " + std::to_string(o.headDim) +
         "; choose dModel and heads so that headDim is even");
  expectPositive(o.headDim, module + ", headDim", at, kMostTable);
  expectPositive(o.maxPositions, module + ", maxPositions", at);
  if (!(o.theta > 0) || !std::isfinite(o.theta))
    fail("expected a positive theta, got " + std::to_string(o.theta) + "; 10000 is usual");
  expectValid(o.scaling, rotated(o) / 2, module, at);
  if (o.scaling.type != RopeScalingOptions::Type::Default && o.frequencies == Frequencies::Divide)
    fail("scaling needs frequencies, but Frequencies::Divide divides positions; use Reciprocal");
}

}  // namespace

std::vector<float> ropeFrequencies(const RopeOptions& options, std::source_location at) {
  expectValid(options, "ropeFrequencies", at);
  const std::vector<float> powers = powersOf(options);
  if (options.frequencies == Frequencies::Divide) return powers;
  std::vector<float> values(powers.size());
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = options.frequencies == Frequencies::Reciprocal
                    ? 1 / powers[i]
                    : std::pow(float(options.theta), -(2 * float(i) / float(rotated(options))));
  stretch(values, powers, options.scaling, options.theta);
  return values;
}

RoPE::RoPE(Graph& graph, std::string path, RopeOptions options, std::source_location at)
    : Module(graph, std::move(path), at), options_(std::move(options)) {
  expectValid(options_, "RoPE '" + this->path() + "'", at);
}

RopeAngles RoPE::angles(const Tensor& positions, std::source_location at) const {
  expectIntegers(positions, "RoPE '" + path() + "', positions", at);
  const Scope scope = opened(positions, at);
  const std::vector<float> values = ropeFrequencies(options_);
  // Yarn's and LongRope's temperature.
  auto scaled = [&](const Tensor& table) {
    const double factor = options_.scaling.attentionFactor;
    return factor == 1 ? table : table * factor;
  };
  if (options_.scaling.isDynamic()) {
    Tensor frequencies = dynamicFrequencies(graph(), positions, values, powersOf(options_),
                                            options_.scaling, options_.theta);
    Tensor angles = unsqueeze(castTo(positions, DType::F32), -1) * frequencies;
    return {scaled(cos(angles)), scaled(sin(angles))};
  }
  const int64_t rows = options_.maxPositions;
  Tensor factors = graph().constant(Array::fromFloats(values, {int64_t(values.size())}));
  // Of constants and sizes alone: a pass moves both tables into the load function.
  Tensor row = iota(positions, {rows, 1}, 0, DType::F32);
  Tensor angles = options_.frequencies == Frequencies::Divide ? row / factors : row * factors;
  return {gather(scaled(cos(angles)), positions, 0), gather(scaled(sin(angles)), positions, 0)};
}

Tensor RoPE::rotate(const Tensor& x, const Tensor& cos, const Tensor& sin) const {
  const int64_t size = rotated(options_), half = size / 2;
  if (size < *x.dim(-1).asConstant())
    return concat({rotate(sliceAxis(x, -1, 0, size), cos, sin),
                   sliceAxis(x, -1, size, options_.headDim - size)},
                  -1);
  const bool halves = options_.pairing == Pairing::half;
  Tensor a = halves ? sliceAxis(x, -1, 0, half) : sliceAxis(x, -1, 0, half, 2);
  Tensor b = halves ? sliceAxis(x, -1, half, half) : sliceAxis(x, -1, 1, half, 2);
  Tensor first = a * cos - b * sin;
  Tensor second = a * sin + b * cos;
  if (halves) return concat({first, second}, -1);
  Dims pair = first.shape();
  pair.push_back(1);
  return reshape(concat({reshape(first, pair), reshape(second, pair)}, -1), x.shape());
}

Tensor RoPE::operator()(const Tensor& x, const RopeAngles& angles, std::source_location at) const {
  const std::string module = "RoPE '" + path() + "'";
  expectFeatures(x, options_.headDim, module, at);
  expectDefined(angles.cos, module + ", cosines", at);
  expectDefined(angles.sin, module + ", sines", at);
  const Scope scope = opened(x, at);
  Tensor cos = angles.cos, sin = angles.sin;
  if (x.rank() == 4 && cos.rank() == 3) {
    // [batch, seq, d/2]: the heads share it.
    const Dims shape = {cos.dim(0), 1, cos.dim(1), cos.dim(2)};
    cos = reshape(cos, shape);
    sin = reshape(sin, shape);
  }
  if (options_.useFused) return fused::rope(x, cos, sin, options_.pairing);
  const DType dtype = options_.tablesInDType ? x.dtype() : computeDType(x.dtype());
  return castTo(rotate(castTo(x, dtype), castTo(cos, dtype), castTo(sin, dtype)), x.dtype());
}

Tensor RoPE::operator()(const Tensor& x, const Tensor& positions, std::source_location at) const {
  return (*this)(x, angles(positions, at), at);
}

}  // namespace lathe::nn
