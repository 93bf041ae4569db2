// SPDX-License-Identifier: Apache-2.0
// Attention as modules, and rotary positions.
#include <limits>

#include "tests/bad_input/misuse/misuse.h"

namespace lathe::misuse {
namespace {

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

void rope(nn::RopeOptions options) {
  Graph g;
  nn::RoPE(g, "rope", std::move(options));
}
void selfAttention(nn::SelfAttentionOptions options) {
  Heads m;
  nn::CausalSelfAttention(m.g, "attn", std::move(options))(m.tokens);
}

}  // namespace

Table rotaryLayers() {
  return {
      {"rope_of_odd_heads", [] { rope({.headDim = 3}); }, kArgument, {"even head size", "got 3"}},
      {"rope_of_no_head_size", [] { rope({}); }, kArgument, {"even head size", "got 0"}},
      {"rope_of_endless_heads",
       [] { rope({.headDim = kMost - 1}); },
       kArgument,
       {"headDim", "at most"}},
      {"rope_of_no_positions",
       [] { rope({.headDim = 4, .maxPositions = 0}); },
       kArgument,
       {"maxPositions", "got 0"}},
      {"rope_of_endless_positions",
       [] { rope({.headDim = 4, .maxPositions = kMost}); },
       kArgument,
       {"maxPositions", "at most 2147483647"}},
      {"rope_of_theta_zero",
       [] { rope({.headDim = 4, .theta = 0}); },
       kArgument,
       {"positive theta"}},
      {"rope_of_theta_nan",
       [] { rope({.headDim = 4, .theta = kNan}); },
       kArgument,
       {"positive theta", "nan"}},
      {"rope_of_no_factor",
       [] {
         rope({.headDim = 4,
               .scaling = {.type = nn::RopeScalingOptions::Type::Linear, .factor = 0}});
       },
       kArgument,
       {"positive scaling factor"}},
      {"rope_of_divided_positions_with_linear_scaling",
       [] {
         rope({.headDim = 4,
               .frequencies = nn::RopeOptions::Frequencies::Divide,
               .scaling = {.type = nn::RopeScalingOptions::Type::Linear, .factor = 2}});
       },
       kArgument,
       {"scaling needs frequencies", "Reciprocal"}},
      {"rope_of_divided_positions_with_llama3_scaling",
       [] {
         rope({.headDim = 4,
               .frequencies = nn::RopeOptions::Frequencies::Divide,
               .scaling = {.type = nn::RopeScalingOptions::Type::Llama3, .factor = 8}});
       },
       kArgument,
       {"scaling needs frequencies", "Reciprocal"}},
      {"rope_of_crossed_factors",
       [] {
         rope({.headDim = 4,
               .scaling = {.type = nn::RopeScalingOptions::Type::Llama3,
                           .factor = 8,
                           .lowFreqFactor = 4,
                           .highFreqFactor = 1}});
       },
       kArgument,
       {"lowFreqFactor < highFreqFactor"}},
      {"rope_of_no_scaling_type",
       [] { rope({.headDim = 4, .scaling = {.type = nn::RopeScalingOptions::Type(9)}}); },
       kArgument,
       {"9 is no scaling"}},
      {"rope_of_an_odd_part",
       [] { rope({.headDim = 8, .rotaryDim = 3}); },
       kArgument,
       {"even rotaryDim up to headDim 8, got 3"}},
      {"rope_of_more_than_a_head",
       [] { rope({.headDim = 8, .rotaryDim = 10}); },
       kArgument,
       {"even rotaryDim up to headDim 8, got 10"}},
      {"rope_of_yarn_without_a_length",
       [] {
         rope({.headDim = 8,
               .scaling = {.type = nn::RopeScalingOptions::Type::Yarn,
                           .factor = 2,
                           .originalMaxPositions = 0}});
       },
       kArgument,
       {"originalMaxPositions of at least 1, got 0"}},
      {"rope_of_a_yarn_ramp_turned_around",
       [] {
         rope({.headDim = 8,
               .scaling = {.type = nn::RopeScalingOptions::Type::Yarn,
                           .factor = 2,
                           .betaFast = 1,
                           .betaSlow = 32}});
       },
       kArgument,
       {"betaSlow <= betaFast"}},
      {"rope_of_few_long_factors",
       [] {
         rope({.headDim = 8,
               .scaling = {.type = nn::RopeScalingOptions::Type::LongRope,
                           .shortFactor = {1, 1, 1, 1},
                           .longFactor = {1}}});
       },
       kArgument,
       {"each of 4 frequencies, got 1"}},
      {"rope_of_a_negative_long_factor",
       [] {
         rope({.headDim = 4,
               .scaling = {.type = nn::RopeScalingOptions::Type::LongRope,
                           .shortFactor = {1, 1},
                           .longFactor = {1, -2}}});
       },
       kArgument,
       {"positive factors", "-2"}},
      {"rope_of_a_negative_attention_factor",
       [] {
         rope({.headDim = 4,
               .scaling = {.type = nn::RopeScalingOptions::Type::Yarn,
                           .factor = 2,
                           .originalMaxPositions = 8,
                           .attentionFactor = -1}});
       },
       kArgument,
       {"positive attentionFactor", "-1"}},
      {"rope_of_an_endless_attention_factor",
       [] {
         rope({.headDim = 4,
               .scaling = {.type = nn::RopeScalingOptions::Type::Yarn,
                           .factor = 2,
                           .originalMaxPositions = 8,
                           .attentionFactor = 1 / 0.0}});
       },
       kArgument,
       {"positive attentionFactor", "inf"}},
      {"rope_of_one_dynamic_pair",
       [] { rope({.headDim = 2, .scaling = {.type = nn::RopeScalingOptions::Type::Dynamic}}); },
       kArgument,
       {"dynamic scaling needs at least 4"}},
      {"mixture_of_more_experts_than_there_are",
       [] {
         Graph g;
         nn::Mixture(g, "moe", {.dModel = 4, .dHidden = 8, .experts = 2, .chosen = 3});
       },
       kArgument,
       {"Mixture 'moe', chosen", "at most 2"}},
      {"mixture_of_endless_experts",
       [] {
         Heads m;
         nn::Mixture(m.g, "moe",
                     {.dModel = 8, .dHidden = 8, .experts = 2000000000, .chosen = 1})(m.tokens);
       },
       kArgument,
       {"Mixture 'moe', experts", "at most 10000"}},
      {"mixture_with_biases",
       [] {
         Graph g;
         nn::Mixture(g, "moe",
                     {.dModel = 4, .dHidden = 8, .experts = 2, .chosen = 1, .mlp = {.bias = true}});
       },
       kArgument,
       {"Mixture 'moe'", "experts of three weights without biases"}},
      {"mixture_of_one_weight_for_gate_and_up",
       [] {
         Graph g;
         nn::Mixture(
             g, "moe",
             {.dModel = 4, .dHidden = 8, .experts = 2, .chosen = 1, .mlp = {.gateUp = "both"}});
       },
       kArgument,
       {"Mixture 'moe'", "experts of three weights without biases"}},
      {"mixture_of_a_matrix",
       [] {
         Heads m;
         nn::Mixture(m.g, "moe", {.dModel = 4, .dHidden = 8, .experts = 2, .chosen = 1})(m.q);
       },
       kArgument,
       {"Mixture 'moe'"}},
      {"frequencies_of_odd_heads",
       [] { nn::ropeFrequencies({.headDim = -6}); },
       kArgument,
       {"ropeFrequencies", "got -6"}},
      {"rope_of_another_width",
       [] {
         Heads m;
         nn::RoPE(m.g, "rope", {.headDim = 6})(m.q, iota(m.q, {3}, 0));
       },
       kArgument,
       {"RoPE 'rope'", "6"}},
      {"rope_at_floats",
       [] {
         Heads m;
         nn::RoPE(m.g, "rope", {.headDim = 4}).angles(m.x);
       },
       kArgument,
       {"RoPE 'rope'", "integer"}},
      {"rope_without_angles",
       [] {
         Heads m;
         nn::RoPE(m.g, "rope", {.headDim = 4})(m.q, nn::RopeAngles{});
       },
       kArgument,
       {"RoPE 'rope'", "empty handle"}},
      {"rope_at_nothing",
       [] {
         Heads m;
         nn::RoPE(m.g, "rope", {.headDim = 4}).angles(Tensor());
       },
       kArgument,
       {"RoPE 'rope'", "empty handle"}},
  };
}

Table attentionLayers() {
  return {
      {"self_attention_of_no_width", [] { selfAttention({}); }, kArgument, {"dModel", "got 0"}},
      {"self_attention_of_no_heads",
       [] { selfAttention({.dModel = 8}); },
       kArgument,
       {"heads", "got 0"}},
      {"self_attention_of_heads_that_do_not_divide",
       [] { selfAttention({.dModel = 8, .heads = 3}); },
       kArgument,
       {"3 heads and dModel 8"}},
      {"self_attention_of_groups_that_do_not_divide",
       [] { selfAttention({.dModel = 8, .heads = 4, .kvHeads = 3}); },
       kArgument,
       {"kvHeads that divide heads", "got 3"}},
      {"self_attention_of_negative_groups",
       [] { selfAttention({.dModel = 8, .heads = 4, .kvHeads = -1}); },
       kArgument,
       {"kvHeads", "-1"}},
      {"self_attention_of_negative_head_size",
       [] { selfAttention({.dModel = 8, .heads = 4, .headDim = -2}); },
       kArgument,
       {"headDim", "got -2"}},
      {"self_attention_of_sizes_that_wrap",
       [] { selfAttention({.dModel = 8, .heads = int64_t(1) << 40, .headDim = int64_t(1) << 40}); },
       kArgument,
       {"heads", "at most 2147483647"}},
      {"self_attention_given_a_matrix",
       [] {
         Model m;
         nn::CausalSelfAttention(m.g, "attn", {.dModel = 4, .heads = 2})(m.x);
       },
       kArgument,
       {"CausalSelfAttention 'attn'", "[batch, seq"}},
      {"self_attention_without_positions",
       [] {
         Heads m;
         nn::CausalSelfAttention a(m.g, "attn", {.dModel = 8, .heads = 2});
         a(m.tokens, Tensor(), nn::KvCache{"k", "v"});
       },
       kArgument,
       {"CausalSelfAttention 'attn'", "positions"}},
      {"self_attention_with_a_bias_of_keys_that_have_no_weight",
       [] {
         selfAttention({.dModel = 8,
                        .heads = 2,
                        .projections = nn::SelfAttentionOptions::Projections::Fused,
                        .keyBias = true});
       },
       kArgument,
       {"CausalSelfAttention 'attn'", "a bias of k alone needs a weight of k alone"}},
      {"self_attention_of_grouped_heads_in_the_odd_view",
       [] {
         selfAttention({.dModel = 8,
                        .heads = 2,
                        .kvHeads = 1,
                        .projections = nn::SelfAttentionOptions::Projections::FusedOddView});
       },
       kArgument,
       {"the odd view of a fused projection needs kvHeads = heads"}},
      {"self_attention_of_wide_heads_in_the_odd_view",
       [] {
         selfAttention({.dModel = 8,
                        .heads = 2,
                        .headDim = 8,
                        .projections = nn::SelfAttentionOptions::Projections::FusedOddView});
       },
       kArgument,
       {"the odd view of a fused projection needs", "heads * headDim = dModel"}},
      {"self_attention_with_an_option_bias",
       [] {
         Heads m;
         nn::CausalSelfAttention(m.g, "attn",
                                 {.dModel = 8, .heads = 2, .attention = {.bias = m.x}});
       },
       kArgument,
       {"a mask cannot be an option"}},
      {"self_attention_with_option_positions",
       [] {
         Heads m;
         nn::CausalSelfAttention(m.g, "attn",
                                 {.dModel = 8, .heads = 2, .attention = {.positions = m.ids}});
       },
       kArgument,
       {"a mask cannot be an option"}},
      {"self_attention_with_an_option_mask",
       [] {
         Heads m;
         nn::CausalSelfAttention(m.g, "attn",
                                 {.dModel = 8, .heads = 2, .attention = {.mask = m.flags}});
       },
       kArgument,
       {"a mask cannot be an option"}},
      {"attention_module_of_no_heads",
       [] {
         Heads m;
         nn::MultiHeadAttention(m.g, "mha", {.dModel = 8});
       },
       kArgument,
       {"MultiHeadAttention 'mha', heads", "got 0"}},
      {"attention_module_of_heads_that_do_not_divide",
       [] {
         Heads m;
         nn::MultiHeadAttention(m.g, "mha", {.dModel = 8, .heads = 3});
       },
       kArgument,
       {"3 heads and dModel 8"}},
      {"attention_module_given_a_matrix",
       [] {
         Model m;
         nn::MultiHeadAttention(m.g, "mha", {.dModel = 4, .heads = 2})(m.x);
       },
       kArgument,
       {"MultiHeadAttention 'mha'", "[batch, seq, 4]"}},
      {"attention_module_with_an_integer_mask",
       [] {
         Heads m;
         nn::MultiHeadAttention(m.g, "mha", {.dModel = 8, .heads = 2})(m.tokens,
                                                                       m.in(DType::I64, {3, 3}));
       },
       kArgument,
       {"mask", "bool", "i64[3, 3]"}},
      {"attention_module_fused_across",
       [] {
         Heads m;
         nn::MultiHeadAttention a(m.g, "mha", {.dModel = 8, .heads = 2, .fusedProjection = true});
         a(m.tokens, m.tokens, m.tokens, Tensor());
       },
       kArgument,
       {"fused projection"}},
      {"attention_module_with_a_bias_of_keys_that_have_no_weight",
       [] {
         Heads m;
         nn::MultiHeadAttention(
             m.g, "mha", {.dModel = 8, .heads = 2, .fusedProjection = true, .keyBias = false});
       },
       kArgument,
       {"MultiHeadAttention 'mha'", "a bias of k alone needs a weight of k alone"}},
      {"attention_module_without_a_key",
       [] {
         Heads m;
         nn::MultiHeadAttention a(m.g, "mha", {.dModel = 8, .heads = 2});
         a(m.tokens, Tensor(), m.tokens, Tensor());
       },
       kArgument,
       {"MultiHeadAttention 'mha', key", "empty handle"}},
      {"attention_module_of_distances_and_a_bias",
       [] {
         Heads m;
         nn::MultiHeadAttention(
             m.g, "mha",
             {.dModel = 8, .heads = 2, .relativeDistance = 3, .attention = {.bias = m.x}});
       },
       kArgument,
       {"MultiHeadAttention 'mha'", "a bias or relativeDistance, got both"}},
      {"attention_module_of_negative_distance",
       [] {
         Heads m;
         nn::MultiHeadAttention(m.g, "mha", {.dModel = 8, .heads = 2, .relativeDistance = -3});
       },
       kArgument,
       {"relativeDistance", "-3"}},
  };
}

}  // namespace lathe::misuse
