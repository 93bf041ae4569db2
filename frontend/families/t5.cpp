// SPDX-License-Identifier: Apache-2.0
// T5: Raffel et al., "Exploring the Limits of Transfer Learning with a Unified Text-to-Text
// Transformer", 2019. A bias of distances instead of positions, scores that are not scaled, norms
// without means in front of every part.
#include <algorithm>
#include <cmath>

#include "frontend/families/builders.h"
#include "frontend/families/encoder_decoder_lm.h"
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

class T5 : public EncoderDecoderLm {
 public:
  T5(Graph& graph, const T5Config& config, const FamilyOptions& options)
      : graph_(graph), c_(config), options_(options) {}

  Encoded encode(const Dim& batch, const Dim& source) const override {
    const TextSource text = textSource(graph_, batch, source);
    Tensor x = table()(text.ids);
    const Tensor bias = distances("encoder", /*bothSides=*/true)(x, source, source, x.dtype());
    const nn::AttentionOptions o{.mask = visibleKeys(text.mask), .bias = bias, .scale = 1};
    for (int64_t i = 0; i < c_.encoderLayers; ++i) {
      const std::string path = "encoder.block." + std::to_string(i) + ".layer.";
      x = x + attendToAll(path + "0.SelfAttention", norm(path + "0.layer_norm")(x), o);
      x = x + mlp(path + "1.DenseReluDense", norm(path + "1.layer_norm")(x));
    }
    return {norm("encoder.final_layer_norm")(x), text.mask};
  }

  nn::SourceKeys sourceKeys(int64_t layer, const Tensor& encoded) const override {
    return cross(layer).keysOf(encoded);
  }

  Tensor embed(const Tensor& ids, const Tensor& /*where*/) const override { return table()(ids); }

  Tensor bias(const Tensor& x, const Tensor& positions, const Dim& keys) const override {
    const nn::RelativePositionBias bias = distances("decoder", /*bothSides=*/false);
    return positions.defined() ? bias.at(positions, x.dim(1), keys, x.dtype())
                               : bias(x, x.dim(1), keys, x.dtype());
  }

  Tensor layer(int64_t index, const Tensor& x, const nn::LayerContext& context,
               const nn::SourceKeys& source, const Tensor& visible) const override {
    const std::string path = layerPath(index);
    nn::SelfAttentionOptions o{.dModel = c_.hiddenSize, .heads = c_.heads, .headDim = c_.headDim};
    o.linear = {.bias = false, .weightDType = options_.weightDType};
    o.attention.scale = 1;
    o.names = {.q = "q", .k = "k", .v = "v", .o = "o"};
    const nn::CausalSelfAttention own(graph_, path + "0.SelfAttention", o);
    Tensor y = x + own(norm(path + "0.layer_norm")(x), context);
    y = y + cross(index)(norm(path + "1.layer_norm")(y), source, visible);
    return y + mlp(path + "2.DenseReluDense", norm(path + "2.layer_norm")(y));
  }

  Tensor logits(const Tensor& x) const override {
    Tensor y = norm("decoder.final_layer_norm")(x);
    if (c_.scalesOutput) y = y / std::sqrt(double(c_.hiddenSize));
    // The first models share the head with the embeddings, later ones have one of their own.
    const bool isOwn = options_.hasWeight && options_.hasWeight("lm_head.weight");
    const nn::Linear head(graph_, "lm_head", c_.hiddenSize, c_.vocabSize, plain());
    return nn::castTo(isOwn ? head(y) : table().unembed(y), DType::F32);
  }

