// SPDX-License-Identifier: Apache-2.0
#include "lathe/frontend/nn/gpt.h"

#include "lathe/frontend/nn/positions.h"
#include "lathe/runtime/error.h"

namespace lathe::nn {
namespace {

GptOptions completed(GptOptions o, std::source_location at) {
  expectPositive(o.vocabSize, "Gpt, vocabSize", at);
  expectPositive(o.dModel, "Gpt, dModel", at);
  expectPositive(o.layers, "Gpt, layers", at, kMostLayers);
  expectPositive(o.maxPositions, "Gpt, maxPositions", at);
  if (!isFloat(o.dtype))
    throw Error(ErrorCode::InvalidArgument,
                "Gpt: expected a float dtype, got " + std::string(nameOf(o.dtype)), at);
  GptBlockOptions& block = o.block;
  block.dHidden = o.dHidden;
  block.attention.dModel = o.dModel;
  block.attention.heads = o.heads;
  for (LinearOptions* linear : {&block.attention.linear, &block.mlp.linear})
    linear->weightDType = o.weightDType;
  block.norm.weightDType = o.weightDType;
  return o;
}

EmbeddingOptions tableOf(const GptOptions& o) {
  return {.dtype = o.dtype, .weightDType = o.weightDType};
}

}  // namespace

GptBlock::GptBlock(Graph& graph, std::string path, GptBlockOptions o, std::source_location at)
    : Module(graph, path, at),
      norm1_(graph, joinPath(path, o.names.attentionNorm), o.attention.dModel, o.norm, at),
      norm2_(graph, joinPath(path, o.names.mlpNorm), o.attention.dModel, o.norm, at),
      attention_(graph, joinPath(path, o.names.attention), o.attention, at),
      mlp_(graph, joinPath(path, o.names.mlp), o.attention.dModel,
           o.dHidden ? o.dHidden : 4 * o.attention.dModel, o.mlp, at) {}

Tensor GptBlock::operator()(const Tensor& x, const LayerContext& context,
                            std::source_location at) const {
  expectFeatures(x, attention_.options().dModel, "GptBlock '" + path() + "'", at);
  const Scope scope = opened(x, at);
  Tensor y = x + attention_(norm1_(x, at), context, at);
  return y + mlp_(norm2_(y, at), at);
}

Gpt::Gpt(Graph& graph, std::string path, GptOptions options, std::source_location at)
    : Module(graph, std::move(path), at),
      options_(completed(std::move(options), at)),
      tokens_(graph, below(options_.names.tokens), options_.vocabSize, options_.dModel,
              tableOf(options_), at) {
  for (int64_t i = 0; i < options_.layers; ++i)
    blocks_.emplace_back(graph, below(joinPath(options_.names.layers, std::to_string(i))),
                         options_.block, at);
}

Tensor Gpt::embed(const Tensor& ids, const Tensor& where, std::source_location at) const {
  const LearntPositions positions(graph(), below(options_.names.positions), options_.dModel,
                                  options_.maxPositions, tableOf(options_), at);
  return positions(tokens_(ids, at), where, at);
}

Tensor Gpt::logits(const Tensor& x, std::source_location at) const {
  Tensor y =
      LayerNorm(graph(), below(options_.names.norm), options_.dModel, options_.block.norm)(x, at);
  if (options_.tiedHead) return castTo(tokens_.unembed(y, at), DType::F32);
  const LinearOptions head{.bias = false, .weightDType = options_.weightDType};
  return castTo(
      Linear(graph(), below(options_.names.head), options_.dModel, options_.vocabSize, head)(y, at),
      DType::F32);
}

Tensor Gpt::forward(const Tensor& ids, std::source_location at) const {
  expectIds(ids, "Gpt '" + path() + "'", at);
  const Scope scope = opened(ids, at);
  Tensor x = embed(ids, iota(ids, {ids.dim(1)}, 0), at);
  for (const GptBlock& block : blocks_) x = block(x, {}, at);
  return logits(x, at);
}

KvCache Gpt::cacheOf(size_t layer) const {
  return {below("k_cache." + std::to_string(layer)), below("v_cache." + std::to_string(layer))};
}

void Gpt::declareCache(const Dim& batch, const Dim& capacity, std::source_location at) const {
  const Dims shape = {batch, options_.heads, capacity, options_.dModel / options_.heads};
  for (size_t i = 0; i < blocks_.size(); ++i) {
    graph(at).state(cacheOf(i).keys, options_.dtype, shape, at);
    graph(at).state(cacheOf(i).values, options_.dtype, shape, at);
  }
}

Tensor Gpt::step(const Tensor& ids, const Tensor& positions, std::source_location at) const {
  expectIds(ids, "Gpt '" + path() + "'", at);
  const Scope scope = opened(ids, at);
  Tensor x = embed(ids, tokenPositions(positions, ids.dim(1), at), at);
  for (size_t i = 0; i < blocks_.size(); ++i)
    x = blocks_[i](x, {.cache = cacheOf(i), .positions = positions}, at);
  Tensor last = sliceAxis(x, 1, ids.dim(1) - Dim(1), 1);
  return logits(reshape(last, {ids.dim(0), options_.dModel}), at);
}

}  // namespace lathe::nn
