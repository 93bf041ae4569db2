// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "lathe/frontend/nn/activations.h"
#include "lathe/frontend/nn/linear.h"

namespace lathe::nn {

struct SwiGLUOptions {
  std::string gate = "gate_proj", up = "up_proj", down = "down_proj";
  bool bias = false;
  Activation activation = Activation::silu;
  SigmoidForm sigmoid = SigmoidForm::Op;
  LinearOptions linear = {};  ///< bias is taken from the flag above
  bool useFused = false;      ///< records the op `silu_gate`

  static SwiGLUOptions llama() { return {}; }
  static SwiGLUOptions cs336();   ///< W1, W3, W2
  static SwiGLUOptions cs190c();  ///< linear_w1, linear_w3, linear_w2; spelled sigmoid
  static SwiGLUOptions modern();  ///< w1, w3, w2
};

/// down(activation(gate(x)) * up(x)): [..., dModel] -> [..., dModel]. Shazeer, "GLU Variants
/// Improve Transformer", 2020.
class SwiGLU : public Module {
 public:
  SwiGLU(Graph& graph, std::string path, int64_t dModel, int64_t dHidden,
         SwiGLUOptions options = {}, LATHE_AT);
  Tensor operator()(const Tensor& x, LATHE_AT) const;

  /// The hidden size that CS190C takes where none is given: 8/3 dModel, rounded down.
  static int64_t hiddenSizeCs190c(int64_t dModel, LATHE_AT);
  /// CS336: 8/3 dModel, then to the nearest multiple of 64 (31 and less over it go down).
  static int64_t hiddenSizeCs336(int64_t dModel, LATHE_AT);

 private:
  Linear linear(const std::string& name, int64_t in, int64_t out) const;
  int64_t dModel_, dHidden_;
  SwiGLUOptions options_;
};

}  // namespace lathe::nn
