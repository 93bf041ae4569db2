// SPDX-License-Identifier: Apache-2.0
// Views: transposed, reshaped, broadcast, sliced.
#include "tests/bad_input/misuse/misuse.h"

namespace lathe::misuse {

Table views() {
  return {
      {"transpose_of_too_many_axes",
       [] {
         Model m;
         transpose(m.x, {0, 1, 2});
       },
       kArgument,
       {"lathe.transpose", "axis 2 is outside rank 2 of f32[batch, 4]"}},
      {"transpose_that_is_meant_to_swap",
       [] {
         Model m;
         transpose(m.x, {0, 1});
       },
       kArgument,
       {"lathe.transpose", "{0, 1} is the permutation that changes nothing", "swapAxes(x, 0, 1)"}},
      {"transpose_of_two_of_four_axes",
       [] {
         Heads m;
         transpose(m.q, {1, 2});
       },
       kArgument,
       {"lathe.transpose", "{1, 2} names two of 4 axes", "swapAxes(x, 1, 2)"}},
      {"reshape_with_two_left_open",
       [] {
         Model m;
         reshape(m.x, {-1, -1});
       },
       kArgument,
       {"lathe.reshape", "at most one size of -1, got 2"}},
      {"reshape_that_leaves_a_fraction",
       [] {
         Model m;
         reshape(m.x, {-1, 3});
       },
       kArgument,
       {"lathe.reshape", "[-1, 3]", "[batch, 4]", "write the size instead of -1"}},
      {"reshape_beside_zero",
       [] {
         Model m;
         reshape(m.x, {-1, 0});
       },
       kArgument,
       {"lathe.reshape", "so -1 has no value"}},
      {"transpose_of_too_few_axes",
       [] {
         Model m;
         transpose(m.x, {0});
       },
       kArgument,
       {"lathe.transpose", "[C1]"}},
      {"transpose_of_one_axis_twice",
       [] {
         Model m;
         transpose(m.x, {0, 0});
       },
       kArgument,
       {"lathe.transpose", "[C1]"}},
      {"transpose_of_a_missing_axis",
       [] {
         Model m;
         transpose(m.x, {0, 5});
       },
       kArgument,
       {"lathe.transpose", "axis 5 is outside rank 2 of f32[batch, 4]"}},
      {"transpose_of_a_negative_axis",
       [] {
         Model m;
         transpose(m.x, {0, -5});
       },
       kArgument,
       {"lathe.transpose", "axis -5 is outside rank 2 of f32[batch, 4]"}},
      {"transpose_of_nothing",
       [] {
         Model m;
         transpose(m.x, {});
       },
       kArgument,
       {"lathe.transpose", "[C1]"}},
      {"swap_of_a_missing_axis",
       [] {
         Model m;
         swapAxes(m.x, 0, 2);
       },
       kArgument,
       {"swapAxes", "rank 2"}},
      {"swap_of_a_negative_axis",
       [] {
         Model m;
         swapAxes(m.x, -3, 0);
       },
       kArgument,
       {"swapAxes", "-3", "rank 2"}},
      {"swap_of_the_smallest_axis",
       [] {
         Model m;
         swapAxes(m.x, INT64_MIN, 0);
       },
       kArgument,
       {"swapAxes", "rank 2"}},
      {"reshape_not_proved",
       [] {
         Model m;
         reshape(m.x, {8, 4});
       },
       kArgument,
       {"lathe.reshape", "[C1]", "4*batch"}},
      {"reshape_to_another_count",
       [] {
         Model m;
         reshape(m.g.input("z", DType::F32, {6}), {4});
       },
       kArgument,
       {"lathe.reshape", "[C1]"}},
      {"reshape_by_minus_two",
       [] {
         Model m;
         reshape(m.x, {-2});
       },
       kArgument,
       {"negative dim -2"}},
      {"broadcast_to_a_smaller_rank",
       [] {
         Model m;
         broadcast(m.x, {4});
       },
       kArgument,
       {"lathe.broadcast", "[C1]"}},
      {"broadcast_to_another_size",
       [] {
         Model m;
         broadcast(m.x, {m.batch, 5});
       },
       kArgument,
       {"lathe.broadcast", "[C2]"}},
      {"slice_past_the_end",
       [] {
         Model m;
         sliceAxis(m.x, 1, 3, 2);
       },
       kArgument,
       {"lathe.slice", "[C3]", "axis 1"}},
      {"slice_past_a_symbol",
       [] {
         Model m;
         sliceAxis(m.x, 0, 0, 2);
       },
       kArgument,
       {"lathe.slice", "[C3]", "axis 0"}},
      {"slice_before_the_start",
       [] {
         Model m;
         sliceAxis(m.x, 1, -1, 2);
       },
       kArgument,
       {"lathe.slice"}},
      {"slice_of_negative_size",
       [] {
         Model m;
         sliceAxis(m.x, 1, 0, -2);
       },
       kArgument,
       {"lathe.slice"}},
      {"slice_of_a_missing_axis",
       [] {
         Model m;
         sliceAxis(m.x, 2, 0, 1);
       },
       kArgument,
       {"sliceAxis: axis 2 is outside rank 2"}},
      {"slice_of_a_negative_axis",
       [] {
         Model m;
         sliceAxis(m.x, -3, 0, 1);
       },
       kArgument,
       {"sliceAxis: axis -3 is outside rank 2"}},
      {"slice_with_stride_zero",
       [] {
         Model m;
         sliceAxis(m.x, 1, 0, 1, 0);
       },
       kArgument,
       {"lathe.slice", "[C2] stride 0"}},
      {"slice_with_stride_below_zero",
       [] {
         Model m;
         sliceAxis(m.x, 1, 0, 1, -1);
       },
       kArgument,
       {"lathe.slice", "[C2] stride -1"}},
      {"slice_that_wraps",
       [] {
         Model m;
         sliceAxis(m.x, 1, INT64_MAX, 2);
       },
       kArgument,
       {"lathe.slice"}},
      {"slice_with_a_stride_that_wraps",
       [] {
         Model m;
         sliceAxis(m.x, 1, 0, 4, INT64_MAX);
       },
       kArgument,
       {"lathe.slice", "[C3]"}},
      {"slice_of_too_few_axes",
       [] {
         Model m;
         slice(m.x, {0}, {1}, {1});
       },
       kArgument,
       {"lathe.slice", "[C1]"}},
      {"slice_of_unequal_lists",
       [] {
         Model m;
         slice(m.x, {0, 0}, {m.batch, 1}, {1});
       },
       kArgument,
       {"lathe.slice", "[C1]"}},
  };
}

}  // namespace lathe::misuse
