// SPDX-License-Identifier: Apache-2.0
// Qwen 3 with mixtures: Yang et al., "Qwen3 Technical Report", 2025. Qwen 3's attention; a mixture
// in every `decoder_sparse_step`-th layer, an MLP in the others.
#include <algorithm>

#include "frontend/families/builders.h"
#include "lathe/frontend/families/causal_lm.h"
#include "lathe/frontend/nn/mixture.h"

namespace lathe {
namespace {

struct Qwen3MoeConfig : DecoderConfig {
  bool attentionBias = false, normalize = false;
  int64_t window = 0;  ///< keys that a token sees; 0: all
  int64_t experts = 0, chosen = 0, expertSize = 0;
  std::vector<bool> isMixture;  ///< of each layer
};

class Qwen3Moe : public DecoderLm {
 public:
  Qwen3Moe(Graph& graph, const Qwen3MoeConfig& config, const FamilyOptions& options)
      : DecoderLm(graph, config, options), own_(config) {}

  Tensor layer(int64_t index, const Tensor& x, const nn::LayerContext& context) const override {
    const std::string path = layerPath(index);
    nn::SelfAttentionOptions o = attentionOptions();
    o.qkNorm = nn::SelfAttentionOptions::QkNorm::Head;
    o.qkvBias = o.outputBias = own_.attentionBias;
    o.attention.window = own_.window;
    Tensor y = x + attention(path + ".self_attn", o)(norm(path + ".input_layernorm")(x), context);
    Tensor z = norm(path + ".post_attention_layernorm")(y);
    if (!own_.isMixture[size_t(index)]) return y + mlp(path + ".mlp")(z);
    const nn::Mixture mixture(graph_, path + ".mlp",
                              {.dModel = config_.hiddenSize,
                               .dHidden = own_.expertSize,
                               .experts = own_.experts,
                               .chosen = own_.chosen,
                               .normalize = own_.normalize,
                               .mlp = mlpOptions()});
    return y + mixture(z);
  }

 private:
  const Qwen3MoeConfig own_;
};

}  // namespace

std::vector<bool> builders::readMixtures(ConfigReader& config, int64_t layers) {
  const int64_t step = config.size("decoder_sparse_step", kMaxLayers, 1);
  std::vector<bool> isMixture;
  for (int64_t i = 0; i < layers; ++i) isMixture.push_back((i + 1) % step == 0);
  if (auto plain = config.find("mlp_only_layers"))
    for (size_t i = 0; i < plain->size(); ++i)
      if (const int64_t layer = plain->at(i).asInt(0, kMaxLayers); layer < layers)
        isMixture[size_t(layer)] = false;
  return isMixture;
}

Graph builders::qwen3Moe(ConfigReader& config, const FamilyOptions& options) {
  Qwen3MoeConfig c{readDecoder(config, options, {.kvHeads = 4, .maxPositions = 32768})};
  c.attentionBias = config.flag("attention_bias", false);
  c.normalize = config.flag("norm_topk_prob", false);
  const std::vector<int64_t> windows = qwenWindows(config, c.layers, /*otherwiseFrom=*/0);
  c.window = windows.front();
  c.experts = config.size(config.has("num_local_experts") ? "num_local_experts" : "num_experts",
                          kMaxExperts, 128);
  c.chosen = config.size("num_experts_per_tok", c.experts, std::min<int64_t>(8, c.experts));
  c.expertSize = config.size("moe_intermediate_size", kMaxIntermediate, 768);
  c.isMixture = readMixtures(config, c.layers);
  return recordFamily<Qwen3Moe>("qwen3_moe", c, options);
}

}  // namespace lathe
