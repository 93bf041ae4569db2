// SPDX-License-Identifier: Apache-2.0
// StarCoder 2: Lozhkov et al., "StarCoder 2 and The Stack v2: The Next Generation", 2024. Grouped
// heads and rotations with the LayerNorms, biases and MLP of GPT-2.
#include "frontend/families/builders.h"
#include "lathe/frontend/families/causal_lm.h"

namespace lathe {
namespace {

struct Starcoder2Config : DecoderConfig {
  bool bias = true;
  int64_t window = 0;  ///< keys that a token sees; 0: all
};

class Starcoder2 : public DecoderLm {
 public:
  Starcoder2(Graph& graph, const Starcoder2Config& config, const FamilyOptions& options)
      : DecoderLm(graph, config, options), own_(config) {}

  Tensor layer(int64_t index, const Tensor& x, const nn::LayerContext& context) const override {
    const std::string path = layerPath(index);
    nn::SelfAttentionOptions o = attentionOptions();
    o.qkvBias = o.outputBias = own_.bias;
    o.attention.window = own_.window;
    Tensor y =
        x + attention(path + ".self_attn", o)(layerNorm(path + ".input_layernorm")(x), context);
    return y + feedForward(path + ".mlp", "c_fc", "c_proj",
                           own_.bias)(layerNorm(path + ".post_attention_layernorm")(y));
  }

  Tensor logits(const Tensor& x) const override { return head(layerNorm("model.norm")(x)); }

 private:
  const Starcoder2Config own_;
};

}  // namespace

Graph builders::starcoder2(ConfigReader& config, const FamilyOptions& options) {
  Starcoder2Config c{readDecoder(config, options,
                                 {.kvHeads = 2,
                                  .maxPositions = 4096,
                                  .normEps = 1e-5,
                                  .tiedHead = true,
                                  .normEpsKey = "norm_epsilon",
                                  .activation = "gelu_pytorch_tanh"})};
  c.bias = config.flag("use_bias", true);
  if (auto window = config.find("sliding_window")) c.window = window->asInt(1, kMaxPositions);
  // Names of the first checkpoints for what the classes say.
  config.ignore({"mlp_type", "norm_type", "residual_dropout", "layer_norm_epsilon",
                 "attention_softmax_in_fp32", "scale_attention_softmax_in_fp32",
                 "scale_attn_weights"});
  return recordFamily<Starcoder2>("starcoder2", c, options);
}

}  // namespace lathe
