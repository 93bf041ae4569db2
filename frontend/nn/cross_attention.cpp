// SPDX-License-Identifier: Apache-2.0
#include "lathe/frontend/nn/cross_attention.h"

#include "lathe/runtime/error.h"

namespace lathe::nn {

CrossAttention::CrossAttention(Graph& graph, std::string path, CrossAttentionOptions options,
                               std::source_location at)
    : Module(graph, std::move(path), at), options_(std::move(options)) {
  const std::string module = "CrossAttention '" + this->path() + "'";
  expectPositive(options_.dModel, module + ", dModel", at);
  expectPositive(options_.heads, module + ", heads", at);
  if (options_.headDim == 0 && options_.dModel % options_.heads)
    throw Error(ErrorCode::InvalidArgument,
                module + ": expected heads that divide dModel, got " +
                    std::to_string(options_.heads) + " heads and dModel " +
                    std::to_string(options_.dModel) + "; change one of them or set headDim",
                at);
  if (options_.headDim == 0) options_.headDim = options_.dModel / options_.heads;
  expectPositive(options_.headDim, module + ", headDim", at);
}

Tensor CrossAttention::heads(const std::string& name, const Tensor& x, bool bias,
                             std::source_location at) const {
  LinearOptions o = options_.linear;
  o.bias = bias;
  const int64_t wide = options_.heads * options_.headDim;
  return splitHeads(Linear(graph(), below(name), options_.dModel, wide, o)(x, at), options_.heads,
                    at);
}

SourceKeys CrossAttention::keysOf(const Tensor& encoded, std::source_location at) const {
  expectFeatures(encoded, options_.dModel, "CrossAttention '" + path() + "', encoded", at);
  const Scope scope = opened(encoded, at);
  return {heads(options_.names.k, encoded, options_.keyBias, at),
          heads(options_.names.v, encoded, options_.bias, at)};
}

Tensor CrossAttention::operator()(const Tensor& x, const SourceKeys& source, const Tensor& mask,
                                  std::source_location at) const {
  expectFeatures(x, options_.dModel, "CrossAttention '" + path() + "', x", at);
  const Scope scope = opened(x, at);
  AttentionOptions o = options_.attention;
  if (mask.defined()) o.mask = mask;
  const Tensor q = heads(options_.names.q, x, options_.bias, at);
  const Tensor merged = mergeHeads(attention(q, source.k, source.v, o, at), at);
  LinearOptions output = options_.linear;
  output.bias = options_.bias;
  return Linear(graph(), below(options_.names.o), options_.heads * options_.headDim,
                options_.dModel, output)(merged, at);
}

}  // namespace lathe::nn
