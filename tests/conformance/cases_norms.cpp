// SPDX-License-Identifier: Apache-2.0
// Samples of the fused ops that hold a norm or stand beside one in a block.
#include "tests/conformance/cases_build.h"

namespace lathe::conformance {
namespace {

Samples layerNormSamples(DType d) {
  const Input vector{d, {cols()}};
  auto norm = [](bool gain, bool bias) {
    return one([=](Ts t) {
      return fused::layerNorm(t[0], gain ? t[1] : Tensor(), bias ? t.back() : Tensor(), kEpsilon);
    });
  };
  return {
      {"gain_bias", {{d, matrix()}, vector, vector}, norm(true, true)},
      {"gain", {{d, matrix()}, vector}, norm(true, false)},
      {"bias", {{d, {2, rows(), cols()}}, vector}, norm(false, true)},
      {"plain", {{d, {1, 1, cols()}}}, norm(false, false)},
      {"weights",
       {{d, {2, 3, rows(), 257}},
        {d, {257}, Fill::Normal, 0, true},
        {d, {257}, Fill::Normal, 0, true}},
       norm(true, true)},
      // Without the largest numbers: the reference sums in double, where two of them do not
      // overflow.
      {"special",
       {{d, {12, 5}, Fill::NonFinite}, {d, {5}}, {d, {5}}},
       norm(true, true),
       false,
       true},
  };
}

Samples addNormSamples(DType d) {
  struct Kind {
    const char* name;
    Norm norm;
    GainRounding rounding;
    bool gain, bias;
  };
  Samples samples;
  for (const Kind& k : {Kind{"rms", Norm::rms, GainRounding::after_gain, true, false},
                        Kind{"rms_before_gain", Norm::rms, GainRounding::before_gain, true, false},
                        Kind{"rms_plain", Norm::rms, GainRounding::after_gain, false, false},
                        Kind{"layer", Norm::layer, GainRounding::after_gain, true, true},
                        Kind{"layer_gain", Norm::layer, GainRounding::after_gain, true, false},
                        Kind{"layer_bias", Norm::layer, GainRounding::after_gain, false, true},
                        Kind{"layer_plain", Norm::layer, GainRounding::after_gain, false, false}}) {
    std::vector<Input> inputs{{d, {2, rows(), cols()}}, {d, {2, rows(), cols()}}};
    for (bool given : {k.gain, k.bias})
      if (given) inputs.push_back({d, {cols()}});
    samples.push_back({k.name, inputs, [k](Graph&, Ts t) {
                         auto [sum, y] = fused::addNorm(t[0], t[1],
                                                        {.gain = k.gain ? t[2] : Tensor(),
                                                         .bias = k.bias ? t.back() : Tensor(),
                                                         .norm = k.norm,
                                                         .epsilon = kEpsilon,
                                                         .rounding = k.rounding});
                         return std::vector<Tensor>{sum, y};
                       }});
  }
  return samples;
}

Samples adalnSamples(DType d) {
  Samples samples;
  for (Norm norm : valuesOf<Norm>()) {
    Record modulate =
        one([=](Ts t) { return fused::adalnModulate(t[0], t[1], t[2], kEpsilon, norm); });
    const std::string name(nameOf(norm));
    const Input perBatch{d, {2, 1, cols()}}, perHead{d, {2, 3, 1, 33}};
    samples.push_back({name, {{d, {2, rows(), cols()}}, perBatch, perBatch}, modulate});
    samples.push_back({name + "_rank4", {{d, {2, 3, rows(), 33}}, perHead, perHead}, modulate});
  }
  return samples;
}

Samples gatedResidualSamples(DType d) {
  Record gated = one([](Ts t) { return fused::gatedResidual(t[0], t[1], t[2]); });
  const Input x{d, {2, rows(), cols()}};
  return {
      {"per_batch", {x, {d, {2, 1, cols()}}, x}, gated},
      {"per_feature", {x, {d, {cols()}}, x}, gated},
      {"one_batch", {{d, {1, 7, 257}}, {d, {1, 1, 257}}, {d, {1, 7, 257}}}, gated},
  };
}

Samples normRopeSamples(DType d) {
  Samples samples;
  for (Pairing pairing : valuesOf<Pairing>())
    for (GainRounding rounding : valuesOf<GainRounding>()) {
      Record turn = one([=](Ts t) {
        return fused::normRope(t[0], t[1], t[2], t[3],
                               {.pairing = pairing, .epsilon = kEpsilon, .rounding = rounding});
      });
      const std::string name = std::string(nameOf(rounding)) + "_" + std::string(nameOf(pairing));
      const DType f = DType::F32;
      auto sample = [&](const std::string& kind, Dims x, Dims table) {
        const Dim depth = x.back();
        samples.push_back({name + kind, {{d, x}, {d, {depth}}, {f, table}, {f, table}}, turn});
      };
      sample("_heads", {2, 3, rows(), 62}, {rows(), 31});
      sample("_partial", {2, 3, rows(), 34}, {rows(), 5});
      sample("_batch", {2, 3, rows(), 2}, {2, 1, rows(), 1});
    }
  return samples;
}

Samples ropeAppendSamples(DType d) {
  Samples samples;
  for (Pairing pairing : valuesOf<Pairing>())
    for (bool normed : {false, true}) {
      Record append = one([=](Ts t) {
        return fused::ropeAppend(t[0], t[1], normed ? t[5] : Tensor(), t[2], t[3], t[4], 2,
                                 {.pairing = pairing, .epsilon = normed ? kEpsilon : 0});
      });
      const DType f = DType::F32;
      std::vector<Input> inputs{{d, {2, 3, 40, 34}},
                                {d, {2, 3, rows(), 34}},
                                {f, {rows(), 17}},
                                {f, {rows(), 17}},
                                {DType::I64, {2}, Fill::Index, 32}};
      if (normed) inputs.push_back({d, {34}});
      samples.push_back({(normed ? "normed_" : "") + std::string(nameOf(pairing)), inputs, append});
      for (Input& table : {std::ref(inputs[2]), std::ref(inputs[3])}) table.shape.back() = 4;
      samples.push_back(
          {(normed ? "normed_" : "") + std::string(nameOf(pairing)) + "_partial", inputs, append});
    }
  return samples;
}

}  // namespace

void addNorms(Rows& table) {
  table.push_back({"lathe.layer_norm", true, floats(), layerNormSamples});
  table.push_back({"lathe.add_norm", true, floats(), addNormSamples});
  table.push_back({"lathe.adaln_modulate", true, floats(), adalnSamples});
  table.push_back({"lathe.gated_residual", true, floats(), gatedResidualSamples});
  table.push_back({"lathe.norm_rope", true, floats(), normRopeSamples});
  table.push_back({"lathe.rope_append", true, floats(), ropeAppendSamples});
}

}  // namespace lathe::conformance
