// SPDX-License-Identifier: Apache-2.0
// Gemma 2: Gemma Team, "Gemma 2: Improving Open Language Models at a Practical Size", 2024. Norms
// before and behind each part, soft caps of scores and of logits, every other layer with a window.
#include <cmath>

#include "frontend/families/builders.h"
#include "lathe/frontend/families/causal_lm.h"

namespace lathe {
namespace {

struct Gemma2Config : DecoderConfig {
  bool attentionBias = false;
  double scale = 1, scoreCap = 0, logitCap = 0;  ///< caps of 0: none
  std::vector<int64_t> windows;                  ///< of each layer; 0: all keys
};

class Gemma2 : public DecoderLm {
 public:
  Gemma2(Graph& graph, const Gemma2Config& config, const FamilyOptions& options)
      : DecoderLm(graph, config, options), own_(config) {
    norm_.rounding = GainRounding::after_gain;
    norm_.unitOffset = true;
  }

  Tensor embed(const Tensor& ids, const Tensor& where) const override {
    return DecoderLm::embed(ids, where) * std::sqrt(double(config_.hiddenSize));
  }

  Tensor layer(int64_t index, const Tensor& x, const nn::LayerContext& context) const override {
    const std::string path = layerPath(index);
    nn::SelfAttentionOptions o = attentionOptions();
    o.qkvBias = o.outputBias = own_.attentionBias;
    o.attention.scale = own_.scale;
    o.attention.softcap = own_.scoreCap;
    o.attention.window = own_.windows[size_t(index)];
    Tensor y = attention(path + ".self_attn", o)(norm(path + ".input_layernorm")(x), context);
    y = x + norm(path + ".post_attention_layernorm")(y);
    Tensor z = mlp(path + ".mlp")(norm(path + ".pre_feedforward_layernorm")(y));
    return y + norm(path + ".post_feedforward_layernorm")(z);
  }

  Tensor logits(const Tensor& x) const override {
    Tensor y = DecoderLm::logits(x);
    return own_.logitCap > 0 ? tanh(y / own_.logitCap) * own_.logitCap : y;
  }

 private:
  const Gemma2Config own_;
};

}  // namespace

double builders::readCap(ConfigReader& config, std::string_view key, double otherwise) {
  // Missing is the default, null is none.
  if (!config.has(key)) {
    config.find(key);
    return config.json().has(key) ? 0 : otherwise;
  }
  return config.positive(key, otherwise);
}

Graph builders::gemma2(ConfigReader& config, const FamilyOptions& options) {
  Gemma2Config c{readDecoder(config, options,
                             {.kvHeads = 4,
                              .headDim = 256,
                              .maxPositions = 8192,
                              .tiedHead = true,
                              .activationKey = "hidden_activation",
                              .activation = "gelu_pytorch_tanh"})};
  config.ignore({"hidden_act"});
  c.attentionBias = config.flag("attention_bias", false);
  c.scale = 1 / std::sqrt(config.positive("query_pre_attn_scalar", 256));
  c.scoreCap = readCap(config, "attn_logit_softcapping", 50);
  c.logitCap = readCap(config, "final_logit_softcapping", 30);
  const int64_t window = config.size("sliding_window", kMaxPositions, 4096);
  c.windows = readWindows(config, c.layers, window, [](int64_t i) { return i % 2 == 0; });
  return recordFamily<Gemma2>("gemma2", c, options);
}

}  // namespace lathe
