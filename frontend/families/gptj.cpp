// SPDX-License-Identifier: Apache-2.0
// GPT-J: Wang and Komatsuzaki, "GPT-J-6B: A 6 Billion Parameter Autoregressive Language Model",
// 2021. Attention and MLP side by side behind one LayerNorm, rotations of neighbouring elements of
// a part of each head, a head with a bias.
#include "frontend/families/builders.h"
#include "lathe/frontend/families/causal_lm.h"

namespace lathe {
namespace {

class GptJ : public DecoderLm {
 public:
  using DecoderLm::DecoderLm;

  Tensor embed(const Tensor& ids, const Tensor& /*where*/) const override {
    return table("transformer.wte", config_.vocabSize)(ids);
  }

  Tensor layer(int64_t index, const Tensor& x, const nn::LayerContext& context) const override {
    const std::string path = "transformer.h." + std::to_string(index);
    nn::SelfAttentionOptions o = attentionOptions();
    o.names.o = "out_proj";
    const Tensor y = layerNorm(path + ".ln_1")(x);
    return attention(path + ".attn", o)(y, context) +
           feedForward(path + ".mlp", "fc_in", "fc_out")(y) + x;
  }

  Tensor logits(const Tensor& x) const override {
    return head(layerNorm("transformer.ln_f")(x), "transformer.wte", /*bias=*/true);
  }
};

}  // namespace

Graph builders::gptJ(ConfigReader& config, const FamilyOptions& options) {
  DecoderConfig c;
  c.vocabSize = config.size("vocab_size", kMaxVocabulary);
  c.hiddenSize = config.size("n_embd", kMaxHidden);
  c.intermediateSize = config.size("n_inner", kMaxIntermediate, 4 * c.hiddenSize);
  c.layers = readLayers(config, "n_layer", options);
  readEqualHeads(config, "n_head", c);
  c.maxPositions = config.size("n_positions", kMaxPositions, 2048);
  c.normEps = config.epsilon("layer_norm_epsilon", 1e-5);
  c.activation = readActivation(config, "activation_function", "gelu_new");
  c.tiedHead = config.flag("tie_word_embeddings", false);
  const int64_t rotated = config.size("rotary_dim", kMaxHidden, 64);
  if (rotated > c.headDim || rotated % 2)
    throw config.json().error("rotary_dim: expected an even number up to the head dimension " +
                              std::to_string(c.headDim) + ", got " + std::to_string(rotated));
  c.rope = {.headDim = c.headDim,
            .rotaryDim = rotated,
            .maxPositions = reachedPositions(c.maxPositions, options),
            .pairing = Pairing::interleaved};
  // The older name of n_positions, and what every model of this architecture does.
  config.ignore({"n_ctx", "rotary", "scale_attn_weights"});
  return recordFamily<GptJ>("gptj", c, options);
}

}  // namespace lathe
