// SPDX-License-Identifier: Apache-2.0
// OLMo 2: OLMo Team, "2 OLMo 2 Furious", 2024. Norms behind attention and MLP instead of before
// them, and norms over all heads of q and of k together.
#include "frontend/families/builders.h"
#include "lathe/frontend/families/causal_lm.h"

namespace lathe {
namespace {

struct Olmo2Config : DecoderConfig {
  bool attentionBias = false;
};

class Olmo2 : public DecoderLm {
 public:
  Olmo2(Graph& graph, const Olmo2Config& config, const FamilyOptions& options)
      : DecoderLm(graph, config, options), attentionBias_(config.attentionBias) {
    norm_.rounding = GainRounding::after_gain;
  }

  Tensor layer(int64_t index, const Tensor& x, const nn::LayerContext& context) const override {
    const std::string path = layerPath(index);
    nn::SelfAttentionOptions o = attentionOptions();
    o.qkNorm = nn::SelfAttentionOptions::QkNorm::Projection;
    o.qkvBias = o.outputBias = attentionBias_;
    Tensor y =
        x + norm(path + ".post_attention_layernorm")(attention(path + ".self_attn", o)(x, context));
    return y + norm(path + ".post_feedforward_layernorm")(mlp(path + ".mlp")(y));
  }

 private:
  const bool attentionBias_;
};

}  // namespace

Graph builders::olmo2(ConfigReader& config, const FamilyOptions& options) {
  Olmo2Config c{readDecoder(config, options, {.normEps = 1e-5})};
  c.attentionBias = config.flag("attention_bias", false);
  return recordFamily<Olmo2>("olmo2", c, options);
}

}  // namespace lathe
