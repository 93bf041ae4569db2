// SPDX-License-Identifier: Apache-2.0
#include "lathe/frontend/nn/norms.h"

#include <cmath>

#include "lathe/runtime/error.h"

namespace lathe::nn {
namespace {

// NaN and infinity are refused too.
void expectEpsilon(double eps, const std::string& module, std::source_location at) {
  if (eps >= 0 && std::isfinite(eps)) return;
  throw Error(ErrorCode::InvalidArgument,
              module + ": expected an epsilon of 0 or more, got " + std::to_string(eps) +
                  "; use a small positive number such as 1e-5",
              at);
}

}  // namespace

RMSNorm::RMSNorm(Graph& graph, std::string path, int64_t size, NormOptions options,
                 std::source_location at)
    : Module(graph, std::move(path), at), size_(size), options_(std::move(options)) {
  expectPositive(size_, "RMSNorm '" + this->path() + "', size", at);
  expectEpsilon(options_.eps, "RMSNorm '" + this->path() + "'", at);
}

Tensor RMSNorm::normalized(const Tensor& x) const {
  Tensor squares = x * x;
  Tensor mean = options_.mean == NormOptions::Mean::Mean
                    ? reduceMean(squares, {-1}, true)
                    : reduceSum(squares, {-1}, true) / double(size_);
  Tensor shifted = mean + options_.eps;
  return options_.form == NormOptions::Form::Rsqrt ? x * rsqrt(shifted) : x / sqrt(shifted);
}

Tensor RMSNorm::operator()(const Tensor& x, std::source_location at) const {
  expectFeatures(x, size_, "RMSNorm '" + path() + "'", at);
  const Scope scope = opened(x, at);
  const DType dtype = x.dtype(), wide = computeDType(dtype);
  const bool late = options_.rounding == GainRounding::before_gain;
  auto gainIn = [&](DType as) {
    // 1 + w in f32: near 1 bf16 has three digits.
    Tensor gain = weight(options_.gainName, options_.unitOffset ? wide : as, {size_},
                         options_.weightDType.value_or(dtype));
    return options_.unitOffset ? castTo(gain + 1, as) : gain;
  };
  if (options_.useFused) return fused::rmsNorm(x, gainIn(dtype), options_.eps, options_.rounding);

  Tensor y = normalized(castTo(x, wide));
  return late ? castTo(y, dtype) * gainIn(dtype) : castTo(y * gainIn(wide), dtype);
}

LayerNorm::LayerNorm(Graph& graph, std::string path, int64_t size, LayerNormOptions options,
                     std::source_location at)
    : Module(graph, std::move(path), at), size_(size), options_(std::move(options)) {
  expectPositive(size_, "LayerNorm '" + this->path() + "', size", at);
  expectEpsilon(options_.eps, "LayerNorm '" + this->path() + "'", at);
}

Tensor LayerNorm::operator()(const Tensor& x, std::source_location at) const {
  expectFeatures(x, size_, "LayerNorm '" + path() + "'", at);
  const Scope scope = opened(x, at);
  const DType dtype = x.dtype(), wide = computeDType(dtype);
  Tensor values = castTo(x, wide);
  Tensor centred = values - reduceMean(values, {-1}, true);
  Tensor variance = reduceMean(centred * centred, {-1}, true);
  Tensor y = centred * rsqrt(variance + options_.eps);
  const DType stored = options_.weightDType.value_or(dtype);
  if (options_.gain) y = y * weight(options_.gainName, wide, {size_}, stored);
  if (options_.bias) y = y + weight(options_.biasName, wide, {size_}, stored);
  return castTo(y, dtype);
}

}  // namespace lathe::nn
