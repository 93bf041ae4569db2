// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/cases_build.h"

namespace lathe::conformance {
namespace {

Samples softmaxSamples(DType d) {
  Samples samples;
  for (MaskedRow row : valuesOf<MaskedRow>()) {
    auto over = [row](int64_t axis) {
      return one([=](Ts t) { return fused::softmax(t[0], axis, {.maskedRow = row}); });
    };
    const std::string name(nameOf(row));
    samples.push_back({name + "_last", {{d, matrix()}}, over(-1)});
    samples.push_back({name + "_first", {{d, {7, cols()}}}, over(0)});
    samples.push_back({name + "_middle", {{d, {3, 5, 7}}}, over(1)});
    samples.push_back({name + "_leading_one", {{d, {1, cols(), 3}}}, over(1)});
    samples.push_back({name + "_masked", {{d, {7, cols()}, Fill::MaskedRows}}, over(-1)});
    samples.push_back({name + "_huge", {{d, {4, 33}, Fill::Huge}}, over(-1), false, true});
    samples.push_back({name + "_special", {{d, {16, 5}, Fill::Special}}, over(-1), false, true});
  }
  const DType f = DType::F32;
  const Input scores{d, {2, 3, rows(), cols()}};
  auto with = [](fused::SoftmaxOptions options) {
    return one([=](Ts t) mutable {
      if (t.size() > 1) options.mask = t[1];
      return fused::softmax(t[0], -1, options);
    });
  };
  samples.push_back({"scaled", {scores}, with({.scale = 0.25})});
  samples.push_back({"capped", {scores}, with({.scale = 0.5, .softcap = 2})});
  samples.push_back({"added_mask", {scores, {f, {rows(), cols()}}}, with({.scale = 0.25})});
  for (MaskedRow row : valuesOf<MaskedRow>())
    samples.push_back({"boolean_mask_" + std::string(nameOf(row)),
                       {scores, {DType::Bool, {2, 1, rows(), cols()}, Fill::MaskedRows}},
                       with({.softcap = 4, .maskedRow = row})});
  return samples;
}

Samples rmsNormSamples(DType d) {
  Samples samples;
  for (GainRounding rounding : valuesOf<GainRounding>()) {
    Record norm = one([=](Ts t) { return fused::rmsNorm(t[0], t[1], kEpsilon, rounding); });
    const std::string name(nameOf(rounding));
    samples.push_back({name, {{d, matrix()}, {d, {cols()}}}, norm});
    samples.push_back({name + "_one_row", {{d, {1, 1, cols()}}, {d, {cols()}}}, norm});
    samples.push_back({name + "_rank4", {{d, {2, 3, 1, 33}}, {d, {33}}}, norm});
    samples.push_back(
        {name + "_weight", {{d, {rows(), 257}}, {d, {257}, Fill::Normal, 0, true}}, norm});
    samples.push_back(
        {name + "_special", {{d, {12, 5}, Fill::Special}, {d, {5}}}, norm, false, true});
  }
  Record bare = one([](Ts t) { return fused::rmsNorm(t[0], Tensor(), kEpsilon); });
  samples.push_back({"plain", {{d, {2, rows(), cols()}}}, bare});
  samples.push_back({"plain_special", {{d, {12, 5}, Fill::Special}}, bare, false, true});
  return samples;
}

Samples ropeSamples(DType d) {
  Samples samples;
  for (Pairing pairing : valuesOf<Pairing>()) {
    Record turn = one([=](Ts t) { return fused::rope(t[0], t[1], t[2], pairing); });
    const std::string name(nameOf(pairing));
    const DType f = DType::F32;
    auto sample = [&](const std::string& kind, Dims x, Dims table) {
      samples.push_back({name + kind, {{d, x}, {f, table}, {f, table}}, turn});
    };
    sample("_heads", {2, 3, rows(), 62}, {rows(), 31});
    sample("_batch", {2, 3, rows(), 2}, {2, 1, rows(), 1});
    sample("_vector", {34}, {17});
    sample("_partial", {2, 3, rows(), 62}, {rows(), 9});
    // Rows that one thread holds.
    sample("_4", {3, rows(), 4}, {rows(), 2});
    sample("_8", {3, rows(), 8}, {rows(), 4});
    sample("_2_of_8", {3, rows(), 8}, {rows(), 1});
  }
  return samples;
}

Samples gluSamples(DType d) {
  Samples samples;
  for (Activation activation : valuesOf<Activation>()) {
    Record gate = one([=](Ts t) { return fused::glu(t[0], t[1], activation); });
    const std::string name(nameOf(activation));
    samples.push_back({name, {{d, matrix()}, {d, matrix()}}, gate});
    samples.push_back({name + "_row", {{d, {2, rows(), cols()}}, {d, {cols()}}}, gate});
    samples.push_back({name + "_special",
                       {{d, {96}, Fill::Special}, {d, {96}, Fill::Integers}},
                       gate,
                       false,
                       true});
  }
  return samples;
}

Record attend(fused::AttentionOptions options) {
  return one([=](Ts t) mutable {
    options.mask = options.positions = {};
    for (size_t i = 3; i < t.size(); ++i)
      (options.causal == Causal::positions && i + 1 == t.size() ? options.positions
                                                                : options.mask) = t[i];
    return fused::attention(t[0], t[1], t[2], options);
  });
}

Samples attentionSamples(DType d) {
  const Input q{d, {2, 4, rows(), 16}}, k{d, {2, 2, cols(), 16}}, v{d, {2, 2, cols(), 24}};
  const double scale = 0.25;
  Samples samples{
      {"rank3",
       {{d, {3, rows(), 33}}, {d, {3, cols(), 33}}, {d, {3, cols(), 5}}},
       attend({.scale = 0.125})},
      {"added_mask_rank3",
       {{d, {3, rows(), 33}}, {d, {3, cols(), 33}}, {d, {3, cols(), 5}}, {d, {3, rows(), cols()}}},
       attend({.scale = 0.125})},
      {"rank3_mask_and_causal",
       {{d, {3, rows(), 8}},
        {d, {3, cols(), 8}},
        {d, {3, cols(), 8}},
        {DType::Bool, {3, 1, cols()}}},
       attend({.scale = scale, .causal = Causal::top_left})},
      {"added_mask_of_heads", {q, k, v, {d, {4, 1, cols()}}}, attend({.scale = scale})},
      {"grouped", {q, k, v}, attend({.scale = scale})},
      {"one_head", {q, {d, {2, 1, cols(), 16}}, {d, {2, 1, cols(), 16}}}, attend({.scale = scale})},
      {"square",
       {{d, {1, 2, cols(), 8}}, {d, {1, 2, cols(), 8}}, {d, {1, 2, cols(), 8}}},
       attend({.scale = scale, .causal = Causal::top_left})},
      {"top_left", {q, k, v}, attend({.scale = scale, .causal = Causal::top_left})},
      {"bottom_right",
       {q, {d, {2, 2, cols() + 3, 16}}, {d, {2, 2, cols() + 3, 16}}},
       attend({.scale = scale, .causal = Causal::bottom_right})},
      {"positions",
       {q, {d, {2, 2, 40, 16}}, {d, {2, 2, 40, 16}}, {DType::I64, {2}, Fill::Index, 37}},
       attend({.scale = scale, .causal = Causal::positions})},
      {"narrow_positions",
       {q, {d, {2, 2, 40, 16}}, {d, {2, 2, 40, 16}}, {DType::I32, {2}, Fill::Index, 37}},
       attend({.scale = scale, .causal = Causal::positions})},
      {"added_mask", {q, k, v, {d, {rows(), cols()}}}, attend({.scale = scale})},
      {"mask_and_causal",
       {q, k, v, {DType::Bool, {2, 1, 1, cols()}}},
       attend({.scale = scale, .causal = Causal::top_left})},
  };
  samples.push_back({"softcap", {q, k, v}, attend({.scale = scale, .softcap = 2})});
  samples.push_back(
      {"window",
       {q, k, v},
       attend({.scale = scale, .softcap = 8, .causal = Causal::top_left, .window = 2})});
  samples.push_back({"window_bottom_right",
                     {q, {d, {2, 2, cols() + 3, 16}}, {d, {2, 2, cols() + 3, 16}}},
                     attend({.scale = scale, .causal = Causal::bottom_right, .window = 3})});
  samples.push_back(
      {"window_positions",
       {q, {d, {2, 2, 40, 16}}, {d, {2, 2, 40, 16}}, {DType::I64, {2}, Fill::Index, 37}},
       attend({.scale = scale, .causal = Causal::positions, .window = 5})});
  for (MaskedRow row : valuesOf<MaskedRow>())
    samples.push_back({"masked_rows_" + std::string(nameOf(row)),
                       {q, k, v, {DType::Bool, {2, 1, rows(), cols()}, Fill::MaskedRows}},
                       attend({.scale = scale, .maskedRow = row})});
  return samples;
}

Samples pagedAttentionSamples(DType d) {
  // q, blocks of keys and of values, the table, positions and a mask.
  auto attend = [](fused::PagedAttentionOptions options) {
    return one([=](Ts t) mutable {
      if (t.size() > 5) options.mask = t[5];
      return fused::pagedAttention(t[0], t[1], t[2], t[3], t[4], options);
    });
  };
  auto at = [](Dims shape, int64_t limit, DType dtype = DType::I64) {
    return Input{dtype, std::move(shape), Fill::Index, limit};
  };
  const Input q{d, {2, 4, rows(), 16}}, k{d, {7, 2, 8, 16}}, v{d, {7, 2, 8, 24}};
  const Input table = at({2, 5}, 7), positions = at({2}, 40);
  Samples samples{
      {"grouped", {q, k, v, table, positions}, attend({.scale = 0.25})},
      {"one_head",
       {q, {d, {7, 1, 8, 16}}, {d, {7, 1, 8, 16}}, table, positions},
       attend({.scale = 0.25})},
      {"one_entry", {q, k, v, at({2, 1}, 7), at({2}, 8)}, attend({.scale = 0.25})},
      {"one_block",
       {q, {d, {1, 2, 8, 16}}, {d, {1, 2, 8, 16}}, at({2, 3}, 1), positions},
       attend({.scale = 0.25})},
      {"odd_blocks",
       {q, {d, {7, 4, 5, 16}}, {d, {7, 4, 5, 3}}, table, at({2}, 25)},
       attend({.scale = 0.25})},
      // Keys and values that a few queries read where they lie, in more than a tile.
      {"whole_words",
       {{d, {2, 4, rows(), 64}},
        {d, {9, 2, 32, 64}},
        {d, {9, 2, 32, 64}},
        at({2, 9}, 9),
        at({2}, 288)},
       attend({.scale = 0.125})},
      {"whole_tiles",
       {{d, {2, 4, rows(), 64}},
        {d, {4, 2, 128, 64}},
        {d, {4, 2, 128, 32}},
        at({2, 3}, 4),
        at({2}, 384)},
       attend({.scale = 0.125, .window = 150})},
      {"symbolic_entries", {q, k, v, at({2, cols()}, 7), positions}, attend({.scale = 0.25})},
      {"narrow_table",
       {q, k, v, at({2, 5}, 7, DType::I32), at({2}, 40, DType::I32)},
       attend({.scale = 0.25})},
      {"added_mask", {q, k, v, table, positions, {d, {4, 1, 40}}}, attend({.scale = 0.25})},
      {"softcap", {q, k, v, table, positions}, attend({.scale = 0.25, .softcap = 2})},
      {"window", {q, k, v, table, positions}, attend({.scale = 0.25, .softcap = 8, .window = 5})},
  };
  for (MaskedRow row : valuesOf<MaskedRow>())
    samples.push_back(
        {"masked_rows_" + std::string(nameOf(row)),
         {q, k, v, table, positions, {DType::Bool, {2, 1, rows(), 40}, Fill::MaskedRows}},
         attend({.scale = 0.25, .maskedRow = row})});
  return samples;
}

Samples linearSamples(DType d) {
  Samples samples;
  struct Size {
    int64_t k, n;
  };
  for (Size size : {Size{33, 31}, Size{1, 257}, Size{257, 1}, Size{64, 96}})
    for (bool outIn : {true, false})
      for (Fill fill : {Fill::Normal, Fill::Integers}) {
        const bool exact = fill == Fill::Integers;
        const Input x{d, {2, rows(), size.k}, fill}, b{d, {size.n}, fill, 0, true},
            r{d, {2, rows(), size.n}, fill};
        const Input w{d, outIn ? Dims{size.n, size.k} : Dims{size.k, size.n}, fill, 0, true};
        const std::string name = std::to_string(size.k) + "x" + std::to_string(size.n) +
                                 (outIn ? "_out_in" : "_in_out") + (exact ? "_exact" : "");
        auto layout = [outIn] { return outIn ? WeightLayout::out_in : WeightLayout::in_out; };
        samples.push_back(
            {name,
             {x, w},
             one([=](Ts t) { return fused::linear(t[0], t[1], {.layout = layout()}); }),
             exact});
        samples.push_back({name + "_bias_residual",
                           {x, w, b, r},
                           one([=](Ts t) {
                             return fused::linear(
                                 t[0], t[1], {.bias = t[2], .residual = t[3], .layout = layout()});
                           }),
                           exact});
      }
  for (Activation activation :
       {Activation::silu, Activation::gelu, Activation::gelu_tanh, Activation::relu}) {
    const Input x{d, {2, rows(), 33}}, w{d, {31, 33}, Fill::Normal, 0, true},
        b{d, {31}, Fill::Normal, 0, true}, r{d, {2, rows(), 31}};
    const std::string name(nameOf(activation));
    samples.push_back({name, {x, w}, one([=](Ts t) {
                         return fused::linear(t[0], t[1], {.activation = activation});
                       })});
    samples.push_back({name + "_bias_residual", {x, w, b, r}, one([=](Ts t) {
                         return fused::linear(
                             t[0], t[1],
                             {.bias = t[2], .residual = t[3], .activation = activation});
                       })});
  }
  samples.push_back({"vector", {{d, {33}}, {d, {31, 33}, Fill::Normal, 0, true}}, one([](Ts t) {
                       return fused::linear(t[0], t[1]);
                     })});
  samples.push_back({"computed_weight", {{d, {rows(), 33}}, {d, {31, 33}}}, one([](Ts t) {
                       return fused::linear(t[0], t[1]);
                     })});
  return samples;
}

Samples groupedLinearSamples(DType d) {
  Samples samples;
  auto at = [](Dims shape, int64_t groups, DType dtype = DType::I64) {
    return Input{dtype, std::move(shape), Fill::Index, groups};
  };
  auto add = [&](const std::string& name, const Input& x, Dims w, const Input& indices,
                 bool outIn = true, Fill fill = Fill::Normal, bool isWeight = true) {
    samples.push_back({name,
                       {x, {d, std::move(w), fill, 0, isWeight}, indices},
                       one([=](Ts t) {
                         return fused::groupedLinear(
                             t[0], t[1], t[2], outIn ? WeightLayout::out_in : WeightLayout::in_out);
                       }),
                       fill == Fill::Integers});
  };
  struct Size {
    int64_t k, n;
  };
  for (Size size : {Size{33, 31}, Size{1, 257}, Size{257, 1}, Size{64, 160}})
    for (bool outIn : {true, false})
      for (Fill fill : {Fill::Normal, Fill::Integers})
        add(std::to_string(size.k) + "x" + std::to_string(size.n) +
                (outIn ? "_out_in" : "_in_out") + (fill == Fill::Integers ? "_exact" : ""),
            {d, {2, rows(), size.k}, fill},
            outIn ? Dims{5, size.n, size.k} : Dims{5, size.k, size.n}, at({2, rows()}, 5), outIn,
            fill);
  // As in a mixture: every row meets several weights.
  add("shared_rows", {d, {2, rows(), 1, 33}}, {6, 70, 33}, at({2, rows(), 3}, 6));
  add("one_row", {d, {1, 40}}, {6, 33, 40}, at({1}, 6));
  add("vector", {d, {40}}, {3, 33, 40}, at({}, 3));
  add("i32", {d, {rows(), 40}}, {3, 33, 40}, at({rows()}, 3, DType::I32));
  add("one_weight", {d, {rows(), 40}}, {1, 96, 40}, at({rows()}, 1));
  add("all_to_the_first", {d, {3, rows(), 40}}, {4, 96, 40}, at({3, rows()}, 1));
  add("more_weights_than_rows", {d, {2, 40}}, {40, 33, 40}, at({2}, 40));
  add("computed_weight", {d, {rows(), 40}}, {3, 33, 40}, at({rows()}, 3), true, Fill::Normal,
      false);
  return samples;
}

Samples embeddingSamples(DType d) {
  Record look = one([](Ts t) { return fused::embedding(t[0], t[1]); });
  const Input ids{DType::I64, {2, rows()}, Fill::Index, 31};
  const Input weight{d, {31, 33}, Fill::Normal, 0, true};
  Samples samples{
      {"weight", {ids, weight}, look, true},
      {"argument", {ids, {d, {31, cols()}}}, look, true},
      {"i32", {{DType::I32, {cols()}, Fill::Index, 31}, {d, {31, 1}}}, look, true},
  };
  if (!isFloat(d)) return samples;
  auto with = [](double scale) {
    return one([=](Ts t) {
      return fused::embedding(t[0], t[1],
                              {.positions = t.size() > 2 ? t[2] : Tensor(), .scale = scale});
    });
  };
  samples.push_back({"scaled", {ids, weight}, with(8)});
  samples.push_back({"positions", {ids, weight, {d, {rows(), 33}}}, with(1)});
  samples.push_back({"scaled_positions", {ids, weight, {d, {2, rows(), 33}}}, with(8)});
  return samples;
}

}  // namespace

void addFused(Rows& table) {
  table.push_back({"lathe.softmax", true, floats(), softmaxSamples});
  table.push_back({"lathe.rms_norm", true, floats(), rmsNormSamples});
  table.push_back({"lathe.rope", true, floats(), ropeSamples});
  table.push_back({"lathe.glu", true, floats(), gluSamples});
  table.push_back({"lathe.attention", true, floats(), attentionSamples});
  table.push_back({"lathe.paged_attention", true, floats(), pagedAttentionSamples});
  table.push_back({"lathe.linear", true, floats(), linearSamples});
  table.push_back({"lathe.grouped_linear", true, floats(), groupedLinearSamples});
  table.push_back({"lathe.embedding", true, everything(), embeddingSamples});
}

}  // namespace lathe::conformance
