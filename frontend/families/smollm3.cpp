// SPDX-License-Identifier: Apache-2.0
// SmolLM 3: Llama's layer, of which every fourth has no rotations (NoPE): Yang et al., "RoPE to
// NoPE and Back Again: A New Hybrid Attention Strategy", 2025.
#include "frontend/families/builders.h"
#include "lathe/frontend/families/causal_lm.h"

namespace lathe {
namespace {

struct SmolLm3Config : DecoderConfig {
  bool attentionBias = false, mlpBias = false;
  std::vector<bool> rotates;     ///< of each layer
  std::vector<int64_t> windows;  ///< of each layer; 0: all keys
};

class SmolLm3 : public DecoderLm {
 public:
  SmolLm3(Graph& graph, const SmolLm3Config& config, const FamilyOptions& options)
      : DecoderLm(graph, config, options), own_(config) {}

  Tensor layer(int64_t index, const Tensor& x, const nn::LayerContext& context) const override {
    const std::string path = layerPath(index);
    nn::SelfAttentionOptions o = attentionOptions();
    o.qkvBias = o.outputBias = own_.attentionBias;
    o.attention.window = own_.windows[size_t(index)];
    if (!own_.rotates[size_t(index)]) o.rope.reset();
    nn::SwiGLUOptions mlp = mlpOptions();
    mlp.bias = own_.mlpBias;
    const nn::SwiGLU gated(graph_, path + ".mlp", config_.hiddenSize, config_.intermediateSize,
                           mlp);
    Tensor y = x + attention(path + ".self_attn", o)(norm(path + ".input_layernorm")(x), context);
    return y + gated(norm(path + ".post_attention_layernorm")(y));
  }

 private:
  const SmolLm3Config own_;
};

// `no_rope_layers` has a 1 for each layer that rotates; without it every interval-th does not.
std::vector<bool> readRotations(ConfigReader& config, int64_t layers) {
  const int64_t interval = config.size("no_rope_layer_interval", kMaxLayers, 4);
  const auto listed = config.find("no_rope_layers");
  if (listed && int64_t(listed->size()) < layers)
    throw listed->error("expected a number for each of " + std::to_string(layers) +
                        " layers, got " + std::to_string(listed->size()));
  std::vector<bool> rotates;
  for (int64_t i = 0; i < layers; ++i)
    rotates.push_back(listed ? listed->at(size_t(i)).asInt(0, 1) == 1 : (i + 1) % interval != 0);
  return rotates;
}

}  // namespace

Graph builders::smolLm3(ConfigReader& config, const FamilyOptions& options) {
  SmolLm3Config c{
      readDecoder(config, options,
                  {.kvHeads = 4, .maxPositions = 32768, .ropeTheta = 2000000, .tiedHead = true})};
  c.attentionBias = config.flag("attention_bias", false);
  c.mlpBias = config.flag("mlp_bias", false);
  c.rotates = readRotations(config, c.layers);
  int64_t window = 0;
  if (auto given = config.find("sliding_window")) window = given->asInt(1, kMaxPositions);
  const bool windowed = config.flag("use_sliding_window", false) && window > 0;
  c.windows = readWindows(config, c.layers, window,
                          [&](int64_t i) { return windowed && !c.rotates[size_t(i)]; });
  // Of how the model was trained, and of another family.
  config.ignore({"pretraining_tp", "max_window_layers"});
  return recordFamily<SmolLm3>("smollm3", c, options);
}

}  // namespace lathe
