// SPDX-License-Identifier: Apache-2.0
#include "lathe/frontend/nn/encoder_decoder.h"

#include <cmath>

#include "ir/composing.h"
#include "lathe/frontend/nn/positions.h"
#include "lathe/runtime/error.h"

namespace lathe::nn {
namespace {

Tensor notPadding(const Tensor& ids, int64_t padding, const Dims& shape, std::source_location at) {
  return reshape(compare(ids, scalarLike(ids, double(padding), at), Compare::ne, at), shape, at);
}

// Every layer with the model's weight dtype.
PostNormOptions layerOf(const EncoderDecoderOptions& options) {
  PostNormOptions layer = options.layer;
  for (LinearOptions* linear : {&layer.attention.linear, &layer.feedForward.linear})
    linear->weightDType = options.weightDType;
  layer.norm.weightDType = options.weightDType;
  return layer;
}

}  // namespace

Tensor paddingMask(const Tensor& ids, int64_t padding, std::source_location at) {
  const Composing composing("paddingMask");
  expectIds(ids, "paddingMask", at);
  return notPadding(ids, padding, {ids.dim(0), 1, 1, ids.dim(1)}, at);
}

Tensor targetMask(const Tensor& ids, int64_t padding, std::source_location at) {
  const Composing composing("targetMask");
  expectIds(ids, "targetMask", at);
  Tensor queries = notPadding(ids, padding, {ids.dim(0), 1, ids.dim(1), 1}, at);
  return logicalAnd(queries, causalMask(ids, ids.dim(1), ids.dim(1), at), at);
}

EncoderLayer::EncoderLayer(Graph& graph, std::string path, PostNormOptions o,
                           std::source_location at)
    : Module(graph, path, at),
      attention_(graph, joinPath(path, o.names.selfAttention), o.attention, at),
      feedForward_(graph, joinPath(path, o.names.feedForward), o.attention.dModel, o.dHidden,
                   o.feedForward, at),
      norm1_(graph, joinPath(path, o.names.norm1), o.attention.dModel, o.norm, at),
      norm2_(graph, joinPath(path, o.names.norm2), o.attention.dModel, o.norm, at) {}

Tensor EncoderLayer::operator()(const Tensor& x, const Tensor& mask,
                                std::source_location at) const {
  expectFeatures(x, attention_.options().dModel, "EncoderLayer '" + path() + "'", at);
  const Scope scope = opened(x, at);
  Tensor y = norm1_(x + attention_(x, mask, at), at);
  return norm2_(y + feedForward_(y, at), at);
}

DecoderLayer::DecoderLayer(Graph& graph, std::string path, PostNormOptions o,
                           std::source_location at)
    : Module(graph, path, at),
      selfAttention_(graph, joinPath(path, o.names.selfAttention), o.attention, at),
      crossAttention_(graph, joinPath(path, o.names.crossAttention), o.attention, at),
      feedForward_(graph, joinPath(path, o.names.feedForward), o.attention.dModel, o.dHidden,
                   o.feedForward, at),
      norm1_(graph, joinPath(path, o.names.norm1), o.attention.dModel, o.norm, at),
      norm2_(graph, joinPath(path, o.names.norm2), o.attention.dModel, o.norm, at),
      norm3_(graph, joinPath(path, o.names.norm3), o.attention.dModel, o.norm, at) {}

Tensor DecoderLayer::operator()(const Tensor& x, const Tensor& encoded, const Tensor& sourceMask,
                                const Tensor& targetMask, std::source_location at) const {
  const int64_t width = selfAttention_.options().dModel;
  expectFeatures(x, width, "DecoderLayer '" + path() + "', x", at);
  expectFeatures(encoded, width, "DecoderLayer '" + path() + "', encoded", at);
  const Scope scope = opened(x, at);
  Tensor y = norm1_(x + selfAttention_(x, targetMask, at), at);
  y = norm2_(y + crossAttention_(y, encoded, encoded, sourceMask, at), at);
  return norm3_(y + feedForward_(y, at), at);
}

EncoderDecoder::EncoderDecoder(Graph& graph, std::string path, EncoderDecoderOptions options,
                               std::source_location at)
    : Module(graph, std::move(path), at), options_(std::move(options)) {
  const std::string module = "EncoderDecoder '" + this->path() + "'";
  expectPositive(options_.sourceVocab, module + ", sourceVocab", at);
  expectPositive(options_.targetVocab, module + ", targetVocab", at);
  expectPositive(options_.layers, module + ", layers", at, kMostModules);
  expectPositive(options_.maxPositions, module + ", maxPositions", at);
  if (!isFloat(options_.dtype))
    throw Error(ErrorCode::InvalidArgument,
                module + ": expected a float dtype, got " + std::string(nameOf(options_.dtype)),
                at);
  if (!std::isfinite(options_.embeddingScale))
    throw Error(ErrorCode::InvalidArgument,
                module + ": expected a finite embeddingScale, got " +
                    std::to_string(options_.embeddingScale),
                at);
  const PostNormOptions layer = layerOf(options_);
  for (int64_t i = 0; i < options_.layers; ++i) {
    const std::string index = std::to_string(i);
    encoder_.emplace_back(graph, below(joinPath(options_.names.encoder, index)), layer, at);
    decoder_.emplace_back(graph, below(joinPath(options_.names.decoder, index)), layer, at);
  }
}

Tensor EncoderDecoder::embed(const Tensor& ids, int64_t vocab, const std::string& name,
                             const std::string& positions, std::source_location at) const {
  using Positions = EncoderDecoderOptions::Positions;
  const int64_t width = options_.layer.attention.dModel;
  const EmbeddingOptions table{.dtype = options_.dtype, .weightDType = options_.weightDType};
  Tensor x = Embedding(graph(), below(name), vocab, width, table, at)(ids, at);
  if (options_.embeddingScale != 1) x = x * options_.embeddingScale;
  if (options_.positions == Positions::Sine)
    return SinePositions(graph(), below(positions), width, options_.maxPositions, SineOrder::Pairs,
                         at)(x, at);
  if (options_.positions == Positions::Learnt)
    return LearntPositions(graph(), below(positions), width, options_.maxPositions, table, at)(x,
                                                                                               at);
  return x;
}

Tensor EncoderDecoder::encode(const Tensor& source, const Tensor& sourceMask,
                              std::source_location at) const {
  expectIds(source, "EncoderDecoder '" + path() + "', source", at);
  const Scope scope = opened(source, at);
  const EncoderDecoderNames& n = options_.names;
  Tensor x = embed(source, options_.sourceVocab, n.sourceEmbedding, n.sourcePositions, at);
  for (const EncoderLayer& layer : encoder_) x = layer(x, sourceMask, at);
  return x;
}

Tensor EncoderDecoder::decode(const Tensor& target, const Tensor& encoded, const Tensor& sourceMask,
                              const Tensor& targetMask, std::source_location at) const {
  expectIds(target, "EncoderDecoder '" + path() + "', target", at);
  const Scope scope = opened(target, at);
  const EncoderDecoderNames& n = options_.names;
  Tensor x = embed(target, options_.targetVocab, n.targetEmbedding, n.targetPositions, at);
  for (const DecoderLayer& layer : decoder_) x = layer(x, encoded, sourceMask, targetMask, at);
  return Linear(graph(), below(n.head), options_.layer.attention.dModel, options_.targetVocab,
                {.bias = true, .weightDType = options_.weightDType})(x, at);
}

Tensor EncoderDecoder::forward(const Tensor& source, const Tensor& target, const Tensor& sourceMask,
                               const Tensor& targetMask, std::source_location at) const {
  return decode(target, encode(source, sourceMask, at), sourceMask, targetMask, at);
}

}  // namespace lathe::nn
