// SPDX-License-Identifier: Apache-2.0
// Cohere's Command R: attention and a gated MLP side by side behind one LayerNorm without a bias,
// rotations of neighbouring elements, logits times a factor; Command R+ has norms of q and k.
#include "frontend/families/builders.h"
#include "lathe/frontend/families/causal_lm.h"

namespace lathe {
namespace {

struct CohereConfig : DecoderConfig {
  bool attentionBias = false, qkNorm = false;
  double logits = 0.0625;
};

class Cohere : public DecoderLm {
 public:
  Cohere(Graph& graph, const CohereConfig& config, const FamilyOptions& options)
      : DecoderLm(graph, config, options), own_(config) {}

  Tensor layer(int64_t index, const Tensor& x, const nn::LayerContext& context) const override {
    const std::string path = layerPath(index);
    nn::SelfAttentionOptions o = attentionOptions();
    o.qkvBias = o.outputBias = own_.attentionBias;
    const nn::CausalSelfAttention attend = attention(path + ".self_attn", o);
    const Tensor y = gainNorm(path + ".input_layernorm")(x);
    nn::AttentionHeads heads = attend.project(y);
    if (own_.qkNorm) {
      heads.q = headNorm(path + ".self_attn.q_norm", heads.q, config_.heads);
      heads.k = headNorm(path + ".self_attn.k_norm", heads.k, config_.kvHeads);
    }
    return x + attend.attend(heads, context) + mlp(path + ".mlp")(y);
  }

  Tensor logits(const Tensor& x) const override {
    return head(gainNorm("model.norm")(x)) * own_.logits;
  }

 private:
  nn::LayerNorm gainNorm(const std::string& path) const {
    return nn::LayerNorm(
        graph_, path, config_.hiddenSize,
        {.eps = config_.normEps, .bias = false, .weightDType = options_.weightDType});
  }
  // Each head has gains of its own; [batch, heads, seq, headDim] in and out.
  Tensor headNorm(const std::string& path, const Tensor& x, int64_t heads) const {
    const nn::LayerNorm plain(graph_, path, config_.headDim,
                              {.eps = config_.normEps, .gain = false, .bias = false});
    const Tensor gains =
        graph_.weight(path + ".weight", options_.weightDType, {heads, config_.headDim});
    const Tensor wide = plain(nn::castTo(x, DType::F32)) *
                        reshape(nn::castTo(gains, DType::F32), {heads, 1, config_.headDim});
    return nn::castTo(wide, x.dtype());
  }
  const CohereConfig own_;
};

}  // namespace

Graph builders::cohere(ConfigReader& config, const FamilyOptions& options) {
  CohereConfig c{readDecoder(config, options,
                             {.maxPositions = 8192,
                              .normEps = 1e-5,
                              .ropeTheta = 500000,
                              .tiedHead = true,
                              .normEpsKey = "layer_norm_eps"})};
  c.rope.pairing = Pairing::interleaved;
  c.attentionBias = config.flag("attention_bias", false);
  c.qkNorm = config.flag("use_qk_norm", false);
  c.logits = config.number("logit_scale", 0.0625);
  return recordFamily<Cohere>("cohere", c, options);
}

}  // namespace lathe
