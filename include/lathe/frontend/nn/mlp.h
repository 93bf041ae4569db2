// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "lathe/frontend/nn/activations.h"
#include "lathe/frontend/nn/linear.h"

namespace lathe::nn {

struct SwiGLUOptions {
  std::string gate = "gate_proj", up = "up_proj", down = "down_proj";
  /// Of one weight [2 dHidden, dModel] that makes both, the gate's rows first; empty: two weights.
  std::string gateUp = {};
  bool bias = false;
  Activation activation = Activation::silu;
  SigmoidForm sigmoid = SigmoidForm::Op;
  LinearOptions linear = {};  ///< bias is taken from the flag above
  bool useFused = false;      ///< records the op `glu`

  static SwiGLUOptions llama() { return {}; }
};

/// down(activation(gate(x)) * up(x)): [..., dModel] -> [..., dModel]. Shazeer, "GLU Variants
/// Improve Transformer", 2020.
class SwiGLU : public Module {
 public:
  SwiGLU(Graph& graph, std::string path, int64_t dModel, int64_t dHidden,
         SwiGLUOptions options = {}, LATHE_AT);
  Tensor operator()(const Tensor& x, LATHE_AT) const;

 private:
  Linear linear(const std::string& name, int64_t in, int64_t out) const;
  int64_t dModel_, dHidden_;
  SwiGLUOptions options_;
};

}  // namespace lathe::nn
