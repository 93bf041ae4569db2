// SPDX-License-Identifier: Apache-2.0
#pragma once
// Normalizations of the last axis. Both compute in f32 (f64 for f64) whatever x's dtype is.
#include <optional>
#include <string>

#include "lathe/frontend/nn/module.h"

namespace lathe::nn {

struct NormOptions {
  enum class Mean {
    Mean,          ///< one `reduce_mean`
    SumOverCount,  ///< `reduce_sum` divided by the size
  };
  enum class Form {
    Rsqrt,   ///< x * rsqrt(mean + eps)
    Divide,  ///< x / sqrt(mean + eps)
  };
  double eps = 1e-5;
  Mean mean = Mean::Mean;
  Form form = Form::Rsqrt;
  /// `before_gain`: the normalized value is rounded to x's dtype, then multiplied; `after_gain`:
  /// multiplied in f32, then rounded.
  GainRounding rounding = GainRounding::before_gain;
  /// The gain is 1 + weight: checkpoints of Gemma hold what it differs from 1 by.
  bool unitOffset = false;
  std::string gainName = "weight";
  std::optional<DType> weightDType = {};  ///< what the checkpoint holds; x's dtype unless given
  bool useFused = false;                  ///< records the op `rms_norm`

  static NormOptions llama() { return {.eps = 1e-6}; }
  static NormOptions gemma() {
    return {.eps = 1e-6, .rounding = GainRounding::after_gain, .unitOffset = true};
  }
};

/// x / sqrt(mean(x^2) + eps) * gain over the last axis. Zhang and Sennrich, "Root Mean Square Layer
/// Normalization", 2019. [..., size] -> [..., size] in x's dtype.
class RMSNorm : public Module {
 public:
  RMSNorm(Graph& graph, std::string path, int64_t size, NormOptions options = {}, LATHE_AT);
  Tensor operator()(const Tensor& x, LATHE_AT) const;

 private:
  Tensor normalized(const Tensor& x) const;
  int64_t size_;
  NormOptions options_;
};

struct LayerNormOptions {
  double eps = 1e-5;
  bool gain = true, bias = true;  ///< DiT's norms have neither
  std::string gainName = "weight", biasName = "bias";
  std::optional<DType> weightDType = {};

  static LayerNormOptions dit() { return {.eps = 1e-6, .gain = false, .bias = false}; }
};

/// (x - mean) / sqrt(variance + eps) * gain + bias over the last axis, the variance from the
/// centred values, everything in f32 and rounded once. Ba, Kiros and Hinton, "Layer Normalization",
/// 2016.
class LayerNorm : public Module {
 public:
  LayerNorm(Graph& graph, std::string path, int64_t size, LayerNormOptions options = {}, LATHE_AT);
  Tensor operator()(const Tensor& x, LATHE_AT) const;

 private:
  int64_t size_;
  LayerNormOptions options_;
};

}  // namespace lathe::nn
