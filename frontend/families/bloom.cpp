// SPDX-License-Identifier: Apache-2.0
// BLOOM: BigScience Workshop, "BLOOM: A 176B-Parameter Open-Access Multilingual Language Model",
// 2022. Positions as biases of the scores (ALiBi), a norm of the embeddings, one weight for q, k
// and v whose rows lie head by head.
#include "frontend/families/builders.h"
#include "lathe/frontend/families/causal_lm.h"
#include "lathe/frontend/nn/relative_positions.h"

namespace lathe {
namespace {

struct BloomConfig : DecoderConfig {
  bool addsNormed = false;  ///< residual sums take what comes out of the norm
};

class Bloom : public DecoderLm {
 public:
  Bloom(Graph& graph, const BloomConfig& config, const FamilyOptions& options)
      : DecoderLm(graph, config, options), addsNormed_(config.addsNormed) {
    // Published checkpoints hold the model without its head's prefix.
    const bool isBare = options.hasWeight && options.hasWeight("word_embeddings.weight");
    root_ = isBare ? "" : "transformer.";
  }

  Tensor embed(const Tensor& ids, const Tensor& /*where*/) const override {
    return layerNorm(root_ + "word_embeddings_layernorm")(
        table(root_ + "word_embeddings", config_.vocabSize)(ids));
  }
  std::vector<nn::RopeAngles> angles(const Tensor& /*where*/) const override { return {}; }
  Tensor bias(const Dim& keys) const override { return nn::alibi(graph_, config_.heads, keys); }

  Tensor layer(int64_t index, const Tensor& x, const nn::LayerContext& context) const override {
    const std::string path = root_ + "h." + std::to_string(index);
    nn::SelfAttentionOptions o = attentionOptions();
    o.rope.reset();
    o.projections = nn::SelfAttentionOptions::Projections::FusedByHead;
    o.names.qkv = "query_key_value";
    o.names.o = "dense";
    o.qkvBias = o.outputBias = true;
    const Tensor first = layerNorm(path + ".input_layernorm")(x);
    const Tensor y =
        attention(path + ".self_attention", o)(first, context) + (addsNormed_ ? first : x);
    const Tensor second = layerNorm(path + ".post_attention_layernorm")(y);
    return feedForward(path + ".mlp", "dense_h_to_4h", "dense_4h_to_h")(second) +
           (addsNormed_ ? second : y);
  }

  Tensor logits(const Tensor& x) const override {
    return head(layerNorm(root_ + "ln_f")(x), root_ + "word_embeddings");
  }

 private:
  const bool addsNormed_;
  std::string root_;
};

}  // namespace

Graph builders::bloom(ConfigReader& config, const FamilyOptions& options) {
  BloomConfig c;
  c.vocabSize = config.size("vocab_size", kMaxVocabulary);
  c.hiddenSize = config.size(config.has("n_embed") ? "n_embed" : "hidden_size", kMaxHidden);
  c.intermediateSize = 4 * c.hiddenSize;
  c.layers = readLayers(config, "n_layer", options);
  readEqualHeads(config, config.has("n_head") ? "n_head" : "num_attention_heads", c);
  // Biases of distances end nowhere; this is how long the texts were that it learnt from.
  c.maxPositions = config.size("seq_length", kMaxPositions, 2048);
  c.normEps = config.epsilon("layer_norm_epsilon", 1e-5);
  c.activation = Activation::gelu_tanh;
  c.tiedHead = config.flag("tie_word_embeddings", true);
  c.addsNormed = config.flag("apply_residual_connection_post_layernorm", false);
  // Pieces of products that are added one by one leave out the biases in transformers.
  const int64_t pieces = config.size("pretraining_tp", kMaxHidden, 1);
  if (config.flag("slow_but_exact", false) && pieces > 1)
    throw config.at("slow_but_exact")
        .error("not supported with pretraining_tp above 1: expected false", ErrorCode::Unsupported);
  // How training split its products and masks, and what every model of this architecture does.
  config.ignore({"hidden_size", "n_inner", "attention_softmax_in_fp32", "masked_softmax_fusion",
                 "bias_dropout_fusion", "skip_bias_add", "skip_bias_add_qkv", "offset_alibi"});
  return recordFamily<Bloom>("bloom", c, options);
}

}  // namespace lathe
