// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "lathe/frontend/nn/activations.h"
#include "lathe/frontend/nn/linear.h"

namespace lathe::nn {

struct FeedForwardOptions {
  std::string in = "fc1", out = "fc2";
  Activation activation = Activation::relu;
  bool bias = true;
  LinearOptions linear = {};  ///< bias is taken from the flag above

  static FeedForwardOptions dit() { return {.activation = Activation::gelu_tanh}; }
  static FeedForwardOptions gpt() {
    return {.in = "c_fc", .out = "c_proj", .activation = Activation::gelu_tanh};
  }
};

/// out(activation(in(x))): [..., dModel] -> [..., dModel]. Vaswani et al., "Attention Is All You
/// Need", 2017, section 3.3.
class FeedForward : public Module {
 public:
  FeedForward(Graph& graph, std::string path, int64_t dModel, int64_t dHidden,
              FeedForwardOptions options = {}, LATHE_AT);
  Tensor operator()(const Tensor& x, LATHE_AT) const;

 private:
  Linear in_, out_;
  int64_t dModel_;
  Activation activation_;
};

}  // namespace lathe::nn
