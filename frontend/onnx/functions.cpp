// SPDX-License-Identifier: Apache-2.0
// Activations and functions of one variable that the dialect spells with several ops. Formulas are
// those of ONNX's operator pages; where they would cancel, forms that do not.
#include <cmath>
#include <numbers>

#include "frontend/onnx/node.h"

namespace lathe::onnx {
namespace {

// log(1 + x) without losing small x (Kahan): what 1 + x rounded away is put back by the quotient.
Tensor logOnePlus(const Tensor& x) {
  const Tensor u = x + 1.0, gone = u - 1.0;
  const Tensor y = mul(x, div(log(u), gone));
  const Tensor infinite = abs(x) == HUGE_VAL;
  return select(gone == 0.0, x, select(infinite, log(u), y));
}

Tensor polynomial(const Tensor& x, std::initializer_list<double> coefficients) {
  Tensor y;
  for (double c : coefficients) y = y.defined() ? add(mul(y, x), like(x, c)) : like(x, c);
  return y;
}

// In f32 at least, rounded once.
template <Tensor (*function)(const Tensor&)>
void inWide(Node& n) {
  const Tensor x = n.in(0);
  n.set(as(function(as(x, wide(x.dtype()))), x.dtype()));
}

// --- inverse tangents

// atan on [0, 1] by Cephes' split at tan(pi/8): the rational function of S. L. Moshier's atan.c.
Tensor arcTangent(const Tensor& x) {
  const Tensor size = abs(x);
  const Tensor isLarge = size > 2.414213562373095, isMiddle = size > 0.66;
  const Tensor one = like(x, 1);
  // Quotients of infinities would be NaN.
  const Tensor inverse = neg(div(one, select(isLarge, size, one)));
  const Tensor middle = div(select(isLarge, one, size) - 1.0, select(isLarge, one, size) + 1.0);
  const Tensor t = select(isLarge, inverse, select(isMiddle, middle, size));
  const Tensor z = mul(t, t);
  const Tensor p = polynomial(
      z, {-8.750608600031904122785e-1, -1.615753718733365076637e1, -7.500855792314704667340e1,
          -1.228866684490136173410e2, -6.485021904942025371773e1});
  const Tensor q = polynomial(
      z, {1.0, 2.485846490142306297962e1, 1.650270098316988542046e2, 4.328810604912902668951e2,
          4.853903996359136964868e2, 1.945506571482613964425e2});
  const Tensor base = select(isLarge, like(x, std::numbers::pi / 2),
                             select(isMiddle, like(x, std::numbers::pi / 4), like(x, 0)));
  const Tensor y = add(base, add(mul(t, mul(z, div(p, q))), t));
  return select(x < 0, neg(y), y);
}
Tensor arcSine(const Tensor& x) { return arcTangent(div(x, sqrt(mul(1.0 - x, x + 1.0)))); }
// 2 atan(sqrt((1 - x) / (1 + x))) keeps its digits near 1.
Tensor arcCosine(const Tensor& x) {
  return mul(like(x, 2), arcTangent(sqrt(div(1.0 - x, x + 1.0))));
}

// --- hyperbolic functions

Tensor hyperbolicSine(const Tensor& x) {
  const Tensor z = mul(x, x);
  const Tensor small = mul(x, polynomial(z, {1.0 / 6227020800, 1.0 / 39916800, 1.0 / 362880,
                                             1.0 / 5040, 1.0 / 120, 1.0 / 6, 1.0}));
  // Halves of the exponent's value overflow where the result does, and no earlier.
  const Tensor half = exp(x * 0.5);
  const Tensor other = exp(neg(x) * 0.5);
  const Tensor large = sub(mul(half * 0.5, half), mul(other * 0.5, other));
  return select(abs(x) < 1.0, small, large);
}
Tensor hyperbolicCosine(const Tensor& x) {
  const Tensor half = exp(x * 0.5), other = exp(neg(x) * 0.5);
  return add(mul(half * 0.5, half), mul(other * 0.5, other));
}
Tensor areaSine(const Tensor& x) {
  const Tensor size = abs(x), z = mul(size, size);
  // Squares of large numbers overflow: there it is log(2 x).
  const Tensor isLarge = size > 1e8;
  const Tensor y = logOnePlus(add(size, div(z, sqrt(z + 1.0) + 1.0)));
  const Tensor far = log(size) + std::numbers::ln2;
  const Tensor all = select(isLarge, far, y);
  return select(x < 0, neg(all), all);
}
Tensor areaCosine(const Tensor& x) {
  const Tensor t = x - 1.0;
  const Tensor y = logOnePlus(add(t, sqrt(add(mul(t, like(t, 2)), mul(t, t)))));
  // As above.
  return select(x > 1e8, log(x) + std::numbers::ln2, y);
}
Tensor areaTangent(const Tensor& x) { return logOnePlus(div(x * 2.0, 1.0 - x)) * 0.5; }
Tensor tangent(const Tensor& x) { return div(sin(x), cos(x)); }

// --- activations

Tensor softplusOf(const Tensor& x) { return add(max(x, like(x, 0)), logOnePlus(exp(neg(abs(x))))); }
Tensor mish(const Tensor& x) { return mul(x, tanh(softplusOf(x))); }
Tensor softsign(const Tensor& x) { return div(x, abs(x) + 1.0); }

// exp(x) - 1 of negative x, without losing small ones: 2 exp(x/2) sinh(x/2). Far from zero sinh
// overflows, and the difference loses nothing.
Tensor expMinusOne(const Tensor& x) {
  const Tensor half = max(x, like(x, -2)) * 0.5;
  return select(x < -1.0, exp(x) - 1.0, mul(exp(half) * 2.0, hyperbolicSine(half)));
}
Tensor whereNegative(const Tensor& x, const Tensor& below, const Tensor& otherwise) {
  return select(x < 0, below, otherwise);
}

void relu(Node& n) {
  const Tensor x = n.in(0);
  n.set(max(x, like(x, 0)));
}
void leakyRelu(Node& n) {
  const Tensor x = n.in(0);
  n.set(whereNegative(x, x * n.real("alpha", 0.01), x));
}
void parametricRelu(Node& n) {
  const Tensor x = n.in(0);
  n.set(whereNegative(x, mul(x, n.in(1)), x));
}
void thresholdedRelu(Node& n) {
  const Tensor x = n.in(0);
  n.set(select(x > n.real("alpha", 1), x, like(x, 0)));
}
void elu(Node& n) {
  const Tensor x = n.in(0);
  n.set(whereNegative(x, expMinusOne(min(x, like(x, 0))) * n.real("alpha", 1), x));
}
void celu(Node& n) {
  const Tensor x = n.in(0);
  const double alpha = n.real("alpha", 1);
  const Tensor below = expMinusOne(min(x, like(x, 0)) / alpha) * alpha;
  n.set(add(max(x, like(x, 0)), min(below, like(x, 0))));
}
void selu(Node& n) {
  const Tensor x = n.in(0);
  const double alpha = n.real("alpha", 1.67326319217681884765625);
  const double gamma = n.real("gamma", 1.05070102214813232421875);
  n.set(whereNegative(x, expMinusOne(min(x, like(x, 0))) * alpha, x) * gamma);
}
Tensor hardSigmoidOf(const Tensor& x, double alpha, double beta) {
  return clamp(x * alpha + beta, 0, 1);
}
void hardSigmoid(Node& n) {
  n.set(hardSigmoidOf(n.in(0), n.real("alpha", 0.2), n.real("beta", 0.5)));
}
void hardSwish(Node& n) {
  const Tensor x = n.in(0);
  n.set(mul(x, hardSigmoidOf(x, 1.0 / 6, 0.5)));
}
void shrink(Node& n) {
  const Tensor x = n.in(0);
  const double lambda = n.real("lambd", 0.5), bias = n.real("bias", 0);
  const DType dtype = x.dtype();
  // Integers are compared and moved as reals, and cut.
  const Tensor v = isFloat(dtype) ? x : as(x, DType::F64);
  n.set(as(select(v < -lambda, v + bias, select(v > lambda, v - bias, like(v, 0))), dtype));
}
void gelu(Node& n) {
  const Tensor x = n.in(0);
  const std::string kind = n.text("approximate", "none");
  if (kind == "none") return n.set(mul(x * 0.5, erf(x * std::numbers::sqrt2 * 0.5) + 1.0));
  if (kind != "tanh") n.refuse("attribute 'approximate': expected none or tanh, got " + kind);
  const Tensor cubed = mul(mul(x, x), x);
  const Tensor inner = add(x, cubed * 0.044715) * std::sqrt(2 * std::numbers::inv_pi);
  n.set(mul(x * 0.5, tanh(inner) + 1.0));
}
void swish(Node& n) {
  const Tensor x = n.in(0);
  const double alpha = n.real("alpha", 1);
  n.set(mul(x, sigmoid(alpha == 1 ? x : x * alpha)));
}

// a * sigmoid(alpha * a) * b of operands of one shape.
void swiglu(Node& n) {
  const Tensor a = n.in(0), b = n.in(1);
  if (a.shape() != b.shape()) n.fail("expected two operands of one shape");
  const double alpha = n.real("alpha", 1);
  n.set(mul(mul(a, sigmoid(alpha == 1 ? a : a * alpha)), b));
}

const Lowering kTable[] = {{"Acos", {}, inWide<arcCosine>},
                           {"Acosh", {}, inWide<areaCosine>},
                           {"Asin", {}, inWide<arcSine>},
                           {"Asinh", {}, inWide<areaSine>},
                           {"Atan", {}, inWide<arcTangent>},
                           {"Atanh", {}, inWide<areaTangent>},
                           {"Celu", {"alpha"}, celu},
                           {"Cosh", {}, inWide<hyperbolicCosine>},
                           {"Elu", {"alpha"}, elu},
                           {"Gelu", {"approximate"}, gelu},
                           {"HardSigmoid", {"alpha", "beta"}, hardSigmoid},
                           {"HardSwish", {}, hardSwish},
                           {"LeakyRelu", {"alpha"}, leakyRelu},
                           {"Mish", {}, inWide<mish>},
                           {"PRelu", {}, parametricRelu},
                           {"Relu", {}, relu},
                           {"Selu", {"alpha", "gamma"}, selu},
                           {"Shrink", {"bias", "lambd"}, shrink},
                           {"Sinh", {}, inWide<hyperbolicSine>},
                           {"Softplus", {}, inWide<softplusOf>},
                           {"Softsign", {}, inWide<softsign>},
                           {"SwiGLU", {"alpha"}, swiglu},
                           {"Swish", {"alpha"}, swish},
                           {"Tan", {}, inWide<tangent>},
                           {"ThresholdedRelu", {"alpha"}, thresholdedRelu}};

}  // namespace

std::span<const Lowering> functionLowerings() { return kTable; }

}  // namespace lathe::onnx
