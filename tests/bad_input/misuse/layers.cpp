// SPDX-License-Identifier: Apache-2.0
// Linear layers and norms: sizes, dtypes and inputs that fit none.
#include <limits>

#include "tests/bad_input/misuse/misuse.h"

namespace lathe::misuse {
namespace {

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Calls a Linear of 4 to 3 with an input of this type.
void linear(DType dtype, const Dims& shape, nn::LinearOptions options = {}) {
  Graph g;
  nn::Linear(g, "fc", 4, 3, std::move(options))(g.input("in", dtype, shape));
}

}  // namespace

Table linears() {
  return {
      {"linear_of_no_inputs",
       [] {
         Graph g;
         nn::Linear(g, "fc", 0, 3);
       },
       kArgument,
       {"Linear 'fc', input size", "got 0"}},
      {"linear_of_no_outputs",
       [] {
         Graph g;
         nn::Linear(g, "fc", 4, 0);
       },
       kArgument,
       {"Linear 'fc', output size", "got 0"}},
      {"linear_of_negative_size",
       [] {
         Graph g;
         nn::Linear(g, "fc", -4, 3);
       },
       kArgument,
       {"Linear 'fc'", "got -4"}},
      {"linear_of_the_largest_size",
       [] {
         Graph g;
         nn::Linear(g, "fc", kMost, 3);
       },
       kArgument,
       {"Linear 'fc'", "at most 2147483647", "9223372036854775807"}},
      {"linear_given_integers",
       [] { linear(DType::I64, {2, 4}); },
       kArgument,
       {"Linear 'fc'", "float", "i64[2, 4]"}},
      {"linear_given_bools",
       [] { linear(DType::Bool, {2, 4}); },
       kArgument,
       {"Linear 'fc'", "bool[2, 4]"}},
      {"linear_given_another_width",
       [] { linear(DType::F32, {2, 5}); },
       kArgument,
       {"Linear 'fc'", "expected 4", "f32[2, 5]"}},
      {"linear_given_a_scalar",
       [] { linear(DType::F32, {}); },
       kArgument,
       {"Linear 'fc'", "f32[]"}},
      {"linear_given_nothing",
       [] {
         Graph g;
         nn::Linear(g, "fc", 4, 3)(Tensor());
       },
       kArgument,
       {"Linear 'fc'", "empty handle"}},
      {"linear_of_integer_weights",
       [] { linear(DType::F32, {2, 4}, {.weightDType = DType::I8}); },
       kArgument,
       {"'fc'", "weightDType", "i8"}},
      {"linear_of_no_weight_dtype",
       [] { linear(DType::F32, {2, 4}, {.weightDType = DType(88)}); },
       kArgument,
       {"88 is no dtype"}},
      {"linear_of_no_layout",
       [] { linear(DType::F32, {2, 4}, {.layout = WeightLayout(7)}); },
       kArgument,
       {"Linear 'fc'", "layout", "7"}},
      {"linear_of_packed_weights",
       [] { linear(DType::F32, {2, 4}, {.layout = WeightLayout::packed}); },
       kArgument,
       {"Linear 'fc': expected the layout out_in or in_out, got packed"}},
      {"attention_with_uniform_rows_and_no_fill",
       [] {
         Heads m;
         nn::attention(m.q, m.k, m.v, {.maskedRow = MaskedRow::uniform});
       },
       kArgument,
       {"attention", "got `uniform`; a finite maskFill gives `uniform`"}},
      {"attention_with_rows_of_no_kind",
       [] {
         Heads m;
         nn::attention(m.q, m.k, m.v, {.maskedRow = MaskedRow(7)});
       },
       kArgument,
       {"attention", "expected `nan` or `zero` for masked rows"}},
      {"swiglu_of_no_hidden_size",
       [] {
         Graph g;
         nn::SwiGLU(g, "mlp", 4, 0);
       },
       kArgument,
       {"SwiGLU 'mlp'", "got 0"}},
      {"swiglu_of_negative_size",
       [] {
         Graph g;
         nn::SwiGLU(g, "mlp", -1, 8);
       },
       kArgument,
       {"SwiGLU 'mlp'", "got -1"}},
      {"swiglu_given_another_width",
       [] {
         Model m;
         nn::SwiGLU(m.g, "mlp", 5, 8)(m.x);
       },
       kArgument,
       {"SwiGLU 'mlp'", "f32[batch, 4]"}},
      {"swiglu_given_nothing",
       [] {
         Graph g;
         nn::SwiGLU(g, "mlp", 4, 8)(Tensor());
       },
       kArgument,
       {"SwiGLU 'mlp'", "empty handle"}},
      {"swiglu_given_integers",
       [] {
         Model m;
         nn::SwiGLU(m.g, "mlp", 4, 8)(m.ids);
       },
       kArgument,
       {"SwiGLU 'mlp'", "i64"}},
      {"feed_forward_of_no_size",
       [] {
         Graph g;
         nn::FeedForward(g, "ff", 0, 8);
       },
       kArgument,
       {"got 0"}},
      {"feed_forward_of_no_hidden_size",
       [] {
         Graph g;
         nn::FeedForward(g, "ff", 4, -3);
       },
       kArgument,
       {"got -3"}},
      {"feed_forward_given_another_width",
       [] {
         Model m;
         nn::FeedForward(m.g, "ff", 5, 8)(m.x);
       },
       kArgument,
       {"FeedForward 'ff'", "f32[batch, 4]"}},
      {"feed_forward_of_no_activation",
       [] {
         Model m;
         nn::FeedForward(m.g, "ff", 4, 8, {.activation = Activation(6)})(m.x);
       },
       kArgument,
       {"6 is no activation"}},
  };
}

Table normLayers() {
  return {
      {"rms_norm_of_no_size",
       [] {
         Graph g;
         nn::RMSNorm(g, "norm", 0);
       },
       kArgument,
       {"RMSNorm 'norm', size", "got 0"}},
      {"rms_norm_of_the_largest_size",
       [] {
         Graph g;
         nn::RMSNorm(g, "norm", kMost);
       },
       kArgument,
       {"RMSNorm 'norm'", "at most 2147483647"}},
      {"rms_norm_of_negative_epsilon",
       [] {
         Graph g;
         nn::RMSNorm(g, "norm", 4, {.eps = -1});
       },
       kArgument,
       {"RMSNorm 'norm'", "epsilon", "-1"}},
      {"rms_norm_of_nan_epsilon",
       [] {
         Graph g;
         nn::RMSNorm(g, "norm", 4, {.eps = kNan});
       },
       kArgument,
       {"RMSNorm 'norm'", "epsilon", "nan"}},
      {"rms_norm_of_infinite_epsilon",
       [] {
         Graph g;
         nn::RMSNorm(g, "norm", 4, {.eps = std::numeric_limits<double>::infinity()});
       },
       kArgument,
       {"RMSNorm 'norm'", "epsilon", "inf"}},
      {"rms_norm_given_another_width",
       [] {
         Model m;
         nn::RMSNorm(m.g, "norm", 5)(m.x);
       },
       kArgument,
       {"RMSNorm 'norm'", "expected 5"}},
      {"rms_norm_given_integers",
       [] {
         Model m;
         nn::RMSNorm(m.g, "norm", 4)(m.ids);
       },
       kArgument,
       {"RMSNorm 'norm'", "i64"}},
      {"rms_norm_given_nothing",
       [] {
         Graph g;
         nn::RMSNorm(g, "norm", 4)(Tensor());
       },
       kArgument,
       {"RMSNorm 'norm'", "empty handle"}},
      {"layer_norm_of_no_size",
       [] {
         Graph g;
         nn::LayerNorm(g, "norm", -2);
       },
       kArgument,
       {"LayerNorm 'norm', size", "got -2"}},
      {"layer_norm_of_nan_epsilon",
       [] {
         Graph g;
         nn::LayerNorm(g, "norm", 4, {.eps = kNan});
       },
       kArgument,
       {"LayerNorm 'norm'", "epsilon"}},
      {"layer_norm_given_another_width",
       [] {
         Model m;
         nn::LayerNorm(m.g, "norm", 3)(m.x);
       },
       kArgument,
       {"LayerNorm 'norm'", "expected 3"}},
      {"layer_norm_given_bools",
       [] {
         Model m;
         nn::LayerNorm(m.g, "norm", 4)(m.flags);
       },
       kArgument,
       {"LayerNorm 'norm'", "bool"}},
      {"layer_norm_of_unnamed_gain",
       [] {
         Model m;
         nn::LayerNorm(m.g, "", 4, {.gainName = ""})(m.x);
       },
       kArgument,
       {"name is empty"}},
  };
}

}  // namespace lathe::misuse
