// SPDX-License-Identifier: Apache-2.0
// OPT: Zhang et al., "OPT: Open Pre-trained Transformer Language Models", 2022. Learnt places whose
// table begins two rows later; the 350M model has its norms behind the sums and embeddings of
// another size, with a projection on either side.
#include "frontend/families/builders.h"
#include "lathe/frontend/families/causal_lm.h"

namespace lathe {
namespace {

constexpr int64_t kFirstPlace = 2;

struct OptConfig : DecoderConfig {
  int64_t embeddingSize = 0;
  bool normsBefore = true, lastNorm = true, bias = true, affine = true;
};

class Opt : public DecoderLm {
 public:
  Opt(Graph& graph, const OptConfig& config, const FamilyOptions& options)
      : DecoderLm(graph, config, options), own_(config) {
    // Some checkpoints hold the model without its head's prefix.
    const bool isBare = options.hasWeight && options.hasWeight("decoder.embed_tokens.weight");
    root_ = isBare ? "decoder." : "model.decoder.";
  }

  Tensor embed(const Tensor& ids, const Tensor& where) const override {
    Tensor x = tokens()(ids);
    if (own_.embeddingSize != config_.hiddenSize)
      x = linear(root_ + "project_in", own_.embeddingSize, config_.hiddenSize, false)(x);
    return x + table(root_ + "embed_positions",
                     config_.maxPositions + kFirstPlace)(where + double(kFirstPlace));
  }
  std::vector<nn::RopeAngles> angles(const Tensor& /*where*/) const override { return {}; }

  Tensor layer(int64_t index, const Tensor& x, const nn::LayerContext& context) const override {
    const std::string path = root_ + "layers." + std::to_string(index);
    nn::SelfAttentionOptions o = attentionOptions();
    o.rope.reset();
    o.names.o = "out_proj";
    o.qkvBias = o.outputBias = own_.bias;
    const nn::CausalSelfAttention attend = attention(path + ".self_attn", o);
    const nn::FeedForward mlp = feedForward(path, "fc1", "fc2", own_.bias);
    const nn::LayerNorm first = affineNorm(path + ".self_attn_layer_norm");
    const nn::LayerNorm second = affineNorm(path + ".final_layer_norm");
    if (!own_.normsBefore) {
      const Tensor y = first(x + attend(x, context));
      return second(y + mlp(y));
    }
    const Tensor y = x + attend(first(x), context);
    return y + mlp(second(y));
  }

  Tensor logits(const Tensor& x) const override {
    Tensor y = own_.lastNorm ? affineNorm(root_ + "final_layer_norm")(x) : x;
    if (own_.embeddingSize != config_.hiddenSize)
      y = linear(root_ + "project_out", config_.hiddenSize, own_.embeddingSize, false)(y);
    y = config_.tiedHead ? tokens().unembed(y)
                         : linear("lm_head", own_.embeddingSize, config_.vocabSize, false)(y);
    return nn::castTo(y, DType::F32);
  }

 private:
  nn::Embedding tokens() const {
    return nn::Embedding(graph_, root_ + "embed_tokens", config_.vocabSize, own_.embeddingSize,
                         {.dtype = options_.dtype, .weightDType = options_.weightDType});
  }
  nn::LayerNorm affineNorm(const std::string& path) const {
    return nn::LayerNorm(graph_, path, config_.hiddenSize,
                         {.eps = config_.normEps,
                          .gain = own_.affine,
                          .bias = own_.affine,
                          .weightDType = options_.weightDType});
  }
  const OptConfig own_;
  std::string root_;
};

}  // namespace

Graph builders::opt(ConfigReader& config, const FamilyOptions& options) {
  OptConfig c;
  c.vocabSize = config.size("vocab_size", kMaxVocabulary);
  c.hiddenSize = config.size("hidden_size", kMaxHidden);
  c.intermediateSize = config.size("ffn_dim", kMaxIntermediate);
  c.layers = readLayers(config, "num_hidden_layers", options);
  readEqualHeads(config, "num_attention_heads", c);
  c.maxPositions = config.size("max_position_embeddings", kMaxPositions, 2048);
  c.normEps = 1e-5;
  c.activation = readActivation(config, "activation_function", "relu");
  c.tiedHead = config.flag("tie_word_embeddings", true);
  c.embeddingSize = config.size("word_embed_proj_dim", kMaxHidden, c.hiddenSize);
  c.normsBefore = config.flag("do_layer_norm_before", true);
  const bool losesLastNorm = config.flag("_remove_final_layer_norm", false);
  c.lastNorm = c.normsBefore && !losesLastNorm;
  c.bias = config.flag("enable_bias", true);
  c.affine = config.flag("layer_norm_elementwise_affine", true);
  // Training, and what every model of this architecture has.
  config.ignore({"layerdrop", "init_std", "output_projection"});
  return recordFamily<Opt>("opt", c, options);
}

}  // namespace lathe
