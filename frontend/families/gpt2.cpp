// SPDX-License-Identifier: Apache-2.0
// GPT-2: Radford et al., "Language Models are Unsupervised Multitask Learners", 2019. Learnt
// positions, LayerNorms, one weight for q, k and v, and linear weights that lie [in, out].
#include <cmath>

#include "frontend/families/builders.h"
#include "lathe/frontend/families/causal_lm.h"

namespace lathe {
namespace {

struct Gpt2Config : DecoderConfig {
  bool scaleScores = true, scaleByLayer = false;
};

class Gpt2 : public CausalLm {
 public:
  Gpt2(Graph& graph, const Gpt2Config& config, const FamilyOptions& options)
      : graph_(graph), c_(config), options_(options) {
    // The first checkpoints hold the model without its head's prefix.
    const bool isBare = options.hasWeight && options.hasWeight("wte.weight");
    root_ = isBare ? "" : "transformer.";
  }

  Tensor embed(const Tensor& ids, const Tensor& where) const override {
    return table("wte", c_.vocabSize)(ids) + table("wpe", c_.maxPositions)(where);
  }
  std::vector<nn::RopeAngles> angles(const Tensor& /*where*/) const override { return {}; }

  std::string layerPath(int64_t index) const override {
    return root_ + "h." + std::to_string(index);
  }
  Tensor layer(int64_t index, const Tensor& x, const nn::LayerContext& context) const override {
    const std::string path = layerPath(index);
    nn::SelfAttentionOptions o = nn::SelfAttentionOptions::gpt();
    o.dModel = c_.hiddenSize;
    o.heads = c_.heads;
    o.linear = linear();
    o.attention.scale = (c_.scaleScores ? 1 / std::sqrt(double(c_.headDim)) : 1) /
                        (c_.scaleByLayer ? double(index + 1) : 1);
    nn::FeedForwardOptions f = nn::FeedForwardOptions::gpt();
    f.activation = c_.activation;
    f.linear = linear();
    Tensor y =
        x + nn::CausalSelfAttention(graph_, path + ".attn", o)(norm(path + ".ln_1")(x), context);
    const nn::FeedForward mlp(graph_, path + ".mlp", c_.hiddenSize, c_.intermediateSize, f);
    return y + mlp(norm(path + ".ln_2")(y));
  }

  Tensor logits(const Tensor& x) const override {
    Tensor y = norm(root_ + "ln_f")(x);
    const nn::Linear head(graph_, "lm_head", c_.hiddenSize, c_.vocabSize,
                          {.bias = false, .weightDType = options_.weightDType});
    return nn::castTo(c_.tiedHead ? table("wte", c_.vocabSize).unembed(y) : head(y), DType::F32);
  }

 private:
  nn::Embedding table(const std::string& name, int64_t rows) const {
    return nn::Embedding(graph_, root_ + name, rows, c_.hiddenSize,
                         {.dtype = options_.dtype, .weightDType = options_.weightDType});
  }
  nn::LayerNorm norm(const std::string& path) const {
    return nn::LayerNorm(graph_, path, c_.hiddenSize,
                         {.eps = c_.normEps, .weightDType = options_.weightDType});
  }
  nn::LinearOptions linear() const {
    return {.layout = WeightLayout::in_out, .weightDType = options_.weightDType};
  }

  Graph& graph_;
  const Gpt2Config c_;
  const FamilyOptions options_;
  std::string root_;
};

}  // namespace

Graph builders::gpt2(ConfigReader& config, const FamilyOptions& options) {
  Gpt2Config c;
  c.vocabSize = config.size("vocab_size", kMaxVocabulary);
  c.hiddenSize = config.size("n_embd", kMaxHidden);
  c.intermediateSize = config.size("n_inner", kMaxIntermediate, 4 * c.hiddenSize);
  c.layers = readLayers(config, "n_layer", options);
  readEqualHeads(config, "n_head", c);
  c.maxPositions = config.size("n_positions", kMaxPositions, 1024);
  c.normEps = config.epsilon("layer_norm_epsilon", 1e-5);
  c.activation = readActivation(config, "activation_function", "gelu_new");
  c.tiedHead = config.flag("tie_word_embeddings", true);
  c.scaleScores = config.flag("scale_attn_weights", true);
  c.scaleByLayer = config.flag("scale_attn_by_inverse_layer_idx", false);
  // The older name of n_positions, and an order of the same products.
  config.ignore({"n_ctx", "reorder_and_upcast_attn", "n_special", "predict_special_tokens"});
  return recordFamily<Gpt2>("gpt2", c, options);
}

}  // namespace lathe
