// SPDX-License-Identifier: Apache-2.0
// StableLM: Bellagente et al., "Stable LM 2 1.6B Technical Report", 2024. LayerNorms and a gated
// MLP, rotations of a quarter of each head; the 12B model has attention and MLP side by side and
// norms of each head of q and k.
#include "frontend/families/builders.h"
#include "lathe/frontend/families/causal_lm.h"

namespace lathe {
namespace {

struct StableLmConfig : DecoderConfig {
  bool qkvBias = false, qkNorm = false, parallel = false;
};

class StableLm : public DecoderLm {
 public:
  StableLm(Graph& graph, const StableLmConfig& config, const FamilyOptions& options)
      : DecoderLm(graph, config, options), own_(config) {}

  Tensor layer(int64_t index, const Tensor& x, const nn::LayerContext& context) const override {
    const std::string path = layerPath(index);
    nn::SelfAttentionOptions o = attentionOptions();
    o.qkvBias = own_.qkvBias;
    const nn::CausalSelfAttention attend = attention(path + ".self_attn", o);
    const Tensor y = layerNorm(path + ".input_layernorm")(x);
    nn::AttentionHeads heads = attend.project(y);
    if (own_.qkNorm) {
      heads.q = headNorms(path + ".self_attn.q_layernorm", heads.q, config_.heads);
      heads.k = headNorms(path + ".self_attn.k_layernorm", heads.k, config_.kvHeads);
    }
    const Tensor a = attend.attend(heads, context);
    const nn::SwiGLU gated = mlp(path + ".mlp");
    if (own_.parallel) return x + a + gated(y);
    const Tensor z = x + a;
    return z + gated(layerNorm(path + ".post_attention_layernorm")(z));
  }

  Tensor logits(const Tensor& x) const override { return head(layerNorm("model.norm")(x)); }

 private:
  // A norm for each head, whose gains lie in tensors of their own; [batch, heads, seq, headDim].
  Tensor headNorms(const std::string& path, const Tensor& x, int64_t heads) const {
    const nn::LayerNorm plain(graph_, path, config_.headDim,
                              {.eps = config_.normEps, .gain = false, .bias = false});
    std::vector<Tensor> gains;
    for (int64_t i = 0; i < heads; ++i)
      gains.push_back(graph_.weight(path + ".norms." + std::to_string(i) + ".weight",
                                    options_.weightDType, {config_.headDim}));
    const Tensor all = reshape(nn::castTo(stack(gains), DType::F32), {heads, 1, config_.headDim});
    return nn::castTo(plain(nn::castTo(x, DType::F32)) * all, x.dtype());
  }
  const StableLmConfig own_;
};

}  // namespace

Graph builders::stableLm(ConfigReader& config, const FamilyOptions& options) {
  StableLmConfig c{readDecoder(config, options,
                               {.maxPositions = 4096,
                                .normEps = 1e-5,
                                .rotaryFraction = 0.25,
                                .mayRotatePartly = true,
                                .normEpsKey = "layer_norm_eps"})};
  c.qkvBias = config.flag("use_qkv_bias", false);
  c.qkNorm = config.flag("qk_layernorm", false);
  c.parallel = config.flag("use_parallel_residual", false);
  // Names of the first checkpoints, of whose values the classes read others.
  config.ignore({"num_heads", "rope_pct", "rotary_scaling_factor"});
  return recordFamily<StableLm>("stablelm", c, options);
}

}  // namespace lathe
