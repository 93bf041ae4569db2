// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/square_samples.h"

#include <functional>

#include "tests/conformance/tolerance.h"

namespace lathe::conformance {

std::vector<std::pair<std::string, Sample>> squareSamples(DType f) {
  const Dims cube{4, 4, 4}, deep{4, 4, 4, 4}, square{4, 4};
  auto make = [](const std::string& name, std::vector<Input> inputs,
                 std::function<Tensor(const std::vector<Tensor>&)> r) {
    return Sample{name, std::move(inputs),
                  [r](Graph&, const std::vector<Tensor>& t) { return std::vector<Tensor>{r(t)}; }};
  };
  using Ts = const std::vector<Tensor>&;
  std::vector<std::pair<std::string, Sample>> all;
  for (MaskedRow row : valuesOf<MaskedRow>())
    all.push_back(
        {"lathe.softmax", make(std::string(nameOf(row)), {{f, cube, Fill::MaskedRows}},
                               [=](Ts t) { return fused::softmax(t[0], 2, {.maskedRow = row}); })});
  all.push_back({"lathe.rms_norm", make("plain", {{f, cube}, {f, {4}}},
                                        [](Ts t) { return fused::rmsNorm(t[0], t[1], 0x1p-17); })});
  all.push_back({"lathe.rms_norm", make("bare", {{f, cube}}, [](Ts t) {
                   return fused::rmsNorm(t[0], Tensor(), 0x1p-17);
                 })});
  const Input x{f, cube}, vector{f, {4}};
  for (bool gain : {true, false})
    all.push_back({"lathe.layer_norm", make(gain ? "gain" : "bare", {x, vector, vector}, [=](Ts t) {
                     return fused::layerNorm(t[0], gain ? t[1] : Tensor(), gain ? t[2] : Tensor(),
                                             0x1p-17);
                   })});
  for (Norm norm : valuesOf<Norm>()) {
    const bool layer = norm == Norm::layer;
    const std::string name(nameOf(norm));
    all.push_back(
        {"lathe.add_norm",
         {name, {x, x, vector, vector}, [=](Graph&, Ts t) {
            auto [sum, y] = fused::addNorm(
                t[0], t[1],
                {.gain = t[2], .bias = layer ? t[3] : Tensor(), .norm = norm, .epsilon = 0x1p-17});
            return std::vector<Tensor>{sum, y};
          }}});
    const Input row{f, {4, 1, 4}};
    all.push_back({"lathe.adaln_modulate", make(name, {x, row, row}, [=](Ts t) {
                     return fused::adalnModulate(t[0], t[1], t[2], 0x1p-17, norm);
                   })});
  }
  all.push_back({"lathe.gated_residual", make("plain", {x, {f, {4, 1, 4}}, x}, [](Ts t) {
                   return fused::gatedResidual(t[0], t[1], t[2]);
                 })});
  all.push_back(
      {"lathe.softmax", make("masked", {x, {DType::Bool, square, Fill::MaskedRows}}, [](Ts t) {
         return fused::softmax(
             t[0], 2, {.mask = t[1], .scale = 0.5, .softcap = 2, .maskedRow = MaskedRow::zero});
       })});
  for (Pairing pairing : valuesOf<Pairing>())
    all.push_back(
        {"lathe.norm_rope", make(std::string(nameOf(pairing)),
                                 {{f, deep}, vector, {f, {4, 2}}, {f, {4, 2}}}, [=](Ts t) {
                                   return fused::normRope(t[0], t[1], t[2], t[3],
                                                          {.pairing = pairing, .epsilon = 0x1p-17});
                                 })});
  for (bool normed : {true, false})
    all.push_back({"lathe.rope_append", make(normed ? "normed" : "plain",
                                             {{f, {4, 4, 8, 4}},
                                              {f, deep},
                                              vector,
                                              {f, {4, 2}},
                                              {f, {4, 2}},
                                              {DType::I64, {4}, Fill::Index, 5}},
                                             [=](Ts t) {
                                               return fused::ropeAppend(
                                                   t[0], t[1], normed ? t[2] : Tensor(), t[3], t[4],
                                                   t[5], 2, {.epsilon = normed ? 0x1p-17 : 0});
                                             })});
  all.push_back(
      {"lathe.rope", make("partial", {{f, {4, 4, 4, 8}}, {f, {4, 2}}, {f, {4, 2}}},
                          [](Ts t) { return fused::rope(t[0], t[1], t[2], Pairing::half); })});
  for (Pairing pairing : valuesOf<Pairing>())
    all.push_back(
        {"lathe.rope", make(std::string(nameOf(pairing)), {{f, deep}, {f, {4, 2}}, {f, {4, 2}}},
                            [=](Ts t) { return fused::rope(t[0], t[1], t[2], pairing); })});
  for (Activation activation :
       {Activation::silu, Activation::gelu, Activation::gelu_tanh, Activation::relu})
    all.push_back({"lathe.glu", make(std::string(nameOf(activation)), {{f, square}, {f, square}},
                                     [=](Ts t) { return fused::glu(t[0], t[1], activation); })});
  const Input q{f, deep};
  all.push_back({"lathe.attention", make("plain", {q, q, q}, [](Ts t) {
                   return fused::attention(t[0], t[1], t[2], {.scale = 0.5});
                 })});
  all.push_back({"lathe.attention", make("causal", {q, q, q}, [](Ts t) {
                   return fused::attention(t[0], t[1], t[2],
                                           {.scale = 0.5, .causal = Causal::top_left});
                 })});
  all.push_back({"lathe.attention", make("window", {q, q, q}, [](Ts t) {
                   return fused::attention(
                       t[0], t[1], t[2],
                       {.scale = 0.5, .softcap = 2, .causal = Causal::top_left, .window = 2});
                 })});
  const Input longer{f, {4, 4, 6, 4}};
  all.push_back({"lathe.attention", make("bottom_right", {q, longer, longer}, [](Ts t) {
                   return fused::attention(t[0], t[1], t[2],
                                           {.scale = 0.5, .causal = Causal::bottom_right});
                 })});
  all.push_back({"lathe.attention", make("added_mask", {q, q, q, {f, square}}, [](Ts t) {
                   return fused::attention(t[0], t[1], t[2], {.mask = t[3], .scale = 0.5});
                 })});
  all.push_back({"lathe.attention",
                 make("masked", {q, q, q, {DType::Bool, square, Fill::MaskedRows}}, [](Ts t) {
                   return fused::attention(
                       t[0], t[1], t[2],
                       {.mask = t[3], .scale = 0.5, .maskedRow = MaskedRow::zero});
                 })});
  all.push_back(
      {"lathe.attention", make("positions", {q, q, q, {DType::I64, {4}, Fill::Index, 3}}, [](Ts t) {
         return fused::attention(t[0], t[1], t[2],
                                 {.positions = t[3], .scale = 0.5, .causal = Causal::positions});
       })});
  all.push_back(
      {"lathe.paged_attention",
       make("paged",
            {q, q, q, {DType::I64, square, Fill::Index, 4}, {DType::I64, {4}, Fill::Index, 12}},
            [](Ts t) {
              return fused::pagedAttention(t[0], t[1], t[2], t[3], t[4], {.scale = 0.5});
            })});
  const Input w{f, square, Fill::Normal, 0, true};
  const Input choice{DType::I64, {4}, Fill::Index, 4};
  for (WeightLayout layout : {WeightLayout::out_in, WeightLayout::in_out})
    all.push_back({"lathe.grouped_linear",
                   make("grouped_" + std::string(nameOf(layout)),
                        {{f, square}, {f, cube, Fill::Normal, 0, true}, choice},
                        [=](Ts t) { return fused::groupedLinear(t[0], t[1], t[2], layout); })});
  // Samples with a second argument for each mask, bias and position: rules that compare two of them
  // meet one that is not the other.
  const Input at{DType::I64, {4}, Fill::Index, 3}, bias{f, square};
  all.push_back({"lathe.attention", make("position_window", {q, q, q, at, at}, [](Ts t) {
                   return fused::attention(
                       t[0], t[1], t[2],
                       {.positions = t[3], .scale = 0.5, .causal = Causal::positions, .window = 2});
                 })});
  all.push_back({"lathe.attention", make("softcap_mask", {q, q, q, bias, bias}, [](Ts t) {
                   return fused::attention(t[0], t[1], t[2],
                                           {.mask = t[3], .scale = 0.5, .softcap = 2});
                 })});
  all.push_back({"lathe.linear", make("residuals", {{f, cube}, w, {f, cube}, {f, cube}}, [](Ts t) {
                   return fused::linear(t[0], t[1], {.residual = t[2]});
                 })});
  all.push_back({"lathe.attention",
                 make("grouped", {q, {f, {4, 2, 4, 4}}, {f, {4, 2, 4, 4}}},
                      [](Ts t) { return fused::attention(t[0], t[1], t[2], {.scale = 0.5}); })});
  all.push_back({"lathe.linear",
                 make("plain", {{f, cube}, w}, [](Ts t) { return fused::linear(t[0], t[1]); })});
  all.push_back(
      {"lathe.linear",
       make("epilogue", {{f, cube}, w, {f, {4}, Fill::Normal, 0, true}, {f, cube}},
            [](Ts t) { return fused::linear(t[0], t[1], {.bias = t[2], .residual = t[3]}); })});
  for (Activation activation :
       {Activation::silu, Activation::gelu, Activation::gelu_tanh, Activation::relu})
    all.push_back({"lathe.linear", make(std::string(nameOf(activation)),
                                        {{f, cube}, w, {f, {4}, Fill::Normal, 0, true}}, [=](Ts t) {
                                          return fused::linear(
                                              t[0], t[1], {.bias = t[2], .activation = activation});
                                        })});
  all.push_back(
      {"lathe.embedding",
       make("positions", {{DType::I64, square, Fill::Index, 4}, w, {f, square}},
            [](Ts t) { return fused::embedding(t[0], t[1], {.positions = t[2], .scale = 8}); })});
  all.push_back(
      {"lathe.embedding", make("scaled", {{DType::I64, square, Fill::Index, 4}, w},
                               [](Ts t) { return fused::embedding(t[0], t[1], {.scale = 3}); })});
  all.push_back({"lathe.embedding", make("plain", {{DType::I64, {4}, Fill::Index, 4}, w},
                                         [](Ts t) { return fused::embedding(t[0], t[1]); })});
  return all;
}

Module elementaryForm(const Graph& graph) {
  Module module = moduleOf(graph);
  decompose(*module);
  canonicalize(*module);
  return module;
}

bool agree(const std::vector<Array>& a, const std::vector<Array>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (!firstDifference(a[i], b[i], {1e-12, 1e-12}).empty()) return false;
  return true;
}

}  // namespace lathe::conformance
