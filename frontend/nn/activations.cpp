// SPDX-License-Identifier: Apache-2.0
#include "lathe/frontend/nn/activations.h"

#include <numbers>

#include "ir/composing.h"
#include "lathe/frontend/nn/module.h"
#include "lathe/runtime/error.h"

namespace lathe::nn {
namespace {

Tensor times(const Tensor& x, double factor, std::source_location at) {
  return mul(x, scalarLike(x, factor, at), at);
}
// x / 2 * (1 + inner), where `inner` is odd in x and goes to 1.
Tensor halfOnePlus(const Tensor& x, const Tensor& inner, std::source_location at) {
  return mul(times(x, 0.5, at), add(inner, scalarLike(x, 1, at), at), at);
}

}  // namespace

Tensor sigmoid(const Tensor& x, SigmoidForm form, std::source_location at) {
  const Composing composing("sigmoid");
  if (form == SigmoidForm::Op) return lathe::sigmoid(x, at);
  Tensor denominator = add(scalarLike(x, 1, at), exp(neg(x, at), at), at);
  return div(scalarLike(x, 1, at), denominator, at);
}

Tensor silu(const Tensor& x, SigmoidForm form, std::source_location at) {
  const Composing composing("silu");
  return mul(x, sigmoid(x, form, at), at);
}

Tensor gelu(const Tensor& x, std::source_location at) {
  const Composing composing("gelu");
  expectFloats(x, "gelu", at);
  Tensor wide = castTo(x, computeDType(x.dtype()), at);
  Tensor inner = erf(times(wide, std::numbers::sqrt2 / 2, at), at);
  return castTo(halfOnePlus(wide, inner, at), x.dtype(), at);
}

Tensor geluTanh(const Tensor& x, std::source_location at) {
  const Composing composing("geluTanh");
  expectFloats(x, "geluTanh", at);
  Tensor wide = castTo(x, computeDType(x.dtype()), at);
  Tensor cube = mul(mul(wide, wide, at), wide, at);
  Tensor sum = add(wide, times(cube, 0.044715, at), at);
  // sqrt(2 / pi)
  Tensor inner = tanh(times(sum, std::numbers::sqrt2 * std::numbers::inv_sqrtpi, at), at);
  return castTo(halfOnePlus(wide, inner, at), x.dtype(), at);
}

Tensor quickGelu(const Tensor& x, std::source_location at) {
  const Composing composing("quickGelu");
  expectFloats(x, "quickGelu", at);
  return mul(x, lathe::sigmoid(times(x, 1.702, at), at), at);
}

Tensor relu(const Tensor& x, std::source_location at) {
  const Composing composing("relu");
  return max(x, scalarLike(x, 0, at), at);
}

Tensor activate(const Tensor& x, Activation kind, SigmoidForm form, std::source_location at) {
  const Composing composing("activate");
  switch (kind) {
    case Activation::none:
      return x;
    case Activation::silu:
      return silu(x, form, at);
    case Activation::gelu:
      return gelu(x, at);
    case Activation::gelu_tanh:
      return geluTanh(x, at);
    case Activation::relu:
      return relu(x, at);
  }
  throw Error(ErrorCode::InvalidArgument,
              std::to_string(int(kind)) +
                  " is no activation; lathe::Activation names those "
                  "there are",
              at);
}

}  // namespace lathe::nn
