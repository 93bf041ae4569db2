// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/spellings/spellings.h"

namespace lathe::conformance {

KnownSpellings softmaxSpellings() {
  using S = Sheet;
  auto rows = [](S& m) { return m.in("x", {2, m.s, 8}); };
  return {
      {"softmax_axes_kept", "softmax",
       [=](S& m) {
         Tensor x = rows(m);
         Tensor e = exp(x - reduceMax(x, {-1}, true));
         return e / reduceSum(e, {-1}, true);
       }},
      {"softmax_axes_put_back", "softmax",
       [=](S& m) {
         Tensor x = rows(m);
         Tensor e = exp(x - reshape(reduceMax(x, {-1}), {2, m.s, 1}));
         return e / reshape(reduceSum(e, {-1}), {2, m.s, 1});
       }},
      {"softmax_times_inverse", "softmax",
       [=](S& m) {
         Tensor x = rows(m);
         Tensor e = exp(x - reduceMax(x, {-1}, true));
         return e * (1.0 / reduceSum(e, {-1}, true));
       }},
      {"softmax_times_reciprocal", "softmax",
       [=](S& m) {
         Tensor x = rows(m);
         Tensor e = exp(x - reduceMax(x, {-1}, true));
         return reciprocal(reduceSum(e, {-1}, true)) * e;
       }},
      {"softmax_minus_as_sum", "softmax",
       [=](S& m) {
         Tensor x = rows(m);
         Tensor e = exp(-reduceMax(x, {-1}, true) + x);
         return e / reduceSum(e, {-1}, true);
       }},
      {"softmax_broadcast_explicitly", "softmax",
       [=](S& m) {
         Tensor x = rows(m);
         Tensor e = exp(x - broadcast(reduceMax(x, {-1}, true), x.shape()));
         return e / broadcast(reduceSum(e, {-1}, true), x.shape());
       }},
      {"softmax_first_axis", "softmax",
       [](S& m) {
         Tensor x = m.in("x", {m.s, 8});
         Tensor e = exp(x - reduceMax(x, {0}, true));
         return e / reduceSum(e, {0}, true);
       }},
      {"softmax_middle_axis", "softmax",
       [](S& m) {
         Tensor x = m.in("x", {2, m.s, 8});
         Tensor e = exp(x - reduceMax(x, {1}, true));
         return e / reduceSum(e, {1}, true);
       }},
      {"softmax_widened_bf16", "softmax",
       [](S& m) {
         Tensor x = cast(m.in("x", {2, m.s, 8}, DType::BF16), DType::F32);
         return cast(softmaxOf(x), DType::BF16);
       }},
      {"softmax_widened_f16", "softmax",
       [](S& m) {
         Tensor x = cast(m.in("x", {2, m.s, 8}, DType::F16), DType::F32);
         return cast(softmaxOf(x), DType::F16);
       }},
      {"softmax_with_temperature", "softmax", [=](S& m) { return softmaxOf(rows(m) / 0.7); },
       "scale 1.42857"},
      {"softmax_temperature_behind_maximum", "softmax",
       [=](S& m) {
         Tensor x = rows(m);
         Tensor e = exp((x - reduceMax(x, {-1}, true)) * 0.7);
         return e / reduceSum(e, {-1}, true);
       },
       "scale 0.69999"},
      {"softmax_shifted_twice", "softmax",
       [=](S& m) {
         Tensor x = rows(m);
         return softmaxOf(x - reduceMax(x, {-1}, true));
       }},
      {"softmax_nan_to_zero", "softmax",
       [=](S& m) {
         Tensor p = softmaxOf(rows(m));
         return select(isNan(p), m.number(0), p);
       },
       "masked_row zero"},
      {"softmax_where_of_jax", "softmax",
       [=](S& m) {
         Tensor x = rows(m), c = m.in("c", {m.s, 8}, DType::Bool), zero = m.number(0);
         Tensor h = select(c, x, -m.infinity());
         Tensor e = exp(h - reduceMax(h, {-1}, true));
         return select(c, e / reduceSum(select(c, e, zero), {-1}, true), zero);
       },
       "masked_row zero"},
      {"softmax_masked_fill", "logical_not softmax",
       [=](S& m) {
         Tensor x = rows(m), hidden = m.in("c", {m.s, 8}, DType::Bool);
         return softmaxOf(select(hidden, -m.infinity(), x));
       },
       "mask"},
      {"softmax_of_added_mask", "softmax",
       [=](S& m) { return softmaxOf(rows(m) * 0.5 + m.in("mask", {m.s, 8})); }, "mask %arg1"},
      {"softmax_of_softcap", "softmax",
       [=](S& m) { return softmaxOf(tanh(rows(m) / 30.0) * 30.0); }, "softcap 3.0"},
      {"softmax_of_merged_axes", "softmax",
       [](S& m) {
         return reshape(softmaxOf(reshape(m.in("x", {2, 3, m.s, 8}), {m.s * 6, 8})),
                        {2, 3, m.s, 8});
       }},
      {"softmax_to_the_base_of_two", "softmax",
       [=](S& m) {
         Tensor x = rows(m);
         Tensor e = pow(m.number(2), (x - reduceMax(x, {-1}, true)) * 1.4426950408889634);
         return e / reduceSum(e, {-1}, true);
       }},
      {"softmax_through_log_of_sum", "softmax",
       [=](S& m) {
         Tensor x = rows(m);
         Tensor d = x - reduceMax(x, {-1}, true);
         return exp(d - log(reduceSum(exp(d), {-1}, true)));
       }},
      {"softmax_through_logsumexp", "softmax",
       [=](S& m) {
         Tensor x = rows(m);
         Tensor top = reduceMax(x, {-1}, true);
         return exp(x - (top + log(reduceSum(exp(x - top), {-1}, true))));
       }},
  };
}

}  // namespace lathe::conformance
