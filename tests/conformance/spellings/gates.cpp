// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <numbers>

#include "tests/conformance/spellings/spellings.h"

namespace lathe::conformance {
namespace {

using S = Sheet;

KnownSpelling gate(const char* name, const char* holds,
                   const std::function<Tensor(S&, const Tensor& x, const Tensor& u)>& spell) {
  return {name, "glu",
          [=](S& m) { return spell(m, m.in("x", {2, m.s, 24}), m.in("u", {2, m.s, 24})); }, holds};
}

const double kRoot = std::sqrt(2 / std::numbers::pi);

}  // namespace

KnownSpellings gateSpellings() {
  const double root2 = std::numbers::sqrt2;
  return {
      // --- silu
      gate("silu_times_up", "",
           [](S&, const Tensor& x, const Tensor& u) { return x * sigmoid(x) * u; }),
      gate("up_times_silu", "",
           [](S&, const Tensor& x, const Tensor& u) { return u * (sigmoid(x) * x); }),
      gate("silu_sigmoid_last", "",
           [](S&, const Tensor& x, const Tensor& u) { return (x * u) * sigmoid(x); }),
      gate("silu_sigmoid_on_up", "",
           [](S&, const Tensor& x, const Tensor& u) { return x * (sigmoid(x) * u); }),
      gate("silu_quotient", "",
           [](S&, const Tensor& x, const Tensor& u) { return x / (1.0 + exp(-x)) * u; }),
      gate("silu_inverse", "",
           [](S&, const Tensor& x, const Tensor& u) { return x * (1.0 / (1.0 + exp(-x))) * u; }),
      gate("silu_reciprocal", "",
           [](S&, const Tensor& x, const Tensor& u) { return x * reciprocal(exp(-x) + 1.0) * u; }),
      gate("silu_of_tanh", "",
           [](S&, const Tensor& x, const Tensor& u) {
             return x * (0.5 * (1.0 + tanh(x * 0.5))) * u;
           }),
      {"silu_of_joined_halves", "glu",
       [](S& m) {
         Tensor both = m.in("x", {2, m.s, 48});
         Tensor x = sliceAxis(both, 2, 0, 24), u = sliceAxis(both, 2, 24, 24);
         return x * sigmoid(x) * u;
       }},
      {"silu_widened", "glu",
       [](S& m) {
         const DType h = DType::BF16;
         Tensor x = cast(m.in("x", {2, m.s, 24}, h), DType::F32), u = m.in("u", {2, m.s, 24}, h);
         return cast(x * sigmoid(x), h) * u;
       }},
      {"silu_in_bf16", "glu",
       [](S& m) {
         const DType h = DType::BF16;
         Tensor x = m.in("x", {2, m.s, 24}, h);
         return x * sigmoid(x) * m.in("u", {2, m.s, 24}, h);
       }},
      // --- gelu
      gate("gelu_half_first", "activation gelu",
           [=](S&, const Tensor& x, const Tensor& u) {
             return 0.5 * x * (1.0 + erf(x / root2)) * u;
           }),
      gate("gelu_half_last", "activation gelu",
           [](S&, const Tensor& x, const Tensor& u) {
             return x * (1.0 + erf(x * 0.7071067811865476)) * 0.5 * u;
           }),
      gate("gelu_distribution", "activation gelu",
           [=](S&, const Tensor& x, const Tensor& u) {
             return u * (x * (0.5 * (1.0 + erf(x / root2))));
           }),
      gate("gelu_halved_error_function", "activation gelu",
           [=](S&, const Tensor& x, const Tensor& u) {
             return x * (erf(x / root2) * 0.5 + 0.5) * u;
           }),
      gate("gelu_divided_by_root", "activation gelu",
           [](S& m, const Tensor& x, const Tensor& u) {
             return x * (erf(x / sqrt(m.number(2))) + 1.0) / 2.0 * u;
           }),
      gate("gelu_tanh_cube", "activation gelu_tanh",
           [](S& m, const Tensor& x, const Tensor& u) {
             return 0.5 * x * (1.0 + tanh(kRoot * (x + 0.044715 * pow(x, m.number(3))))) * u;
           }),
      gate("gelu_tanh_products", "activation gelu_tanh",
           [](S&, const Tensor& x, const Tensor& u) {
             return 0.5 * x * (1.0 + tanh((x + 0.044715 * x * x * x) * kRoot)) * u;
           }),
      gate("gelu_tanh_factored", "activation gelu_tanh",
           [](S&, const Tensor& x, const Tensor& u) {
             return 0.5 * x * (1.0 + tanh(x * kRoot * (1.0 + 0.044715 * x * x))) * u;
           }),
      gate("gelu_tanh_constants_merged", "activation gelu_tanh",
           [](S&, const Tensor& x, const Tensor& u) {
             return x * (0.5 * (1.0 + tanh(x * (kRoot + kRoot * 0.044715 * (x * x))))) * u;
           }),
      gate("gelu_tanh_as_sigmoid", "activation gelu_tanh",
           [](S&, const Tensor& x, const Tensor& u) {
             return x * sigmoid(2 * kRoot * (x + 0.044715 * (x * x * x))) * u;
           }),
      {"gelu_widened", "glu",
       [=](S& m) {
         const DType h = DType::BF16;
         Tensor x = cast(m.in("x", {2, m.s, 24}, h), DType::F32);
         return cast(x * 0.5 * (1.0 + erf(x / root2)), h) * m.in("u", {2, m.s, 24}, h);
       },
       "activation gelu"},
      // --- relu
      gate("relu_maximum", "activation relu",
           [](S& m, const Tensor& x, const Tensor& u) { return max(x, m.number(0)) * u; }),
      gate("relu_selected", "activation relu",
           [](S& m, const Tensor& x, const Tensor& u) {
             return u * select(compare(x, m.number(0), Compare::gt), x, m.number(0));
           }),
      gate("relu_zero_first", "activation relu",
           [](S& m, const Tensor& x, const Tensor& u) { return max(m.number(0), x) * u; }),
      gate("relu_selected_not_negative", "activation relu",
           [](S& m, const Tensor& x, const Tensor& u) {
             return select(compare(x, m.number(0), Compare::lt), m.number(0), x) * u;
           }),
  };
}

}  // namespace lathe::conformance
