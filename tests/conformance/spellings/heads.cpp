// SPDX-License-Identifier: Apache-2.0
// Heads that share keys and values.
#include "tests/conformance/spellings/spellings.h"

namespace lathe::conformance {
namespace {

using S = Sheet;

// Six query heads over two key heads, which `repeat` makes six.
KnownSpelling grouped(const char* name, const std::function<Tensor(S&, const Tensor&)>& repeat) {
  return {name, "attention",
          [=](S& m) {
            Tensor q = m.in("q", {2, 6, m.s, 16});
            Tensor k = repeat(m, m.in("k", {2, 2, m.t, 16})),
                   v = repeat(m, m.in("v", {2, 2, m.t, 16}));
            return matmul(softmaxOf(scoresOf(q, k) * 0.25), v);
          },
          "tensor<2x2x?x16xf32"};
}

}  // namespace

KnownSpellings headSpellings() {
  return {
      grouped("groups_expanded",
              [](S& m, const Tensor& x) {
                Tensor five = reshape(x, {2, 2, 1, m.t, 16});
                return reshape(broadcast(five, {2, 2, 3, m.t, 16}), {2, 6, m.t, 16});
              }),
      grouped("groups_gathered",
              [](S& m, const Tensor& x) { return gather(x, m.list({0, 0, 0, 1, 1, 1}), 1); }),
      grouped("groups_of_divided_indices",
              [](S& m, const Tensor& x) { return gather(x, div(m.ramp({6}, 0), 3.0), 1); }),
      grouped("groups_joined_in_rank_5",
              [](S& m, const Tensor& x) {
                Tensor five = reshape(x, {2, 2, 1, m.t, 16});
                return reshape(concat({five, five, five}, 2), {2, 6, m.t, 16});
              }),
      grouped("groups_of_slices_joined",
              [](S&, const Tensor& x) {
                Tensor a = sliceAxis(x, 1, 0, 1), b = sliceAxis(x, 1, 1, 1);
                return concat({a, a, a, b, b, b}, 1);
              }),
      {"groups_of_heads_behind_tokens", "attention",
       [](S& m) {
         auto repeat = [&](const char* name) {
           Tensor x = reshape(m.in(name, {2, m.t, 2, 16}), {2, m.t, 2, 1, 16});
           x = reshape(broadcast(x, {2, m.t, 2, 3, 16}), {2, m.t, 6, 16});
           return transpose(x, {0, 2, 1, 3});
         };
         Tensor q = transpose(m.in("q", {2, m.s, 6, 16}), {0, 2, 1, 3});
         Tensor k = repeat("k"), v = repeat("v");
         return matmul(softmaxOf(scoresOf(q, k) * 0.25), v);
       }},
      {"groups_in_rank_5", "attention",
       [](S& m) {
         Tensor q = reshape(m.in("q", {2, 6, m.s, 16}), {2, 2, 3, m.s, 16});
         Tensor k = reshape(m.in("k", {2, 2, m.t, 16}), {2, 2, 1, m.t, 16});
         Tensor v = reshape(m.in("v", {2, 2, m.t, 16}), {2, 2, 1, m.t, 16});
         return reshape(matmul(softmaxOf(scoresOf(q, k) * 0.25), v), {2, 6, m.s, 16});
       }},
      {"groups_in_rank_5_behind_tokens", "attention",
       [](S& m) {
         Tensor q =
             transpose(reshape(m.in("q", {2, m.s, 6, 16}), {2, m.s, 2, 3, 16}), {0, 2, 3, 1, 4});
         Tensor k =
             reshape(transpose(m.in("k", {2, m.t, 2, 16}), {0, 2, 1, 3}), {2, 2, 1, m.t, 16});
         Tensor v =
             reshape(transpose(m.in("v", {2, m.t, 2, 16}), {0, 2, 1, 3}), {2, 2, 1, m.t, 16});
         Tensor y = matmul(softmaxOf(scoresOf(q, k) * 0.25), v);
         return reshape(transpose(y, {0, 3, 1, 2, 4}), {2, m.s, 96});
       }},
      {"groups_folded_into_the_queries", "attention",
       [](S& m) {
         Tensor q = reshape(m.in("q", {2, 6, m.s, 16}), {2, 2, m.s * 3, 16});
         Tensor k = m.in("k", {2, 2, m.t, 16}), v = m.in("v", {2, 2, m.t, 16});
         return reshape(matmul(softmaxOf(scoresOf(q, k) * 0.25), v), {2, 6, m.s, 16});
       }},
      {"one_head_for_all_by_the_product", "attention",
       [](S& m) {
         Tensor k = m.in("k", {2, 1, m.t, 16}), v = m.in("v", {2, 1, m.t, 16});
         return matmul(softmaxOf(scoresOf(m.q(), k) * 0.25), v);
       }},
      {"one_head_for_all_expanded", "attention",
       [](S& m) {
         auto all = [&](const char* name) {
           return broadcast(m.in(name, {2, 1, m.t, 16}), {2, 4, m.t, 16});
         };
         Tensor k = all("k"), v = all("v");
         return matmul(softmaxOf(scoresOf(m.q(), k) * 0.25), v);
       }},
      {"one_head_for_all_of_rank_3", "attention",
       [](S& m) {
         auto all = [&](const char* name) {
           return reshape(m.in(name, {2, m.t, 16}), {2, 1, m.t, 16});
         };
         Tensor k = all("k"), v = all("v");
         return matmul(softmaxOf(scoresOf(m.q(), k) * 0.25), v);
       }},
      {"merged_projection_in_chunks", "attention linear",
       [](S& m) {
         Tensor qkv = matmul(m.in("x", {2, m.s, 64}), m.w("w", {64, 192}));
         auto head = [&](int64_t i) {
           Tensor part = sliceAxis(qkv, 2, 64 * i, 64);
           return transpose(reshape(part, {2, m.s, 4, 16}), {0, 2, 1, 3});
         };
         return matmul(softmaxOf(scoresOf(head(0), head(1)) * 0.25), head(2));
       }},
      {"merged_projection_kinds_first", "attention linear",
       [](S& m) {
         Tensor qkv = matmul(m.in("x", {2, m.s, 64}), m.w("w", {64, 192}));
         qkv = transpose(reshape(qkv, {2, m.s, 3, 4, 16}), {2, 0, 3, 1, 4});
         auto head = [&](int64_t i) { return reshape(sliceAxis(qkv, 0, i, 1), {2, 4, m.s, 16}); };
         return matmul(softmaxOf(scoresOf(head(0), head(1)) * 0.25), head(2));
       }},
      {"merged_projection_heads_first", "attention linear",
       [](S& m) {
         Tensor qkv = matmul(m.in("x", {2, m.s, 64}), m.w("w", {64, 192}));
         qkv = transpose(reshape(qkv, {2, m.s, 4, 48}), {0, 2, 1, 3});
         auto head = [&](int64_t i) { return sliceAxis(qkv, 3, 16 * i, 16); };
         return matmul(softmaxOf(scoresOf(head(0), head(1)) * 0.25), head(2));
       }},
      {"merged_projection_of_groups", "attention linear",
       [](S& m) {
         Tensor qkv = matmul(m.in("x", {2, m.s, 64}), transpose(m.w("w", {128, 64}), {1, 0}));
         auto head = [&](int64_t from, int64_t heads) {
           Tensor part = reshape(sliceAxis(qkv, 2, from, 16 * heads), {2, m.s, heads, 16});
           return transpose(part, {0, 2, 1, 3});
         };
         auto repeat = [&](const Tensor& x) {
           Tensor five = broadcast(reshape(x, {2, 2, 1, m.s, 16}), {2, 2, 2, m.s, 16});
           return reshape(five, {2, 4, m.s, 16});
         };
         Tensor k = repeat(head(64, 2)), v = repeat(head(96, 2));
         return matmul(softmaxOf(scoresOf(head(0, 4), k) * 0.25), v);
       }},
  };
}

}  // namespace lathe::conformance
