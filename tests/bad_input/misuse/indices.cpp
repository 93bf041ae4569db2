// SPDX-License-Identifier: Apache-2.0
// Joined, padded, reversed and indexed tensors.
#include "tests/bad_input/misuse/misuse.h"

namespace lathe::misuse {

Table indexing() {
  return {
      {"concat_of_nothing",
       [] { concat({}, 0); },
       kArgument,
       {"lathe.concat: expected at least one tensor"}},
      {"concat_of_two_shapes",
       [] {
         Model m;
         concat({m.x, m.g.input("z", DType::F32, {m.batch, 5})}, 0);
       },
       kArgument,
       {"lathe.concat"}},
      {"concat_of_two_dtypes",
       [] {
         Model m;
         concat({m.x, m.ids}, 0);
       },
       kArgument,
       {"lathe.concat", "[C1]"}},
      {"concat_of_two_ranks",
       [] {
         Model m;
         concat({m.x, m.g.input("z", DType::F32, {4})}, 0);
       },
       kArgument,
       {"lathe.concat"}},
      {"concat_of_a_missing_axis",
       [] {
         Model m;
         concat({m.x, m.x}, 2);
       },
       kArgument,
       {"lathe.concat", "axis 2"}},
      {"pad_by_a_negative_size",
       [] {
         Model m;
         pad(m.x, m.g.constant(0), {0, -1}, {0, 0});
       },
       kArgument,
       {"lathe.pad", "[C2]"}},
      {"pad_of_too_few_axes",
       [] {
         Model m;
         pad(m.x, m.g.constant(0), {1}, {1});
       },
       kArgument,
       {"lathe.pad", "[C2]"}},
      {"pad_with_another_dtype",
       [] {
         Model m;
         pad(m.x, m.g.constant(0, DType::I64), {0, 0}, {0, 1});
       },
       kArgument,
       {"lathe.pad"}},
      {"pad_with_a_vector",
       [] {
         Model m;
         pad(m.x, m.x, {0, 0}, {0, 1});
       },
       kArgument,
       {"lathe.pad"}},
      {"reverse_of_a_missing_axis",
       [] {
         Model m;
         reverse(m.x, {2});
       },
       kArgument,
       {"lathe.reverse", "axis 2"}},
      {"reverse_of_one_axis_twice",
       [] {
         Model m;
         reverse(m.x, {0, 0});
       },
       kArgument,
       {"lathe.reverse", "ascend"}},
      {"iota_of_a_missing_axis",
       [] {
         Model m;
         iota(m.x, {4}, 1);
       },
       kArgument,
       {"lathe.iota", "axis 1"}},
      {"iota_of_bools",
       [] {
         Model m;
         iota(m.x, {4}, 0, DType::Bool);
       },
       kArgument,
       {"lathe.iota"}},
      {"gather_by_floats",
       [] {
         Model m;
         gather(m.x, m.x, 0);
       },
       kArgument,
       {"lathe.gather", "as operand "}},
      {"gather_of_a_missing_axis",
       [] {
         Model m;
         gather(m.x, m.ids, 2);
       },
       kArgument,
       {"lathe.gather", "axis 2"}},
      {"gather_of_a_scalar",
       [] {
         Model m;
         gather(m.g.constant(1), m.ids, 0);
       },
       kArgument,
       {"lathe.gather"}},
      {"update_of_another_dtype",
       [] {
         Model m;
         update(m.x, m.ids, m.ids, 0);
       },
       kArgument,
       {"lathe.update"}},
      {"update_of_a_missing_axis",
       [] {
         Model m;
         update(m.x, m.x, m.ids, 3);
       },
       kArgument,
       {"lathe.update"}},
      {"update_at_float_positions",
       [] {
         Model m;
         update(m.x, m.x, m.x, 0);
       },
       kArgument,
       {"lathe.update"}},
      {"random_bits_by_a_float_seed",
       [] {
         Model m;
         randomBits(m.x, {4});
       },
       kArgument,
       {"lathe.random_bits", "the seed must be a scalar, got f32[batch, 4]"}},
      {"random_bits_by_two_seeds",
       [] {
         Model m;
         randomBits(m.g.input("seed", DType::I64, {2}), {4});
       },
       kArgument,
       {"lathe.random_bits", "[C1]"}},
  };
}

}  // namespace lathe::misuse
