// SPDX-License-Identifier: Apache-2.0
// Gemma 2: Gemma Team, "Gemma 2: Improving Open Language Models at a Practical Size", 2024. Norms
// before and behind each part, soft caps of scores and of logits, every other layer with a window.
#include <cmath>

#include "frontend/families/builders.h"
#include "frontend/families/gemma.h"

namespace lathe {
namespace {

struct Gemma2Config : DecoderConfig {
  bool attentionBias = false;
  double scale = 1, scoreCap = 0, logitCap = 0;  ///< caps of 0: none
  std::vector<int64_t> windows;                  ///< of each layer; 0: all keys
};

class Gemma2 : public GemmaLm {
 public:
  Gemma2(Graph& graph, const Gemma2Config& config, const FamilyOptions& options)
      : GemmaLm(graph, config, options), own_(config) {}

  Tensor layer(int64_t index, const Tensor& x, const nn::LayerContext& context) const override {
    nn::SelfAttentionOptions o = attentionOptions();
    o.qkvBias = o.outputBias = own_.attentionBias;
    o.attention.scale = own_.scale;
    o.attention.softcap = own_.scoreCap;
    o.attention.window = own_.windows[size_t(index)];
    return sandwich(index, x, o, context);
  }

  Tensor logits(const Tensor& x) const override { return cappedLogits(x, own_.logitCap); }

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
  config.ignore({"hidden_act", "sliding_window_size"});
  c.attentionBias = config.flag("attention_bias", false);
  c.scale = 1 / std::sqrt(config.positive("query_pre_attn_scalar", 256));
  c.scoreCap = readCap(config, "attn_logit_softcapping", 50);
  c.logitCap = readCap(config, "final_logit_softcapping", 30);
  const int64_t window = config.size("sliding_window", kMaxPositions, 4096);
  c.windows = readWindows(config, c.layers, window, [](int64_t i) { return i % 2 == 0; });
  return recordFamily<Gemma2>("gemma2", c, options);
}

}  // namespace lathe
