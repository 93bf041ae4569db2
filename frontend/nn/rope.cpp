// SPDX-License-Identifier: Apache-2.0
#include "lathe/frontend/nn/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "lathe/runtime/error.h"

namespace lathe::nn {
namespace {

using Frequencies = RopeOptions::Frequencies;

// Llama 3.1's frequency ramp as transformers computes it: f32 throughout, one rounding per step.
// PyTorch evaluates number / tensor as the tensor's reciprocal times the number.
void stretchLlama3(std::vector<float>& frequencies, const RopeScalingOptions& s) {
  const double length = double(s.originalMaxPositions);
  const float longest = float(length / s.lowFreqFactor);
  const float shortest = float(length / s.highFreqFactor);
  const float turn = float(2 * std::numbers::pi), factor = float(s.factor);
  const float low = float(s.lowFreqFactor), span = float(s.highFreqFactor - s.lowFreqFactor);
  for (float& f : frequencies) {
    const float wavelength = (1 / f) * turn;
    if (wavelength < shortest) continue;
    if (wavelength > longest) {
      f = f / factor;
      continue;
    }
    const float smooth = ((1 / wavelength) * float(length) - low) / span;
    const float stretched = (1 - smooth) * f / factor;
    const float kept = smooth * f;
    f = stretched + kept;
  }
}

void expectValid(const RopeOptions& o, const std::string& module, std::source_location at) {
  auto fail = [&](const std::string& text) {
    throw Error(ErrorCode::InvalidArgument, module + ": " + text, at);
  };
  if (o.headDim < 2 || o.headDim % 2)
    fail("expected an even head size to pair its elements, got " + std::to_string(o.headDim) +
         "; choose dModel and heads so that headDim is even");
  expectPositive(o.headDim, module + ", headDim", at, kMostTable);
  expectPositive(o.maxPositions, module + ", maxPositions", at);
  if (!(o.theta > 0) || !std::isfinite(o.theta))
    fail("expected a positive theta, got " + std::to_string(o.theta) + "; 10000 is usual");
  const RopeScalingOptions& s = o.scaling;
  if (s.type == RopeScalingOptions::Type::Default) return;
  if (s.type != RopeScalingOptions::Type::Linear && s.type != RopeScalingOptions::Type::Llama3)
    fail(std::to_string(int(s.type)) +
         " is no scaling; lathe::nn::RopeScalingOptions names those "
         "there are");
  if (o.frequencies == Frequencies::Divide)
    fail("scaling needs frequencies, but Frequencies::Divide divides positions; use Reciprocal");
  if (!(s.factor > 0) || !std::isfinite(s.factor))
    fail("expected a positive scaling factor, got " + std::to_string(s.factor));
  if (s.type == RopeScalingOptions::Type::Llama3 &&
      (!(s.lowFreqFactor > 0) || !(s.highFreqFactor > s.lowFreqFactor) ||
       s.originalMaxPositions < 1))
    fail(
        "expected 0 < lowFreqFactor < highFreqFactor and originalMaxPositions of at least 1, got " +
        std::to_string(s.lowFreqFactor) + ", " + std::to_string(s.highFreqFactor) + ", " +
        std::to_string(s.originalMaxPositions));
}

}  // namespace

std::vector<float> ropeFrequencies(const RopeOptions& options, std::source_location at) {
  expectValid(options, "ropeFrequencies", at);
  std::vector<float> values(size_t(options.headDim / 2));
  const float theta = float(options.theta), size = float(options.headDim);
  for (size_t i = 0; i < values.size(); ++i) {
    const float exponent = 2 * float(i) / size;
    switch (options.frequencies) {
      case Frequencies::Reciprocal:
        values[i] = 1 / std::pow(theta, exponent);
        break;
      case Frequencies::NegativePower:
        values[i] = std::pow(theta, -exponent);
        break;
      case Frequencies::Divide:
        values[i] = std::pow(theta, exponent);
        break;
    }
  }
  if (options.scaling.type == RopeScalingOptions::Type::Linear)
    for (float& f : values) f /= float(options.scaling.factor);
  if (options.scaling.type == RopeScalingOptions::Type::Llama3)
    stretchLlama3(values, options.scaling);
  return values;
}

RoPE::RoPE(Graph& graph, std::string path, RopeOptions options, std::source_location at)
    : Module(graph, std::move(path), at), options_(std::move(options)) {
  expectValid(options_, "RoPE '" + this->path() + "'", at);
}

RopeAngles RoPE::angles(const Tensor& positions, std::source_location at) const {
  expectIntegers(positions, "RoPE '" + path() + "', positions", at);
  const Scope scope = opened(positions, at);
  const int64_t rows = options_.maxPositions;
  const std::vector<float> values = ropeFrequencies(options_);
  Tensor factors = graph().constant(Array::fromFloats(values, {int64_t(values.size())}));
  // Of constants and sizes alone: a pass moves both tables into the load function.
  Tensor row = iota(positions, {rows, 1}, 0, DType::F32);
  Tensor angles = options_.frequencies == Frequencies::Divide ? row / factors : row * factors;
  return {gather(cos(angles), positions, 0), gather(sin(angles), positions, 0)};
}

Tensor RoPE::rotate(const Tensor& x, const Tensor& cos, const Tensor& sin) const {
  const bool halves = options_.pairing == Pairing::half;
  const int64_t half = options_.headDim / 2;
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
