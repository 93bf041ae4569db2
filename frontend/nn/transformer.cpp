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
  if (std::holds_alternative<FeedForwardOptions>(o.style.mlp) && o.dHidden == 0)
    o.dHidden = 4 * o.dModel;
  expectPositive(o.dHidden, "TransformerLM, dHidden", at);
  expectPositive(o.layers, "TransformerLM, layers", at, kMostModules);
  expectPositive(o.maxPositions, "TransformerLM, maxPositions", at);
  if (!isFloat(o.dtype))
    throw Error(ErrorCode::InvalidArgument,
                "TransformerLM: expected a float dtype, got " + std::string(nameOf(o.dtype)), at);
  ModelStyle& s = o.style;
  auto completeLinear = [&](LinearOptions& linear) {
    linear.weightDType = o.weightDType;
    linear.useFused |= o.useFused;
  };
  completeLinear(s.attention.linear);
  completeLinear(s.head);
  std::visit(
      [&](auto& mlp) {
        completeLinear(mlp.linear);
        mlp.bias |= o.mlpBias;
        if constexpr (requires { mlp.useFused; }) mlp.useFused |= o.useFused;
      },
      s.mlp);
  std::visit(
      [&](auto& norm) {
        norm.weightDType = o.weightDType;
        if (o.normEps) norm.eps = *o.normEps;
        if constexpr (requires { norm.useFused; }) norm.useFused |= o.useFused;
      },
      s.norm);
  s.embedding.weightDType = o.weightDType;
  s.embedding.dtype = o.dtype;
  s.embedding.useFused |= o.useFused;

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

std::variant<RMSNorm, LayerNorm> normOf(Graph& graph, std::string path, int64_t size,
                                        const NormChoice& choice, std::source_location at) {
  if (auto* layer = std::get_if<LayerNormOptions>(&choice))
    return LayerNorm(graph, std::move(path), size, *layer, at);
  return RMSNorm(graph, std::move(path), size, std::get<NormOptions>(choice), at);
}

std::variant<SwiGLU, FeedForward> mlpOf(Graph& graph, std::string path, const BlockOptions& o,
                                        std::source_location at) {
  const int64_t size = o.attention.dModel;
  if (auto* plain = std::get_if<FeedForwardOptions>(&o.mlp))
    return FeedForward(graph, std::move(path), size, o.dHidden ? o.dHidden : 4 * size, *plain, at);
  return SwiGLU(graph, std::move(path), size, o.dHidden, std::get<SwiGLUOptions>(o.mlp), at);
}

// What a norm or an MLP of either kind makes of x.
template <class... Kinds>
Tensor apply(const std::variant<Kinds...>& module, const Tensor& x, std::source_location at) {
  return std::visit([&](const auto& m) { return m(x, at); }, module);
}

TransformerLMOptions completed(TransformerLMOptions options, std::source_location at) {
  complete(options, at);
  return options;
}

}  // namespace

ModelStyle ModelStyle::gpt() {
  ModelStyle style;
  style.attention = SelfAttentionOptions::gpt();
  style.mlp = FeedForwardOptions::gpt();
  style.norm = LayerNormOptions{};
  style.block = {.attentionNorm = "ln_1", .attention = "attn", .mlpNorm = "ln_2", .mlp = "mlp"};
  style.embeddingName = "wte";
  style.positionsName = "wpe";
  style.layersName = "h";
  style.normName = "ln_f";
  return style;
}

TransformerBlock::TransformerBlock(Graph& graph, std::string path, BlockOptions options,
                                   std::source_location at)
    : Module(graph, path, at),
      attentionNorm_(normOf(graph, joinPath(path, options.names.attentionNorm),
                            options.attention.dModel, options.norm, at)),
      mlpNorm_(normOf(graph, joinPath(path, options.names.mlpNorm), options.attention.dModel,
                      options.norm, at)),
      attention_(graph, joinPath(path, options.names.attention), options.attention, at),
      mlp_(mlpOf(graph, joinPath(path, options.names.mlp), options, at)) {}

Tensor TransformerBlock::addMlp(const Tensor& x, std::source_location at) const {
  return x + apply(mlp_, apply(mlpNorm_, x, at), at);
}

Tensor TransformerBlock::operator()(const Tensor& x, const LayerContext& context,
                                    std::source_location at) const {
  expectFeatures(x, attention_.options().dModel, "TransformerBlock '" + path() + "'", at);
  const Scope scope = opened(x, at);
  return addMlp(x + attention_(apply(attentionNorm_, x, at), context, at), at);
}

Tensor TransformerBlock::operator()(const Tensor& x, const Tensor& tokenPositions,
                                    std::source_location at) const {
  expectFeatures(x, attention_.options().dModel, "TransformerBlock '" + path() + "'", at);
  const Scope scope = opened(x, at);
  return addMlp(x + attention_(apply(attentionNorm_, x, at), tokenPositions, at), at);
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
  Tensor y = apply(normOf(graph(), below(s.normName), options_.dModel, s.norm, at), x, at);
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