 private:
  static std::string layerPath(int64_t index) {
    return "decoder.block." + std::to_string(index) + ".layer.";
  }
  nn::LinearOptions plain() const { return {.bias = false, .weightDType = options_.weightDType}; }
  nn::Embedding table() const {
    return nn::Embedding(graph_, "shared", c_.vocabSize, c_.hiddenSize,
                         {.dtype = options_.dtype, .weightDType = options_.weightDType});
  }
  nn::RMSNorm norm(const std::string& path) const {
    return nn::RMSNorm(graph_, path, c_.hiddenSize,
                       {.eps = c_.normEps, .weightDType = options_.weightDType});
  }
  // The first layer's table counts for all layers.
  nn::RelativePositionBias distances(const std::string& side, bool bothSides) const {
    return nn::RelativePositionBias(graph_,
                                    side + ".block.0.layer.0.SelfAttention.relative_attention_bias",
                                    {.heads = c_.heads,
                                     .buckets = c_.buckets,
                                     .maxDistance = c_.maxDistance,
                                     .bothSides = bothSides,
                                     .weightDType = options_.weightDType});
  }
  nn::CrossAttention cross(int64_t index) const {
    return attention(layerPath(index) + "1.EncDecAttention", {.scale = 1});
  }
  // Every token sees every other.
  Tensor attendToAll(const std::string& path, const Tensor& x,
                     const nn::AttentionOptions& options) const {
    const nn::CrossAttention all = attention(path, options);
    return all(x, all.keysOf(x));
  }
  nn::CrossAttention attention(const std::string& path, const nn::AttentionOptions& options) const {
    return nn::CrossAttention(graph_, path,
                              {.dModel = c_.hiddenSize,
                               .heads = c_.heads,
                               .headDim = c_.headDim,
                               .bias = false,
                               .keyBias = false,
                               .linear = plain(),
                               .attention = options,
                               .names = {.q = "q", .k = "k", .v = "v", .o = "o"}});
  }
  Tensor mlp(const std::string& path, const Tensor& x) const {
    if (c_.isGated)
      return nn::SwiGLU(graph_, path, c_.hiddenSize, c_.intermediateSize,
                        {.gate = "wi_0",
                         .up = "wi_1",
                         .down = "wo",
                         .activation = c_.activation,
                         .linear = plain()})(x);
    return nn::FeedForward(
        graph_, path, c_.hiddenSize, c_.intermediateSize,
        {.in = "wi", .out = "wo", .activation = c_.activation, .bias = false, .linear = plain()})(
        x);
  }

  Graph& graph_;
  const T5Config c_;
  const FamilyOptions options_;
};

T5Config readT5(ConfigReader& config, const FamilyOptions& options, std::string_view usualKind) {
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
  const std::string kind = config.text("feed_forward_proj", usualKind);
  c.isGated = kind.starts_with("gated-");
  const std::string name = kind == "gated-gelu" ? "gelu_new" : kind.substr(c.isGated ? 6 : 0);
  c.activation = activationOf(config, "feed_forward_proj", name);
  // Two readings of feed_forward_proj, and what the architecture says already.
  config.ignore(
      {"dense_act_fn", "is_gated_act", "is_encoder_decoder", "dropout_rate", "n_positions"});
  return c;
}

Graph record(const T5Config& c, const FamilyOptions& options) {
  Graph g("t5");
  const T5 model(g, c, options);
  // Distances end nowhere: this is how long the texts were that it learnt from.
  constexpr int64_t kUsual = 512;
  const int64_t longest = std::max(reachedPositions(kUsual, options), kUsual);
  recordEncoderDecoder(g, model,
                       {.layers = c.decoderLayers,
                        .heads = c.heads,
                        .headDim = c.headDim,
                        .hiddenSize = c.hiddenSize,
                        .maxPositions = longest,
                        .maxSource = options.maxSeq ? options.maxSeq : kUsual},
                       options);
  return g;
}

}  // namespace

Graph builders::t5(ConfigReader& config, const FamilyOptions& options) {
  T5Config c = readT5(config, options, "relu");
  const bool tied = config.flag("tie_word_embeddings", true);
  c.scalesOutput = config.flag("scale_decoder_outputs", tied);
  return record(c, options);
}

// mT5: Xue et al., "mT5: A massively multilingual pre-trained text-to-text transformer", 2020. T5's
// layers with gates; whatever head it has, the logits are not scaled.
Graph builders::mt5(ConfigReader& config, const FamilyOptions& options) {
  T5Config c = readT5(config, options, "gated-gelu");
  c.scalesOutput = false;
  config.ignore({"tie_word_embeddings"});
  return record(c, options);
}

}  // namespace lathe
