// SPDX-License-Identifier: Apache-2.0
#include "lathe/frontend/families/encoder.h"

#include <limits>

#include "lathe/runtime/error.h"

namespace lathe {

EncoderConfig readEncoder(ConfigReader& config, const FamilyOptions& options,
                          const EncoderConfig& defaults) {
  EncoderConfig c{readSizes(config, options,
                            {.maxPositions = 512,
                             .normEps = defaults.normEps,
                             .tiedHead = true,
                             .normEpsKey = "layer_norm_eps",
                             .activation = "gelu"})};
  c.tokenTypes = config.size("type_vocab_size", kMaxVocabulary, defaults.tokenTypes);
  c.padId = defaults.padId;
  if (auto pad = config.find("pad_token_id")) c.padId = pad->asInt(0, c.vocabSize - 1);
  config.expect("position_embedding_type", "absolute");
  // Plans of the first checkpoints' writers for a pooler that never came.
  config.ignore({"directionality", "pooler_type", "pooler_fc_size", "pooler_num_attention_heads",
                 "pooler_num_fc_layers", "pooler_size_per_head"});
  return c;
}

BertEncoder::BertEncoder(Graph& graph, std::string root, const EncoderConfig& config,
                         const FamilyOptions& options)
    : graph_(graph), root_(std::move(root)), config_(config), options_(options) {}

nn::Linear BertEncoder::linear(const std::string& path, int64_t in, int64_t out) const {
  return nn::Linear(graph_, path, in, out, {.weightDType = options_.weightDType});
}
nn::LayerNorm BertEncoder::norm(const std::string& path) const {
  return nn::LayerNorm(graph_, path, config_.hiddenSize,
                       {.eps = config_.normEps, .weightDType = options_.weightDType});
}
nn::Embedding BertEncoder::table(const std::string& path, int64_t rows) const {
  return nn::Embedding(graph_, path, rows, config_.hiddenSize,
                       {.dtype = options_.dtype, .weightDType = options_.weightDType});
}

nn::EncoderLayer BertEncoder::layer(int64_t index) const {
  nn::PostNormOptions o{.attention = {.dModel = config_.hiddenSize,
                                      .heads = config_.heads,
                                      .linear = {.weightDType = options_.weightDType},
                                      .names = {.q = "self.query",
                                                .k = "self.key",
                                                .v = "self.value",
                                                .o = "output.dense"}},
                        .dHidden = config_.intermediateSize,
                        .feedForward = {.in = "intermediate.dense",
                                        .out = "output.dense",
                                        .activation = config_.activation,
                                        .linear = {.weightDType = options_.weightDType}},
                        .norm = {.eps = config_.normEps, .weightDType = options_.weightDType},
                        .names = {.selfAttention = "attention",
                                  .feedForward = "",
                                  .norm1 = "attention.output.LayerNorm",
                                  .norm2 = "output.LayerNorm"}};
  return nn::EncoderLayer(graph_, root_ + "encoder.layer." + std::to_string(index), o);
}

Tensor BertEncoder::operator()(const Tensor& ids, const Tensor& types, const Tensor& places,
                               const Tensor& mask) const {
  const std::string embeddings = root_ + "embeddings.";
  Tensor x = table(embeddings + "word_embeddings", config_.vocabSize)(ids);
  x = x + table(embeddings + "token_type_embeddings", config_.tokenTypes)(types);
  x = x + table(embeddings + "position_embeddings", config_.maxPositions)(places);
  x = norm(embeddings + "LayerNorm")(x);
  // Along the keys, for every head and query.
  Tensor visible = reshape(mask, {ids.dim(0), 1, 1, ids.dim(1)}) != 0;
  for (int64_t i = 0; i < config_.layers; ++i) x = layer(i)(x, visible);
  return x;
}

bool BertEncoder::hasPooler() const {
  return !options_.hasWeight || options_.hasWeight(root_ + "pooler.dense.weight");
}

Tensor BertEncoder::pooled(const Tensor& x) const {
  Tensor first = squeeze(sliceAxis(x, 1, 0, 1), 1);
  return tanh(linear(root_ + "pooler.dense", config_.hiddenSize, config_.hiddenSize)(first));
}

Tensor pooledText(const Tensor& x, const Tensor& mask, const TextPooling& pooling) {
  const Tensor wide = nn::castTo(x, DType::F32), shares = unsqueeze(cast(mask, DType::F32), -1);
  Tensor y;
  switch (pooling.kind) {
    case TextPooling::Kind::Mean:
      y = reduceSum(wide * shares, {1}) / clamp(reduceSum(shares, {1}), 1e-9);
      break;
    case TextPooling::Kind::First:
      y = squeeze(sliceAxis(wide, 1, 0, 1), 1);
      break;
    case TextPooling::Kind::Max:
      y = reduceMax(where(shares != 0, wide, -std::numeric_limits<double>::infinity()), {1});
      break;
  }
  if (!pooling.normalizes) return y;
  const Tensor length = sqrt(reduceSum(y * y, {-1}, /*keepDims=*/true));
  return y / clamp(length, 1e-12);
}

}  // namespace lathe
