// SPDX-License-Identifier: Apache-2.0
// Qwen 1.5 and 2 with mixtures: Yang et al., "Qwen2 Technical Report", 2024. Qwen 2's attention;
// beside the experts that a token chooses one that all tokens take, with a gate.
#include <algorithm>

#include "frontend/families/builders.h"
#include "lathe/frontend/families/causal_lm.h"
#include "lathe/frontend/nn/mixture.h"

namespace lathe {
namespace {

struct Qwen2MoeConfig : DecoderConfig {
  bool qkvBias = true, normalize = false;
  std::vector<int64_t> windows;  ///< of each layer; 0: all keys
  int64_t experts = 0, chosen = 0, expertSize = 0, sharedSize = 0;
  std::vector<bool> isMixture;  ///< of each layer
};

class Qwen2Moe : public DecoderLm {
 public:
  Qwen2Moe(Graph& graph, const Qwen2MoeConfig& config, const FamilyOptions& options)
      : DecoderLm(graph, config, options), own_(config) {}

  Tensor layer(int64_t index, const Tensor& x, const nn::LayerContext& context) const override {
    const std::string path = layerPath(index);
    nn::SelfAttentionOptions o = attentionOptions();
    o.qkvBias = own_.qkvBias;
    o.attention.window = own_.windows[size_t(index)];
    Tensor y = x + attention(path + ".self_attn", o)(norm(path + ".input_layernorm")(x), context);
    Tensor z = norm(path + ".post_attention_layernorm")(y);
    return y + (own_.isMixture[size_t(index)] ? experts(path + ".mlp", z) : mlp(path + ".mlp")(z));
  }

 private:
  Tensor experts(const std::string& path, const Tensor& x) const {
    const nn::Mixture mixture(graph_, path,
                              {.dModel = config_.hiddenSize,
                               .dHidden = own_.expertSize,
                               .experts = own_.experts,
                               .chosen = own_.chosen,
                               .normalize = own_.normalize,
                               .mlp = mlpOptions()});
    const nn::SwiGLU shared(graph_, path + ".shared_expert", config_.hiddenSize, own_.sharedSize,
                            mlpOptions());
    const nn::Linear gate = linear(path + ".shared_expert_gate", config_.hiddenSize, 1, false);
    return mixture(x) + sigmoid(gate(x)) * shared(x);
  }
  const Qwen2MoeConfig own_;
};

// Every other layer below `max_window_layers`, which is not what Qwen 2 makes of these fields.
std::vector<int64_t> windowsOf(ConfigReader& config, int64_t layers) {
  // A model without windows may say so by 0.
  int64_t window = 4096;
  if (auto given = config.find("sliding_window")) window = given->asInt(0, kMaxPositions);
  const bool used = config.flag("use_sliding_window", false) && window > 0;
  int64_t last = 28;
  if (auto given = config.find("max_window_layers")) last = given->asInt(0, kMaxLayers);
  return readWindows(config, layers, used ? window : 0,
                     [&](int64_t i) { return used && i % 2 == 0 && i < last; });
}

}  // namespace

Graph builders::qwen2Moe(ConfigReader& config, const FamilyOptions& options) {
  Qwen2MoeConfig c{readDecoder(config, options, {.kvHeads = 16, .maxPositions = 32768})};
  c.qkvBias = config.flag("qkv_bias", true);
  c.normalize = config.flag("norm_topk_prob", false);
  c.windows = windowsOf(config, c.layers);
  c.experts = config.size("num_experts", kMaxExperts, 60);
  c.chosen = config.size("num_experts_per_tok", c.experts, std::min<int64_t>(4, c.experts));
  c.expertSize = config.size("moe_intermediate_size", kMaxIntermediate, 1408);
  c.sharedSize = config.size("shared_expert_intermediate_size", kMaxIntermediate, 5632);
  c.isMixture = readMixtures(config, c.layers);
  return recordFamily<Qwen2Moe>("qwen2_moe", c, options);
}

}  // namespace lathe
