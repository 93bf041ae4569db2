// SPDX-License-Identifier: Apache-2.0
// Phi-1, 1.5 and 2: Li et al., "Textbooks Are All You Need II: phi-1.5 technical report", 2023.
// Attention and MLP side by side behind one LayerNorm, rotations of a part of each head, biases
// everywhere.
#include "frontend/families/builders.h"
#include "lathe/frontend/families/causal_lm.h"

namespace lathe {
namespace {

struct PhiConfig : DecoderConfig {
  bool qkNorm = false;
};

class Phi : public DecoderLm {
 public:
  Phi(Graph& graph, const PhiConfig& config, const FamilyOptions& options)
      : DecoderLm(graph, config, options), qkNorm_(config.qkNorm) {}

  Tensor layer(int64_t index, const Tensor& x, const nn::LayerContext& context) const override {
    const std::string path = layerPath(index);
    nn::SelfAttentionOptions o = attentionOptions();
    o.qkvBias = o.outputBias = true;
    o.names.o = "dense";
    const nn::CausalSelfAttention attend = attention(path + ".self_attn", o);
    const Tensor y = layerNorm(path + ".input_layernorm")(x);
    nn::AttentionHeads heads = attend.project(y);
    if (qkNorm_) {
      heads.q = headNorm(path + ".self_attn.q_layernorm")(heads.q);
      heads.k = headNorm(path + ".self_attn.k_layernorm")(heads.k);
    }
    return attend.attend(heads, context) + feedForward(path + ".mlp", "fc1", "fc2")(y) + x;
  }

  Tensor logits(const Tensor& x) const override {
    return head(layerNorm("model.final_layernorm")(x), "model.embed_tokens", /*bias=*/true);
  }

 private:
  // Of the elements of each head; all heads share its gains.
  nn::LayerNorm headNorm(const std::string& path) const {
    return nn::LayerNorm(graph_, path, config_.headDim,
                         {.eps = config_.normEps, .weightDType = options_.weightDType});
  }
  const bool qkNorm_;
};

}  // namespace

Graph builders::phi(ConfigReader& config, const FamilyOptions& options) {
  PhiConfig c{readDecoder(config, options,
                          {.normEps = 1e-5,
                           .rotaryFraction = 0.5,
                           .mayRotatePartly = true,
                           .normEpsKey = "layer_norm_eps",
                           .activation = "gelu_new"})};
  c.qkNorm = config.flag("qk_layernorm", false);
  return recordFamily<Phi>("phi", c, options);
}

}  // namespace lathe
