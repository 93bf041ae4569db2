// SPDX-License-Identifier: Apache-2.0
// Gemma: Gemma Team, "Gemma: Open Models Based on Gemini Research and Technology", 2024. Norms with
// a gain of 1 + w, embeddings times sqrt(hidden), a gate of GELU, a head tied to the embeddings.
#include "frontend/families/gemma.h"

#include <cmath>

#include "frontend/families/builders.h"

namespace lathe {

GemmaLm::GemmaLm(Graph& graph, const DecoderConfig& config, const FamilyOptions& options)
    : DecoderLm(graph, config, options) {
  norm_.rounding = GainRounding::after_gain;
  norm_.unitOffset = true;
}

Tensor GemmaLm::embed(const Tensor& ids, const Tensor& where) const {
  return DecoderLm::embed(ids, where) * std::sqrt(double(config_.hiddenSize));
}

Tensor GemmaLm::sandwich(int64_t index, const Tensor& x, const nn::SelfAttentionOptions& o,
                         const nn::LayerContext& context) const {
  const std::string path = layerPath(index);
  Tensor y = attention(path + ".self_attn", o)(norm(path + ".input_layernorm")(x), context);
  y = x + norm(path + ".post_attention_layernorm")(y);
  Tensor z = mlp(path + ".mlp")(norm(path + ".pre_feedforward_layernorm")(y));
  return y + norm(path + ".post_feedforward_layernorm")(z);
}

Tensor GemmaLm::cappedLogits(const Tensor& x, double cap) const {
  Tensor y = DecoderLm::logits(x);
  return cap > 0 ? tanh(y / cap) * cap : y;
}

namespace {

struct GemmaConfig : DecoderConfig {
  bool attentionBias = false;
};

class Gemma : public GemmaLm {
 public:
  Gemma(Graph& graph, const GemmaConfig& config, const FamilyOptions& options)
      : GemmaLm(graph, config, options), attentionBias_(config.attentionBias) {}

  Tensor layer(int64_t index, const Tensor& x, const nn::LayerContext& context) const override {
    const std::string path = layerPath(index);
    nn::SelfAttentionOptions o = attentionOptions();
    o.qkvBias = o.outputBias = attentionBias_;
    Tensor y = x + attention(path + ".self_attn", o)(norm(path + ".input_layernorm")(x), context);
    return y + mlp(path + ".mlp")(norm(path + ".post_attention_layernorm")(y));
  }

 private:
  const bool attentionBias_;
};

}  // namespace

Graph builders::gemma(ConfigReader& config, const FamilyOptions& options) {
  // The first checkpoints say "gelu" and mean its approximation; later ones have a second field.
  const bool renamed = config.has("hidden_activation");
  GemmaConfig c{readDecoder(config, options,
                            {.kvHeads = 16,
                             .headDim = 256,
                             .maxPositions = 8192,
                             .tiedHead = true,
                             .activationKey = renamed ? "hidden_activation" : "hidden_act",
                             .activation = "gelu_pytorch_tanh"})};
  if (c.activation == Activation::gelu) c.activation = Activation::gelu_tanh;
  config.ignore({"hidden_act"});
  c.attentionBias = config.flag("attention_bias", false);
  return recordFamily<Gemma>("gemma", c, options);
}

}  // namespace lathe
