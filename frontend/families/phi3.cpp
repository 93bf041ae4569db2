// SPDX-License-Identifier: Apache-2.0
// Phi-3: Abdin et al., "Phi-3 Technical Report", 2024. One weight for q, k and v, one for gate and
// up, and rotations of a part of each head, stretched by LongRoPE.
#include "frontend/families/builders.h"
#include "lathe/frontend/families/causal_lm.h"

namespace lathe {
namespace {

struct Phi3Config : DecoderConfig {
  int64_t window = 0;  ///< keys that a token sees; 0: all
};

class Phi3 : public DecoderLm {
 public:
  Phi3(Graph& graph, const Phi3Config& config, const FamilyOptions& options)
      : DecoderLm(graph, config, options), window_(config.window) {}

  Tensor layer(int64_t index, const Tensor& x, const nn::LayerContext& context) const override {
    const std::string path = layerPath(index);
    nn::SelfAttentionOptions o = attentionOptions();
    o.projections = nn::SelfAttentionOptions::Projections::Fused;
    o.names.qkv = "qkv_proj";
    o.attention.window = window_;
    nn::SwiGLUOptions mlp = mlpOptions();
    mlp.gateUp = "gate_up_proj";
    Tensor y = x + attention(path + ".self_attn", o)(norm(path + ".input_layernorm")(x), context);
    const nn::SwiGLU gated(graph_, path + ".mlp", config_.hiddenSize, config_.intermediateSize,
                           mlp);
    return y + gated(norm(path + ".post_attention_layernorm")(y));
  }

 private:
  const int64_t window_;
};

}  // namespace

Graph builders::phi3(ConfigReader& config, const FamilyOptions& options) {
  Phi3Config c{readDecoder(
      config, options,
      {.maxPositions = 4096, .trainedPositions = 4096, .normEps = 1e-5, .mayRotatePartly = true})};
  if (auto window = config.find("sliding_window")) c.window = window->asInt(1, kMaxPositions);
  return recordFamily<Phi3>("phi3", c, options);
}

}  // namespace lathe
