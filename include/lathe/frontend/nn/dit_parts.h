// SPDX-License-Identifier: Apache-2.0
#pragma once
// What surrounds the blocks of a diffusion transformer: Peebles and Xie, "Scalable Diffusion Models
// with Transformers", 2022. Names and arithmetic are those of the authors' PyTorch module.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lathe/frontend/nn/linear.h"
#include "lathe/frontend/nn/norms.h"

namespace lathe::nn {

/// x * (1 + scale) + shift, with x [batch, tokens, d] and shift and scale [batch, d].
Tensor modulate(const Tensor& x, const Tensor& shift, const Tensor& scale, LATHE_AT);

struct ImageSize {
  int64_t height = 0, width = 0;
};

struct PatchEmbeddingOptions {
  std::string projection = "proj";  ///< the convolution: "" for the module's own path
  bool bias = true;
  std::optional<DType> weightDType = {};  ///< what the checkpoint holds; the image's unless given
};

/// A convolution whose stride is its size: image [batch, channels, height, width] ->
/// [batch, tokens, d], tokens row by row. Weights `<path>.<projection>.weight`
/// [d, channels, patch, patch] and `<path>.<projection>.bias` [d].
class PatchEmbedding : public Module {
 public:
  PatchEmbedding(Graph& graph, std::string path, int64_t channels, int64_t patch, int64_t size,
                 PatchEmbeddingOptions options = {}, LATHE_AT);
  /// The image's height and width are numbers and multiples of the patch.
  Tensor operator()(const Tensor& image, LATHE_AT) const;

 private:
  int64_t channels_, patch_, size_;
  PatchEmbeddingOptions options_;
};

/// Tokens [batch, rows * columns, patch * patch * channels] back to an image
/// [batch, channels, rows * patch, columns * patch].
Tensor unpatchify(const Tensor& x, int64_t rows, int64_t columns, int64_t patch, LATHE_AT);

struct TimestepOptions {
  int64_t frequencies = 256;  ///< width of the cosines and sines together: even
  double maxPeriod = 10000;
  /// The last frequency is 1 / maxPeriod (diffusers) instead of the one behind it.
  bool endsAtPeriod = false;
  std::string first = "mlp.0", second = "mlp.2";
  std::optional<DType> weightDType = {};
};

/// The half = frequencies / 2 numbers that a timestep is multiplied with, exp(-i/half ln
/// maxPeriod), in the f32 arithmetic of PyTorch; half - 1 divides with `endsAtPeriod`.
std::vector<float> timestepFrequencies(const TimestepOptions& options, LATHE_AT);

/// second(silu(first(concat(cos(t f), sin(t f))))): timesteps [batch], any real numbers, ->
/// [batch, size] in `dtype`. The angles are f32 whatever the dtype is.
class TimestepEmbedding : public Module {
 public:
  TimestepEmbedding(Graph& graph, std::string path, int64_t size, TimestepOptions options = {},
                    LATHE_AT);
  Tensor operator()(const Tensor& timesteps, DType dtype, LATHE_AT) const;

 private:
  int64_t size_;
  TimestepOptions options_;
};

/// adaLN: `count` vectors [batch, size] from a condition [batch, size], linear(silu(c)) in slices.
/// Weights `<path>.1.weight` [count * size, size] and `<path>.1.bias`.
class Modulation : public Module {
 public:
  Modulation(Graph& graph, std::string path, int64_t size, int64_t count,
             std::optional<DType> weightDType = {}, LATHE_AT);
  std::vector<Tensor> operator()(const Tensor& condition, LATHE_AT) const;

 private:
  int64_t size_, count_;
  std::optional<DType> weightDType_;
};

}  // namespace lathe::nn
