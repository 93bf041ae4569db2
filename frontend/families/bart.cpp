// SPDX-License-Identifier: Apache-2.0
// BART: Lewis et al., "BART: Denoising Sequence-to-Sequence Pre-training for Natural Language
// Generation, Translation, and Comprehension", 2020. Norms behind every sum, learnt places whose
// table begins two rows later, a norm of the embeddings, one table for both sides and the head.
#include "frontend/families/bart.h"

#include <cmath>

#include "frontend/families/builders.h"

namespace lathe {
namespace {

constexpr int64_t kFirstPlace = 2;

class Bart : public BartModel {
 public:
  using BartModel::BartModel;

 protected:
  Tensor embedSide(const std::string& side, const Tensor& ids, const Tensor& where) const override {
    const nn::Embedding places = table(side + "embed_positions", c_.maxPositions + kFirstPlace);
    const Tensor x = scaled(table("model.shared", c_.vocabSize)(ids));
    return norm(side + "layernorm_embedding")(x + places(where + double(kFirstPlace)));
  }
  Tensor unembed(const Tensor& x) const override {
    return table("model.shared", c_.vocabSize).unembed(x);
  }
};

}  // namespace

BartConfig readBart(ConfigReader& config, const FamilyOptions& options) {
  BartConfig c;
  c.vocabSize = c.targetVocabSize = config.size("vocab_size", kMaxVocabulary);
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
  // Training, the number of the encoder's layers once more, and what the architecture
  // says already.
  config.ignore({"encoder_layerdrop", "decoder_layerdrop", "init_std", "num_hidden_layers",
                 "is_encoder_decoder", "extra_pos_embeddings"});
  return c;
}

nn::Embedding BartModel::table(const std::string& path, int64_t rows) const {
  return nn::Embedding(graph_, path, rows, c_.hiddenSize,
                       {.dtype = options_.dtype, .weightDType = options_.weightDType});
}

Tensor BartModel::scaled(const Tensor& x) const {
  return c_.scalesEmbedding ? x * std::sqrt(double(c_.hiddenSize)) : x;
}

nn::LayerNorm BartModel::norm(const std::string& path) const {
  return nn::LayerNorm(graph_, path, c_.hiddenSize, {.weightDType = options_.weightDType});
}

nn::PostNormOptions BartModel::layerOptions(const BartSide& side) const {
  const nn::LinearOptions linear{.weightDType = options_.weightDType};
  return {
      .attention = {.dModel = c_.hiddenSize, .heads = side.heads, .linear = linear},
      .dHidden = side.intermediateSize,
      .feedForward = {.activation = c_.activation, .linear = linear},
      .norm = {.weightDType = options_.weightDType},
      .names = {.feedForward = "", .norm1 = "self_attn_layer_norm", .norm2 = "final_layer_norm"}};
}

Encoded BartModel::encode(const Dim& batch, const Dim& source) const {
  const TextSource text = textSource(graph_, batch, source);
  Tensor x = embedSide("model.encoder.", text.ids, iota(text.ids, {source}, 0));
  for (int64_t i = 0; i < c_.encoder.layers; ++i)
    x = nn::EncoderLayer(graph_, "model.encoder.layers." + std::to_string(i),
                         layerOptions(c_.encoder))(x, visibleKeys(text.mask));
  return {x, text.mask};
}

nn::CrossAttention BartModel::cross(int64_t index) const {
  return nn::CrossAttention(graph_,
                            "model.decoder.layers." + std::to_string(index) + ".encoder_attn",
                            {.dModel = c_.hiddenSize,
                             .heads = c_.decoder.heads,
                             .linear = {.weightDType = options_.weightDType}});
}

nn::SourceKeys BartModel::sourceKeys(int64_t layer, const Tensor& encoded) const {
  return cross(layer).keysOf(encoded);
}

Tensor BartModel::embed(const Tensor& ids, const Tensor& where) const {
  return embedSide("model.decoder.", ids, where);
}

Tensor BartModel::layer(int64_t index, const Tensor& x, const nn::LayerContext& context,
                        const nn::SourceKeys& source, const Tensor& visible) const {
  const std::string path = "model.decoder.layers." + std::to_string(index);
  const nn::LinearOptions linear{.weightDType = options_.weightDType};
  nn::SelfAttentionOptions o{.dModel = c_.hiddenSize, .heads = c_.decoder.heads};
  o.qkvBias = o.outputBias = true;
  o.linear = linear;
  o.names.o = "out_proj";
  const nn::CausalSelfAttention own(graph_, path + ".self_attn", o);
  const nn::FeedForward mlp(graph_, path, c_.hiddenSize, c_.decoder.intermediateSize,
                            {.activation = c_.activation, .linear = linear});
  Tensor y = norm(path + ".self_attn_layer_norm")(x + own(x, context));
  y = norm(path + ".encoder_attn_layer_norm")(y + cross(index)(y, source, visible));
  return norm(path + ".final_layer_norm")(y + mlp(y));
}

Tensor BartModel::logits(const Tensor& x) const {
  // Zeros that some checkpoints do not hold.
  const char* const name = "final_logits_bias";
  if (options_.hasWeight && !options_.hasWeight(name)) return nn::castTo(unembed(x), DType::F32);
  const Tensor bias = graph_.weight(name, options_.weightDType, {1, c_.targetVocabSize});
  // One row for all tokens, whatever stands in front of them.
  const Tensor row = reshape(nn::castTo(bias, options_.dtype), {c_.targetVocabSize});
  return nn::castTo(unembed(x) + row, DType::F32);
}

void BartModel::record() const {
  if (c_.hiddenSize % c_.decoder.heads)
    throw Error(ErrorCode::InvalidFile,
                "decoder_attention_heads: expected heads that divide d_model " +
                    std::to_string(c_.hiddenSize) + ", got " + std::to_string(c_.decoder.heads));
  recordEncoderDecoder(graph_, *this,
                       {.layers = c_.decoder.layers,
                        .heads = c_.decoder.heads,
                        .headDim = c_.hiddenSize / c_.decoder.heads,
                        .hiddenSize = c_.hiddenSize,
                        .maxPositions = c_.maxPositions,
                        .maxSource = sequenceLimit(options_.maxSeq, c_.maxPositions, "maxSeq")},
                       options_);
}

Graph builders::bart(ConfigReader& config, const FamilyOptions& options) {
  const BartConfig c = readBart(config, options);
  // The architecture says both already.
  config.ignore({"tie_word_embeddings", "normalize_embedding"});
  Graph g("bart");
  Bart(g, c, options).record();
  return g;
}

}  // namespace lathe
