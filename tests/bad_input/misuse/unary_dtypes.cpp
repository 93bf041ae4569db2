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
       {"lathe.exp", "must be"}},
      {"exp_of_bools",
       [] {
         Model m;
         exp(m.flags);
       },
       kArgument,
       {"lathe.exp", "must be"}},
      {"sqrt_of_integers",
       [] {
         Model m;
         sqrt(m.ids);
       },
       kArgument,
       {"lathe.sqrt", "must be"}},
      {"rsqrt_of_integers",
       [] {
         Model m;
         rsqrt(m.ids);
       },
       kArgument,
       {"lathe.rsqrt", "must be"}},
      {"log_of_integers",
       [] {
         Model m;
         log(m.ids);
       },
       kArgument,
       {"lathe.log", "must be"}},
      {"reciprocal_of_integers",
       [] {
         Model m;
         reciprocal(m.ids);
       },
       kArgument,
       {"lathe.reciprocal", "must be"}},
      {"sin_of_integers",
       [] {
         Model m;
         sin(m.ids);
       },
       kArgument,
       {"lathe.sin", "must be"}},
      {"cos_of_bools",
       [] {
         Model m;
         cos(m.flags);
       },
       kArgument,
       {"lathe.cos", "must be"}},
      {"tanh_of_integers",
       [] {
         Model m;
         tanh(m.ids);
       },
       kArgument,
       {"lathe.tanh", "must be"}},
      {"erf_of_integers",
       [] {
         Model m;
         erf(m.ids);
       },
       kArgument,
       {"lathe.erf", "must be"}},
      {"sigmoid_of_integers",
       [] {
         Model m;
         sigmoid(m.ids);
       },
       kArgument,
       {"lathe.sigmoid", "must be"}},
      {"floor_of_integers",
       [] {
         Model m;
         floor(m.ids);
       },
       kArgument,
       {"lathe.floor", "must be"}},
      {"ceil_of_bools",
       [] {
         Model m;
         ceil(m.flags);
       },
       kArgument,
       {"lathe.ceil", "must be"}},
      {"round_of_integers",
       [] {
         Model m;
         round(m.ids);
       },
       kArgument,
       {"lathe.round", "must be"}},
      {"is_nan_of_integers",
       [] {
         Model m;
         isNan(m.ids);
       },
       kArgument,
       {"lathe.is_nan", "must be"}},
      {"neg_of_bools",
       [] {
         Model m;
         neg(m.flags);
       },
       kArgument,
       {"lathe.neg", "must be"}},
      {"abs_of_bools",
       [] {
         Model m;
         abs(m.flags);
       },
       kArgument,
       {"lathe.abs", "must be"}},
      {"not_of_floats",
       [] {
         Model m;
         logicalNot(m.x);
       },
       kArgument,
       {"lathe.logical_not", "must be"}},
      {"and_of_integers",
       [] {
         Model m;
         logicalAnd(m.ids, m.ids);
       },
       kArgument,
       {"lathe.logical_and", "must be"}},
      {"or_of_floats",
       [] {
         Model m;
         logicalOr(m.x, m.x);
       },
       kArgument,
       {"lathe.logical_or", "must be"}},
      {"bitwise_and_of_floats",
       [] {
         Model m;
         bitwiseAnd(m.x, m.x);
       },
       kArgument,
       {"lathe.bitwise_and", "must be"}},
      {"bitwise_or_of_floats",
       [] {
         Model m;
         bitwiseOr(m.x, m.x);
       },
       kArgument,
       {"lathe.bitwise_or", "must be"}},
      {"bitwise_xor_of_floats",
       [] {
         Model m;
         bitwiseXor(m.x, m.x);
       },
       kArgument,
       {"lathe.bitwise_xor", "must be"}},
      {"shift_of_floats",
       [] {
         Model m;
         shiftLeft(m.x, m.x);
       },
       kArgument,
       {"lathe.shift_left", "must be"}},
      {"shift_right_of_bools",
       [] {
         Model m;
         shiftRight(m.flags, m.flags);
       },
       kArgument,
       {"lathe.shift_right", "must be"}},
  };
}

}  // namespace lathe::misuse
