// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/spellings/spellings.h"

namespace lathe::conformance {
namespace {

using S = Sheet;

Tensor low(const Tensor& x, LATHE_AT) {
  return sliceAxis(x, -1, 0, *x.dim(-1).asConstant() / 2, 1, at);
}
Tensor high(const Tensor& x, LATHE_AT) {
  const int64_t half = *x.dim(-1).asConstant() / 2;
  return sliceAxis(x, -1, half, half, 1, at);
}
Tensor rotateHalf(const Tensor& x) { return concat({-high(x), low(x)}, -1); }

// Heads [2, 4, s, 16] and tables [s, 8].
KnownSpelling rotation(
    const char* name, const char* holds,
    const std::function<Tensor(S&, const Tensor& x, const Tensor& cos, const Tensor& sin)>& spell,
    const char* ops = "rope") {
  return {name, ops,
          [=](S& m) {
            return spell(m, m.in("x", {2, 4, m.s, 16}), m.in("cos", {m.s, 8}),
                         m.in("sin", {m.s, 8}));
          },
          holds};
}

}  // namespace

KnownSpellings ropeSpellings() {
  return {
      // --- halves
      rotation("rope_rotate_half", "half",
               [](S&, const Tensor& x, const Tensor& c, const Tensor& s) {
                 return x * concat({c, c}, -1) + rotateHalf(x) * concat({s, s}, -1);
               }),
      rotation("rope_halves_joined", "half",
               [](S&, const Tensor& x, const Tensor& c, const Tensor& s) {
                 Tensor a = low(x), b = high(x);
                 return concat({a * c - b * s, b * c + a * s}, -1);
               }),
      rotation("rope_negated_half", "half",
               [](S&, const Tensor& x, const Tensor& c, const Tensor& s) {
                 Tensor a = low(x), b = high(x);
                 return concat({a * c + (-b) * s, a * s + b * c}, -1);
               }),
      rotation("rope_rolled_with_signs", "half",
               [](S&, const Tensor& x, const Tensor& c, const Tensor& s) {
                 Tensor rolled = concat({high(x), low(x)}, -1);
                 return x * concat({c, c}, -1) + rolled * concat({-s, s}, -1);
               }),
      rotation("rope_tables_of_the_batch", "half",
               [](S& m, const Tensor& x, const Tensor& c, const Tensor& s) {
                 auto table = [&](const Tensor& t) {
                   return reshape(concat({t, t}, -1), {1, 1, m.s, 16});
                 };
                 return x * table(c) + rotateHalf(x) * table(s);
               }),
      rotation("rope_halves_by_a_split_axis", "half",
               [](S& m, const Tensor& x, const Tensor& c, const Tensor& s) {
                 Tensor two = reshape(x, {2, 4, m.s, 2, 8});
                 auto half = [&](int64_t i) {
                   return reshape(sliceAxis(two, 3, i, 1), {2, 4, m.s, 8});
                 };
                 Tensor a = half(0), b = half(1);
                 return concat({a * c - b * s, b * c + a * s}, -1);
               }),
      {"rope_angles_computed", "cos mul rope sin",
       [](S& m) {
         Tensor x = m.in("x", {2, 4, m.s, 16});
         Tensor angles =
             reshape(cast(m.ramp({m.s}, 0), DType::F32), {m.s, 1}) * m.in("frequencies", {8});
         Tensor both = concat({angles, angles}, -1);
         return x * cos(both) + rotateHalf(x) * sin(both);
       },
       "half"},
      {"rope_angles_of_positions", "cos matmul rope sin",
       [](S& m) {
         Tensor x = m.in("x", {2, 4, m.s, 16});
         Tensor ids = cast(m.in("positions", {2, m.s}, DType::I64), DType::F32);
         Tensor inverse = broadcast(reshape(m.in("frequencies", {8}), {1, 8, 1}), {2, 8, 1});
         Tensor angles = transpose(matmul(inverse, reshape(ids, {2, 1, m.s})), {0, 2, 1});
         Tensor both = concat({angles, angles}, -1);
         auto table = [&](const Tensor& t) { return reshape(t, {2, 1, m.s, 16}); };
         return x * table(cos(both)) + rotateHalf(x) * table(sin(both));
       },
       "half"},
      {"rope_tables_gathered", "gather gather rope",
       [](S& m) {
         Tensor x = m.in("x", {2, 4, m.s, 16}), ids = m.in("ids", {2, m.s}, DType::I64);
         auto table = [&](const char* name) {
           Tensor t = m.in(name, {32, 8});
           return reshape(gather(concat({t, t}, -1), ids, 0), {2, 1, m.s, 16});
         };
         return x * table("cos") + rotateHalf(x) * table("sin");
       },
       "half"},
      {"rope_tables_scaled", "cos mul mul rope sin",
       [](S& m) {
         Tensor x = m.in("x", {2, 4, m.s, 16}), angles = m.in("angles", {m.s, 8});
         Tensor both = concat({angles, angles}, -1);
         return x * (cos(both) * 1.1) + rotateHalf(x) * (sin(both) * 1.1);
       },
       "half"},
      {"rope_tables_rounded", "rope",
       [](S& m) {
         const DType h = DType::BF16;
         Tensor x = m.in("x", {2, 4, m.s, 16}, h);
         auto table = [&](const char* name) {
           Tensor t = m.in(name, {m.s, 8});
           return cast(concat({t, t}, -1), h);
         };
         return x * table("cos") + rotateHalf(x) * table("sin");
       },
       "half"},
      {"rope_widened", "rope",
       [](S& m) {
         const DType h = DType::BF16;
         Tensor x = cast(m.in("x", {2, 4, m.s, 16}, h), DType::F32);
         Tensor c = m.in("cos", {m.s, 8}), s = m.in("sin", {m.s, 8}), a = low(x), b = high(x);
         return cast(concat({a * c - b * s, b * c + a * s}, -1), h);
       },
       "half"},
      {"rope_of_heads_behind_tokens", "rope",
       [](S& m) {
         Tensor x = m.in("x", {2, m.s, 4, 16}), a = low(x), b = high(x);
         auto table = [&](const char* name) {
           return reshape(m.in(name, {m.s, 8}), {1, m.s, 1, 8});
         };
         Tensor c = table("cos"), s = table("sin");
         return concat({a * c - b * s, b * c + a * s}, -1);
       },
       "half"},
      // --- a part
      {"rope_of_the_first_elements", "rope",
       [](S& m) {
         Tensor x = m.in("x", {2, 4, m.s, 16}), c = m.in("cos", {m.s, 4}),
                s = m.in("sin", {m.s, 4});
         Tensor turned = sliceAxis(x, 3, 0, 8), rest = sliceAxis(x, 3, 8, 8);
         Tensor y = turned * concat({c, c}, -1) + rotateHalf(turned) * concat({s, s}, -1);
         return concat({y, rest}, -1);
       },
       "half"},
      {"rope_halves_and_rest_joined", "rope",
       [](S& m) {
         Tensor x = m.in("x", {2, 4, m.s, 16}), c = m.in("cos", {m.s, 4}),
                s = m.in("sin", {m.s, 4});
         Tensor a = sliceAxis(x, 3, 0, 4), b = sliceAxis(x, 3, 4, 4), rest = sliceAxis(x, 3, 8, 8);
         return concat({a * c - b * s, b * c + a * s, rest}, -1);
       },
       "half"},
      {"rope_neighbours_of_the_first_elements", "rope",
       [](S& m) {
         Tensor x = m.in("x", {2, 4, m.s, 16}), c = m.in("cos", {m.s, 4}),
                s = m.in("sin", {m.s, 4});
         Tensor turned = reshape(sliceAxis(x, 3, 0, 8), {2, 4, m.s, 4, 2}),
                rest = sliceAxis(x, 3, 8, 8);
         auto part = [&](int64_t i) { return reshape(sliceAxis(turned, 4, i, 1), {2, 4, m.s, 4}); };
         auto column = [&](const Tensor& t) { return reshape(t, {2, 4, m.s, 4, 1}); };
         Tensor a = part(0), b = part(1);
         Tensor pairs = concat({column(a * c - b * s), column(b * c + a * s)}, -1);
         return concat({reshape(pairs, {2, 4, m.s, 8}), rest}, -1);
       },
       "interleaved"},
      // --- neighbours
      rotation("rope_strided_neighbours", "interleaved",
               [](S& m, const Tensor& x, const Tensor& c, const Tensor& s) {
                 Tensor a = sliceAxis(x, 3, 0, 8, 2), b = sliceAxis(x, 3, 1, 8, 2);
                 auto column = [&](const Tensor& t) { return reshape(t, {2, 4, m.s, 8, 1}); };
                 Tensor pairs = concat({column(a * c - b * s), column(a * s + b * c)}, -1);
                 return reshape(pairs, {2, 4, m.s, 16});
               }),
      rotation("rope_complex_pairs", "interleaved",
               [](S& m, const Tensor& x, const Tensor& c, const Tensor& s) {
                 Tensor z = reshape(x, {2, 4, m.s, 8, 2});
                 auto part = [&](int64_t i) {
                   return reshape(sliceAxis(z, 4, i, 1), {2, 4, m.s, 8});
                 };
                 auto column = [&](const Tensor& t) { return reshape(t, {2, 4, m.s, 8, 1}); };
                 Tensor re = part(0), im = part(1);
                 Tensor pairs = concat({column(re * c - im * s), column(re * s + im * c)}, -1);
                 return reshape(pairs, {2, 4, m.s, 16});
               }),
      {"rope_complex_pairs_in_place", "rope",
       [](S& m) {
         Tensor z = reshape(m.in("x", {2, m.s, 4, 16}), {2, m.s, 4, 8, 2});
         auto table = [&](const char* n) { return reshape(m.in(n, {m.s, 8}), {1, m.s, 1, 8, 1}); };
         Tensor c = table("cos"), s = table("sin");
         Tensor re = sliceAxis(z, 4, 0, 1), im = sliceAxis(z, 4, 1, 1);
         return reshape(concat({re * c - im * s, re * s + im * c}, -1), {2, m.s, 4, 16});
       },
       "rope half"},
      rotation("rope_rotate_every_two", "interleaved",
               [](S& m, const Tensor& x, const Tensor& c, const Tensor& s) {
                 auto column = [&](const Tensor& t, Dims d) { return reshape(t, d); };
                 const Dims split{2, 4, m.s, 8, 1}, table{m.s, 8, 1};
                 auto doubled = [&](const Tensor& t) {
                   return reshape(concat({column(t, table), column(t, table)}, -1), {m.s, 16});
                 };
                 Tensor a = sliceAxis(x, 3, 0, 8, 2), b = sliceAxis(x, 3, 1, 8, 2);
                 Tensor turned =
                     reshape(concat({column(-b, split), column(a, split)}, -1), {2, 4, m.s, 16});
                 return x * doubled(c) + turned * doubled(s);
               }),
      // --- behind a norm
      {"rope_behind_a_norm", "norm_rope",
       [](S& m) {
         Tensor x = m.in("x", {2, 4, m.s, 16});
         Tensor n = x * rsqrt(reduceMean(x * x, {-1}, true) + 1e-6) * m.w("gain", {16});
         Tensor c = m.in("cos", {m.s, 8}), s = m.in("sin", {m.s, 8});
         return n * concat({c, c}, -1) + rotateHalf(n) * concat({s, s}, -1);
       },
       "half"},
  };
}

}  // namespace lathe::conformance
