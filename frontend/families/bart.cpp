// SPDX-License-Identifier: Apache-2.0
// BART: Lewis et al., "BART: Denoising Sequence-to-Sequence Pre-training for Natural Language
// Generation, Translation, and Comprehension", 2020. Norms behind every sum, learnt places whose
// table begins two rows later, a norm of the embeddings, one table for both sides and the head.
#include <cmath>

#include "frontend/families/builders.h"
#include "lathe/frontend/families/decoder_config.h"
#include "lathe/frontend/nn/encoder_decoder.h"

namespace lathe {
namespace {

constexpr int64_t kFirstPlace = 2;

struct BartSide {
  int64_t layers = 0, heads = 0, intermediateSize = 0;
};
struct BartConfig {
  int64_t vocabSize = 0, hiddenSize = 0, maxPositions = 1024;
  BartSide encoder, decoder;
  bool scalesEmbedding = false;
  Activation activation = Activation::gelu;
};

class Bart {
 public:
  Bart(Graph& graph, const BartConfig& config, const FamilyOptions& options)
      : graph_(graph), c_(config), options_(options) {}

  /// ids, mask: integers [batch, source] -> [batch, source, hidden]
  Tensor encode(const Tensor& ids, const Tensor& mask) const {
    Tensor x = embed("model.encoder.", ids);
    for (int64_t i = 0; i < c_.encoder.layers; ++i)
      x = nn::EncoderLayer(graph_, "model.encoder.layers." + std::to_string(i), layer(c_.encoder))(
          x, visible(mask));
    return x;
  }

  /// ids: integers [batch, target]; encoded [batch, source, hidden] -> logits f32 [batch, target,
  /// vocab]
  Tensor decode(const Tensor& ids, const Tensor& encoded, const Tensor& mask) const {
    Tensor x = embed("model.decoder.", ids);
    const Tensor past = nn::causalMask(x, ids.dim(1), ids.dim(1));
    nn::PostNormOptions o = layer(c_.decoder);
    o.names.norm2 = "encoder_attn_layer_norm";
    o.names.norm3 = "final_layer_norm";
    for (int64_t i = 0; i < c_.decoder.layers; ++i)
      x = nn::DecoderLayer(graph_, "model.decoder.layers." + std::to_string(i), o)(
          x, encoded, visible(mask), past);
    Tensor bias = graph_.weight("final_logits_bias", options_.weightDType, {1, c_.vocabSize});
    return nn::castTo(table().unembed(x) + nn::castTo(bias, options_.dtype), DType::F32);
  }

 private:
  nn::EmbeddingOptions embedding() const {
    return {.dtype = options_.dtype, .weightDType = options_.weightDType};
  }
  nn::Embedding table() const {
    return nn::Embedding(graph_, "model.shared", c_.vocabSize, c_.hiddenSize, embedding());
  }
  Tensor embed(const std::string& side, const Tensor& ids) const {
    const nn::Embedding places(graph_, side + "embed_positions", c_.maxPositions + kFirstPlace,
                               c_.hiddenSize, embedding());
    Tensor x = table()(ids);
    if (c_.scalesEmbedding) x = x * std::sqrt(double(c_.hiddenSize));
    x = x + places(iota(ids, {ids.dim(1)}, 0) + double(kFirstPlace));
    return nn::LayerNorm(graph_, side + "layernorm_embedding", c_.hiddenSize,
                         {.weightDType = options_.weightDType})(x);
  }
  // Along the keys, for every head and query.
  static Tensor visible(const Tensor& mask) {
    return reshape(mask, {mask.dim(0), 1, 1, mask.dim(1)}) != 0;
  }
  nn::PostNormOptions layer(const BartSide& side) const {
    const nn::LinearOptions linear{.weightDType = options_.weightDType};
    return {.attention = {.dModel = c_.hiddenSize, .heads = side.heads, .linear = linear},
            .dHidden = side.intermediateSize,
            .feedForward = {.activation = c_.activation, .linear = linear},
            .norm = {.weightDType = options_.weightDType},
            .names = {.crossAttention = "encoder_attn",
                      .feedForward = "",
                      .norm1 = "self_attn_layer_norm",
                      .norm2 = "final_layer_norm"}};
  }

  Graph& graph_;
  const BartConfig c_;
  const FamilyOptions options_;
};

BartConfig readBart(ConfigReader& config, const FamilyOptions& options) {
  BartConfig c;
  c.vocabSize = config.size("vocab_size", kMaxVocabulary);
  c.hiddenSize = config.size("d_model", kMaxHidden);
  c.maxPositions = config.size("max_position_embeddings", kMaxPositions, 1024);
  auto side = [&](const std::string& name) {
    return BartSide{readLayers(config, name + "_layers", options),
                    config.size(name + "_attention_heads", kMaxHeads),
                    config.size(name + "_ffn_dim", kMaxIntermediate)};
  };
  c.encoder = side("encoder");
  c.decoder = side("decoder");
  c.scalesEmbedding = config.flag("scale_embedding", false);
  c.activation = readActivation(config, "activation_function", "gelu");
  // Training, generation, the number of the encoder's layers once more, and what the architecture
  // says already.
  config.ignore({"encoder_layerdrop", "decoder_layerdrop", "init_std", "forced_bos_token_id",
                 "forced_eos_token_id", "num_hidden_layers", "is_encoder_decoder",
                 "tie_word_embeddings"});
  return c;
}

}  // namespace

Graph builders::bart(ConfigReader& config, const FamilyOptions& options) {
  const BartConfig c = readBart(config, options);
  Graph g("bart");
  const Bart model(g, c, options);
  const int64_t longest = sequenceLimit(options.maxSeq, c.maxPositions, "maxSeq");
  recordEncoderDecoder(g, model, longest, c.hiddenSize, options);
  return g;
}

}  // namespace lathe
