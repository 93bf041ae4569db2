// SPDX-License-Identifier: Apache-2.0
// Dtypes that differ, and those of reductions and activations.
#include "tests/bad_input/misuse/misuse.h"

namespace lathe::misuse {
namespace {

// Another input like x.
Tensor other(Model& m, DType dtype) { return m.g.input("other", dtype, {m.batch, 4}); }

}  // namespace

Table mixedDTypes() {
  return {
      {"sum_of_two_dtypes",
       [] {
         Model m;
         m.x + other(m, DType::BF16);
       },
       kArgument,
       {"[C1] element types differ", "insert a cast"}},
      {"product_of_float_and_integer",
       [] {
         Model m;
         m.x* m.ids;
       },
       kArgument,
       {"[C1] element types differ"}},
      {"sum_of_bools",
       [] {
         Model m;
         m.flags + m.flags;
       },
       kArgument,
       {"lathe.add", "as operand "}},
      {"pow_of_two_dtypes",
       [] {
         Model m;
         pow(m.x, m.ids);
       },
       kArgument,
       {"[C1] element types differ"}},
      {"max_of_two_dtypes",
       [] {
         Model m;
         max(m.x, other(m, DType::F16));
       },
       kArgument,
       {"[C1] element types differ"}},
      {"compare_of_two_dtypes",
       [] {
         Model m;
         compare(m.x, m.ids, Compare::lt);
       },
       kArgument,
       {"[C1] element types differ"}},
      {"select_by_floats",
       [] {
         Model m;
         select(m.x, m.x, m.x);
       },
       kArgument,
       {"lathe.select: expected bool as operand 0, got f32[batch, 4]", "`x != 0` makes bools"}},
      {"select_by_integers",
       [] {
         Model m;
         select(m.ids, m.x, m.x);
       },
       kArgument,
       {"lathe.select: expected bool as operand 0, got i64[batch, 4]", "`x != 0` makes bools"}},
      {"not_of_integers",
       [] {
         Model m;
         (void)!m.ids;
       },
       kArgument,
       {"lathe.logical_not: expected bool as operand 0, got i64[batch, 4]", "`x != 0`"}},
      {"flags_and_integers",
       [] {
         Model m;
         m.flags & m.ids;
       },
       kArgument,
       {"lathe.logical_and: [C1] element types differ: bool[batch, 4] and i64[batch, 4]",
        "insert a cast"}},
      {"integers_or_flags",
       [] {
         Model m;
         m.ids | m.flags;
       },
       kArgument,
       {"lathe.bitwise_or: [C1] element types differ: i64[batch, 4] and bool[batch, 4]",
        "insert a cast"}},
      {"select_of_two_dtypes",
       [] {
         Model m;
         select(m.flags, m.x, m.ids);
       },
       kArgument,
       {"[C1] element types differ"}},
      {"bitcast_to_another_width",
       [] {
         Model m;
         bitcast(m.x, DType::I16);
       },
       kArgument,
       {"lathe.bitcast", "[C1]"}},
      {"sum_reduced_of_bools",
       [] {
         Model m;
         reduceSum(m.flags, {0});
       },
       kArgument,
       {"lathe.reduce_sum", "as operand "}},
      {"mean_of_integers",
       [] {
         Model m;
         reduceMean(m.ids, {0});
       },
       kArgument,
       {"lathe.reduce_mean", "as operand "}},
      {"any_of_floats",
       [] {
         Model m;
         reduceAny(m.x, {0});
       },
       kArgument,
       {"lathe.reduce_any", "as operand "}},
      {"all_of_integers",
       [] {
         Model m;
         reduceAll(m.ids, {0});
       },
       kArgument,
       {"lathe.reduce_all", "as operand "}},
      {"argmax_of_bools",
       [] {
         Model m;
         argmax(m.flags, 0);
       },
       kArgument,
       {"lathe.argmax", "as operand "}},
      {"cumsum_of_bools",
       [] {
         Model m;
         cumsum(m.flags, 0);
       },
       kArgument,
       {"lathe.cumsum", "as operand "}},
      {"top_k_of_bools",
       [] {
         Model m;
         topK(m.flags, 1);
       },
       kArgument,
       {"lathe.top_k", "as operand "}},
      {"silu_of_integers",
       [] {
         Model m;
         nn::silu(m.ids);
       },
       kArgument,
       {"as operand "}},
      {"gelu_of_integers",
       [] {
         Model m;
         nn::gelu(m.ids);
       },
       kArgument,
       {"float"}},
      {"gelu_tanh_of_bools",
       [] {
         Model m;
         nn::geluTanh(m.flags);
       },
       kArgument,
       {"float"}},
      {"relu_of_bools",
       [] {
         Model m;
         nn::relu(m.flags);
       },
       kArgument,
       {"as operand "}},
      {"softmax_of_integers",
       [] {
         Model m;
         nn::softmax(m.ids);
       },
       kArgument,
       {"float"}},
      {"unknown_activation_kind",
       [] {
         Model m;
         nn::activate(m.x, Activation(9));
       },
       kArgument,
       {"9 is no activation"}},
  };
}

}  // namespace lathe::misuse
