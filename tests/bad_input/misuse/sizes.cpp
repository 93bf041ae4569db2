// SPDX-License-Identifier: Apache-2.0
// Ranges of symbols and sizes of tensors that are empty, negative or too large.
#include <limits>

#include "tests/bad_input/misuse/misuse.h"

namespace lathe::misuse {
namespace {

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
const std::vector<std::string> kTooLarge = {"elements, at most 281474976710656"};

Table ranges() {
  return {
      {"range_that_is_empty", [] { Graph().dim("n", 5, 4); }, kArgument, {"empty range 5 to 4"}},
      {"range_below_zero", [] { Graph().dim("n", -1, 4); }, kArgument, {"-1 to 4"}},
      {"range_of_the_smallest",
       [] { Graph().dim("n", kLeast, kMost); },
       kArgument,
       {"-9223372036854775808"}},
      {"range_without_a_multiple",
       [] { Graph().dim("n", 5, 7, 8); },
       kArgument,
       {"'n'", "5 to 7", "no multiple of 8"}},
      {"range_below_its_multiple",
       [] { Graph().dim("n", 1, 63, 64); },
       kArgument,
       {"no multiple of 64"}},
      {"multiple_of_zero", [] { Graph().dim("n", 1, 8, 0); }, kArgument, {"multiple 0"}},
      {"multiple_below_zero", [] { Graph().dim("n", 1, 8, -2); }, kArgument, {"multiple -2"}},
      {"range_beyond_any_size",
       [] { Graph().dim("n", 1, kMost); },
       kArgument,
       {"9223372036854775807", "at most 281474976710656"}},
      {"other_upper_end",
       [] {
         Model m;
         m.g.dim("batch", 1, 9);
       },
       kArgument,
       {"symbol 'batch' was declared with another range", "1 to 8", "1 to 9"}},
      {"other_lower_end",
       [] {
         Model m;
         m.g.dim("batch", 2, 8);
       },
       kArgument,
       {"symbol 'batch' was declared with another range"}},
      {"other_multiple",
       [] {
         Model m;
         m.g.dim("batch", 1, 8, 4);
       },
       kArgument,
       {"symbol 'batch' was declared with another range", "multiples of 4"}},
      {"name_of_a_failed_dim_is_free",
       [] {
         Graph g;
         try {
           g.dim("n", 5, 4);
         } catch (const Error&) {
         }
         g.input("x", DType::F32, {Dim::symbol("n")});
       },
       kArgument,
       {"symbol 'n' is not declared"}},
      {"failed_dim_and_then_another_mistake",
       [] {
         Graph g;
         try {
           g.dim("n", 5, 4);
         } catch (const Error&) {
         }
         g.dim("n", 1, 4);  // is not taken
         g.dim("n", 1, 5);
       },
       kArgument,
       {"1 to 4", "1 to 5"}},
  };
}

Table declared() {
  return {
      {"input_of_negative_size",
       [] { Graph().input("x", DType::F32, {-1, 4}); },
       kArgument,
       {"negative dim -1"}},
      {"weight_of_negative_size",
       [] { Graph().weight("w", DType::F32, {-4}); },
       kArgument,
       {"negative dim -4"}},
      {"state_of_negative_size",
       [] { Graph().state("s", DType::F32, {4, -4}); },
       kArgument,
       {"negative dim -4"}},
      {"input_of_the_smallest_size",
       [] { Graph().input("x", DType::F32, {kLeast}); },
       kArgument,
       {"negative dim"}},
      {"input_of_huge_sizes", [] { Graph().input("x", DType::F32, {kMost, kMost}); }, kArgument,
       kTooLarge},
      {"input_of_one_huge_size", [] { Graph().input("x", DType::F32, {kMost}); }, kArgument,
       kTooLarge},
      {"weight_of_huge_sizes",
       [] { Graph().weight("w", DType::F32, {int64_t(1) << 31, int64_t(1) << 31}); }, kArgument,
       kTooLarge},
      {"weight_whose_product_wraps",
       [] { Graph().weight("w", DType::F32, {int64_t(1) << 33, int64_t(1) << 33}); }, kArgument,
       kTooLarge},
      {"state_of_huge_sizes", [] { Graph().state("s", DType::F32, {kMost, 2}); }, kArgument,
       kTooLarge},
      {"huge_behind_a_zero",
       [] { Graph().input("x", DType::F32, {0, kMost, kMost}); },
       kArgument,
       {"at most 281474976710656"}},
      {"symbol_times_a_huge_number",
       [] {
         Model m;
         m.g.input("z", DType::F32, {m.batch * Dim(kMost)});
       },
       kArgument,
       {"at most 281474976710656"}},
      {"power_of_a_symbol",
       [] {
         Graph g;
         Dim n = g.dim("n", int64_t(1) << 40, int64_t(1) << 41);
         g.input("x", DType::F32, {n, n});
       },
       kArgument, kTooLarge},
      {"one_size_that_grows_beyond",
       [] {
         Graph g;
         g.input("x", DType::F32, {g.dim("n", 1, int64_t(1) << 46) * 8});
       },
       kArgument, kTooLarge},
      {"dtype_outside_the_enum_of_an_input",
       [] { Graph().input("x", DType(77), {4}); },
       kArgument,
       {"77 is no dtype"}},
      {"dtype_outside_the_enum_of_a_weight",
       [] { Graph().weight("w", DType(12), {4}); },
       kArgument,
       {"12 is no dtype"}},
      {"dtype_outside_the_enum_of_a_state",
       [] { Graph().state("s", DType(255), {4}); },
       kArgument,
       {"255 is no dtype"}},
      {"dtype_outside_the_enum_of_a_constant",
       [] { Graph().constant(1.0, DType(77)); },
       kArgument,
       {"77 is no dtype"}},
      {"dtype_outside_the_enum_of_a_cast",
       [] {
         Model m;
         cast(m.x, DType(77));
       },
       kArgument,
       {"77 is no dtype"}},
      {"dtype_outside_the_enum_of_a_bitcast",
       [] {
         Model m;
         bitcast(m.x, DType(12));
       },
       kArgument,
       {"12 is no dtype"}},
      {"dtype_outside_the_enum_of_an_iota",
       [] {
         Model m;
         iota(m.x, {4}, 0, DType(12));
       },
       kArgument,
       {"12 is no dtype"}},
  };
}

Table made() {
  return {
      {"padding_beyond_memory",
       [] {
         Model m;
         pad(m.x, m.g.constant(0), {0, int64_t(1) << 60}, {0, 0});
       },
       kArgument, kTooLarge},
      {"padding_that_wraps",
       [] {
         Model m;
         pad(m.x, m.g.constant(0), {0, kMost}, {0, kMost});
       },
       kArgument,
       {"lathe.pad"}},
      {"padding_by_the_largest_number",
       [] {
         Model m;
         pad(m.x, m.g.constant(0), {0, 0}, {kMost, 0});
       },
       kArgument,
       {"lathe.pad"}},
      {"broadcast_beyond_memory",
       [] {
         Model m;
         broadcast(m.g.constant(0), {int64_t(1) << 30, int64_t(1) << 30});
       },
       kArgument, kTooLarge},
      {"iota_beyond_memory",
       [] {
         Model m;
         iota(m.x, {kMost}, 0);
       },
       kArgument, kTooLarge},
      {"random_bits_beyond_memory",
       [] {
         Model m;
         randomBits(m.g.input("seed", DType::I64, {}), {int64_t(1) << 50});
       },
       kArgument,
       {"lathe.random_bits"}},
      {"reshape_to_sizes_that_wrap",
       [] {
         Model m;
         reshape(m.g.input("z", DType::F32, {4}), {int64_t(1) << 33, int64_t(1) << 33});
       },
       kArgument,
       {"lathe.reshape"}},
      {"outer_product_beyond_memory",
       [] {
         Graph g;
         Tensor a = g.input("a", DType::F32, {int64_t(1) << 40, 1});
         Tensor b = g.input("b", DType::F32, {1, int64_t(1) << 40});
         a + b;
       },
       kArgument, kTooLarge},
      {"matmul_beyond_memory",
       [] {
         Graph g;
         Tensor a = g.input("a", DType::F32, {int64_t(1) << 40, 1});
         Tensor b = g.input("b", DType::F32, {1, int64_t(1) << 40});
         matmul(a, b);
       },
       kArgument, kTooLarge},
      {"concat_beyond_memory",
       [] {
         Graph g;
         Tensor a = g.input("a", DType::I8, {int64_t(1) << 48});
         concat({a, a}, 0);
       },
       kArgument, kTooLarge},
      {"gather_beyond_memory",
       [] {
         Graph g;
         Tensor a = g.input("a", DType::I8, {4, int64_t(1) << 40});
         gather(a, g.input("ids", DType::I64, {int64_t(1) << 40}), 0);
       },
       kArgument, kTooLarge},
      {"negative_size_of_an_iota",
       [] {
         Model m;
         iota(m.x, {-4}, 0);
       },
       kArgument,
       {"negative dim -4"}},
      {"negative_size_of_a_broadcast",
       [] {
         Model m;
         broadcast(m.x, {-1, m.batch, 4});
       },
       kArgument,
       {"negative dim -1"}},
      {"negative_size_of_a_reshape",
       [] {
         Model m;
         reshape(m.x, {m.batch, -4});
       },
       kArgument,
       {"negative dim -4"}},
      {"negative_size_of_random_bits",
       [] {
         Model m;
         randomBits(m.g.input("seed", DType::I64, {}), {-2});
       },
       kArgument,
       {"negative dim -2"}},
  };
}

}  // namespace

Table sizes() {
  Table rows = ranges();
  for (Table more : {declared(), made()}) rows.insert(rows.end(), more.begin(), more.end());
  return rows;
}

}  // namespace lathe::misuse
