// SPDX-License-Identifier: Apache-2.0
#include "lathe/frontend/nn/feed_forward.h"

namespace lathe::nn {
namespace {

LinearOptions withBias(LinearOptions options, bool bias) {
  options.bias = bias;
  return options;
}

}  // namespace

FeedForward::FeedForward(Graph& graph, std::string path, int64_t dModel, int64_t dHidden,
                         FeedForwardOptions options, std::source_location at)
    : Module(graph, path, at),
      in_(graph, joinPath(path, options.in), dModel, dHidden,
          withBias(options.linear, options.bias), at),
      out_(graph, joinPath(path, options.out), dHidden, dModel,
           withBias(options.linear, options.bias), at),
      dModel_(dModel),
      activation_(options.activation) {}

Tensor FeedForward::operator()(const Tensor& x, std::source_location at) const {
  expectFeatures(x, dModel_, "FeedForward '" + path() + "'", at);
  const Scope scope = opened(x, at);
  return out_(activate(in_(x, at), activation_, SigmoidForm::Op, at), at);
}

}  // namespace lathe::nn
