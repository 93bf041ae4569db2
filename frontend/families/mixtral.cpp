// SPDX-License-Identifier: Apache-2.0
// Mixtral: Jiang et al., "Mixtral of Experts", 2024. Mistral's layer with a mixture in the place of
// its MLP.
#include <algorithm>

#include "frontend/families/builders.h"
#include "lathe/frontend/families/causal_lm.h"
#include "lathe/frontend/nn/mixture.h"

namespace lathe {
namespace {

struct MixtralConfig : DecoderConfig {
  int64_t window = 0;  ///< keys that a token sees; 0: all
  int64_t experts = 0, chosen = 0;
};

class Mixtral : public DecoderLm {
 public:
  Mixtral(Graph& graph, const MixtralConfig& config, const FamilyOptions& options)
      : DecoderLm(graph, config, options), own_(config) {}

  Tensor layer(int64_t index, const Tensor& x, const nn::LayerContext& context) const override {
    const std::string path = layerPath(index);
    nn::SelfAttentionOptions o = attentionOptions();
    o.attention.window = own_.window;
    Tensor y = x + attention(path + ".self_attn", o)(norm(path + ".input_layernorm")(x), context);
    return y + experts(path)(norm(path + ".post_attention_layernorm")(y));
  }

 private:
  nn::Mixture experts(const std::string& path) const {
    nn::MixtureOptions o{.dModel = config_.hiddenSize,
                         .dHidden = config_.intermediateSize,
                         .experts = own_.experts,
                         .chosen = own_.chosen,
                         .mlp = mlpOptions()};
    o.mlp.gate = "w1";
    o.mlp.up = "w3";
    o.mlp.down = "w2";
    return nn::Mixture(graph_, path + ".block_sparse_moe", o);
  }
  const MixtralConfig own_;
};

}  // namespace

Graph builders::mixtral(ConfigReader& config, const FamilyOptions& options) {
  MixtralConfig c{
      readDecoder(config, options,
                  {.kvHeads = 8, .maxPositions = 4096 * 32, .normEps = 1e-5, .ropeTheta = 1e6})};
  if (auto window = config.find("sliding_window")) c.window = window->asInt(1, kMaxPositions);
  c.experts = config.size("num_local_experts", kMaxExperts, 8);
  c.chosen = config.size("num_experts_per_tok", c.experts, std::min<int64_t>(2, c.experts));
  return recordFamily<Mixtral>("mixtral", c, options);
}

}  // namespace lathe
