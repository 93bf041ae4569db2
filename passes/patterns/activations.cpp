// SPDX-License-Identifier: Apache-2.0
//
//   silu        x * sigmoid(x), x * (1 / (1 + exp(-x))), x / (1 + exp(-x))
//   gelu        x / 2 * (1 + erf(x / sqrt 2))
//   gelu_tanh   x / 2 * (1 + tanh(z)), x * sigmoid(2 z), z = sqrt(2 / pi) * (x + 0.044715 x^3)
//   relu        max(x, 0)
#include <numbers>

#include "lathe/ir/ops.h"
#include "passes/patterns/library.h"

namespace lathe {
namespace {

Tensor onePlusExp(DagPattern& p, const Tensor& x) { return add(exp(neg(x)), p.constant(1)); }
Tensor siluProduct(DagPattern& p, const Tensor& x) {
  return mul(
      x, p.anyOf({sigmoid(x), div(p.constant(1), onePlusExp(p, x)), reciprocal(onePlusExp(p, x))}));
}
Tensor siluQuotient(DagPattern& p, const Tensor& x) { return div(x, onePlusExp(p, x)); }

// x / 2 * inner in each association.
using Inner = Tensor (*)(DagPattern& p, const Tensor& x);
template <Inner inner>
Tensor halfFirst(DagPattern& p, const Tensor& x) {
  return mul(p.anyOf({mul(x, p.constant(0.5)), div(x, p.constant(2))}), inner(p, x));
}
template <Inner inner>
Tensor halfLast(DagPattern& p, const Tensor& x) {
  return mul(mul(x, inner(p, x)), p.constant(0.5));
}
template <Inner inner>
Tensor halfLastDivided(DagPattern& p, const Tensor& x) {
  return div(mul(x, inner(p, x)), p.constant(2));
}
template <Inner inner>
Tensor halfInside(DagPattern& p, const Tensor& x) {
  Tensor sum = inner(p, x);
  return mul(x, p.anyOf({mul(sum, p.constant(0.5)), div(sum, p.constant(2))}));
}

Tensor onePlusErf(DagPattern& p, const Tensor& x) {
  using std::numbers::sqrt2;
  Tensor scaled = p.anyOf({mul(x, p.constant(1 / sqrt2)), div(x, p.constant(sqrt2))});
  return add(erf(scaled), p.constant(1));
}
// 2 / sqrt(pi) / sqrt(2) times x + 0.044715 x^3, times `scale`: the factor outside, or x factored
// out of the sum.
Tensor cubic(DagPattern& p, const Tensor& x, double scale) {
  using std::numbers::inv_sqrtpi, std::numbers::sqrt2;
  const double factor = scale * sqrt2 * inv_sqrtpi, share = 0.044715;
  auto times = [&](const Tensor& t, double c) {
    return p.anyOf({mul(t, p.constant(c)), div(t, p.constant(1 / c))});
  };
  Tensor square = p.anyOf({mul(x, x), pow(x, p.constant(2))});
  Tensor cube = p.anyOf({mul(square, x), pow(x, p.constant(3))});
  Tensor sharedSquare = p.anyOf({times(square, share), mul(times(x, share), x)});
  Tensor sharedCube = p.anyOf({times(cube, share), mul(mul(times(x, share), x), x)});
  Tensor sum = add(x, sharedCube);
  Tensor one = add(sharedSquare, p.constant(1));
  Tensor both = add(times(square, factor * share), p.constant(factor));
  return p.anyOf({times(p.anyOf({sum, mul(x, one)}), factor), mul(x, both),
                  mul(mul(x, p.constant(factor)), one)});
}
Tensor onePlusTanh(DagPattern& p, const Tensor& x) {
  return add(tanh(cubic(p, x, 1)), p.constant(1));
}
// (1 + tanh(z)) / 2 is sigmoid(2 z).
Tensor sigmoidOfCubic(DagPattern& p, const Tensor& x) { return mul(x, sigmoid(cubic(p, x, 2))); }

Tensor relu(DagPattern& p, const Tensor& x) { return max(x, p.constant(0)); }

}  // namespace

const std::vector<ActivationForm>& activationForms() {
  static const std::vector<ActivationForm> forms{
      {Activation::silu, siluProduct},
      {Activation::silu, siluQuotient},
      {Activation::gelu, halfFirst<onePlusErf>},
      {Activation::gelu, halfLast<onePlusErf>},
      {Activation::gelu, halfLastDivided<onePlusErf>},
      {Activation::gelu, halfInside<onePlusErf>},
      {Activation::gelu_tanh, halfFirst<onePlusTanh>},
      {Activation::gelu_tanh, halfLast<onePlusTanh>},
      {Activation::gelu_tanh, halfLastDivided<onePlusTanh>},
      {Activation::gelu_tanh, halfInside<onePlusTanh>},
      {Activation::gelu_tanh, sigmoidOfCubic},
      {Activation::relu, relu},
  };
  return forms;
}

}  // namespace lathe
