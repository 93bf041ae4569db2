// SPDX-License-Identifier: Apache-2.0
#pragma once
// DiT: Peebles and Xie, "Scalable Diffusion Models with Transformers", 2022, with adaLN-Zero
// conditioning. Parameters have the names of the authors' PyTorch module.
#include <optional>
#include <string>
#include <vector>

#include "lathe/frontend/nn/dit_parts.h"
#include "lathe/frontend/nn/feed_forward.h"
#include "lathe/frontend/nn/multi_head_attention.h"
#include "lathe/frontend/nn/norms.h"

namespace lathe::nn {

struct DiTBlockOptions {
  MultiHeadAttentionOptions attention = MultiHeadAttentionOptions::dit();
  int64_t dHidden = 0;  ///< inner size of the MLP; 0: 4 dModel
  FeedForwardOptions mlp = FeedForwardOptions::dit();
  LayerNormOptions norm = LayerNormOptions::dit();
  std::optional<DType> weightDType = {};  ///< of the modulation's weights
};

/// x + gate * attention(modulate(norm(x))), then the same with the MLP; shifts, scales and gates
/// are made of the condition. x [batch, tokens, dModel], condition [batch, dModel].
class DiTBlock : public Module {
 public:
  DiTBlock(Graph& graph, std::string path, DiTBlockOptions options, LATHE_AT);
  Tensor operator()(const Tensor& x, const Tensor& condition, LATHE_AT) const;

 private:
  Modulation modulation_;
  LayerNorm norm1_, norm2_;
  MultiHeadAttention attention_;
  FeedForward mlp_;
};

/// linear(modulate(norm(x))): [batch, tokens, dModel] -> [batch, tokens, outputs].
class DiTFinalLayer : public Module {
 public:
  DiTFinalLayer(Graph& graph, std::string path, int64_t dModel, int64_t outputs,
                std::optional<DType> weightDType = {}, LATHE_AT);
  Tensor operator()(const Tensor& x, const Tensor& condition, LATHE_AT) const;

 private:
  Modulation modulation_;
  LayerNorm norm_;
  Linear linear_;
  int64_t dModel_;
};

struct DiTOptions {
  enum class Positions {
    Stored,  ///< `pos_embed` [1, tokens, dModel] of the checkpoint, as the authors keep it
    Sine2d,  ///< the same numbers computed
  };
  ImageSize image = {32, 32};
  int64_t channels = 4, patch = 2;
  bool learnSigma = true;  ///< twice the channels come out: noise and variance
  int64_t dModel = 0, layers = 0, heads = 0;
  int64_t dHidden = 0;  ///< inner size of the MLPs; 0: 4 dModel
  /// Rows of the label table: the classes and, where the model was trained for guidance without a
  /// classifier, one for "no label".
  int64_t labels = 1001;
  Positions positions = Positions::Stored;
  TimestepOptions timestep = {};
  DType dtype = DType::F32;
  std::optional<DType> weightDType = {};  ///< what the checkpoint holds; `dtype` unless given
};

/// A noisy image, its timestep and its label to the noise (and variance).
class DiT : public Module {
 public:
  /// Throws Error(InvalidArgument) for an image that patches do not tile.
  DiT(Graph& graph, std::string path, DiTOptions options, LATHE_AT);
  /// image [batch, channels, height, width] in the model's dtype, timesteps [batch], labels:
  /// integers [batch] -> [batch, channels or twice as many, height, width].
  Tensor operator()(const Tensor& image, const Tensor& timesteps, const Tensor& labels,
                    LATHE_AT) const;

 private:
  Tensor addPositions(const Tensor& x, std::source_location at) const;
  DiTOptions options_;
  int64_t rows_ = 0, columns_ = 0;
  std::vector<DiTBlock> blocks_;
};

}  // namespace lathe::nn
