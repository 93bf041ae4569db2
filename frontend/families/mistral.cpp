// SPDX-License-Identifier: Apache-2.0
// Mistral: Jiang et al., "Mistral 7B", 2023. Llama's layer, whose attention sees a window.
#include "frontend/families/builders.h"
#include "lathe/frontend/families/causal_lm.h"

namespace lathe {
namespace {

struct MistralConfig : DecoderConfig {
  int64_t window = 0;  ///< keys that a token sees; 0: all
};

class Mistral : public DecoderLm {
 public:
  Mistral(Graph& graph, const MistralConfig& config, const FamilyOptions& options)
      : DecoderLm(graph, config, options), window_(config.window) {}

  Tensor layer(int64_t index, const Tensor& x, const nn::LayerContext& context) const override {
    const std::string path = layerPath(index);
    nn::SelfAttentionOptions o = attentionOptions();
    o.attention.window = window_;
    Tensor y = x + attention(path + ".self_attn", o)(norm(path + ".input_layernorm")(x), context);
    return y + mlp(path + ".mlp")(norm(path + ".post_attention_layernorm")(y));
  }

 private:
  const int64_t window_;
};

}  // namespace

Graph builders::mistral(ConfigReader& config, const FamilyOptions& options) {
  MistralConfig c{readDecoder(config, options, {.kvHeads = 8, .maxPositions = 4096 * 32})};
  // Missing is 4096, null is no window.
  const int64_t otherwise = config.json().has("sliding_window") ? 0 : 4096;
  if (auto window = config.find("sliding_window"))
    c.window = window->asInt(1, kMaxPositions);
  else
    c.window = otherwise;
  return recordFamily<Mistral>("mistral", c, options);
}

}  // namespace lathe
