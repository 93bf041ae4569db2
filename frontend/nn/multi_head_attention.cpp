// SPDX-License-Identifier: Apache-2.0
#include "lathe/frontend/nn/multi_head_attention.h"

#include <cmath>

#include "lathe/frontend/nn/relative_positions.h"
#include "lathe/runtime/error.h"

namespace lathe::nn {

MultiHeadAttentionOptions MultiHeadAttentionOptions::dit() {
  MultiHeadAttentionOptions o;
  o.fusedProjection = true;
  o.attention = AttentionOptions::dit();
  o.names.o = "proj";
  return o;
}

MultiHeadAttention::MultiHeadAttention(Graph& graph, std::string path,
                                       MultiHeadAttentionOptions options, std::source_location at)
    : Module(graph, std::move(path), at), options_(std::move(options)) {
  const std::string module = "MultiHeadAttention '" + this->path() + "'";
  expectPositive(options_.dModel, module + ", dModel", at);
  expectPositive(options_.heads, module + ", heads", at);
  if (options_.dModel % options_.heads)
    throw Error(ErrorCode::InvalidArgument,
                module + ": expected heads that divide dModel, got " +
                    std::to_string(options_.heads) + " heads and dModel " +
                    std::to_string(options_.dModel) + "; change one of them",
                at);
  if (options_.keyBias && options_.fusedProjection)
    throw Error(ErrorCode::InvalidArgument,
                module +
                    ": a bias of k alone needs a weight of k alone; unset keyBias or "
                    "fusedProjection",
                at);
  if (options_.relativeDistance < 0)
    throw Error(ErrorCode::InvalidArgument,
                module + ": expected a relativeDistance of 0 (none) or more, got " +
                    std::to_string(options_.relativeDistance),
                at);
  if (options_.relativeDistance > 0 && options_.attention.bias.defined())
    throw Error(ErrorCode::InvalidArgument,
                module + ": expected a bias or relativeDistance, got both; add the bias yourself",
                at);
}

Linear MultiHeadAttention::linear(const std::string& name, int64_t out) const {
  LinearOptions o = options_.linear;
  o.bias = name == options_.names.o ? options_.bias : options_.qkvBias.value_or(options_.bias);
  if (name == options_.names.k) o.bias = options_.keyBias.value_or(o.bias);
  return Linear(graph(), below(name), options_.dModel, out, o);
}

void MultiHeadAttention::expectTokens(const Tensor& x, const char* what,
                                      std::source_location at) const {
  const std::string module = "MultiHeadAttention '" + path() + "', " + what;
  expectFeatures(x, options_.dModel, module, at);
  if (x.rank() == 3) return;
  throw Error(ErrorCode::InvalidArgument,
              module + ": expected [batch, seq, " + std::to_string(options_.dModel) + "], got " +
                  typeText(x),
              at);
}

Tensor MultiHeadAttention::attend(const Tensor& q, const Tensor& k, const Tensor& v,
                                  const Tensor& mask, std::source_location at) const {
  AttentionOptions o = options_.attention;
  if (mask.defined()) o.mask = mask;
  if (options_.relativeDistance > 0) {
    const int64_t depth = options_.dModel / options_.heads;
    RelativePositionKeys keys(graph(), below(options_.names.relativeKeys), depth,
                              options_.relativeDistance, options_.linear.weightDType, at);
    o.bias = keys(q, k.dim(2), at) * o.scale.value_or(1 / std::sqrt(double(depth)));
  }
  return linear(options_.names.o, options_.dModel)(mergeHeads(attention(q, k, v, o, at), at), at);
}

Tensor MultiHeadAttention::operator()(const Tensor& x, const Tensor& mask,
                                      std::source_location at) const {
  if (!options_.fusedProjection) return (*this)(x, x, x, mask, at);
  expectTokens(x, "x", at);
  const Scope scope = opened(x, at);
  const int64_t heads = options_.heads, depth = options_.dModel / heads;
  Tensor mixed = linear(options_.names.qkv, 3 * options_.dModel)(x, at);
  Tensor all = transpose(reshape(mixed, {x.dim(0), x.dim(1), 3, heads, depth}), {2, 0, 3, 1, 4});
  auto part = [&](int64_t i) {
    return reshape(sliceAxis(all, 0, i, 1), {x.dim(0), heads, x.dim(1), depth});
  };
  return attend(part(0), part(1), part(2), mask, at);
}

Tensor MultiHeadAttention::operator()(const Tensor& query, const Tensor& key, const Tensor& value,
                                      const Tensor& mask, std::source_location at) const {
  expectTokens(query, "query", at);
  expectTokens(key, "key", at);
  expectTokens(value, "value", at);
  if (options_.fusedProjection)
    throw Error(ErrorCode::InvalidArgument,
                "MultiHeadAttention '" + path() +
                    "': expected one tensor for a fused projection, got query, key and value; "
                    "call it with x alone or unset fusedProjection",
                at);
  const Scope scope = opened(query, at);
  auto heads = [&](const std::string& name, const Tensor& x) {
    return splitHeads(linear(name, options_.dModel)(x, at), options_.heads, at);
  };
  Tensor q = heads(options_.names.q, query), k = heads(options_.names.k, key);
  return attend(q, k, heads(options_.names.v, value), mask, at);
}

}  // namespace lathe::nn
