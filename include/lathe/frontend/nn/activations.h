// SPDX-License-Identifier: Apache-2.0
#pragma once
// Activations of any shape, elementwise, in elementary ops.
#include "lathe/ir/ops.h"

namespace lathe::nn {

enum class SigmoidForm {
  Op,       ///< the op `sigmoid`
  Spelled,  ///< 1 / (1 + exp(-x))
};

/// 1 / (1 + exp(-x)). The form has no default, so that a plain `sigmoid(x)` is the op.
Tensor sigmoid(const Tensor& x, SigmoidForm form, LATHE_AT);
/// x * sigmoid(x).
Tensor silu(const Tensor& x, SigmoidForm form = SigmoidForm::Op, LATHE_AT);
/// x / 2 * (1 + erf(x / sqrt(2))); Hendrycks and Gimpel, "Gaussian Error Linear Units", 2016.
/// bf16 and f16 are computed in f32 and rounded once: 1 + erf cancels for negative x.
Tensor gelu(const Tensor& x, LATHE_AT);
/// x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))), the same paper's approximation; computed
/// in f32 as `gelu` is.
Tensor geluTanh(const Tensor& x, LATHE_AT);
/// x * sigmoid(1.702 x), the same paper's other approximation, which CLIP was trained with.
Tensor quickGelu(const Tensor& x, LATHE_AT);
/// max(x, 0).
Tensor relu(const Tensor& x, LATHE_AT);
/// Any of the above; x for `none`.
Tensor activate(const Tensor& x, Activation kind, SigmoidForm form = SigmoidForm::Op, LATHE_AT);

}  // namespace lathe::nn
