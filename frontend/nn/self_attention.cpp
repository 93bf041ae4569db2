// SPDX-License-Identifier: Apache-2.0
#include "lathe/frontend/nn/self_attention.h"

#include "ir/composing.h"
#include "lathe/runtime/error.h"

namespace lathe::nn {
namespace {

using Projections = SelfAttentionOptions::Projections;
using QkNorm = SelfAttentionOptions::QkNorm;

void complete(SelfAttentionOptions& o, const std::string& module, std::source_location at) {
  auto fail = [&](const std::string& text) {
    throw Error(ErrorCode::InvalidArgument, module + ": " + text, at);
  };
  expectPositive(o.dModel, module + ", dModel", at);
  expectPositive(o.heads, module + ", heads", at);
  if (o.headDim == 0 && o.dModel % o.heads)
    fail("expected heads that divide dModel, got " + std::to_string(o.heads) +
         " heads and dModel " + std::to_string(o.dModel) + "; change one of them or set headDim");
  if (o.headDim == 0) o.headDim = o.dModel / o.heads;
  if (o.kvHeads == 0) o.kvHeads = o.heads;
  expectPositive(o.headDim, module + ", headDim", at);
  if (o.kvHeads < 1 || o.heads % o.kvHeads)
    fail("expected kvHeads that divide heads, got " + std::to_string(o.kvHeads) + " for " +
         std::to_string(o.heads) + " heads");
  if (o.keyBias && o.projections != Projections::Separate)
    fail("a bias of k alone needs a weight of k alone");
  if (o.projections == Projections::FusedOddView &&
      (o.kvHeads != o.heads || o.heads * o.headDim != o.dModel))
    fail("the odd view of a fused projection needs kvHeads = heads and heads * headDim = dModel");
  if (!o.applyOutput && o.heads * o.headDim != o.dModel)
    fail("without an output projection heads * headDim must be dModel, got " +
         std::to_string(o.heads) + " * " + std::to_string(o.headDim) + " and " +
         std::to_string(o.dModel));
  if (o.attention.mask.defined() || o.attention.bias.defined() || o.attention.positions.defined())
    fail("a mask cannot be an option of the module, whose mask is causal; use nn::attention");
  if (o.rope) o.rope->headDim = o.headDim;
}

}  // namespace

SelfAttentionOptions SelfAttentionOptions::gpt() {
  SelfAttentionOptions o;
  o.projections = Projections::Fused;
  o.qkvBias = o.outputBias = true;
  o.names.qkv = "c_attn";
  o.names.o = "c_proj";
  return o;
}

Tensor tokenPositions(const Tensor& positions, const Dim& seq, std::source_location at) {
  const Composing composing("tokenPositions");
  expectIntegers(positions, "tokenPositions, positions", at);
  if (positions.rank() != 1)
    throw Error(ErrorCode::InvalidArgument,
                "tokenPositions: expected positions [batch], got " + typeText(positions), at);
  Tensor first = reshape(castTo(positions, DType::I64, at), {positions.dim(0), 1}, at);
  return add(first, iota(positions, {1, seq}, 1, DType::I64, at), at);
}

CausalSelfAttention::CausalSelfAttention(Graph& graph, std::string path,
                                         SelfAttentionOptions options, std::source_location at)
    : Module(graph, std::move(path), at), options_(std::move(options)) {
  complete(options_, "CausalSelfAttention '" + this->path() + "'", at);
  // A bad rotation is reported where the module is made, not where it is called.
  if (options_.rope) RoPE(graph, below("rope"), *options_.rope, at);
}

Linear CausalSelfAttention::linear(const std::string& name, int64_t in, int64_t out,
                                   bool bias) const {
  LinearOptions o = options_.linear;
  o.bias = bias;
  return Linear(graph(), below(name), in, out, o);
}

// [batch, seq, 3 d] read as [3, batch, seq, headDim, heads], then [3, batch, heads, seq, headDim].
AttentionHeads CausalSelfAttention::oddView(const Tensor& mixed) const {
  const Dim batch = mixed.dim(0), seq = mixed.dim(1);
  Tensor all =
      transpose(reshape(mixed, {3, batch, seq, options_.headDim, options_.heads}), {0, 1, 4, 2, 3});
  auto part = [&](int64_t i) {
    return reshape(sliceAxis(all, 0, i, 1), {batch, options_.heads, seq, options_.headDim});
  };
  return {part(0), part(1), part(2)};
}

// [batch, seq, kvHeads * (group + 2) headDim], of which each key head has the queries that read it,
// its k and its v.
AttentionHeads CausalSelfAttention::byHead(const Tensor& mixed, std::source_location at) const {
  const int64_t groups = options_.kvHeads, depth = options_.headDim;
  const int64_t group = options_.heads / groups;
  const Tensor all = splitHeads(mixed, groups, at);
  auto part = [&](int64_t first, int64_t count) {
    return sliceAxis(all, -1, first * depth, count * depth, 1, at);
  };
  Tensor q = part(0, group);
  if (group > 1) {
    const Dim batch = mixed.dim(0), seq = mixed.dim(1);
    q = transpose(reshape(q, {batch, groups, seq, group, depth}, at), {0, 1, 3, 2, 4}, at);
    q = reshape(q, {batch, options_.heads, seq, depth}, at);
  }
  return {q, part(group, 1), part(group + 1, 1)};
}

RMSNorm CausalSelfAttention::norm(const std::string& name, int64_t size) const {
  return RMSNorm(graph(), below(name), size, options_.norm);
}

AttentionHeads CausalSelfAttention::separate(const Tensor& x, std::source_location at) const {
  const SelfAttentionOptions& o = options_;
  const int64_t wide = o.heads * o.headDim, narrow = o.kvHeads * o.headDim;
  Tensor q, k, v;
  if (o.projections == Projections::Separate) {
    q = linear(o.names.q, o.dModel, wide, o.qkvBias)(x, at);
    k = linear(o.names.k, o.dModel, narrow, o.keyBias.value_or(o.qkvBias))(x, at);
    v = linear(o.names.v, o.dModel, narrow, o.qkvBias)(x, at);
  } else {
    Tensor mixed = linear(o.names.qkv, o.dModel, wide + 2 * narrow, o.qkvBias)(x, at);
    if (o.projections == Projections::FusedOddView) return oddView(mixed);
    if (o.projections == Projections::FusedByHead) return byHead(mixed, at);
    q = sliceAxis(mixed, -1, 0, wide);
    k = sliceAxis(mixed, -1, wide, narrow);
    v = sliceAxis(mixed, -1, wide + narrow, narrow);
  }
  if (o.qkNorm == QkNorm::Projection) {
    q = norm(o.names.qNorm, wide)(q, at);
    k = norm(o.names.kNorm, narrow)(k, at);
  }
  return {splitHeads(q, o.heads, at), splitHeads(k, o.kvHeads, at), splitHeads(v, o.kvHeads, at)};
}

RopeAngles CausalSelfAttention::angles(const Tensor& tokenPositions,
                                       std::source_location at) const {
  if (!options_.rope) return {};
  return RoPE(graph(), below("rope"), *options_.rope).angles(tokenPositions, at);
}

AttentionHeads CausalSelfAttention::project(const Tensor& x, std::source_location at) const {
  const std::string module = "CausalSelfAttention '" + path() + "'";
  expectFeatures(x, options_.dModel, module, at);
  if (x.rank() != 3)
    throw Error(ErrorCode::InvalidArgument,
                module + ": expected x [batch, seq, " + std::to_string(options_.dModel) +
                    "], got " + typeText(x),
                at);
  const Scope scope = opened(x, at);
  AttentionHeads h = separate(x, at);
  if (options_.qkNorm == QkNorm::Head) {
    h.q = norm(options_.names.qNorm, options_.headDim)(h.q, at);
    h.k = norm(options_.names.kNorm, options_.headDim)(h.k, at);
  }
  return h;
}

Tensor CausalSelfAttention::attend(const AttentionHeads& heads, const LayerContext& context,
                                   std::source_location at) const {
  const std::string module = "CausalSelfAttention '" + path() + "'";
  expectFeatures(heads.q, options_.headDim, module + ", queries", at);
  const Scope scope = opened(heads.q, at);
  AttentionHeads h = heads;
  if (options_.rope) {
    RoPE rope(graph(), below("rope"), *options_.rope);
    h.q = rope(h.q, context.angles, at);
    h.k = rope(h.k, context.angles, at);
  }
  AttentionOptions mask = options_.attention;
  mask.bias = context.bias;
  if (context.cache.defined()) {
    expectDefined(context.positions, module + ", positions of the cache", at);
    const Tensor& table = context.table;
    auto append = [&](const std::string& name, const Tensor& value) {
      const Tensor past = graph().readState(name);
      const Tensor all = table.defined() ? pagedUpdate(past, value, table, context.positions, 2, at)
                                         : update(past, value, context.positions, 2, at);
      graph().writeState(name, all);
      return table.defined() ? gatherBlocks(all, table, at) : all;
    };
    h.k = append(context.cache.keys, h.k);
    h.v = append(context.cache.values, h.v);
    mask.causal = false;
    mask.positions = context.positions;
  } else {
    mask.causal = true;
  }
  Tensor merged = mergeHeads(attention(h.q, h.k, h.v, mask, at), at);
  if (!options_.applyOutput) return merged;
  return linear(options_.names.o, options_.heads * options_.headDim, options_.dModel,
                options_.outputBias)(merged, at);
}

Tensor CausalSelfAttention::operator()(const Tensor& x, const LayerContext& context,
                                       std::source_location at) const {
  return attend(project(x, at), context, at);
}

Tensor CausalSelfAttention::operator()(const Tensor& x, const Tensor& positions,
                                       std::source_location at) const {
  expectFeatures(x, options_.dModel, "CausalSelfAttention '" + path() + "'", at);
  if (!options_.rope) return (*this)(x, LayerContext{}, at);
  const Scope scope = opened(x, at);
  Tensor where = positions.defined() ? positions : iota(x, {x.dim(-2)}, 0);
  return (*this)(x, LayerContext{.angles = angles(where, at)}, at);
}

Tensor CausalSelfAttention::operator()(const Tensor& x, const Tensor& positions,
                                       const KvCache& cache, std::source_location at) const {
  expectFeatures(x, options_.dModel, "CausalSelfAttention '" + path() + "'", at);
  const Scope scope = opened(x, at);
  LayerContext context{.angles = {}, .cache = cache, .positions = positions};
  if (options_.rope) context.angles = angles(tokenPositions(positions, x.dim(-2), at), at);
  return (*this)(x, context, at);
}

}  // namespace lathe::nn
