// SPDX-License-Identifier: Apache-2.0
// Falcon: Almazrouei et al., "The Falcon Series of Open Language Models", 2023. One key/value head
// (7B) or a few (40B, 180B, Falcon 2), attention and MLP side by side behind one LayerNorm or two;
// the RW models have ALiBi and one part behind the other.
#include <cmath>

#include "frontend/families/builders.h"
#include "lathe/frontend/families/causal_lm.h"
#include "lathe/frontend/nn/relative_positions.h"

namespace lathe {
namespace {

struct FalconConfig : DecoderConfig {
  bool bias = false, parallel = true, twoNorms = false, hasAlibi = false;
};

class Falcon : public DecoderLm {
 public:
  Falcon(Graph& graph, const FalconConfig& config, const FamilyOptions& options)
      : DecoderLm(graph, config, options), own_(config) {}

  Tensor embed(const Tensor& ids, const Tensor& /*where*/) const override {
    return table("transformer.word_embeddings", config_.vocabSize)(ids);
  }
  std::vector<nn::RopeAngles> angles(const Tensor& where) const override {
    if (own_.hasAlibi) return {};
    return DecoderLm::angles(where);
  }
  // The models were trained on biases in bf16, which are scaled with the scores.
  Tensor bias(const Dim& keys) const override {
    if (!own_.hasAlibi) return {};
    return nn::alibi(graph_, config_.heads, keys, DType::BF16) / std::sqrt(double(config_.headDim));
  }

  Tensor layer(int64_t index, const Tensor& x, const nn::LayerContext& context) const override {
    const std::string path = "transformer.h." + std::to_string(index);
    nn::SelfAttentionOptions o = attentionOptions();
    if (own_.hasAlibi) o.rope.reset();
    o.projections = nn::SelfAttentionOptions::Projections::FusedByHead;
    o.names.qkv = "query_key_value";
    o.names.o = "dense";
    o.qkvBias = o.outputBias = own_.bias;
    const nn::CausalSelfAttention attend = attention(path + ".self_attention", o);
    const nn::FeedForward mlp =
        feedForward(path + ".mlp", "dense_h_to_4h", "dense_4h_to_h", own_.bias);
    if (own_.twoNorms)
      return attend(layerNorm(path + ".ln_attn")(x), context) +
             mlp(layerNorm(path + ".ln_mlp")(x)) + x;
    const Tensor y = layerNorm(path + ".input_layernorm")(x);
    if (own_.parallel) return attend(y, context) + mlp(y) + x;
    const Tensor z = attend(y, context) + x;
    return mlp(layerNorm(path + ".post_attention_layernorm")(z)) + z;
  }

  Tensor logits(const Tensor& x) const override {
    return head(layerNorm("transformer.ln_f")(x), "transformer.word_embeddings");
  }

 private:
  const FalconConfig own_;
};

}  // namespace

Graph builders::falcon(ConfigReader& config, const FamilyOptions& options) {
  FalconConfig c;
  c.vocabSize = config.size("vocab_size", kMaxVocabulary);
  c.hiddenSize = config.size(config.has("n_embed") ? "n_embed" : "hidden_size", kMaxHidden);
  c.intermediateSize = config.size("ffn_hidden_size", kMaxIntermediate, 4 * c.hiddenSize);
  c.layers = readLayers(config, "num_hidden_layers", options);
  readEqualHeads(config, "num_attention_heads", c);
  const bool isGrouped = config.flag("new_decoder_architecture", false);
  const bool hasOneKey = config.flag("multi_query", true);
  const int64_t groups = config.size("num_kv_heads", c.heads, c.heads);
  if (isGrouped && c.heads % groups)
    throw config.at("num_kv_heads")
        .error("expected a number that divides " + std::to_string(c.heads) + " heads, got " +
               std::to_string(groups));
  c.kvHeads = isGrouped ? groups : hasOneKey ? 1 : c.heads;
  c.maxPositions = config.size("max_position_embeddings", kMaxPositions, 2048);
  c.normEps = config.epsilon("layer_norm_epsilon", 1e-5);
  c.activation = readActivation(config, "activation", "gelu");
  c.tiedHead = config.flag("tie_word_embeddings", true);
  c.bias = config.flag("bias", false);
  // The newer architecture has its parts side by side whatever else is said.
  c.parallel = config.flag("parallel_attn", true);
  if (isGrouped && !c.parallel)
    throw config.at("parallel_attn")
        .error("not supported with new_decoder_architecture: expected true",
               ErrorCode::Unsupported);
  c.twoNorms = config.size("num_ln_in_parallel_attn", 2, isGrouped ? 2 : 1) == 2;
  if (c.twoNorms && !isGrouped)
    throw config.at("num_ln_in_parallel_attn")
        .error("not supported without new_decoder_architecture: expected 1",
               ErrorCode::Unsupported);
  c.hasAlibi = config.flag("alibi", false);
  const nn::RopeOptions rope = readRope(config, c, {}, options);
  if (!c.hasAlibi) c.rope = rope;
  // What the sizes say already, and a field of the first checkpoints that nothing reads.
  config.ignore({"hidden_size", "ff_factor", "apply_residual_connection_post_layernorm"});
  return recordFamily<Falcon>("falcon", c, options);
}

}  // namespace lathe
