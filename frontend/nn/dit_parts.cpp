// SPDX-License-Identifier: Apache-2.0
#include "lathe/frontend/nn/dit_parts.h"

#include <cmath>

#include "ir/composing.h"
#include "lathe/frontend/nn/activations.h"
#include "lathe/runtime/error.h"

namespace lathe::nn {
namespace {

[[noreturn]] void refuse(const std::string& text, std::source_location at) {
  throw Error(ErrorCode::InvalidArgument, text, at);
}

// One vector per batch element, for all of its tokens.
Tensor forTokens(const Tensor& x, std::source_location at) {
  return reshape(x, {x.dim(0), 1, x.dim(1)}, at);
}

}  // namespace

Tensor modulate(const Tensor& x, const Tensor& shift, const Tensor& scale,
                std::source_location at) {
  const Composing composing("modulate");
  expectDefined(x, "modulate, x", at);
  for (const Tensor& y : {shift, scale}) {
    expectDefined(y, "modulate, shift and scale", at);
    if (x.rank() != 3 || y.rank() != 2 || !(y.dim(1) == x.dim(2)))
      refuse("modulate: expected x [batch, tokens, d] and shift and scale [batch, d], got " +
                 typeText(x) + " and " + typeText(y),
             at);
  }
  Tensor factor = add(scalarLike(x, 1, at), forTokens(scale, at), at);
  return add(mul(x, factor, at), forTokens(shift, at), at);
}

PatchEmbedding::PatchEmbedding(Graph& graph, std::string path, int64_t channels, int64_t patch,
                               int64_t size, PatchEmbeddingOptions options, std::source_location at)
    : Module(graph, std::move(path), at),
      channels_(channels),
      patch_(patch),
      size_(size),
      options_(std::move(options)) {
  expectPositive(channels_, "PatchEmbedding '" + this->path() + "', channels", at);
  expectPositive(patch_, "PatchEmbedding '" + this->path() + "', patch", at);
  expectPositive(size_, "PatchEmbedding '" + this->path() + "', size", at);
}

Tensor PatchEmbedding::operator()(const Tensor& image, std::source_location at) const {
  const std::string module = "PatchEmbedding '" + path() + "'";
  expectDefined(image, module, at);
  const bool pixels = image.rank() == 4 && isFloat(image.dtype()) && image.dim(1) == channels_;
  const auto height = pixels ? image.dim(2).asConstant() : std::nullopt;
  const auto width = pixels ? image.dim(3).asConstant() : std::nullopt;
  if (!height || !width || *height % patch_ || *width % patch_)
    refuse(module + ": expected floats [batch, " + std::to_string(channels_) +
               ", height, width] whose height and width are numbers and multiples of " +
               std::to_string(patch_) + ", got " + typeText(image),
           at);
  const Scope scope = opened(image, at);
  auto parameter = [&](const char* name, const Shape& shape) {
    return weight(joinPath(options_.projection, name), image.dtype(), shape, options_.weightDType);
  };
  Tensor kernel = parameter("weight", {size_, channels_, patch_, patch_});
  Tensor grid = convolution(image, kernel, {patch_, patch_}, {0, 0, 0, 0});
  const int64_t tokens = (*height / patch_) * (*width / patch_);
  if (options_.bias) grid = grid + reshape(parameter("bias", {size_}), {1, size_, 1, 1});
  return swapAxes(reshape(grid, {image.dim(0), size_, tokens}), 1, 2);
}

Tensor unpatchify(const Tensor& x, int64_t rows, int64_t columns, int64_t patch,
                  std::source_location at) {
  const Composing composing("unpatchify");
  expectDefined(x, "unpatchify", at);
  expectPositive(rows, "unpatchify, rows", at);
  expectPositive(columns, "unpatchify, columns", at);
  expectPositive(patch, "unpatchify, patch", at);
  const auto width = x.rank() == 3 ? x.dim(2).asConstant() : std::nullopt;
  if (!width || *width % (patch * patch) || !(x.dim(1) == Dim(rows * columns)))
    refuse("unpatchify: expected [batch, " + std::to_string(rows) + " * " +
               std::to_string(columns) + ", " + std::to_string(patch * patch) +
               " * channels], got " + typeText(x),
           at);
  const int64_t channels = *width / (patch * patch);
  Tensor parts = reshape(x, {x.dim(0), rows, columns, patch, patch, channels}, at);
  parts = transpose(parts, {0, 5, 1, 3, 2, 4}, at);
  return reshape(parts, {x.dim(0), channels, rows * patch, columns * patch}, at);
}

static void expectValid(const TimestepOptions& options, const std::string& module,
                        std::source_location at) {
  if (options.frequencies < 2 || options.frequencies % 2)
    refuse(module + ": expected an even number of frequencies, got " +
               std::to_string(options.frequencies) + "; each angle has a cosine and a sine",
           at);
  expectPositive(options.frequencies, module + ", frequencies", at, kMostTable);
  if (options.endsAtPeriod && options.frequencies < 4)
    refuse(module + ": expected at least 4 frequencies with endsAtPeriod, got " +
               std::to_string(options.frequencies),
           at);
  if (!(options.maxPeriod > 0) || !std::isfinite(options.maxPeriod))
    refuse(module + ": expected a positive maxPeriod, got " + std::to_string(options.maxPeriod) +
               "; 10000 is usual",
           at);
}

std::vector<float> timestepFrequencies(const TimestepOptions& options, std::source_location at) {
  expectValid(options, "timestepFrequencies", at);
  std::vector<float> values(size_t(options.frequencies / 2));
  const float slope = float(-std::log(options.maxPeriod)),
              half = float(values.size() - options.endsAtPeriod);
  for (size_t i = 0; i < values.size(); ++i) values[i] = std::exp(slope * float(i) / half);
  return values;
}

TimestepEmbedding::TimestepEmbedding(Graph& graph, std::string path, int64_t size,
                                     TimestepOptions options, std::source_location at)
    : Module(graph, std::move(path), at), size_(size), options_(std::move(options)) {
  const std::string module = "TimestepEmbedding '" + this->path() + "'";
  expectPositive(size_, module + ", size", at);
  expectValid(options_, module, at);
}

Tensor TimestepEmbedding::operator()(const Tensor& timesteps, DType dtype,
                                     std::source_location at) const {
  const std::string module = "TimestepEmbedding '" + path() + "'";
  expectDefined(timesteps, module, at);
  expectFloatDType(dtype, module + ", dtype", at);
  if (timesteps.rank() != 1 || timesteps.dtype() == DType::Bool)
    refuse(module + ": expected timesteps [batch], got " + typeText(timesteps), at);
  const Scope scope = opened(timesteps, at);
  const std::vector<float> values = timestepFrequencies(options_);
  Tensor factors = graph().constant(Array::fromFloats(values, {int64_t(values.size())}));
  Tensor angles = reshape(castTo(timesteps, DType::F32), {timesteps.dim(0), 1}) * factors;
  Tensor x = castTo(concat({cos(angles), sin(angles)}, -1), dtype);
  const LinearOptions linear{.bias = true, .weightDType = options_.weightDType};
  x = silu(Linear(graph(), below(options_.first), options_.frequencies, size_, linear)(x, at),
           SigmoidForm::Op, at);
  return Linear(graph(), below(options_.second), size_, size_, linear)(x, at);
}

Modulation::Modulation(Graph& graph, std::string path, int64_t size, int64_t count,
                       std::optional<DType> weightDType, std::source_location at)
    : Module(graph, std::move(path), at), size_(size), count_(count), weightDType_(weightDType) {
  expectPositive(size_, "Modulation '" + this->path() + "', size", at);
  expectPositive(count_, "Modulation '" + this->path() + "', count", at, kMostModules);
}

std::vector<Tensor> Modulation::operator()(const Tensor& condition, std::source_location at) const {
  expectFeatures(condition, size_, "Modulation '" + path() + "'", at);
  if (condition.rank() != 2)
    refuse("Modulation '" + path() + "': expected a condition [batch, " + std::to_string(size_) +
               "], got " + typeText(condition),
           at);
  const Scope scope = opened(condition, at);
  const LinearOptions linear{.bias = true, .weightDType = weightDType_};
  Tensor all = Linear(graph(), below("1"), size_, count_ * size_, linear)(
      silu(condition, SigmoidForm::Op, at), at);
  std::vector<Tensor> parts;
  for (int64_t i = 0; i < count_; ++i) parts.push_back(sliceAxis(all, -1, i * size_, size_));
  return parts;
}

}  // namespace lathe::nn
