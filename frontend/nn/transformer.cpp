// SPDX-License-Identifier: Apache-2.0
#include "lathe/frontend/nn/transformer.h"

#include "lathe/frontend/nn/softmax.h"
#include "lathe/runtime/error.h"

namespace lathe::nn {
namespace {

using Positions = TransformerLMOptions::Positions;

// The style's options with the model's sizes and dtypes filled in.
void complete(TransformerLMOptions& o, std::source_location at) {
  expectPositive(o.vocabSize, "TransformerLM, vocabSize", at);
  expectPositive(o.dModel, "TransformerLM, dModel", at);
  expectPositive(o.dHidden, "TransformerLM, dHidden", at);
  expectPositive(o.layers, "TransformerLM, layers", at, kMostLayers);
  expectPositive(o.maxPositions, "TransformerLM, maxPositions", at);
  if (!isFloat(o.dtype))
    throw Error(ErrorCode::InvalidArgument,
                "TransformerLM: expected a float dtype, got " + std::string(nameOf(o.dtype)), at);
  ModelStyle& s = o.style;
  for (LinearOptions* linear : {&s.attention.linear, &s.mlp.linear, &s.head}) {
    linear->weightDType = o.weightDType;
    linear->useFused |= o.useFused;
  }
  s.norm.weightDType = o.weightDType;
  s.norm.useFused |= o.useFused;
  if (o.normEps) s.norm.eps = *o.normEps;
  s.embedding.weightDType = o.weightDType;
  s.embedding.dtype = o.dtype;
  s.embedding.useFused |= o.useFused;
  s.mlp.bias = o.mlpBias;
  s.mlp.useFused |= o.useFused;

  SelfAttentionOptions& a = s.attention;
  a.dModel = o.dModel;
  a.heads = o.heads;
  a.kvHeads = o.kvHeads;
  a.headDim = o.headDim;
  a.qkvBias |= o.qkvBias;
  a.outputBias |= o.outputBias;
  a.attention.useFused |= o.useFused;
  a.rope.reset();
  if (o.positions != Positions::Rotary) return;
  s.rope.maxPositions = o.maxPositions;
  s.rope.theta = o.ropeTheta;
  s.rope.scaling = o.ropeScaling;
  s.rope.useFused |= o.useFused;
  a.rope = s.rope;
}

TransformerLMOptions completed(TransformerLMOptions options, std::source_location at) {
  complete(options, at);
  return options;
}

}  // namespace

TransformerBlock::TransformerBlock(Graph& graph, std::string path, BlockOptions options,
                                   std::source_location at)
    : Module(graph, path, at),
      attentionNorm_(graph, joinPath(path, options.names.attentionNorm), options.attention.dModel,
                     options.norm, at),
      mlpNorm_(graph, joinPath(path, options.names.mlpNorm), options.attention.dModel, options.norm,
               at),
      attention_(graph, joinPath(path, options.names.attention), options.attention, at),
      mlp_(graph, joinPath(path, options.names.mlp), options.attention.dModel, options.dHidden,
           options.mlp, at) {}

Tensor TransformerBlock::addMlp(const Tensor& x, std::source_location at) const {
  return x + mlp_(mlpNorm_(x, at), at);
}

Tensor TransformerBlock::operator()(const Tensor& x, const LayerContext& context,
                                    std::source_location at) const {
  expectFeatures(x, attention_.options().dModel, "TransformerBlock '" + path() + "'", at);
  const Scope scope = opened(x, at);
  return addMlp(x + attention_(attentionNorm_(x, at), context, at), at);
}

Tensor TransformerBlock::operator()(const Tensor& x, const Tensor& tokenPositions,
                                    std::source_location at) const {
  expectFeatures(x, attention_.options().dModel, "TransformerBlock '" + path() + "'", at);
  const Scope scope = opened(x, at);
  return addMlp(x + attention_(attentionNorm_(x, at), tokenPositions, at), at);
}

ModelStyle ModelStyle::cs336() {
  ModelStyle s;
  s.attention = SelfAttentionOptions::cs336();
  s.rope = RopeOptions::cs336();
  s.mlp = SwiGLUOptions::cs336();
  s.norm = NormOptions::cs336();
  s.head = LinearOptions::cs336();
  s.embedding = EmbeddingOptions::cs336();
  s.block = {.attentionNorm = "ln1", .attention = "attn", .mlpNorm = "ln2", .mlp = "ffn"};
  s.embeddingName = "token_embeddings";
  s.positionsName = "position_embeddings";
  s.layersName = "layers";
  s.normName = "ln_f";
  s.probabilities = true;
  return s;
}

ModelStyle ModelStyle::cs190c() {
  ModelStyle s;
  s.attention = SelfAttentionOptions::cs190c();
  s.rope = RopeOptions::cs190c();
  s.mlp = SwiGLUOptions::cs190c();
  s.norm = NormOptions::cs190c();
  s.head = LinearOptions::cs190c();
  s.embedding = EmbeddingOptions::cs190c();
  s.block = {.attentionNorm = "RMSNorm_Attn",
             .attention = "Multihead_Attn",
             .mlpNorm = "RMSNorm_FF",
             .mlp = "Feed_Forward"};
  s.embeddingName = "embeddings";
  s.positionsName = "position_embeddings";
  s.layersName = "transformer_blocks";
  s.normName = "final_norm";
  s.headName = "final_layer";
  return s;
}

ModelStyle ModelStyle::modern() {
  ModelStyle s;
  s.attention = SelfAttentionOptions::modern();
  s.mlp = SwiGLUOptions::modern();
  s.norm = NormOptions::modern();
  s.block = {.attentionNorm = "norm1", .attention = "attn", .mlpNorm = "norm2", .mlp = "mlp"};
  s.embeddingName = "token_embeddings";
  s.positionsName = "position_embeddings";
  s.layersName = "layers";
  s.normName = "norm";
  return s;
}

TransformerLM::TransformerLM(Graph& graph, std::string path, TransformerLMOptions options,
                             std::source_location at)
    : Module(graph, std::move(path), at),
      options_(completed(std::move(options), at)),
      tokens_(graph, below(options_.style.embeddingName), options_.vocabSize, options_.dModel,
              options_.style.embedding, at) {
  const ModelStyle& s = options_.style;
  const BlockOptions block{.attention = s.attention,
                           .dHidden = options_.dHidden,
                           .mlp = s.mlp,
                           .norm = s.norm,
                           .names = s.block};
  for (int64_t i = 0; i < options_.layers; ++i)
    blocks_.emplace_back(graph, below(joinPath(s.layersName, std::to_string(i))), block, at);
  // As the blocks complete them.
  options_.kvHeads = blocks_[0].attention().options().kvHeads;
  options_.headDim = blocks_[0].attention().options().headDim;
}

Tensor TransformerLM::embed(const Tensor& ids, const Tensor& where, std::source_location at) const {
  Tensor x = tokens_(ids, at);
  if (options_.positions != Positions::Learnt) return x;
  return x + Embedding(graph(), below(options_.style.positionsName), options_.maxPositions,
                       options_.dModel, options_.style.embedding)(where, at);
}

RopeAngles TransformerLM::angles(const Tensor& where, std::source_location at) const {
  const auto& rope = blocks_[0].attention().options().rope;
  if (!rope) return {};
  return RoPE(graph(), below("rope"), *rope).angles(where, at);
}

Tensor TransformerLM::logits(const Tensor& x, std::source_location at) const {
  const ModelStyle& s = options_.style;
  Tensor y = RMSNorm(graph(), below(s.normName), options_.dModel, s.norm)(x, at);
  y = options_.tiedHead
          ? tokens_.unembed(y, at)
          : Linear(graph(), below(s.headName), options_.dModel, options_.vocabSize, s.head)(y, at);
  y = castTo(y, DType::F32);
  if (!s.probabilities) return y;
  return options_.useFused ? fused::softmax(y, -1) : softmax(y, -1);
}

Tensor TransformerLM::forward(const Tensor& ids, const Tensor& positions,
                              std::source_location at) const {
  expectIds(ids, "TransformerLM '" + path() + "'", at);
  const Scope scope = opened(ids, at);
  Tensor where = positions;
  if (!where.defined() && options_.positions != Positions::None) where = iota(ids, {ids.dim(1)}, 0);
  Tensor x = embed(ids, where, at);
  const LayerContext context{.angles = angles(where, at)};
  for (const TransformerBlock& block : blocks_) x = block(x, context, at);
  return logits(x, at);
}

KvCache TransformerLM::cacheOf(size_t layer) const {
  return {below("k_cache." + std::to_string(layer)), below("v_cache." + std::to_string(layer))};
}

void TransformerLM::declareCache(const Dim& batch, const Dim& capacity,
                                 std::source_location at) const {
  const Dims shape = {batch, options_.kvHeads, capacity, options_.headDim};
  for (size_t i = 0; i < blocks_.size(); ++i) {
    graph(at).state(cacheOf(i).keys, options_.dtype, shape, at);
    graph(at).state(cacheOf(i).values, options_.dtype, shape, at);
  }
}

Tensor TransformerLM::cached(const Tensor& ids, const Tensor& positions,
                             std::source_location at) const {
  Tensor where;
  if (options_.positions != Positions::None) where = tokenPositions(positions, ids.dim(1), at);
  Tensor x = embed(ids, where, at);
  LayerContext context{.angles = angles(where, at), .cache = {}, .positions = positions};
  for (size_t i = 0; i < blocks_.size(); ++i) {
    context.cache = cacheOf(i);
    x = blocks_[i](x, context, at);
  }
  return x;
}

Tensor TransformerLM::step(const Tensor& ids, const Tensor& positions,
                           std::source_location at) const {
  expectIds(ids, "TransformerLM '" + path() + "'", at);
  const Scope scope = opened(ids, at);
  Tensor x = cached(ids, positions, at);
  Tensor last = sliceAxis(x, 1, ids.dim(1) - Dim(1), 1);
  return logits(reshape(last, {ids.dim(0), options_.dModel}), at);
}

Tensor TransformerLM::stepAll(const Tensor& ids, const Tensor& positions,
                              std::source_location at) const {
  expectIds(ids, "TransformerLM '" + path() + "'", at);
  const Scope scope = opened(ids, at);
  return logits(cached(ids, positions, at), at);
}

}  // namespace lathe::nn
