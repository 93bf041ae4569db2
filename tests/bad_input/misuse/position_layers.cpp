// SPDX-License-Identifier: Apache-2.0
// Tables of tokens and positions.
#include <limits>

#include "tests/bad_input/misuse/misuse.h"

namespace lathe::misuse {
namespace {

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

}  // namespace

Table positionLayers() {
  return {
      {"embedding_of_no_rows",
       [] {
         Graph g;
         nn::Embedding(g, "e", 0, 4);
       },
       kArgument,
       {"Embedding 'e'", "got 0"}},
      {"embedding_of_no_width",
       [] {
         Graph g;
         nn::Embedding(g, "e", 9, -4);
       },
       kArgument,
       {"Embedding 'e'", "got -4"}},
      {"embedding_of_the_largest",
       [] {
         Graph g;
         nn::Embedding(g, "e", kMost, kMost);
       },
       kArgument,
       {"Embedding 'e'", "at most 2147483647"}},
      {"embedding_of_integers",
       [] {
         Model m;
         nn::Embedding(m.g, "e", 9, 4, {.dtype = DType::I32})(m.ids);
       },
       kArgument,
       {"Embedding 'e'", "i32"}},
      {"embedding_given_floats",
       [] {
         Model m;
         nn::Embedding(m.g, "e", 9, 4)(m.x);
       },
       kArgument,
       {"Embedding 'e'", "integer", "f32[batch, 4]"}},
      {"embedding_given_bools",
       [] {
         Model m;
         nn::Embedding(m.g, "e", 9, 4)(m.flags);
       },
       kArgument,
       {"Embedding 'e'", "bool"}},
      {"embedding_given_nothing",
       [] {
         Graph g;
         nn::Embedding(g, "e", 9, 4)(Tensor());
       },
       kArgument,
       {"Embedding 'e'", "empty handle"}},
      {"unembed_of_another_width",
       [] {
         Model m;
         nn::Embedding(m.g, "e", 9, 5).unembed(m.x);
       },
       kArgument,
       {"Embedding 'e'", "f32[batch, 4]"}},
      {"unembed_of_nothing",
       [] {
         Graph g;
         nn::Embedding(g, "e", 9, 5).unembed(Tensor());
       },
       kArgument,
       {"Embedding 'e'", "empty handle"}},
      {"sine_frequencies_below_zero",
       [] { nn::sineFrequencies(-4); },
       kArgument,
       {"sineFrequencies", "got -4"}},
      {"sine_frequencies_of_the_largest",
       [] { nn::sineFrequencies(kMost); },
       kArgument,
       {"sineFrequencies", "at most"}},
      {"sine_positions_of_odd_size",
       [] {
         Graph g;
         nn::SinePositions(g, "p", 5, 8);
       },
       kArgument,
       {"SinePositions 'p'", "multiple of 2", "got 5"}},
      {"sine_positions_of_no_rows",
       [] {
         Graph g;
         nn::SinePositions(g, "p", 4, 0);
       },
       kArgument,
       {"SinePositions 'p', maxPositions", "got 0"}},
      {"sine_positions_of_too_many_rows",
       [] {
         Model m;
         nn::SinePositions(m.g, "p", 4, kMost)(m.x);
       },
       kArgument,
       {"SinePositions 'p'", "at most 2147483647"}},
      {"sine_positions_given_a_vector",
       [] {
         Graph g;
         nn::SinePositions(g, "p", 4, 8)(g.input("v", DType::F32, {4}));
       },
       kArgument,
       {"SinePositions 'p'", "[..., seq, size]"}},
      {"sine_positions_like_nothing",
       [] {
         Graph g;
         nn::SinePositions(g, "p", 4, 8).table(Tensor());
       },
       kArgument,
       {"SinePositions 'p'", "empty handle"}},
      {"sine_positions_at_floats",
       [] {
         Model m;
         nn::SinePositions(m.g, "p", 4, 8)(m.x, m.x);
       },
       kArgument,
       {"SinePositions 'p'", "integer"}},
      {"sine_positions_at_empty",
       [] {
         Model m;
         nn::SinePositions(m.g, "p", 4, 8)(m.x, Tensor());
       },
       kArgument,
       {"SinePositions 'p'", "empty handle"}},
      {"grid_positions_of_a_size_that_4_does_not_divide",
       [] {
         Graph g;
         nn::SinePositions2d(g, "p", 6, 2, 2);
       },
       kArgument,
       {"SinePositions2d 'p'", "multiple of 4", "got 6"}},
      {"grid_positions_of_no_rows",
       [] {
         Graph g;
         nn::SinePositions2d(g, "p", 4, 0, 2);
       },
       kArgument,
       {"SinePositions2d 'p'", "got 0"}},
      {"grid_positions_of_too_many_rows",
       [] {
         Model m;
         nn::SinePositions2d(m.g, "p", 4, kMost, kMost)(m.x);
       },
       kArgument,
       {"SinePositions2d 'p'", "at most"}},
      {"learnt_positions_of_no_rows",
       [] {
         Graph g;
         nn::LearntPositions(g, "p", 4, -1);
       },
       kArgument,
       {"LearntPositions 'p'", "got -1"}},
      {"learnt_positions_given_another_width",
       [] {
         Model m;
         nn::LearntPositions(m.g, "p", 5, 8)(m.x);
       },
       kArgument,
       {"LearntPositions 'p'", "f32[batch, 4]"}},
      {"learnt_positions_at_floats",
       [] {
         Model m;
         nn::LearntPositions(m.g, "p", 4, 8)(m.x, m.x);
       },
       kArgument,
       {"LearntPositions 'p'", "integer"}},
      {"buckets_below_zero",
       [] { nn::relativeBuckets(-4, 8); },
       kArgument,
       {"relativeBuckets", "got -4"}},
      {"buckets_of_which_half_is_none",
       [] { nn::relativeBuckets(1, 8); },
       kArgument,
       {"relativeBuckets", "at least 2 buckets", "got 1 buckets and 8"}},
      {"buckets_that_reach_their_half",
       [] { nn::relativeBuckets(8, 4); },
       kArgument,
       {"relativeBuckets", "more than half", "got 8 buckets and 4"}},
      {"buckets_of_no_distance",
       [] { nn::relativeBuckets(4, -8); },
       kArgument,
       {"relativeBuckets", "-8"}},
      {"buckets_of_endless_distance",
       [] { nn::relativeBuckets(4, kMost); },
       kArgument,
       {"relativeBuckets", "at most"}},
      {"alibi_of_an_undeclared_symbol",
       [] {
         Graph g;
         nn::alibi(g, 4, Dim::symbol("keys"));
       },
       kArgument,
       {"symbol 'keys' is not declared"}},
      {"relative_bias_of_no_heads",
       [] {
         Graph g;
         nn::RelativePositionBias(g, "r", {.heads = 0});
       },
       kArgument,
       {"RelativePositionBias 'r', heads", "got 0"}},
      {"relative_bias_of_odd_buckets",
       [] {
         Graph g;
         nn::RelativePositionBias(g, "r", {.heads = 2, .buckets = 31});
       },
       kArgument,
       {"RelativePositionBias 'r'", "31 buckets"}},
      {"relative_bias_that_ends_where_its_ladder_begins",
       [] {
         Graph g;
         nn::RelativePositionBias(g, "r", {.heads = 2, .buckets = 8, .maxDistance = 2});
       },
       kArgument,
       {"RelativePositionBias 'r'", "more than half of them, got 8 buckets and 2"}},
      {"relative_bias_of_endless_distance",
       [] {
         Model m;
         nn::RelativePositionBias r(m.g, "r", {.heads = 2, .maxDistance = kMost});
         r(m.x, 4, 4, DType::F32);
       },
       kArgument,
       {"RelativePositionBias 'r'", "at most"}},
      {"relative_bias_of_integers",
       [] {
         Model m;
         nn::RelativePositionBias(m.g, "r", {.heads = 2})(m.x, 4, 4, DType::I64);
       },
       kArgument,
       {"RelativePositionBias 'r'", "i64"}},
      {"relative_keys_of_no_size",
       [] {
         Graph g;
         nn::RelativePositionKeys(g, "r", 0, 4);
       },
       kArgument,
       {"RelativePositionKeys 'r'", "got 0"}},
      {"relative_keys_of_endless_distance",
       [] {
         Graph g;
         nn::RelativePositionKeys(g, "r", 4, kMost);
       },
       kArgument,
       {"RelativePositionKeys 'r'", "at most"}},
      {"relative_keys_given_a_matrix",
       [] {
         Model m;
         nn::RelativePositionKeys(m.g, "r", 4, 4)(m.x, 4);
       },
       kArgument,
       {"RelativePositionKeys 'r'", "f32[batch, 4]"}},
  };
}

}  // namespace lathe::misuse
