// SPDX-License-Identifier: Apache-2.0
// T5: Raffel et al., "Exploring the Limits of Transfer Learning with a Unified Text-to-Text
// Transformer", 2019. A bias of distances instead of positions, scores that are not scaled, norms
// without means in front of every part.
#include <algorithm>
#include <cmath>

#include "frontend/families/builders.h"
#include "lathe/frontend/families/decoder_config.h"
#include "lathe/frontend/nn/embedding.h"
#include "lathe/frontend/nn/feed_forward.h"
#include "lathe/frontend/nn/mlp.h"
#include "lathe/frontend/nn/norms.h"
#include "lathe/frontend/nn/relative_positions.h"
#include "lathe/frontend/nn/self_attention.h"
#include "lathe/runtime/error.h"

namespace lathe {
namespace {

struct T5Config {
  int64_t vocabSize = 0, hiddenSize = 0, intermediateSize = 0, heads = 0, headDim = 0;
  int64_t encoderLayers = 0, decoderLayers = 0, buckets = 32, maxDistance = 128;
  double normEps = 1e-6;
  bool isGated = false, scalesOutput = true;
  Activation activation = Activation::relu;
};

class T5 {
 public:
  T5(Graph& graph, const T5Config& config, const FamilyOptions& options)
      : graph_(graph), c_(config), options_(options) {}

  /// ids, mask: integers [batch, source] -> [batch, source, hidden]
  Tensor encode(const Tensor& ids, const Tensor& mask) const {
    Tensor x = table()(ids);
    const Tensor bias = distances("encoder", ids.dim(1), x, /*bothSides=*/true);
    const nn::AttentionOptions o{.mask = visible(mask), .bias = bias, .scale = 1};
    for (int64_t i = 0; i < c_.encoderLayers; ++i) {
      const std::string path = "encoder.block." + std::to_string(i) + ".layer.";
      Tensor y = norm(path + "0.layer_norm")(x);
      x = x + attend(path + "0.SelfAttention", y, y, o);
      x = x + mlp(path + "1.DenseReluDense", norm(path + "1.layer_norm")(x));
    }
    return norm("encoder.final_layer_norm")(x);
  }

  /// ids: integers [batch, target]; encoded [batch, source, hidden] -> logits f32 [batch, target,
  /// vocab]
  Tensor decode(const Tensor& ids, const Tensor& encoded, const Tensor& mask) const {
    Tensor x = table()(ids);
    const Tensor bias = distances("decoder", ids.dim(1), x, /*bothSides=*/false);
    const nn::AttentionOptions own{.bias = bias, .causal = true, .scale = 1};
    const nn::AttentionOptions cross{.mask = visible(mask), .scale = 1};
    for (int64_t i = 0; i < c_.decoderLayers; ++i) {
      const std::string path = "decoder.block." + std::to_string(i) + ".layer.";
      Tensor y = norm(path + "0.layer_norm")(x);
      x = x + attend(path + "0.SelfAttention", y, y, own);
      x = x + attend(path + "1.EncDecAttention", norm(path + "1.layer_norm")(x), encoded, cross);
      x = x + mlp(path + "2.DenseReluDense", norm(path + "2.layer_norm")(x));
    }
    x = norm("decoder.final_layer_norm")(x);
    if (c_.scalesOutput) x = x / std::sqrt(double(c_.hiddenSize));
    // The first models share the head with the embeddings, later ones have one of their own.
    const bool isOwn = options_.hasWeight && options_.hasWeight("lm_head.weight");
    x = isOwn ? linear("lm_head", c_.hiddenSize, c_.vocabSize)(x) : table().unembed(x);
    return nn::castTo(x, DType::F32);
  }

