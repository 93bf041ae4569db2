// SPDX-License-Identifier: Apache-2.0
// Functions that record several ops: einsum, sort, split and the like.
#include <cctype>

#include "tests/bad_input/misuse/misuse.h"

namespace lathe::misuse {

Table composedShapes() {
  return {
      {"squeeze_of_a_wide_axis",
       [] {
         Model m;
         squeeze(m.x, 1);
       },
       kArgument,
       {"squeeze", "of size 1, got f32[batch, 4]"}},
      {"squeeze_of_a_symbol",
       [] {
         Model m;
         squeeze(m.x, 0);
       },
       kArgument,
       {"squeeze", "axis 0 of size 1"}},
      {"squeeze_of_a_wide_axis_from_the_end",
       [] {
         Model m;
         squeeze(m.x, -1);
       },
       kArgument,
       {"squeeze", "axis -1 of size 1"}},
      {"squeeze_of_a_missing_axis",
       [] {
         Model m;
         squeeze(m.x, 2);
       },
       kArgument,
       {"squeeze", "axis 2 is outside rank 2"}},
      {"unsqueeze_too_far",
       [] {
         Model m;
         unsqueeze(m.x, 3);
       },
       kArgument,
       {"unsqueeze", "from -3 to 2", "got 3"}},
      {"flatten_backwards",
       [] {
         Heads m;
         flatten(m.q, 2, 1);
       },
       kArgument,
       {"flatten", "2 and 1 of f32[batch, 2, 3, 4]"}},
      {"split_into_nothing",
       [] {
         Model m;
         split(m.x, 0, 1);
       },
       kArgument,
       {"split", "size 1 or more, got 0"}},
      {"split_into_endless_pieces",
       [] {
         Heads m;
         split(m.in(DType::F32, {int64_t(1) << 40}), 2);
       },
       kArgument,
       {"split: expected at most 65536 pieces of f32[1099511627776], got 549755813888"}},
      {"chunk_into_endless_pieces",
       [] {
         Heads m;
         chunk(m.in(DType::F32, {int64_t(1) << 40}), int64_t(1) << 39);
       },
       kArgument,
       {"chunk: expected at most 65536 pieces of f32[1099511627776], got 549755813888"}},
      {"split_of_a_symbol",
       [] {
         Model m;
         split(m.x, 2);
       },
       kArgument,
       {"split", "axis 0 whose size is a number", "splitSizes"}},
      {"split_sizes_that_do_not_add_up",
       [] {
         Model m;
         splitSizes(m.x, {1, 2}, 1);
       },
       kArgument,
       {"splitSizes", "add up to 4", "got {1, 2}"}},
      {"chunk_into_nothing",
       [] {
         Model m;
         chunk(m.x, 0, 1);
       },
       kArgument,
       {"chunk", "got 0"}},
      {"stack_of_nothing", [] { stack({}); }, kArgument, {"stack", "got none"}},
      {"stack_of_two_shapes",
       [] {
         Heads m;
         stack({m.q, m.k});
       },
       kArgument,
       {"stack", "one shape", "f32[batch, 2, 3, 4] and f32[batch, 2, 5, 4]"}},
      {"stack_of_empty", [] { stack({Tensor()}); }, kArgument, {"stack", "empty handle"}},
      {"full_of_what_bytes_cannot_hold",
       [] {
         Model m;
         full(m.x, {2}, 300, DType::U8);
       },
       kArgument,
       {"full", "u8 holds, got 300"}},
      {"stack_along_a_missing_axis",
       [] {
         Model m;
         stack({m.x, m.x}, 3);
       },
       kArgument,
       {"stack: expected an axis from -3 to 2 for f32[batch, 4], got 3"}},
      {"stack_of_two_dtypes",
       [] {
         Model m;
         stack({m.x, m.ids});
       },
       kArgument,
       {"stack: expected tensors of one shape and dtype, got f32[batch, 4] and i64[batch, 4]"}},
      {"split_sizes_below_zero",
       [] {
         Model m;
         splitSizes(m.x, {5, -1}, -1);
       },
       kArgument,
       {"splitSizes: expected sizes of 0 or more", "got {5, -1}"}},
      {"split_sizes_of_a_missing_axis",
       [] {
         Model m;
         splitSizes(m.x, {4}, 2);
       },
       kArgument,
       {"splitSizes: axis 2 is outside rank 2 of f32[batch, 4]"}},
      {"split_of_a_symbol_from_the_back",
       [] {
         Model m;
         chunk(m.x, 2, -2);
       },
       kArgument,
       {"chunk: expected an axis -2 whose size is a number, got f32[batch, 4]"}},
      {"ones_of_empty", [] { ones(Tensor(), {2}); }, kArgument, {"ones: ", "empty handle"}},
      {"ones_of_a_negative_size",
       [] {
         Model m;
         ones(m.x, {-2});
       },
       kArgument,
       {"ones: ", "negative dim -2"}},
      {"zeros_like_empty", [] { zerosLike(Tensor()); }, kArgument, {"zerosLike: ", "empty handle"}},
      {"graph_full_of_a_fraction",
       [] {
         Graph g;
         g.full({2}, 0.5, DType::I64);
       },
       kArgument,
       {"i64 holds, got 0.5"}},
      {"one_hot_of_floats",
       [] {
         Model m;
         oneHot(m.x, 4);
       },
       kArgument,
       {"oneHot", "expected integers, got f32[batch, 4]"}},
      {"one_hot_of_bools",
       [] {
         Model m;
         oneHot(m.x > 0.0, 4);
       },
       kArgument,
       {"oneHot", "expected integers, got bool[batch, 4]"}},
      {"take_along_bools",
       [] {
         Model m;
         takeAlongAxis(m.x, m.x > 0.0, 1);
       },
       kArgument,
       {"takeAlongAxis", "expected integers, got bool[batch, 4]"}},
      {"one_hot_of_no_depth",
       [] {
         Model m;
         oneHot(m.ids, 0);
       },
       kArgument,
       {"oneHot", "got 0"}},
  };
}

Table composedValues() {
  return {
      {"where_of_integers",
       [] {
         Model m;
         where(m.ids, m.x, 0.0);
       },
       kArgument,
       {"where", "bool mask, got i64[batch, 4]", "`mask != 0`"}},
      {"masked_fill_with_floats",
       [] {
         Model m;
         maskedFill(m.x, m.x, -1);
       },
       kArgument,
       {"maskedFill", "bool mask", "`mask != 0`"}},
      {"masked_fill_that_stretches_x",
       [] {
         Heads m;
         maskedFill(m.x, m.in(DType::Bool, {3, m.batch, 4}), -1);
       },
       kArgument,
       {"maskedFill", "broadcasts to f32[batch, 4], got bool[3, batch, 4]"}},
      {"clamp_of_no_bound",
       [] {
         Model m;
         clamp(m.x, {});
       },
       kArgument,
       {"clamp", "got none"}},
      {"clamp_of_integers_at_a_fraction",
       [] {
         Model m;
         clamp(m.ids, 0.5);
       },
       kArgument,
       {"clamp: expected a number that i64 holds, got 0.5"}},
      {"integers_times_a_fraction",
       [] {
         Model m;
         m.ids * 0.5;
       },
       kArgument,
       {"i64 holds, got 0.5", "cast the tensor"}},
      {"integers_less_than_a_fraction",
       [] {
         Model m;
         (void)(m.ids < 0.5);
       },
       kArgument,
       {"i64 holds, got 0.5"}},
      {"equal_to_empty",
       [] {
         Model m;
         (void)(m.x == Tensor());
       },
       kArgument,
       {"lathe.compare", "empty handle"}},
      {"tril_of_a_vector",
       [] {
         Heads m;
         tril(m.gain);
       },
       kArgument,
       {"tril", "[..., rows, columns], got f32[4]"}},
      {"logsumexp_of_integers",
       [] {
         Model m;
         logsumexp(m.ids, {1});
       },
       kArgument,
       {"logsumexp", "expected floats"}},
      {"logsumexp_over_nothing",
       [] {
         Model m;
         logsumexp(m.x, {});
       },
       kArgument,
       {"logsumexp: ", "no axes are given"}},
      {"logsumexp_over_a_missing_axis",
       [] {
         Model m;
         logsumexp(m.x, {2});
       },
       kArgument,
       {"logsumexp: ", "axis 2 is outside rank 2 of f32[batch, 4]"}},
      {"variance_of_a_negative_correction",
       [] {
         Model m;
         var(m.x, {1}, false, -1);
       },
       kArgument,
       {"var", "correction of 0 or more, got -1"}},
      {"sort_of_a_symbol",
       [] {
         Model m;
         sort(m.x, 0);
       },
       kArgument,
       {"sort", "axis 0 whose size is a number", "fixed when the graph is recorded"}},
      {"sort_of_bools",
       [] {
         Model m;
         argsort(m.flags);
       },
       kArgument,
       {"argsort: expected numbers", "cast"}},
      {"take_with_floats",
       [] {
         Model m;
         takeAlongAxis(m.x, m.x, 1);
       },
       kArgument,
       {"takeAlongAxis", "expected integers"}},
      {"take_with_other_rows",
       [] {
         Heads m;
         takeAlongAxis(m.x, m.in(DType::I64, {3, 2}), 1);
       },
       kArgument,
       {"takeAlongAxis", "but for axis 1", "i64[3, 2]"}},
      {"take_along_the_last_axis_with_other_rows",
       [] {
         Heads m;
         takeAlongAxis(m.x, m.in(DType::I64, {3, 2}), -1);
       },
       kArgument,
       {"takeAlongAxis", "but for axis -1", "i64[3, 2]"}},
      {"take_along_a_missing_axis",
       [] {
         Model m;
         takeAlongAxis(m.x, m.ids, 2);
       },
       kArgument,
       {"takeAlongAxis: axis 2 is outside rank 2 of f32[batch, 4]"}},
      {"scatter_along_the_last_axis_with_other_rows",
       [] {
         Heads m;
         scatter(m.x, m.in(DType::I64, {3, 2}), m.x, -1);
       },
       kArgument,
       {"scatter", "but for axis -1"}},
      {"where_of_two_dtypes",
       [] {
         Model m;
         where(m.flags, m.x, m.ids);
       },
       kArgument,
       {"where: lathe.select: [C1] element types differ", "insert a cast"}},
      {"triangle_of_empty", [] { triu(Tensor()); }, kArgument, {"triu: ", "empty handle"}},
      {"scatter_of_another_dtype",
       [] {
         Model m;
         scatter(m.x, m.ids, m.ids, 1);
       },
       kArgument,
       {"scatter", "x's dtype", "i64[batch, 4]"}},
      {"scatter_add_to_flags",
       [] {
         Model m;
         scatterAdd(m.flags, m.ids, m.flags, 1);
       },
       kArgument,
       {"scatterAdd", "expected numbers"}},
  };
}

Table einsums() {
  static auto over = [](const char* equation, const ErrorCode code,
                        std::vector<std::string> words) {
    words.push_back("einsum");
    std::string name = equation;
    for (char& c : name)
      if (!std::isalpha(c)) c = '_';
    return Misuse{"einsum_" + name,
                  [equation] {
                    Heads m;
                    einsum(equation, {m.q, m.k});
                  },
                  code, words};
  };
  return {
      over("bhqd->bhq", kArgument, {"names 1 operands, got 2"}),
      over("bhqd,bhk->bhqk", kArgument, {"names 3 axes of f32[batch, 2, 5, 4]"}),
      over("bhqd,bhqd->bhq", kArgument, {"two sizes of axis 'q': 3 and 5"}),
      over("bhqd,bhkd->bhqx", kArgument, {"an axis 'x' that no operand has"}),
      over("bhqd,bhkd->bhqkk", kArgument, {"'k' twice in the result"}),
      over("bhqd,bhkk->bhqk", kArgument, {"two sizes of axis 'k': 5 and 4"}),
      over("...qd,...kd->qk", kArgument, {"an ellipsis in front of the arrow and none behind"}),
      over("bhqd,bhkd->...qk", kArgument, {"an ellipsis that no operand has"}),
      over("...d,...->...d", kArgument, {"two sizes of axis -3 below the ellipsis: batch and 2"}),
      over("b...hqkd,bhkd->b...q", kArgument, {"names at least 5 axes of f32[batch, 2, 3, 4]"}),
      over("...q...d,bhkd->bq", kArgument, {"'.' where a letter or one \"...\" is expected"}),
      over("bhq1,bhk1->bhqk", kArgument, {"'1' where a letter"}),
      {"einsum_of_two_dtypes",
       [] {
         Model m;
         einsum("bi,bi->b", {m.x, m.ids});
       },
       kArgument,
       {"einsum: \"bi,bi->b\" has operands f32[batch, 4] and i64[batch, 4]", "cast one"}},
      {"einsum_of_bools",
       [] {
         Model m;
         einsum("bi,bj->bij", {m.flags, m.flags});
       },
       kArgument,
       {"einsum: lathe.mul: expected numbers as operand 0, got bool[batch, 4, 1]", "cast it"}},
      {"einsum_of_empty",
       [] {
         Model m;
         einsum("ij,jk", {m.x, Tensor()});
       },
       kArgument,
       {"einsum", "empty handle"}},
  };
}

}  // namespace lathe::misuse
