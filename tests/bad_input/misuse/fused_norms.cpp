// SPDX-License-Identifier: Apache-2.0
// Softmax, norms and rotations recorded as fused ops.
#include <limits>

#include "tests/bad_input/misuse/misuse.h"

namespace lathe::misuse {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

}  // namespace

Table fusedNorms() {
  return {
      {"softmax_of_integers_fused",
       [] {
         Model m;
         fused::softmax(m.ids, -1);
       },
       kArgument,
       {"lathe.softmax", "as operand "}},
      {"softmax_of_a_missing_axis_fused",
       [] {
         Model m;
         fused::softmax(m.x, 2);
       },
       kArgument,
       {"lathe.softmax", "axis 2"}},
      {"softmax_of_an_unknown_row",
       [] {
         Model m;
         fused::softmax(m.x, -1, {.maskedRow = MaskedRow(3)});
       },
       kArgument,
       {"masked_row is one of nan, zero, uniform; got '3'"}},
      {"softmax_with_an_integer_mask",
       [] {
         Model m;
         fused::softmax(m.x, -1, {.mask = m.ids});
       },
       kArgument,
       {"lathe.softmax", "mask i64[batch, 4] is not a boolean or float that broadcasts to",
        "compare it with 0 for a mask of ones and zeros (mask != 0)"}},
      {"softmax_with_a_mask_of_another_shape",
       [] {
         Model m;
         fused::softmax(m.x, -1, {.mask = m.g.input("mask", DType::Bool, {m.batch, 5})});
       },
       kArgument,
       {"lathe.softmax"}},
      {"softmax_with_a_nan_scale",
       [] {
         Model m;
         fused::softmax(m.x, -1, {.scale = kNan});
       },
       kArgument,
       {"lathe.softmax", "scale"}},
      {"softmax_with_a_negative_softcap",
       [] {
         Model m;
         fused::softmax(m.x, -1, {.softcap = -1});
       },
       kArgument,
       {"lathe.softmax", "softcap"}},
      {"rms_norm_with_a_negative_epsilon",
       [] {
         Heads m;
         fused::rmsNorm(m.x, m.gain, -1);
       },
       kArgument,
       {"lathe.rms_norm", "[C2] epsilon"}},
      {"rms_norm_with_a_nan_epsilon",
       [] {
         Heads m;
         fused::rmsNorm(m.x, m.gain, kNan);
       },
       kArgument,
       {"lathe.rms_norm", "epsilon"}},
      {"rms_norm_with_an_infinite_epsilon",
       [] {
         Heads m;
         fused::rmsNorm(m.x, m.gain, std::numeric_limits<double>::infinity());
       },
       kArgument,
       {"lathe.rms_norm: expected a finite epsilon, got inf"}},
      {"rms_norm_with_an_unknown_rounding",
       [] {
         Heads m;
         fused::rmsNorm(m.x, m.gain, 1e-6, GainRounding(2));
       },
       kArgument,
       {"rounding is one of after_gain, before_gain; got '2'"}},
      {"rms_norm_with_a_gain_of_another_size",
       [] {
         Model m;
         fused::rmsNorm(m.x, m.g.weight("g", DType::F32, {5}), 1e-6);
       },
       kArgument,
       {"lathe.rms_norm", "f32[5]"}},
      {"rms_norm_of_integers",
       [] {
         Model m;
         fused::rmsNorm(m.ids, Tensor(), 1e-6);
       },
       kArgument,
       {"lathe.rms_norm", "as operand "}},
      {"rms_norm_of_a_scalar",
       [] {
         Model m;
         fused::rmsNorm(m.g.constant(1), Tensor(), 1e-6);
       },
       kArgument,
       {"lathe.rms_norm"}},
      {"layer_norm_with_a_negative_epsilon",
       [] {
         Heads m;
         fused::layerNorm(m.x, m.gain, Tensor(), -1e-9);
       },
       kArgument,
       {"lathe.layer_norm", "epsilon"}},
      {"layer_norm_with_a_bias_of_another_size",
       [] {
         Heads m;
         fused::layerNorm(m.x, m.gain, m.g.weight("b", DType::F32, {3}), 1e-6);
       },
       kArgument,
       {"lathe.layer_norm", "f32[3]"}},
      {"add_norm_of_two_shapes",
       [] {
         Model m;
         fused::addNorm(m.x, m.g.input("z", DType::F32, {m.batch, 5}), {});
       },
       kArgument,
       {"lathe.add_norm"}},
      {"add_norm_of_an_unknown_norm",
       [] {
         Model m;
         fused::addNorm(m.x, m.x, {.norm = Norm(2)});
       },
       kArgument,
       {"norm is one of", "got '2'"}},
      {"add_norm_with_a_nan_epsilon",
       [] {
         Model m;
         fused::addNorm(m.x, m.x, {.epsilon = kNan});
       },
       kArgument,
       {"lathe.add_norm", "epsilon"}},
      {"adaln_of_an_unknown_norm",
       [] {
         Model m;
         fused::adalnModulate(m.x, m.x, m.x, 1e-6, Norm(2));
       },
       kArgument,
       {"norm is one of", "got '2'"}},
      {"adaln_of_another_shape",
       [] {
         Model m;
         Tensor s = m.g.input("s", DType::F32, {m.batch, 5});
         fused::adalnModulate(m.x, s, s, 1e-6);
       },
       kArgument,
       {"lathe.adaln_modulate"}},
      {"gated_residual_of_two_shapes",
       [] {
         Model m;
         fused::gatedResidual(m.x, m.x, m.g.input("f", DType::F32, {m.batch, 5}));
       },
       kArgument,
       {"lathe.gated_residual"}},
      {"rope_of_an_unknown_pairing",
       [] {
         Heads m;
         fused::rope(m.q, m.x, m.x, Pairing(2));
       },
       kArgument,
       {"pairing is one of", "got '2'"}},
      {"rope_with_wide_tables",
       [] {
         Heads m;
         Tensor t = m.g.input("t", DType::F32, {3, 4});
         fused::rope(m.q, t, t, Pairing::half);
       },
       kArgument,
       {"lathe.rope"}},
      {"rope_with_two_tables",
       [] {
         Heads m;
         fused::rope(m.q, m.g.input("c", DType::F32, {3, 2}), m.g.input("s", DType::F32, {3, 1}),
                     Pairing::half);
       },
       kArgument,
       {"lathe.rope"}},
      {"norm_rope_of_an_unknown_rounding",
       [] {
         Heads m;
         Tensor t = m.g.input("t", DType::F32, {3, 2});
         fused::normRope(m.q, m.gain, t, t, {.rounding = GainRounding(2)});
       },
       kArgument,
       {"rounding is one of", "got '2'"}},
      {"rope_append_along_a_missing_axis",
       [] {
         Heads m;
         Tensor t = m.g.input("t", DType::F32, {3, 2});
         Tensor at = m.g.input("at", DType::I64, {m.batch});
         fused::ropeAppend(m.q, m.q, Tensor(), t, t, at, 9);
       },
       kArgument,
       {"lathe.rope_append"}},
  };
}

}  // namespace lathe::misuse
