// SPDX-License-Identifier: Apache-2.0
// Qwen 2 and 2.5: Yang et al., "Qwen2 Technical Report", 2024. Biases of q, k and v, and layers
// from `max_window_layers` on that may see a window.
#include "frontend/families/builders.h"
#include "lathe/frontend/families/causal_lm.h"

namespace lathe {
namespace {

struct Qwen2Config : DecoderConfig {
  std::vector<int64_t> windows;  ///< of each layer; 0: all keys
};

class Qwen2 : public DecoderLm {
 public:
  Qwen2(Graph& graph, const Qwen2Config& config, const FamilyOptions& options)
      : DecoderLm(graph, config, options), windows_(config.windows) {}

  Tensor layer(int64_t index, const Tensor& x, const nn::LayerContext& context) const override {
    const std::string path = layerPath(index);
    nn::SelfAttentionOptions o = attentionOptions();
    o.qkvBias = true;
    o.attention.window = windows_[size_t(index)];
    Tensor y = x + attention(path + ".self_attn", o)(norm(path + ".input_layernorm")(x), context);
    return y + mlp(path + ".mlp")(norm(path + ".post_attention_layernorm")(y));
  }

 private:
  const std::vector<int64_t> windows_;
};

}  // namespace

std::vector<int64_t> builders::qwenWindows(ConfigReader& config, int64_t layers,
                                           int64_t otherwiseFrom) {
  const int64_t window = config.size("sliding_window", kMaxPositions, 4096);
  const bool used = config.flag("use_sliding_window", false) &&
                    (config.has("sliding_window") || !config.json().has("sliding_window"));
  int64_t first = otherwiseFrom;
  if (auto given = config.find("max_window_layers")) first = given->asInt(0, kMaxLayers);
  return readWindows(config, layers, used ? window : 0,
                     [&](int64_t i) { return used && i >= first; });
}

Graph builders::qwen2(ConfigReader& config, const FamilyOptions& options) {
  Qwen2Config c{readDecoder(config, options, {.kvHeads = 32, .maxPositions = 32768})};
  c.windows = qwenWindows(config, c.layers);
  return recordFamily<Qwen2>("qwen2", c, options);
}

}  // namespace lathe
