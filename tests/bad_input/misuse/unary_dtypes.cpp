// SPDX-License-Identifier: Apache-2.0
// Ops of one operand, and of two of one kind, given another dtype than theirs.
#include "tests/bad_input/misuse/misuse.h"

namespace lathe::misuse {

Table unaryDTypes() {
  return {
      {"exp_of_integers",
       [] {
         Model m;
         exp(m.ids);
       },
       kArgument,
       {"lathe.exp", "as operand "}},
      {"exp_of_bools",
       [] {
         Model m;
         exp(m.flags);
       },
       kArgument,
       {"lathe.exp", "as operand "}},
      {"sqrt_of_integers",
       [] {
         Model m;
         sqrt(m.ids);
       },
       kArgument,
       {"lathe.sqrt", "as operand "}},
      {"rsqrt_of_integers",
       [] {
         Model m;
         rsqrt(m.ids);
       },
       kArgument,
       {"lathe.rsqrt", "as operand "}},
      {"log_of_integers",
       [] {
         Model m;
         log(m.ids);
       },
       kArgument,
       {"lathe.log", "as operand "}},
      {"reciprocal_of_integers",
       [] {
         Model m;
         reciprocal(m.ids);
       },
       kArgument,
       {"lathe.reciprocal", "as operand "}},
      {"sin_of_integers",
       [] {
         Model m;
         sin(m.ids);
       },
       kArgument,
       {"lathe.sin", "as operand "}},
      {"cos_of_bools",
       [] {
         Model m;
         cos(m.flags);
       },
       kArgument,
       {"lathe.cos", "as operand "}},
      {"tanh_of_integers",
       [] {
         Model m;
         tanh(m.ids);
       },
       kArgument,
       {"lathe.tanh", "as operand "}},
      {"erf_of_integers",
       [] {
         Model m;
         erf(m.ids);
       },
       kArgument,
       {"lathe.erf", "as operand "}},
      {"sigmoid_of_integers",
       [] {
         Model m;
         sigmoid(m.ids);
       },
       kArgument,
       {"lathe.sigmoid", "as operand "}},
      {"floor_of_integers",
       [] {
         Model m;
         floor(m.ids);
       },
       kArgument,
       {"lathe.floor", "as operand "}},
      {"ceil_of_bools",
       [] {
         Model m;
         ceil(m.flags);
       },
       kArgument,
       {"lathe.ceil", "as operand "}},
      {"round_of_integers",
       [] {
         Model m;
         round(m.ids);
       },
       kArgument,
       {"lathe.round", "as operand "}},
      {"is_nan_of_integers",
       [] {
         Model m;
         isNan(m.ids);
       },
       kArgument,
       {"lathe.is_nan", "as operand "}},
      {"neg_of_bools",
       [] {
         Model m;
         neg(m.flags);
       },
       kArgument,
       {"lathe.neg", "as operand "}},
      {"abs_of_bools",
       [] {
         Model m;
         abs(m.flags);
       },
       kArgument,
       {"lathe.abs", "as operand "}},
      {"not_of_floats",
       [] {
         Model m;
         logicalNot(m.x);
       },
       kArgument,
       {"lathe.logical_not", "as operand "}},
      {"and_of_integers",
       [] {
         Model m;
         logicalAnd(m.ids, m.ids);
       },
       kArgument,
       {"lathe.logical_and", "as operand "}},
      {"or_of_floats",
       [] {
         Model m;
         logicalOr(m.x, m.x);
       },
       kArgument,
       {"lathe.logical_or", "as operand "}},
      {"bitwise_and_of_floats",
       [] {
         Model m;
         bitwiseAnd(m.x, m.x);
       },
       kArgument,
       {"lathe.bitwise_and", "as operand "}},
      {"bitwise_or_of_floats",
       [] {
         Model m;
         bitwiseOr(m.x, m.x);
       },
       kArgument,
       {"lathe.bitwise_or", "as operand "}},
      {"bitwise_xor_of_floats",
       [] {
         Model m;
         bitwiseXor(m.x, m.x);
       },
       kArgument,
       {"lathe.bitwise_xor", "as operand "}},
      {"shift_of_floats",
       [] {
         Model m;
         shiftLeft(m.x, m.x);
       },
       kArgument,
       {"lathe.shift_left", "as operand "}},
      {"shift_right_of_bools",
       [] {
         Model m;
         shiftRight(m.flags, m.flags);
       },
       kArgument,
       {"lathe.shift_right", "as operand "}},
  };
}

}  // namespace lathe::misuse
