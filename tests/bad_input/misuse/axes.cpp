// SPDX-License-Identifier: Apache-2.0
// Shapes, axes and keywords of elementwise ops and reductions.
#include "tests/bad_input/misuse/misuse.h"

namespace lathe::misuse {

Table axes() {
  return {
      {"sum_of_two_shapes",
       [] {
         Model m;
         m.x + m.g.input("z", DType::F32, {m.batch, 5});
       },
       kArgument,
       {"[C2]", "operand 0: f32[batch, 4]", "operand 1: f32[batch, 5]"}},
      {"sum_over_two_symbols",
       [] {
         Model m;
         m.x + m.g.input("z", DType::F32, {m.g.dim("n", 1, 8), 4});
       },
       kArgument,
       {"[C2]", "batch", "n"}},
      {"select_of_two_shapes",
       [] {
         Model m;
         select(m.flags, m.x, m.g.input("z", DType::F32, {m.batch, 3}));
       },
       kArgument,
       {"lathe.select", "[C2]"}},
      {"unknown_predicate",
       [] {
         Model m;
         compare(m.x, m.x, Compare(6));
       },
       kArgument,
       {"predicate is one of eq, ne, lt, le, gt, ge; got '6'"}},
      {"sum_over_a_missing_axis",
       [] {
         Model m;
         reduceSum(m.x, {2});
       },
       kArgument,
       {"lathe.reduce_sum", "axis 2"}},
      {"sum_over_a_negative_axis",
       [] {
         Model m;
         reduceSum(m.x, {-3});
       },
       kArgument,
       {"lathe.reduce_sum", "axis -"}},
      {"max_over_one_axis_twice",
       [] {
         Model m;
         reduceMax(m.x, {1, -1});
       },
       kArgument,
       {"lathe.reduce_max: axis 1 is named twice", "name each axis once"}},
      {"mean_over_a_huge_axis",
       [] {
         Model m;
         reduceMean(m.x, {int64_t(1) << 62});
       },
       kArgument,
       {"lathe.reduce_mean", "axis"}},
      {"min_over_the_smallest_axis",
       [] {
         Model m;
         reduceMin(m.x, {INT64_MIN});
       },
       kArgument,
       {"lathe.reduce_min", "axis"}},
      {"sum_over_no_axis",
       [] {
         Model m;
         reduceSum(m.x, {});
       },
       kArgument,
       {"lathe.reduce_sum", "no axes", "all axes"}},
      {"all_over_no_axis",
       [] {
         Model m;
         reduceAll(m.flags, {});
       },
       kArgument,
       {"lathe.reduce_all", "no axes"}},
      {"argmax_of_a_missing_axis",
       [] {
         Model m;
         argmax(m.x, 2);
       },
       kArgument,
       {"lathe.argmax: axis 2 is outside rank 2 of f32[batch, 4]"}},
      {"argmin_of_a_negative_axis",
       [] {
         Model m;
         argmin(m.x, -5);
       },
       kArgument,
       {"lathe.argmin: axis -5 is outside rank 2 of f32[batch, 4]"}},
      {"cumsum_of_a_missing_axis",
       [] {
         Model m;
         cumsum(m.x, 7);
       },
       kArgument,
       {"lathe.cumsum: axis 7 is outside rank 2 of f32[batch, 4]"}},
      {"top_k_of_none",
       [] {
         Model m;
         topK(m.x, 0);
       },
       kArgument,
       {"lathe.top_k", "[C2] k = 0"}},
      {"top_k_below_zero",
       [] {
         Model m;
         topK(m.x, -1);
       },
       kArgument,
       {"lathe.top_k", "[C2] k = -1"}},
      {"top_k_of_more_than_there_are",
       [] {
         Model m;
         topK(m.x, 5);
       },
       kArgument,
       {"lathe.top_k", "[C2] k = 5"}},
      {"softmax_of_a_missing_axis",
       [] {
         Model m;
         nn::softmax(m.x, 2);
       },
       kArgument,
       {"softmax: lathe.reduce_max: axis 2 is outside rank 2 of f32[batch, 4]"}},
      {"axis_of_a_shape",
       [] {
         Model m;
         m.x.dim(2);
       },
       kArgument,
       {"axis 2 is outside rank 2"}},
      {"negative_axis_of_a_shape",
       [] {
         Model m;
         m.x.dim(-3);
       },
       kArgument,
       {"axis -3 is outside rank 2"}},
      {"axis_of_a_scalar",
       [] { Graph().input("s", DType::F32, {}).dim(0); },
       kArgument,
       {"axis 0 is outside rank 0"}},
  };
}

}  // namespace lathe::misuse
