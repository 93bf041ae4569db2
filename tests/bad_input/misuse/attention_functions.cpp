// SPDX-License-Identifier: Apache-2.0
// Attention and masks as functions.
#include <limits>

#include "tests/bad_input/misuse/misuse.h"

namespace lathe::misuse {
namespace {

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

void attend(const std::function<void(Heads&, nn::AttentionOptions&)>& set) {
  Heads m;
  nn::AttentionOptions options;
  set(m, options);
  nn::attention(m.q, m.k, m.v, options);
}

}  // namespace

Table attentionFunctions() {
  return {
      {"attention_of_matrices",
       [] {
         Model m;
         nn::attention(m.x, m.x, m.x);
       },
       kArgument,
       {"attention: expected three operands of rank 3 or of rank 4"}},
      {"blocks_of_rank_three",
       [] {
         Model m;
         nn::gatherBlocks(m.x, m.x);
       },
       kArgument,
       {"gatherBlocks"}},
      {"blocks_by_a_vector",
       [] {
         Heads m;
         nn::gatherBlocks(m.q, iota(m.q, {2}, 0));
       },
       kArgument,
       {"gatherBlocks: expected [blocks, heads, tokens, d] and a table [batch, entries]"}},
      {"attention_of_a_window_without_an_order",
       [] { attend([](Heads&, nn::AttentionOptions& o) { o.window = 2; }); },
       kArgument,
       {"window of 0 (none) or more with `causal` or `positions`, got 2"}},
      {"attention_of_a_negative_window",
       [] {
         attend([](Heads&, nn::AttentionOptions& o) {
           o.causal = true;
           o.window = -1;
         });
       },
       kArgument,
       {"window of 0", "got -1"}},
      {"attention_of_a_negative_softcap",
       [] { attend([](Heads&, nn::AttentionOptions& o) { o.softcap = -1; }); },
       kArgument,
       {"softcap of 0 (none) or more"}},
      {"attention_of_an_infinite_scale",
       [] { attend([](Heads&, nn::AttentionOptions& o) { o.scale = 1 / 0.0; }); },
       kArgument,
       {"attention: expected a finite scale, got inf"}},
      {"attention_of_a_softcap_and_a_bias",
       [] {
         attend([](Heads& m, nn::AttentionOptions& o) {
           o.softcap = 2;
           o.bias = m.q;
         });
       },
       kArgument,
       {"a bias or a softcap, got both"}},
      {"attention_of_two_ranks",
       [] {
         Heads m;
         nn::attention(m.q, m.tokens, m.tokens);
       },
       kArgument,
       {"rank 3 or of rank 4"}},
      {"attention_of_two_dtypes",
       [] {
         Heads m;
         nn::attention(m.q, m.in(DType::BF16, {m.batch, 2, 5, 4}), m.v);
       },
       kArgument,
       {"one float dtype"}},
      {"attention_of_integer_heads",
       [] {
         Heads m;
         Tensor i = m.in(DType::I64, {m.batch, 2, 5, 4});
         nn::attention(i, i, i);
       },
       kArgument,
       {"one float dtype"}},
      {"attention_of_two_depths",
       [] {
         Heads m;
         nn::attention(m.q, m.in(DType::F32, {m.batch, 2, 5, 8}), m.v);
       },
       kArgument,
       {"one depth"}},
      {"attention_of_missing_values",
       [] {
         Heads m;
         nn::attention(m.q, m.k, m.in(DType::F32, {m.batch, 2, 6, 4}));
       },
       kArgument,
       {"as many values as keys"}},
      {"attention_of_odd_groups",
       [] {
         Heads m;
         Tensor k = m.in(DType::F32, {m.batch, 3, 5, 4});
         nn::attention(m.q, k, k);
       },
       kArgument,
       {"divides the query heads"}},
      {"attention_of_more_values_than_keys",
       [] {
         Heads m;
         Tensor q = m.in(DType::F32, {m.batch, 4, 5, 4});
         nn::attention(q, m.k, q);
       },
       kArgument,
       {"divides the query heads"}},
      {"attention_of_symbolic_depth",
       [] {
         Heads m;
         Tensor q = m.in(DType::F32, {2, 3, m.batch});
         nn::attention(q, q, q);
       },
       kArgument,
       {"a depth that is a number"}},
      {"attention_causal_twice",
       [] {
         attend([](Heads& m, nn::AttentionOptions& o) {
           o.causal = true;
           o.positions = m.in(DType::I64, {m.batch});
         });
       },
       kArgument,
       {"`causal` or `positions`, got both"}},
      {"attention_with_a_positive_fill",
       [] { attend([](Heads&, nn::AttentionOptions& o) { o.maskFill = 1; }); },
       kArgument,
       {"negative maskFill"}},
      {"attention_with_a_nan_fill",
       [] { attend([](Heads&, nn::AttentionOptions& o) { o.maskFill = kNan; }); },
       kArgument,
       {"negative maskFill"}},
      {"attention_with_a_nan_factor",
       [] { attend([](Heads&, nn::AttentionOptions& o) { o.scale = kNan; }); },
       kArgument,
       {"scale", "nan"}},
      {"attention_with_a_bool_bias",
       [] {
         attend([](Heads& m, nn::AttentionOptions& o) { o.bias = m.in(DType::Bool, {3, 5}); });
       },
       kArgument,
       {"float bias"}},
      {"attention_with_a_mask_of_integers",
       [] { attend([](Heads& m, nn::AttentionOptions& o) { o.mask = m.in(DType::I64, {3, 5}); }); },
       kArgument,
       {"mask", "bool", "i64[3, 5]", "mask != 0"}},
      {"attention_with_a_padding_mask",
       [] {
         attend(
             [](Heads& m, nn::AttentionOptions& o) { o.mask = m.in(DType::Bool, {m.batch, 5}); });
       },
       kArgument,
       {"bool[batch, 5] looks like [batch, keys], but its axes are those of [queries, keys]",
        "reshape it: [batch, 1, 1, keys]"}},
      {"attention_with_a_padding_mask_of_as_many_queries",
       [] {
         Heads m;
         Tensor q = m.in(DType::F32, {3, 2, 3, 4}), k = m.g.input("k2", DType::F32, {3, 2, 5, 4});
         nn::attention(q, k, k, {.mask = m.g.input("mask", DType::Bool, {3, 5})});
       },
       kArgument,
       {"bool[3, 5] can be read as [batch, keys] and as [queries, keys]",
        "[batch, 1, 1, keys] or [1, 1, queries, keys]"}},
      {"attention_with_a_mask_of_as_many_heads",
       [] {
         Heads m;
         Tensor q = m.in(DType::F32, {2, 2, 3, 4}), k = m.g.input("k2", DType::F32, {2, 2, 5, 4});
         nn::attention(q, k, k, {.mask = m.g.input("mask", DType::Bool, {2, 3, 5})});
       },
       kArgument,
       {"[batch, queries, keys]", "[heads, queries, keys]", "[batch, 1, queries, keys]"}},
      {"attention_without_heads_with_a_padding_mask",
       [] {
         Heads m;
         Tensor q = m.in(DType::F32, {3, 3, 4}), k = m.g.input("k2", DType::F32, {3, 5, 4});
         nn::attention(q, k, k, {.mask = m.g.input("mask", DType::Bool, {3, 5})});
       },
       kArgument,
       {"bool[3, 5]", "[batch, 1, keys] or [1, queries, keys]"}},
      {"attention_with_a_mask_of_another_shape",
       [] {
         attend([](Heads& m, nn::AttentionOptions& o) { o.mask = m.in(DType::Bool, {3, 6}); });
       },
       kArgument,
       {"[3, 6]"}},
      {"attention_with_positions_of_floats",
       [] {
         attend(
             [](Heads& m, nn::AttentionOptions& o) { o.positions = m.in(DType::F32, {m.batch}); });
       },
       kArgument,
       {"positions", "integer"}},
      {"attention_with_positions_of_rank_2",
       [] { attend([](Heads& m, nn::AttentionOptions& o) { o.positions = m.ids; }); },
       kArgument,
       {"positions [batch]"}},
      {"split_heads_that_do_not_divide",
       [] {
         Heads m;
         nn::splitHeads(m.tokens, 3);
       },
       kArgument,
       {"splitHeads", "3 heads"}},
      {"split_no_heads",
       [] {
         Heads m;
         nn::splitHeads(m.tokens, 0);
       },
       kArgument,
       {"splitHeads"}},
      {"split_heads_of_a_matrix",
       [] {
         Model m;
         nn::splitHeads(m.x, 2);
       },
       kArgument,
       {"splitHeads", "f32[batch, 4]"}},
      {"merge_heads_of_tokens",
       [] {
         Heads m;
         nn::mergeHeads(m.tokens);
       },
       kArgument,
       {"mergeHeads", "[batch, heads, seq, d]"}},
      {"position_mask_of_rank_0",
       [] {
         Heads m;
         nn::positionMask(m.in(DType::I64, {m.batch}), 3, 5, 0);
       },
       kArgument,
       {"positionMask", "rank", "0"}},
      {"position_mask_of_rank_below_0",
       [] {
         Heads m;
         nn::positionMask(m.in(DType::I64, {m.batch}), 3, 5, -1);
       },
       kArgument,
       {"positionMask", "rank", "-1"}},
      {"position_mask_of_many_ranks",
       [] {
         Heads m;
         nn::positionMask(m.in(DType::I64, {m.batch}), 3, 5, kMost);
       },
       kArgument,
       {"positionMask", "rank"}},
      {"causal_mask_of_negative_size",
       [] {
         Model m;
         nn::causalMask(m.x, -3, 5);
       },
       kArgument,
       {"negative dim -3"}},
      {"tiled_softmax_of_no_block",
       [] {
         Model m;
         nn::tiledSoftmax(m.x, 0);
       },
       kArgument,
       {"tiledSoftmax, block", "got 0"}},
      {"tiled_softmax_along_a_symbol",
       [] {
         Heads m;
         nn::tiledSoftmax(m.in(DType::F32, {4, m.batch}), 2);
       },
       kArgument,
       {"tiledSoftmax", "whose size is a number"}},
      {"tiled_softmax_of_nothing",
       [] {
         Heads m;
         nn::tiledSoftmax(m.in(DType::F32, {4, 0}), 2);
       },
       kArgument,
       {"tiledSoftmax", "at least one element", "got none"}},
      {"tiled_attention_over_no_keys",
       [] {
         Heads m;
         Tensor none = m.in(DType::F32, {m.batch, 2, 0, 4});
         nn::tiledAttention(m.q, none, none, 2);
       },
       kArgument,
       {"tiledAttention", "at least one element", "got none"}},
      {"tiled_attention_of_more_values_than_keys",
       [] {
         Heads m;
         nn::tiledAttention(m.q, m.k, m.in(DType::F32, {m.batch, 2, 7, 4}), 2);
       },
       kArgument,
       {"tiledAttention", "as many values as keys", "f32[batch, 2, 5, 4] and f32[batch, 2, 7, 4]"}},
      {"tiled_softmax_of_a_scalar",
       [] {
         Graph g;
         nn::tiledSoftmax(g.constant(1), 2);
       },
       kArgument,
       {"tiledSoftmax", "f32[]"}},
      {"tiled_softmax_of_endless_blocks",
       [] {
         Heads m;
         nn::tiledSoftmax(m.in(DType::F32, {int64_t(1) << 40}), 1);
       },
       kArgument,
       {"tiledSoftmax", "1099511627776 blocks", "at most"}},
      {"tiled_softmax_of_integers",
       [] {
         Model m;
         nn::tiledSoftmax(m.ids, 2);
       },
       kArgument,
       {"tiledSoftmax", "float"}},
      {"tiled_attention_of_no_block",
       [] {
         Heads m;
         nn::tiledAttention(m.q, m.k, m.v, -2);
       },
       kArgument,
       {"tiledAttention", "got -2"}},
      {"tiled_attention_of_two_depths",
       [] {
         Heads m;
         nn::tiledAttention(m.q, m.in(DType::F32, {m.batch, 2, 5, 8}), m.v, 2);
       },
       kArgument,
       {"tiledAttention"}},
      {"token_positions_of_rank_2",
       [] {
         Model m;
         nn::tokenPositions(m.ids, 4);
       },
       kArgument,
       {"tokenPositions", "[batch]"}},
      {"token_positions_of_floats",
       [] {
         Heads m;
         nn::tokenPositions(m.in(DType::F32, {m.batch}), 4);
       },
       kArgument,
       {"tokenPositions", "integer"}},
      {"padding_mask_of_floats",
       [] {
         Model m;
         nn::paddingMask(m.x, 0);
       },
       kArgument,
       {"paddingMask", "integer ids"}},
      {"target_mask_of_a_vector",
       [] {
         Heads m;
         nn::targetMask(m.in(DType::I64, {4}), 0);
       },
       kArgument,
       {"targetMask", "[batch, seq]"}},
      {"padding_that_ids_cannot_hold",
       [] {
         Heads m;
         nn::paddingMask(m.in(DType::I8, {2, 4}), 1000);
       },
       kArgument,
       {"1000", "i8"}},
  };
}

}  // namespace lathe::misuse
