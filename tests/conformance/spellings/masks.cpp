// SPDX-License-Identifier: Apache-2.0
// Causal masks, windows and padding.
#include "tests/conformance/spellings/spellings.h"

namespace lathe::conformance {
namespace {

using S = Sheet;
constexpr double kLowest = -3.4028234663852886e38;

// One sequence that attends to itself, with the scores masked by `mask`.
KnownSpelling masked(const char* name, const char* holds,
                     std::function<Tensor(S&, const Tensor& scores)> mask,
                     const char* ops = "attention") {
  return {name, ops,
          [=](S& m) {
            Tensor k = m.in("k", {2, 4, m.s, 16}), v = m.in("v", {2, 4, m.s, 16});
            return matmul(softmaxOf(mask(m, scoresOf(m.q(), k) * 0.25)), v);
          },
          holds};
}
// s queries at the end of p + s keys.
KnownSpelling behindPast(const char* name, const char* holds,
                         std::function<Tensor(S&, const Tensor& scores)> mask) {
  return {name, "attention",
          [=](S& m) {
            Tensor k = m.in("k", {2, 4, m.p + m.s, 16}), v = m.in("v", {2, 4, m.p + m.s, 16});
            return matmul(softmaxOf(mask(m, scoresOf(m.q(), k) * 0.25)), v);
          },
          holds};
}
// An attention that is recorded whole, with a mask operand.
KnownSpelling whole(const char* name, const char* holds, std::function<Tensor(S&)> mask) {
  return {name, "attention",
          [=](S& m) {
            Tensor k = m.in("k", {2, 4, m.s, 16}), v = m.in("v", {2, 4, m.s, 16});
            return fused::attention(m.q(), k, v, {.mask = mask(m), .scale = 0.25});
          },
          holds};
}
// A box of static size, where tables are cut.
KnownSpelling ofTable(const char* name, const char* holds,
                      std::function<Tensor(S&, const Tensor& scores)> mask) {
  return {name, "attention",
          [=](S& m) {
            auto heads = [&](const char* n) { return m.in(n, {2, 4, 6, 16}); };
            Tensor scores = scoresOf(heads("q"), heads("k")) * 0.25;
            return matmul(softmaxOf(mask(m, scores)), heads("v"));
          },
          holds};
}

// torch.tril(torch.ones(n, n)) and torch.triu(torch.full((n, n), x), 1)
Tensor tril(S& m, Dim n) {
  Tensor c = compare(m.ramp({n, 1}, 0), m.ramp({1, n}, 1), Compare::ge);
  return select(c, broadcast(m.number(1), {n, n}), m.number(0));
}
Tensor triu(S& m, Dim n, const Tensor& x) {
  Tensor c = compare(m.ramp({1, n}, 1) - m.ramp({n, 1}, 0), m.number(1, DType::I64), Compare::ge);
  return select(c, broadcast(x, {n, n}), m.number(0));
}

}  // namespace

KnownSpellings maskSpellings() {
  return {
      // --- causal
      masked("causal_rows_not_before_columns", "causal top_left",
             [](S& m, const Tensor& x) {
               Tensor c = compare(m.ramp({m.s, 1}, 0), m.ramp({1, m.s}, 1), Compare::ge);
               return select(c, x, -m.infinity());
             }),
      whole("causal_mask_of_a_whole_attention", "causal top_left",
            [](S& m) { return compare(m.ramp({m.s, 1}, 0), m.ramp({1, m.s}, 1), Compare::ge); }),
      whole("window_added_to_a_whole_attention", "window 3",
            [](S& m) {
              Tensor i = m.ramp({m.s, 1}, 0), j = m.ramp({1, m.s}, 1);
              Tensor c = logicalAnd(compare(j, i, Compare::le),
                                    compare(j, i - m.number(3, DType::I64), Compare::gt));
              return select(c, m.number(0), -m.infinity());
            }),
      whole("padding_joined_to_causal_of_a_whole_attention", "mask",
            [](S& m) {
              Tensor c = compare(m.ramp({m.s, 1}, 0), m.ramp({1, m.s}, 1), Compare::ge);
              return logicalAnd(c, m.in("keys", {2, 1, 1, m.s}, DType::Bool));
            }),
      {"causal_mask_of_a_whole_attention_with_a_softcap", "attention",
       [](S& m) {
         Tensor k = m.in("k", {2, 4, m.s, 16}), v = m.in("v", {2, 4, m.s, 16});
         Tensor c = compare(m.ramp({m.s, 1}, 0), m.ramp({1, m.s}, 1), Compare::ge);
         return fused::attention(m.q(), k, v, {.mask = c, .scale = 0.25, .softcap = 1.5});
       },
       "softcap 1.5"},
      // A key is seen where both say so.
      {"causal_mask_of_a_whole_attention_that_is_causal", "attention compare",
       [](S& m) {
         Tensor k = m.in("k", {2, 4, m.p + m.s, 16}), v = m.in("v", {2, 4, m.p + m.s, 16});
         Tensor i = sliceAxis(m.ramp({m.p + m.s, 1}, 0), 0, m.p, m.s);
         Tensor seen = compare(m.ramp({1, m.p + m.s}, 1), i, Compare::le);
         return fused::attention(m.q(), k, v,
                                 {.mask = seen, .scale = 0.25, .causal = Causal::top_left});
       },
       "causal top_left"},
      // A row that is behind finite numbers alone is no row without a key.
      {"numbers_added_to_a_whole_attention", "attention compare select",
       [](S& m) {
         Tensor k = m.in("k", {2, 4, m.s, 16}), v = m.in("v", {2, 4, m.s, 16});
         Tensor c = compare(m.ramp({m.s, 1}, 0), m.ramp({1, m.s}, 1), Compare::gt);
         Tensor mask = select(c, m.number(0), m.number(-3e38));
         return fused::attention(m.q(), k, v, {.mask = mask, .scale = 0.25});
       },
       "lathe.attention"},
      {"causal_mask_behind_the_past_of_a_whole_attention", "attention",
       [](S& m) {
         Tensor k = m.in("k", {2, 4, m.p + m.s, 16}), v = m.in("v", {2, 4, m.p + m.s, 16});
         Tensor i = sliceAxis(m.ramp({m.p + m.s, 1}, 0), 0, m.p, m.s);
         Tensor hidden = compare(m.ramp({1, m.p + m.s}, 1), i, Compare::gt);
         return fused::attention(m.q(), k, v, {.mask = logicalNot(hidden), .scale = 0.25});
       },
       "causal bottom_right"},
      masked("causal_columns_behind_rows_hidden", "causal top_left",
             [](S& m, const Tensor& x) {
               Tensor c = compare(m.ramp({m.s, m.s}, 1), m.ramp({m.s, m.s}, 0), Compare::gt);
               return select(c, -m.infinity(), x);
             }),
      masked("causal_not_of_lower_triangle", "causal top_left",
             [](S& m, const Tensor& x) {
               Tensor c = compare(m.ramp({m.s, m.s}, 1), m.ramp({m.s, m.s}, 0), Compare::le);
               return select(logicalNot(c), -m.infinity(), x);
             }),
      masked("causal_less_than_next", "causal top_left",
             [](S& m, const Tensor& x) {
               Tensor i = m.ramp({m.s}, 0);
               Tensor c = compare(reshape(i, {1, m.s}), reshape(i, {m.s, 1}) + 1.0, Compare::lt);
               return select(c, x, -m.infinity());
             }),
      masked("causal_difference_of_positions", "causal top_left",
             [](S& m, const Tensor& x) {
               Tensor d = m.ramp({1, m.s}, 1) - m.ramp({m.s, 1}, 0);
               return select(compare(d, m.number(0, DType::I64), Compare::gt), -m.infinity(), x);
             }),
      masked("causal_of_32_bit_positions", "causal top_left",
             [](S& m, const Tensor& x) {
               Tensor c = compare(m.ramp({m.s, 1}, 0, DType::I32), m.ramp({1, m.s}, 1, DType::I32),
                                  Compare::ge);
               return select(c, x, m.number(kLowest));
             }),
      masked("causal_of_float_positions", "causal top_left",
             [](S& m, const Tensor& x) {
               Tensor i = cast(m.ramp({m.s}, 0), DType::F32);
               return select(compare(reshape(i, {m.s, 1}), i, Compare::ge), x, -m.infinity());
             }),
      masked("causal_tril_equals_zero", "causal top_left",
             [](S& m, const Tensor& x) {
               return select(compare(tril(m, m.s), m.number(0), Compare::eq), -m.infinity(), x);
             }),
      masked("causal_tril_as_condition", "causal top_left",
             [](S& m, const Tensor& x) {
               return select(compare(tril(m, m.s), m.number(0), Compare::ne), x, -m.infinity());
             }),
      masked("causal_triu_as_condition", "causal top_left",
             [](S& m, const Tensor& x) {
               return select(cast(triu(m, m.s, m.number(1)), DType::Bool), -m.infinity(), x);
             }),
      masked("causal_triu_of_infinity_added", "causal top_left",
             [](S& m, const Tensor& x) { return x + triu(m, m.s, -m.infinity()); }),
      masked("causal_lowest_triu_added", "causal top_left",
             [](S& m, const Tensor& x) {
               return x + reshape(triu(m, m.s, m.number(kLowest)), {1, 1, m.s, m.s});
             }),
      masked("causal_one_minus_tril_times_lowest", "causal top_left",
             [](S& m, const Tensor& x) { return x + (1.0 - tril(m, m.s)) * kLowest; }),
      masked("causal_full_times_later", "causal top_left",
             [](S& m, const Tensor& x) {
               Tensor full = broadcast(m.number(kLowest), {m.s, m.s});
               Tensor later = compare(m.ramp({m.s}, 0), m.ramp({m.s, 1}, 0), Compare::gt);
               return x + full * cast(later, DType::F32);
             }),
      masked("causal_finite_fill", "masked_row uniform",
             [](S& m, const Tensor& x) {
               Tensor c = compare(m.ramp({m.s, 1}, 0), m.ramp({1, m.s}, 1), Compare::ge);
               return select(c, x, m.number(-1e9));
             }),
      masked(
          "causal_finite_fill_added", "mask",
          [](S& m, const Tensor& x) {
            Tensor later = compare(m.ramp({m.s, 1}, 0), m.ramp({1, m.s}, 1), Compare::lt);
            return x + cast(later, DType::F32) * -1e9;
          },
          "attention compare select"),
      masked("causal_weights_times_tril_minus_fill", "mask",
             [](S& m, const Tensor& x) {
               Tensor b = tril(m, m.s);
               return x * b - 1e10 * (1.0 - b);
             }),
      masked("causal_mask_under_the_scale", "causal top_left",
             [](S& m, const Tensor& x) {
               Tensor c = compare(m.ramp({m.s, 1}, 0), m.ramp({1, m.s}, 1), Compare::ge);
               return select(c, x, -m.infinity()) * 0.5;
             }),
      ofTable(
          "causal_table_cut", "causal top_left",
          [](S& m, const Tensor& x) {
            Tensor c = compare(m.ramp({1, 1, 32, 32}, 3), m.ramp({1, 1, 32, 32}, 2), Compare::le);
            return select(slice(c, {0, 0, 0, 0}, {1, 1, 6, 6}, {1, 1, 1, 1}), x, m.number(kLowest));
          }),
      ofTable("causal_tril_table_equals_zero", "causal top_left",
              [](S& m, const Tensor& x) {
                Tensor b = reshape(tril(m, 32), {1, 1, 32, 32});
                Tensor box = slice(b, {0, 0, 0, 0}, {1, 1, 6, 6}, {1, 1, 1, 1});
                return select(compare(box, m.number(0), Compare::eq), -m.infinity(), x);
              }),
      ofTable(
          "causal_table_cut_twice", "causal top_left",
          [](S& m, const Tensor& x) {
            Tensor c = compare(m.ramp({1, 1, 32, 32}, 3), m.ramp({1, 1, 32, 32}, 2), Compare::le);
            Tensor rows = slice(c, {0, 0, 0, 0}, {1, 1, 6, 32}, {1, 1, 1, 1});
            return select(slice(rows, {0, 0, 0, 0}, {1, 1, 6, 6}, {1, 1, 1, 1}), x, -m.infinity());
          }),
      // --- behind what was computed before
      behindPast("causal_offset_by_the_past", "causal bottom_right",
                 [](S& m, const Tensor& x) {
                   Tensor rows = sliceAxis(m.ramp({m.p + m.s, 1}, 0), 0, m.p, m.s);
                   Tensor c = compare(m.ramp({1, m.p + m.s}, 1), rows, Compare::le);
                   return select(c, x, -m.infinity());
                 }),
      behindPast("causal_rows_of_a_larger_triangle", "causal bottom_right",
                 [](S& m, const Tensor& x) {
                   Dim all = m.p + m.s;
                   Tensor c = compare(m.ramp({all, all}, 1), m.ramp({all, all}, 0), Compare::le);
                   return select(sliceAxis(c, 0, m.p, m.s), x, m.number(kLowest));
                 }),
      {"causal_positions_of_a_cache", "attention",
       [](S& m) {
         Tensor past = reshape(m.in("past", {2}, DType::I64), {2, 1, 1, 1});
         Tensor c =
             compare(m.ramp({1, 1, 1, m.t}, 3), m.ramp({1, 1, m.s, 1}, 2) + past, Compare::le);
         return matmul(softmaxOf(select(c, scoresOf(m.q(), m.k()) * 0.25, -m.infinity())), m.v());
       },
       "causal positions"},
      {"causal_positions_of_a_whole_attention", "attention",
       [](S& m) {
         Tensor past = reshape(m.in("past", {2}, DType::I64), {2, 1, 1, 1});
         Tensor c =
             compare(m.ramp({1, 1, 1, m.t}, 3), m.ramp({1, 1, m.s, 1}, 2) + past, Compare::le);
         return fused::attention(m.q(), m.k(), m.v(), {.mask = c, .scale = 0.25});
       },
       "causal positions"},
      // --- windows
      masked("window_of_two_comparisons", "window 3",
             [](S& m, const Tensor& x) {
               Tensor i = m.ramp({m.s, 1}, 0), j = m.ramp({1, m.s}, 1);
               Tensor c = logicalAnd(compare(j, i, Compare::le), compare(j, i - 3.0, Compare::gt));
               return select(c, x, -m.infinity());
             }),
      masked("window_of_hidden_parts", "window 3",
             [](S& m, const Tensor& x) {
               Tensor d = m.ramp({m.s, 1}, 0) - m.ramp({1, m.s}, 1);
               Tensor hidden = logicalOr(compare(d, m.number(0, DType::I64), Compare::lt),
                                         compare(d, m.number(3, DType::I64), Compare::ge));
               return select(hidden, m.number(kLowest), x);
             }),
      masked("window_of_two_masks", "window 3",
             [](S& m, const Tensor& x) {
               Tensor i = m.ramp({m.s, 1}, 0), j = m.ramp({1, m.s}, 1);
               Tensor causal = select(compare(j, i, Compare::le), x, -m.infinity());
               return select(compare(i - j, m.number(3, DType::I64), Compare::lt), causal,
                             -m.infinity());
             }),
      masked("window_of_two_added_masks", "window 3",
             [](S& m, const Tensor& x) {
               Tensor i = m.ramp({m.s, 1}, 0), j = m.ramp({1, m.s}, 1);
               Tensor zero = m.number(0), minus = -m.infinity();
               Tensor causal = select(compare(j, i, Compare::gt), minus, zero);
               return x + causal + select(compare(j, i - 3.0, Compare::le), minus, zero);
             }),
      behindPast("window_behind_the_past", "window 4",
                 [](S& m, const Tensor& x) {
                   Tensor i = sliceAxis(m.ramp({m.p + m.s, 1}, 0), 0, m.p, m.s);
                   Tensor j = m.ramp({1, m.p + m.s}, 1);
                   Tensor c = logicalAnd(compare(j, i, Compare::le),
                                         compare(j - i, m.number(-4, DType::I64), Compare::gt));
                   return select(c, x, -m.infinity());
                 }),
      // --- padding
      masked("padding_condition", "mask",
             [](S& m, const Tensor& x) {
               return select(m.in("keys", {2, 1, 1, m.s}, DType::Bool), x, -m.infinity());
             }),
      masked(
          "padding_hidden_keys", "mask",
          [](S& m, const Tensor& x) {
            Tensor hidden = m.in("keys", {2, m.s}, DType::Bool);
            return select(reshape(hidden, {2, 1, 1, m.s}), m.number(-1e9), x);
          },
          "attention logical_not"),
      masked(
          "padding_of_a_number_mask", "masked_row uniform",
          [](S& m, const Tensor& x) {
            Tensor keys = reshape(m.in("keys", {2, m.s}), {2, 1, 1, m.s});
            return select(compare(keys, m.number(0), Compare::eq), m.number(-1e9), x);
          },
          "attention compare"),
      masked(
          "padding_one_minus_mask_added", "mask",
          [](S& m, const Tensor& x) {
            Tensor keys = reshape(m.in("keys", {2, m.s}), {2, 1, 1, m.s});
            return x + (1.0 - keys) * -10000.0;
          },
          "attention mul sub"),
      masked("padding_one_minus_condition_times_lowest", "mask",
             [](S& m, const Tensor& x) {
               Tensor keys = cast(m.in("keys", {2, m.s}, DType::Bool), DType::F32);
               return x + (1.0 - reshape(keys, {2, 1, 1, m.s})) * kLowest;
             }),
      masked("padding_and_causal_joined", "causal top_left",
             [](S& m, const Tensor& x) {
               Tensor c = compare(m.ramp({m.s, 1}, 0), m.ramp({1, m.s}, 1), Compare::ge);
               Tensor keys = m.in("keys", {2, 1, 1, m.s}, DType::Bool);
               return select(logicalAnd(c, keys), x, m.number(kLowest));
             }),
      masked("padding_behind_causal", "causal top_left",
             [](S& m, const Tensor& x) {
               Tensor c = compare(m.ramp({m.s, 1}, 0), m.ramp({1, m.s}, 1), Compare::ge);
               Tensor keys = m.in("keys", {2, 1, 1, m.s}, DType::Bool);
               return select(keys, select(c, x, -m.infinity()), -m.infinity());
             }),
      masked("padding_added_behind_causal", "causal top_left",
             [](S& m, const Tensor& x) {
               Tensor c = compare(m.ramp({m.s, 1}, 0), m.ramp({1, m.s}, 1), Compare::ge);
               return select(c, x, -m.infinity()) + m.in("keys", {2, 1, 1, m.s});
             }),
      masked(
          "mask_of_documents", "mask",
          [](S& m, const Tensor& x) {
            Tensor ids = m.in("documents", {2, m.s}, DType::I64);
            Tensor same =
                compare(reshape(ids, {2, 1, m.s, 1}), reshape(ids, {2, 1, 1, m.s}), Compare::eq);
            return select(same, x, -m.infinity());
          },
          "attention compare"),
      masked(
          "mask_of_a_prefix", "mask",
          [](S& m, const Tensor& x) {
            Tensor j = m.ramp({1, m.s}, 1);
            Tensor c = logicalOr(compare(j, m.ramp({m.s, 1}, 0), Compare::le),
                                 compare(j, m.number(2, DType::I64), Compare::lt));
            return select(c, x, -m.infinity());
          },
          "attention compare compare logical_or"),
      masked("causal_under_a_softcap", "softcap 2.0",
             [](S& m, const Tensor& x) {
               Tensor c = compare(m.ramp({m.s, 1}, 0), m.ramp({1, m.s}, 1), Compare::ge);
               return select(c, tanh(x / 20.0) * 20.0, -m.infinity());
             }),
      {"causal_widened", "attention",
       [](S& m) {
         const DType h = DType::BF16;
         Tensor k = m.in("k", {2, 4, m.s, 16}, h), v = m.in("v", {2, 4, m.s, 16}, h);
         Tensor c = compare(m.ramp({m.s, 1}, 0), m.ramp({1, m.s}, 1), Compare::ge);
         Tensor x = select(c, scoresOf(m.q(h), k) * 0.25, m.number(-3.3895313892515355e38, h));
         return matmul(cast(softmaxOf(cast(x, DType::F32)), h), v);
       },
       "causal top_left"},
  };
}

}  // namespace lathe::conformance
