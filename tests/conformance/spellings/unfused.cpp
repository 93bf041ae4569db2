// SPDX-License-Identifier: Apache-2.0
// What no fused op computes, or computes otherwise; and what is said of it.
#include "tests/conformance/spellings/spellings.h"

namespace lathe::conformance {

UnfusedSpellings unfusedSpellings() {
  using S = Sheet;
  return {
      {"log_softmax", "softmax", "no fused op computes a log-softmax",
       [](S& m) {
         Tensor x = m.in("x", {2, m.s, 8}), d = x - reduceMax(x, {-1}, true);
         return d - m.asked(log(reduceSum(exp(d), {-1}, true)));
       }},
      {"log_softmax_by_logsumexp", "softmax", "no fused op computes a log-softmax",
       [](S& m) {
         Tensor x = m.in("x", {2, m.s, 8}), top = reduceMax(x, {-1}, true);
         return x - (m.asked(log(reduceSum(exp(x - top), {-1}, true))) + top);
       }},
      {"softmax_without_maximum", "softmax", "wanted lathe.sub, found an argument",
       [](S& m) {
         Tensor e = exp(m.in("x", {2, m.s, 8}));
         return m.asked(e / reduceSum(e, {-1}, true));
       }},
      {"attention_of_turned_keys", "attention", "k is not transposed in front of the product",
       [](S& m) {
         Tensor scores = matmul(m.q(), m.in("kt", {2, 4, 16, m.t}));
         return m.asked(matmul(softmaxOf(scores), m.v()));
       }},
      {"layer_norm_of_moments", "layer_norm", "E[x^2] - E[x]^2",
       [](S& m) {
         Tensor x = m.in("x", {2, m.s, 16}), mean = reduceMean(x, {-1}, true);
         Tensor variance = reduceMean(x * x, {-1}, true) - mean * mean;
         return m.asked((x - mean) * rsqrt(variance + 1e-6));
       }},
      {"layer_norm_of_clamped_moments", "layer_norm", "wanted lathe.reduce_mean, found lathe.max",
       [](S& m) {
         Tensor x = m.in("x", {2, m.s, 16}), mean = reduceMean(x, {-1}, true);
         Tensor variance = max(reduceMean(x * x, {-1}, true) - mean * mean, m.number(0));
         return m.asked((x - mean) * rsqrt(variance + 1e-6));
       }},
      {"norm_epsilon_outside_the_root", "layer_norm", "wanted lathe.sqrt, found lathe.add",
       [](S& m) {
         Tensor x = m.in("x", {2, m.s, 16}), d = x - reduceMean(x, {-1}, true);
         return m.asked(d / (sqrt(reduceMean(d * d, {-1}, true)) + 1e-6));
       }},
      {"norm_with_a_clamp", "rms_norm", "wanted lathe.sqrt, found lathe.max",
       [](S& m) {
         Tensor x = m.in("x", {2, m.s, 16}), length = sqrt(reduceSum(x * x, {-1}, true));
         return m.asked(x / max(length, m.number(1e-12)));
       }},
      {"quick_gelu_gate", "glu", "wanted lathe.sigmoid of the value itself",
       [](S& m) {
         Tensor x = m.in("x", {2, m.s, 24});
         return m.asked(x * sigmoid(x * 1.702) * m.in("u", {2, m.s, 24}));
       }},
      {"rope_of_whole_tables", "rope", "the halves of the table cannot be proved equal",
       [](S& m) {
         Tensor x = m.in("x", {2, 4, m.s, 16});
         Tensor turned = concat({-sliceAxis(x, 3, 8, 8), sliceAxis(x, 3, 0, 8)}, 3);
         return m.asked(x * m.in("cos", {m.s, 16}) + turned * m.in("sin", {m.s, 16}));
       }},
      {"embedding_by_one_hot_rows", "embedding", "one-hot matrix",
       [](S& m) {
         Tensor ids = reshape(m.in("ids", {2, m.s}, DType::I64), {2, m.s, 1});
         Tensor hot = cast(compare(ids, m.ramp({1, 1, 32}, 2), Compare::eq), DType::F32);
         return m.asked(matmul(hot, m.w("table", {32, 16})));
       }},
      {"linear_of_a_scaled_weight", "linear", "wanted a weight matrix",
       [](S& m) {
         Tensor w = transpose(m.w("w", {24, 16}) * 0.5, {1, 0});
         return m.asked(matmul(m.in("x", {2, m.s, 16}), w));
       }},
      {"linear_of_products_and_sums", "linear", "wanted lathe.matmul",
       [](S& m) {
         Tensor x = reshape(m.in("x", {2, m.s, 16}), {2, m.s, 1, 16});
         return m.asked(reduceSum(x * m.w("w", {24, 16}), {-1}));
       }},
  };
}

}  // namespace lathe::conformance
