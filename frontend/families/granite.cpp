// SPDX-License-Identifier: Apache-2.0
// Granite: Llama's layer with factors for embeddings, scores, residuals and logits, after Yang et
// al., "Tensor Programs V: Tuning Large Neural Networks via Zero-Shot Hyperparameter Transfer",
// 2022.
#include "frontend/families/builders.h"
#include "lathe/frontend/families/causal_lm.h"

namespace lathe {
namespace {

struct GraniteConfig : DecoderConfig {
  bool attentionBias = false, mlpBias = false;
  double embedding = 1, scores = 1, residual = 1, logits = 1;  ///< logits are divided by theirs
};

class Granite : public DecoderLm {
 public:
  Granite(Graph& graph, const GraniteConfig& config, const FamilyOptions& options)
      : DecoderLm(graph, config, options), own_(config) {}

  Tensor embed(const Tensor& ids, const Tensor& where) const override {
    return DecoderLm::embed(ids, where) * own_.embedding;
  }

  Tensor layer(int64_t index, const Tensor& x, const nn::LayerContext& context) const override {
    const std::string path = layerPath(index);
    nn::SelfAttentionOptions o = attentionOptions();
    o.qkvBias = o.outputBias = own_.attentionBias;
    o.attention.scale = own_.scores;
    nn::SwiGLUOptions mlp = mlpOptions();
    mlp.bias = own_.mlpBias;
    const nn::SwiGLU gated(graph_, path + ".mlp", config_.hiddenSize, config_.intermediateSize,
                           mlp);
    Tensor y = attention(path + ".self_attn", o)(norm(path + ".input_layernorm")(x), context);
    y = x + y * own_.residual;
    return y + gated(norm(path + ".post_attention_layernorm")(y)) * own_.residual;
  }

  Tensor logits(const Tensor& x) const override { return DecoderLm::logits(x) / own_.logits; }

 private:
  const GraniteConfig own_;
};

}  // namespace

Graph builders::granite(ConfigReader& config, const FamilyOptions& options) {
  GraniteConfig c{readDecoder(config, options)};
  c.attentionBias = config.flag("attention_bias", false);
  c.mlpBias = config.flag("mlp_bias", false);
  c.embedding = config.positive("embedding_multiplier", 1);
  c.scores = config.positive("attention_multiplier", 1);
  c.residual = config.positive("residual_multiplier", 1);
  c.logits = config.positive("logits_scaling", 1);
  return recordFamily<Granite>("granite", c, options);
}

}  // namespace lathe
