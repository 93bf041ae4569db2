// SPDX-License-Identifier: Apache-2.0
// GPT-NeoX and Pythia: Black et al., "GPT-NeoX-20B: An Open-Source Autoregressive Language Model",
// 2022. Attention and MLP side by side, rotations of a part of each head, and one weight for q, k
// and v whose rows lie head by head.
#include "frontend/families/builders.h"
#include "lathe/frontend/families/causal_lm.h"

namespace lathe {
namespace {

struct NeoxConfig : DecoderConfig {
  bool attentionBias = true, parallel = true;
};

class GptNeox : public DecoderLm {
 public:
  GptNeox(Graph& graph, const NeoxConfig& config, const FamilyOptions& options)
      : DecoderLm(graph, config, options), own_(config) {}

  Tensor embed(const Tensor& ids, const Tensor& /*where*/) const override {
    return table("gpt_neox.embed_in", config_.vocabSize)(ids);
  }

  std::string layerPath(int64_t index) const override {
    return "gpt_neox.layers." + std::to_string(index);
  }
  Tensor layer(int64_t index, const Tensor& x, const nn::LayerContext& context) const override {
    const std::string path = layerPath(index);
    nn::SelfAttentionOptions o = attentionOptions();
    o.projections = nn::SelfAttentionOptions::Projections::FusedByHead;
    o.names.qkv = "query_key_value";
    o.names.o = "dense";
    o.qkvBias = o.outputBias = own_.attentionBias;
    const nn::FeedForward mlp = feedForward(path + ".mlp", "dense_h_to_4h", "dense_4h_to_h");
    Tensor a = attention(path + ".attention", o)(layerNorm(path + ".input_layernorm")(x), context);
    const nn::LayerNorm second = layerNorm(path + ".post_attention_layernorm");
    if (own_.parallel) return x + a + mlp(second(x));
    Tensor y = x + a;
    return y + mlp(second(y));
  }

  Tensor logits(const Tensor& x) const override {
    // transformers 4 calls the head embed_out, 5 lm_head.
    const bool renamed = options_.hasWeight && options_.hasWeight("lm_head.weight");
    Tensor y = layerNorm("gpt_neox.final_layer_norm")(x);
    y = config_.tiedHead ? table("gpt_neox.embed_in", config_.vocabSize).unembed(y)
                         : linear(renamed ? "lm_head" : "embed_out", config_.hiddenSize,
                                  config_.vocabSize, /*bias=*/false)(y);
    return nn::castTo(y, DType::F32);
  }

 private:
  const NeoxConfig own_;
};

}  // namespace

Graph builders::gptNeoX(ConfigReader& config, const FamilyOptions& options) {
  // Names of its own for two fields of the rotation.
  DecoderDefaults defaults{.normEps = 1e-5,
                           .rotaryFraction = config.number("rotary_pct", 0.25),
                           .mayRotatePartly = true,
                           .normEpsKey = "layer_norm_eps",
                           .activation = "gelu"};
  defaults.ropeTheta = config.positive("rotary_emb_base", 10000);
  NeoxConfig c{readDecoder(config, options, defaults)};
  c.attentionBias = config.flag("attention_bias", true);
  c.parallel = config.flag("use_parallel_residual", true);
  return recordFamily<GptNeox>("gpt_neox", c, options);
}

}  // namespace lathe