 private:
  nn::Embedding table() const {
    return nn::Embedding(graph_, "shared", c_.vocabSize, c_.hiddenSize,
                         {.dtype = options_.dtype, .weightDType = options_.weightDType});
  }
  nn::RMSNorm norm(const std::string& path) const {
    return nn::RMSNorm(graph_, path, c_.hiddenSize,
                       {.eps = c_.normEps, .weightDType = options_.weightDType});
  }
  nn::Linear linear(const std::string& path, int64_t in, int64_t out) const {
    return nn::Linear(graph_, path, in, out, {.bias = false, .weightDType = options_.weightDType});
  }
  // Along the keys, for every head and query.
  static Tensor visible(const Tensor& mask) {
    return reshape(mask, {mask.dim(0), 1, 1, mask.dim(1)}) != 0;
  }
  // The first layer's table counts for all layers.
  Tensor distances(const std::string& side, const Dim& length, const Tensor& like,
                   bool bothSides) const {
    const nn::RelativePositionBias bias(
        graph_, side + ".block.0.layer.0.SelfAttention.relative_attention_bias",
        {.heads = c_.heads,
         .buckets = c_.buckets,
         .maxDistance = c_.maxDistance,
         .bothSides = bothSides,
         .weightDType = options_.weightDType});
    return bias(like, length, length, like.dtype());
  }
  Tensor attend(const std::string& path, const Tensor& x, const Tensor& keys,
                const nn::AttentionOptions& o) const {
    const int64_t wide = c_.heads * c_.headDim;
    auto heads = [&](const char* name, const Tensor& from) {
      return nn::splitHeads(linear(path + name, c_.hiddenSize, wide)(from), c_.heads);
    };
    Tensor y = nn::attention(heads(".q", x), heads(".k", keys), heads(".v", keys), o);
    return linear(path + ".o", wide, c_.hiddenSize)(nn::mergeHeads(y));
  }
  Tensor mlp(const std::string& path, const Tensor& x) const {
    const nn::LinearOptions plain{.bias = false, .weightDType = options_.weightDType};
    if (c_.isGated)
      return nn::SwiGLU(graph_, path, c_.hiddenSize, c_.intermediateSize,
                        {.gate = "wi_0",
                         .up = "wi_1",
                         .down = "wo",
                         .activation = c_.activation,
                         .linear = plain})(x);
    return nn::FeedForward(
        graph_, path, c_.hiddenSize, c_.intermediateSize,
        {.in = "wi", .out = "wo", .activation = c_.activation, .bias = false, .linear = plain})(x);
  }

  Graph& graph_;
  const T5Config c_;
  const FamilyOptions options_;
};

T5Config readT5(ConfigReader& config, const FamilyOptions& options) {
  T5Config c;
  c.vocabSize = config.size("vocab_size", kMaxVocabulary);
  c.hiddenSize = config.size("d_model", kMaxHidden);
  c.intermediateSize = config.size("d_ff", kMaxIntermediate);
  c.headDim = config.size("d_kv", kMaxHeads);
  c.heads = config.size("num_heads", kMaxHeads);
  c.encoderLayers = c.decoderLayers = readLayers(config, "num_layers", options);
  if (config.has("num_decoder_layers"))
    c.decoderLayers = options.layers
                          ? std::min(options.layers, config.size("num_decoder_layers", kMaxLayers))
                          : config.size("num_decoder_layers", kMaxLayers);
  c.buckets = config.size("relative_attention_num_buckets", kMaxPositions, 32);
  c.maxDistance = config.size("relative_attention_max_distance", kMaxPositions, 128);
  c.normEps = config.epsilon("layer_norm_epsilon", 1e-6);
  // "gated-gelu" means GELU's approximation; other names are what they say.
  const std::string kind = config.text("feed_forward_proj", "relu");
  c.isGated = kind.starts_with("gated-");
  const std::string name = kind == "gated-gelu" ? "gelu_new" : kind.substr(c.isGated ? 6 : 0);
  c.activation = activationOf(config, "feed_forward_proj", name);
  const bool tied = config.flag("tie_word_embeddings", true);
  c.scalesOutput = config.flag("scale_decoder_outputs", tied);
  // Two readings of feed_forward_proj, and what the architecture says already.
  config.ignore({"dense_act_fn", "is_gated_act", "is_encoder_decoder", "dropout_rate",
                 "n_positions", "output_past"});
  return c;
}

}  // namespace

Graph builders::t5(ConfigReader& config, const FamilyOptions& options) {
  const T5Config c = readT5(config, options);
  Graph g("t5");
  const T5 model(g, c, options);
  const int64_t longest = options.maxSeq ? options.maxSeq : 512;
  recordEncoderDecoder(g, model, longest, c.hiddenSize, options);
  return g;
}

}  // namespace lathe
