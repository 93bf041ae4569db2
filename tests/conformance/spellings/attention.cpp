// SPDX-License-Identifier: Apache-2.0
// Where the scale, the casts, biases and layouts of attention stand. No masks.
#include <cmath>

#include "tests/conformance/spellings/spellings.h"

namespace lathe::conformance {

KnownSpellings attentionSpellings() {
  using S = Sheet;
  auto attend = [](const Tensor& scores, const Tensor& v) { return matmul(softmaxOf(scores), v); };
  return {
      {"attention_scores_divided", "attention",
       [=](S& m) { return attend(scoresOf(m.q(), m.k()) / 4.0, m.v()); }, "scale 2.5"},
      {"attention_scores_multiplied", "attention",
       [=](S& m) { return attend(0.3 * scoresOf(m.q(), m.k()), m.v()); }, "scale 0.3"},
      {"attention_queries_scaled", "attention",
       [=](S& m) { return attend(scoresOf(m.q() * 0.25, m.k()), m.v()); }, "scale 2.5"},
      {"attention_queries_divided", "attention",
       [=](S& m) { return attend(scoresOf(m.q() / std::sqrt(12.0), m.k()), m.v()); },
       "scale 0.288"},
      {"attention_keys_scaled", "attention",
       [=](S& m) { return attend(scoresOf(m.q(), m.k() * 0.25), m.v()); }, "scale 2.5"},
      {"attention_roots_on_both", "attention",
       [=](S& m) { return attend(scoresOf(m.q() * 0.5, m.k() * 0.5), m.v()); }, "scale 2.5"},
      {"attention_turned_keys_scaled", "attention",
       [=](S& m) { return attend(matmul(m.q(), swapAxes(m.k(), 2, 3) / 4.0), m.v()); },
       "scale 2.5"},
      {"attention_scale_of_both_sides", "attention",
       [=](S& m) { return attend(scoresOf(m.q() * 0.5, m.k()) * 0.5, m.v()); }, "scale 2.5"},
      {"attention_without_scale", "attention",
       [=](S& m) { return attend(scoresOf(m.q(), m.k()), m.v()); }, "scale 1.0"},
      {"attention_scaled_by_a_power", "attention",
       [=](S& m) {
         return attend(scoresOf(m.q(), m.k()) * pow(m.number(16), m.number(-0.5)), m.v());
       },
       "scale 2.5"},
      {"attention_scaled_by_a_root", "attention",
       [=](S& m) { return attend(scoresOf(m.q(), m.k()) / sqrt(m.number(16)), m.v()); },
       "scale 2.5"},
      {"attention_keys_times_queries", "attention",
       [=](S& m) {
         Tensor turned = matmul(m.k(), swapAxes(m.q(), 2, 3)) * 0.25;
         return attend(swapAxes(turned, 2, 3), m.v());
       }},
      {"attention_of_rank_3", "attention",
       [=](S& m) {
         Tensor q = m.in("q", {8, m.s, 16}), k = m.in("k", {8, m.t, 16}),
                v = m.in("v", {8, m.t, 16});
         return attend(matmul(q, transpose(k, {0, 2, 1})) * 0.25, v);
       }},
      {"attention_batched_with_bias", "attention",
       [=](S& m) {
         Tensor q = m.in("q", {8, m.s, 16}), k = m.in("k", {8, m.t, 16}),
                v = m.in("v", {8, m.t, 16});
         return attend(m.in("bias", {8, m.s, m.t}) + matmul(q, transpose(k, {0, 2, 1})) * 0.25, v);
       }},
      {"attention_scores_widened", "attention",
       [=](S& m) {
         const DType h = DType::BF16;
         Tensor scores = scoresOf(m.q(h), m.k(h)) * 0.25;
         return matmul(cast(softmaxOf(cast(scores, DType::F32)), h), m.v(h));
       }},
      {"attention_in_f32_throughout", "attention",
       [=](S& m) {
         auto wide = [](const Tensor& x) { return cast(x, DType::F32); };
         const DType h = DType::BF16;
         Tensor q = wide(m.q(h)), k = wide(m.k(h)), v = wide(m.v(h));
         return cast(attend(scoresOf(q, k) * 0.25, v), h);
       }},
      {"attention_product_widened_then_scaled", "attention",
       [=](S& m) {
         const DType h = DType::F16;
         Tensor scores = cast(scoresOf(m.q(h), m.k(h)), DType::F32) / 4.0;
         return matmul(cast(softmaxOf(scores), h), m.v(h));
       }},
      {"attention_with_softcap", "attention",
       [=](S& m) { return attend(tanh(scoresOf(m.q(), m.k()) * 0.25 / 50.0) * 50.0, m.v()); },
       "softcap 5.0"},
      {"attention_with_softcap_in_steps", "attention",
       [=](S& m) {
         Tensor scores = scoresOf(m.q() * 0.25, m.k()) / 50.0;
         return attend(50.0 * tanh(scores), m.v());
       },
       "softcap 5.0"},
      {"attention_with_position_bias", "attention",
       [=](S& m) { return attend(scoresOf(m.q(), m.k()) + m.in("bias", {1, 4, m.s, m.t}), m.v()); },
       "mask"},
      {"attention_with_two_biases", "add attention",
       [=](S& m) {
         Tensor scores = scoresOf(m.q(), m.k()) * 0.25 + m.in("relative", {4, m.s, m.t});
         return attend(scores + m.in("padding", {2, 1, 1, m.t}), m.v());
       },
       "mask"},
      {"attention_linear_biases", "attention mul",
       [=](S& m) {
         Tensor slopes = m.in("slopes", {4, 1, 1});
         Tensor far = cast(m.ramp({1, 1, m.t}, 2), DType::F32);
         return attend(scoresOf(m.q(), m.k()) * 0.25 + slopes * far, m.v());
       },
       "mask"},
      {"attention_of_heads_behind_tokens", "attention",
       [=](S& m) {
         auto heads = [](const Tensor& x) { return transpose(x, {0, 2, 1, 3}); };
         Tensor q = heads(m.in("q", {2, m.s, 4, 16})), k = heads(m.in("k", {2, m.t, 4, 16})),
                v = heads(m.in("v", {2, m.t, 4, 16}));
         return heads(attend(scoresOf(q, k) * 0.25, v));
       }},
      {"attention_einsum_over_tokens", "attention",
       [=](S& m) {
         Tensor q = m.in("q", {2, m.s, 4, 16}), k = m.in("k", {2, m.t, 4, 16}),
                v = m.in("v", {2, m.t, 4, 16});
         Tensor scores = matmul(transpose(q, {0, 2, 1, 3}), transpose(k, {0, 2, 3, 1}));
         return transpose(attend(scores / 4.0, transpose(v, {0, 2, 1, 3})), {0, 2, 1, 3});
       }},
      {"attention_heads_split_and_merged", "attention",
       [=](S& m) {
         auto heads = [&](const char* name, Dim n) {
           return transpose(reshape(m.in(name, {2, n, 64}), {2, n, 4, 16}), {0, 2, 1, 3});
         };
         Tensor q = heads("q", m.s), k = heads("k", m.t), v = heads("v", m.t);
         Tensor y = attend(scoresOf(q, k) * 0.25, v);
         return reshape(transpose(y, {0, 2, 1, 3}), {2, m.s, 64});
       }},
      {"attention_heads_folded_into_batch", "attention",
       [=](S& m) {
         auto heads = [&](const char* name, Dim n) {
           Tensor x = transpose(reshape(m.in(name, {2, n, 64}), {2, n, 4, 16}), {0, 2, 1, 3});
           return reshape(x, {8, n, 16});
         };
         Tensor q = heads("q", m.s), k = heads("k", m.t), v = heads("v", m.t);
         Tensor y = attend(matmul(q, swapAxes(k, 1, 2)) * 0.25, v);
         return reshape(transpose(reshape(y, {2, 4, m.s, 16}), {0, 2, 1, 3}), {2, m.s, 64});
       }},
      {"attention_scores_unfolded_for_a_mask", "attention",
       [=](S& m) {
         Tensor q = m.in("q", {8, m.s, 16}), k = m.in("k", {8, m.t, 16}),
                v = m.in("v", {8, m.t, 16});
         Tensor scores = reshape(matmul(q, swapAxes(k, 1, 2)), {2, 4, m.s, m.t});
         Tensor masked = scores + m.in("mask", {2, 1, m.s, m.t});
         return attend(reshape(masked, {8, m.s, m.t}), v);
       }},
      {"attention_of_one_query", "attention",
       [=](S& m) { return attend(scoresOf(m.in("q", {2, 4, 1, 16}), m.k()) * 0.25, m.v()); }},
      {"attention_nan_to_zero", "attention",
       [=](S& m) {
         Tensor p = softmaxOf(scoresOf(m.q(), m.k()) * 0.25 + m.in("mask", {m.s, m.t}));
         return matmul(select(isNan(p), m.number(0), p), m.v());
       },
       "masked_row zero"},
      {"attention_of_rank_2", "attention",
       [=](S& m) {
         Tensor q = m.in("q", {m.s, 16}), k = m.in("k", {m.t, 16}), v = m.in("v", {m.t, 16});
         return attend(matmul(q, transpose(k, {1, 0})) * 0.25, v);
       }},
      {"attention_divided_at_the_end", "attention",
       [=](S& m) {
         Tensor scores = scoresOf(m.q(), m.k()) * 0.25;
         Tensor e = exp(scores - reduceMax(scores, {-1}, true));
         return matmul(e, m.v()) / reduceSum(e, {-1}, true);
       }},
      {"attention_scores_unfolded_until_the_values", "attention",
       [=](S& m) {
         Tensor q = m.in("q", {8, m.s, 16}), k = m.in("k", {8, m.t, 16}),
                v = m.in("v", {8, m.t, 16});
         Tensor scores = reshape(matmul(q, swapAxes(k, 1, 2)) * 0.25, {2, 4, m.s, m.t});
         Tensor p = softmaxOf(scores + m.in("mask", {2, 1, m.s, m.t}));
         return matmul(reshape(p, {8, m.s, m.t}), v);
       }},
  };
}

}  // namespace lathe::conformance
