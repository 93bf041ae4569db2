// SPDX-License-Identifier: Apache-2.0
// Qwen 3: Yang et al., "Qwen3 Technical Report", 2025. Every head of q and k has a norm in front of
// its rotation, and a size of its own.
#include "frontend/families/builders.h"
#include "lathe/frontend/families/causal_lm.h"

namespace lathe {
namespace {

struct Qwen3Config : DecoderConfig {
  bool attentionBias = false;
  std::vector<int64_t> windows;  ///< of each layer; 0: all keys
};

class Qwen3 : public DecoderLm {
 public:
  Qwen3(Graph& graph, const Qwen3Config& config, const FamilyOptions& options)
      : DecoderLm(graph, config, options), own_(config) {}

  Tensor layer(int64_t index, const Tensor& x, const nn::LayerContext& context) const override {
    const std::string path = layerPath(index);
    nn::SelfAttentionOptions o = attentionOptions();
    o.qkNorm = nn::SelfAttentionOptions::QkNorm::Head;
    o.qkvBias = o.outputBias = own_.attentionBias;
    o.attention.window = own_.windows[size_t(index)];
    Tensor y = x + attention(path + ".self_attn", o)(norm(path + ".input_layernorm")(x), context);
    return y + mlp(path + ".mlp")(norm(path + ".post_attention_layernorm")(y));
  }

 private:
  const Qwen3Config own_;
};

}  // namespace

Graph builders::qwen3(ConfigReader& config, const FamilyOptions& options) {
  Qwen3Config c{
      readDecoder(config, options, {.kvHeads = 32, .headDim = 128, .maxPositions = 32768})};
  c.attentionBias = config.flag("attention_bias", false);
  c.windows = qwenWindows(config, c.layers);
  return recordFamily<Qwen3>("qwen3", c, options);
}

}  // namespace lathe
