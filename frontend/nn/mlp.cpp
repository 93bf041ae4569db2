// SPDX-License-Identifier: Apache-2.0
#include "lathe/frontend/nn/mlp.h"

namespace lathe::nn {

SwiGLU::SwiGLU(Graph& graph, std::string path, int64_t dModel, int64_t dHidden,
               SwiGLUOptions options, std::source_location at)
    : Module(graph, std::move(path), at),
      dModel_(dModel),
      dHidden_(dHidden),
      options_(std::move(options)) {
  expectPositive(dModel_, "SwiGLU '" + this->path() + "', dModel", at);
  expectPositive(dHidden_, "SwiGLU '" + this->path() + "', dHidden", at);
}

Linear SwiGLU::linear(const std::string& name, int64_t in, int64_t out) const {
  LinearOptions o = options_.linear;
  o.bias = options_.bias;
  return Linear(graph(), below(name), in, out, o);
}

Tensor SwiGLU::operator()(const Tensor& x, std::source_location at) const {
  expectFeatures(x, dModel_, "SwiGLU '" + path() + "'", at);
  const Scope scope = opened(x, at);
  Tensor gate, up;
  if (options_.gateUp.empty()) {
    gate = linear(options_.gate, dModel_, dHidden_)(x, at);
    up = linear(options_.up, dModel_, dHidden_)(x, at);
  } else {
    Tensor both = linear(options_.gateUp, dModel_, 2 * dHidden_)(x, at);
    gate = sliceAxis(both, -1, 0, dHidden_);
    up = sliceAxis(both, -1, dHidden_, dHidden_);
  }
  Tensor hidden = options_.useFused ? fused::glu(gate, up, options_.activation)
                                    : activate(gate, options_.activation, options_.sigmoid) * up;
  return linear(options_.down, dHidden_, dModel_)(hidden, at);
}

}  // namespace lathe::nn
