// SPDX-License-Identifier: Apache-2.0
// Gates, attention, linear and embedding recorded as fused ops.
#include <limits>

#include "tests/bad_input/misuse/misuse.h"

namespace lathe::misuse {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

}  // namespace

Table fusedProducts() {
  return {
      {"glu_of_two_shapes",
       [] {
         Model m;
         fused::glu(m.x, m.g.input("u", DType::F32, {m.batch, 5}));
       },
       kArgument,
       {"lathe.glu"}},
      {"glu_of_an_unknown_activation",
       [] {
         Model m;
         fused::glu(m.x, m.x, Activation(5));
       },
       kArgument,
       {"activation is one of", "got '5'"}},
      {"glu_of_integers",
       [] {
         Model m;
         fused::glu(m.ids, m.ids);
       },
       kArgument,
       {"lathe.glu", "as operand "}},
      {"attention_of_unequal_depths",
       [] {
         Heads m;
         fused::attention(m.q, m.g.input("z", DType::F32, {m.batch, 2, 5, 8}), m.v, {});
       },
       kArgument,
       {"lathe.attention"}},
      {"attention_with_an_integer_mask_fused",
       [] {
         Heads m;
         fused::attention(m.q, m.k, m.v, {.mask = m.g.input("mask", DType::I32, {3, 5})});
       },
       kArgument,
       {"lathe.attention", "mask i32[3, 5] is not a boolean or float that broadcasts to the scores",
        "compare it with 0 for a mask of ones and zeros (mask != 0)"}},
      {"attention_of_unequal_keys",
       [] {
         Heads m;
         fused::attention(m.q, m.k, m.g.input("z", DType::F32, {m.batch, 2, 6, 4}), {});
       },
       kArgument,
       {"lathe.attention"}},
      {"attention_of_heads_that_do_not_divide",
       [] {
         Heads m;
         Tensor k = m.g.input("z", DType::F32, {m.batch, 3, 5, 4});
         fused::attention(m.q, k, k, {});
       },
       kArgument,
       {"lathe.attention"}},
      {"attention_of_an_unknown_causality",
       [] {
         Heads m;
         fused::attention(m.q, m.k, m.v, {.causal = Causal(4)});
       },
       kArgument,
       {"causal is one of", "got '4'"}},
      {"attention_of_an_unknown_row",
       [] {
         Heads m;
         fused::attention(m.q, m.k, m.v, {.maskedRow = MaskedRow(3)});
       },
       kArgument,
       {"masked_row is one of", "got '3'"}},
      {"attention_with_a_negative_window",
       [] {
         Heads m;
         fused::attention(m.q, m.k, m.v, {.window = -1});
       },
       kArgument,
       {"lathe.attention", "window"}},
      {"attention_by_positions_without_them",
       [] {
         Heads m;
         fused::attention(m.q, m.k, m.v, {.causal = Causal::positions});
       },
       kArgument,
       {"lathe.attention", "positions"}},
      {"attention_with_an_integer_mask",
       [] {
         Heads m;
         fused::attention(m.q, m.k, m.v, {.mask = m.g.input("mask", DType::I64, {3, 5})});
       },
       kArgument,
       {"lathe.attention"}},
      {"attention_with_a_nan_scale",
       [] {
         Heads m;
         fused::attention(m.q, m.k, m.v, {.scale = kNan});
       },
       kArgument,
       {"lathe.attention", "scale"}},
      {"attention_of_integers",
       [] {
         Model m;
         Tensor i = m.g.input("i", DType::I64, {m.batch, 2, 3, 4});
         fused::attention(i, i, i, {});
       },
       kArgument,
       {"lathe.attention", "as operand "}},
      {"linear_of_an_unknown_layout",
       [] {
         Heads m;
         fused::linear(m.x, m.g.weight("w", DType::F32, {3, 4}), {.layout = WeightLayout(5)});
       },
       kArgument,
       {"is one of out_in, in_out", "got '5'"}},
      {"linear_of_an_unknown_activation",
       [] {
         Heads m;
         fused::linear(m.x, m.g.weight("w", DType::F32, {3, 4}), {.activation = Activation(5)});
       },
       kArgument,
       {"activation is one of", "got '5'"}},
      {"linear_of_unequal_depths",
       [] {
         Heads m;
         fused::linear(m.x, m.g.weight("w", DType::F32, {3, 5}));
       },
       kArgument,
       {"lathe.linear", "f32[3, 5]"}},
      {"linear_with_a_bias_of_another_size",
       [] {
         Heads m;
         fused::linear(m.x, m.g.weight("w", DType::F32, {3, 4}),
                       {.bias = m.g.weight("b", DType::F32, {4})});
       },
       kArgument,
       {"lathe.linear", "f32[4]"}},
      {"linear_with_a_residual_of_another_shape",
       [] {
         Heads m;
         fused::linear(m.x, m.g.weight("w", DType::F32, {3, 4}), {.residual = m.x});
       },
       kArgument,
       {"lathe.linear"}},
      {"linear_of_another_graph",
       [] {
         Model m, other;
         fused::linear(m.x, m.g.weight("w", DType::F32, {4, 4}), {.residual = other.x});
       },
       kArgument,
       {"belongs to another graph"}},
      {"embedding_by_floats",
       [] {
         Model m;
         fused::embedding(m.x, m.g.weight("t", DType::F32, {9, 4}));
       },
       kArgument,
       {"lathe.embedding", "as operand "}},
      {"embedding_of_a_vector",
       [] {
         Model m;
         fused::embedding(m.ids, m.g.weight("t", DType::F32, {9}));
       },
       kArgument,
       {"lathe.embedding"}},
      {"embedding_with_a_nan_scale",
       [] {
         Model m;
         fused::embedding(m.ids, m.g.weight("t", DType::F32, {9, 4}), {.scale = kNan});
       },
       kArgument,
       {"lathe.embedding", "scale"}},
  };
}

}  // namespace lathe::misuse
