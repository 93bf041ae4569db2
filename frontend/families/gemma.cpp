// SPDX-License-Identifier: Apache-2.0
// Gemma: Gemma Team, "Gemma: Open Models Based on Gemini Research and Technology", 2024. Norms with
// a gain of 1 + w, embeddings times sqrt(hidden), a gate of GELU, a head tied to the embeddings.
#include <cmath>

#include "frontend/families/builders.h"
#include "lathe/frontend/families/causal_lm.h"

namespace lathe {
namespace {

struct GemmaConfig : DecoderConfig {
  bool attentionBias = false;
};

class Gemma : public DecoderLm {
 public:
  Gemma(Graph& graph, const GemmaConfig& config, const FamilyOptions& options)
      : DecoderLm(graph, config, options), attentionBias_(config.attentionBias) {
    norm_.rounding = GainRounding::after_gain;
    norm_.unitOffset = true;
  }

  Tensor embed(const Tensor& ids, const Tensor& where) const override {
    return DecoderLm::embed(ids, where) * std::sqrt(double(config_.hiddenSize));
  }

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
