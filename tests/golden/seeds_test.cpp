// SPDX-License-Identifier: Apache-2.0
// The language models of nn:: and their parts against the courses' PyTorch classes: every file of
// tests/golden/seeds, in f32 and bf16, on each backend.
#include "examples/seeds/presets.h"
#include "lathe/lathe.h"
#include "tests/golden/seed_golden.h"

namespace lathe::seeds {
namespace {

using nn::ModelStyle;
using nn::SigmoidForm;

Record attentionOf(nn::AttentionOptions options) {
  return [options](const Case& c) mutable {
    options.mask = c.maybe("mask");
    return nn::attention(c.in("Q"), c.in("K"), c.in("V"), options);
  };
}
Record normOf(nn::NormOptions options, int64_t size, double eps) {
  options.eps = eps;
  return [=](const Case& c) { return nn::RMSNorm(c.g, "", size, options)(c.x()); };
}
Record ropeOf(nn::RopeOptions options, int64_t maxPositions, const std::string& positions) {
  options.headDim = 12;
  options.maxPositions = maxPositions;
  return [=](const Case& c) { return nn::RoPE(c.g, "", options)(c.x(), c.in(positions)); };
}
Record selfAttentionOf(nn::SelfAttentionOptions o, int64_t dModel, int64_t heads,
                       std::optional<nn::RopeOptions> rope = {},
                       const std::string& positions = "token_positions") {
  o.dModel = dModel;
  o.heads = heads;
  o.rope = rope;
  return [=](const Case& c) {
    nn::CausalSelfAttention attention(c.g, "", o);
    return rope ? attention(c.x(), c.in(positions)) : attention(c.x());
  };
}
nn::RopeOptions rows(nn::RopeOptions options, int64_t maxPositions, double theta = 10000) {
  options.maxPositions = maxPositions;
  options.theta = theta;
  return options;
}
Record groupedOf(int64_t dModel, int64_t heads, int64_t kvHeads, int64_t headDim, double theta,
                 bool bias) {
  nn::SelfAttentionOptions o = nn::SelfAttentionOptions::llama();
  o.kvHeads = kvHeads;
  o.headDim = headDim;
  o.qkvBias = o.outputBias = bias;
  return selfAttentionOf(o, dModel, heads, rows(nn::RopeOptions::llama(), 32, theta), "positions");
}
Record swigluOf(nn::SwiGLUOptions options, int64_t dModel, int64_t dHidden) {
  return [=](const Case& c) { return nn::SwiGLU(c.g, "", dModel, dHidden, options)(c.x()); };
}
Record blockOf(const ModelStyle& style, int64_t dModel, int64_t heads, int64_t dHidden,
               std::optional<nn::RopeOptions> rope) {
  nn::BlockOptions o{style.attention, dHidden, style.mlp, style.norm, style.block};
  o.attention.dModel = dModel;
  o.attention.heads = heads;
  o.attention.rope = rope;
  return [=](const Case& c) {
    nn::TransformerBlock block(c.g, "", o);
    return rope ? block(c.x(), c.in("token_positions")) : block(c.x());
  };
}
using Positions = nn::TransformerLMOptions::Positions;
Record modelOf(ModelStyle style, int64_t dModel, int64_t heads, int64_t dHidden,
               Positions positions, bool probabilities, const std::string& ids) {
  style.probabilities = probabilities;
  nn::TransformerLMOptions o{.vocabSize = 61,
                             .dModel = dModel,
                             .dHidden = dHidden,
                             .layers = 2,
                             .heads = heads,
                             .maxPositions = 16,
                             .positions = positions,
                             .style = style};
  return [=](const Case& c) mutable {
    o.dtype = c.dtype;
    return nn::TransformerLM(c.g, "", o).forward(c.in(ids));
  };
}
Record softmaxOf(int64_t axis) {
  return [=](const Case& c) { return nn::softmax(c.x(), axis); };
}
Record embeddingOf(nn::EmbeddingOptions options) {
  return [=](const Case& c) mutable {
    options.dtype = c.dtype;
    return nn::Embedding(c.g, "", 61, 24, options)(c.in("token_ids"));
  };
}
Record linearOf(nn::LinearOptions options) {
  return [=](const Case& c) { return nn::Linear(c.g, "", 24, 40, options)(c.x()); };
}
Record layerNormOf(int64_t size, double eps, bool bias) {
  return [=](const Case& c) {
    return nn::LayerNorm(c.g, "", size, {.eps = eps, .bias = bias})(c.x());
  };
}

const std::map<std::string, Record>& records() {
  using namespace nn;
  const auto heads336 = seeds::cs336::selfAttention(), heads190 = seeds::cs190c::selfAttention();
  static const std::map<std::string, Record> table = {
      {"linear_cs336", linearOf(seeds::cs336::linear())},
      {"linear_cs190c", linearOf(seeds::cs190c::linear())},
      {"embedding_cs336", embeddingOf(seeds::cs336::embedding())},
      {"embedding_cs190c", embeddingOf(seeds::cs190c::embedding())},
      {"rms_norm_cs336", normOf(seeds::cs336::norm(), 40, 1e-5)},
      {"rms_norm_cs336_tiny_values", normOf(seeds::cs336::norm(), 24, 1e-6)},
      {"rms_norm_cs190c", normOf(seeds::cs190c::norm(), 40, 1e-5)},
      {"rms_norm_cs190c_tiny_values", normOf(seeds::cs190c::norm(), 24, 1e-6)},
      {"rms_norm_modern", normOf(seeds::modern::norm(), 40, 1e-5)},
      {"rms_norm_modern_tiny_values", normOf(seeds::modern::norm(), 24, 1e-6)},
      {"layer_norm", layerNormOf(40, 1e-5, true)},
      {"layer_norm_no_bias", layerNormOf(24, 1e-6, false)},
      {"sigmoid_cs190c", [](const Case& c) { return nn::sigmoid(c.x(), SigmoidForm::Spelled); }},
      {"sigmoid_torch", [](const Case& c) { return nn::sigmoid(c.x(), SigmoidForm::Op); }},
      {"silu_cs190c", [](const Case& c) { return silu(c.x(), SigmoidForm::Spelled); }},
      {"silu_cs336", [](const Case& c) { return silu(c.x()); }},
      {"gelu_erf", [](const Case& c) { return gelu(c.x()); }},
      {"gelu_tanh", [](const Case& c) { return geluTanh(c.x()); }},
      {"softmax_cs336_dim0", softmaxOf(0)},
      {"softmax_cs336_dim1", softmaxOf(1)},
      {"softmax_cs336_last", softmaxOf(-1)},
      {"softmax_cs190c_dim0", softmaxOf(0)},
      {"softmax_cs190c_dim1", softmaxOf(1)},
      {"softmax_cs190c_last", softmaxOf(-1)},
      {"rope_cs336", ropeOf(seeds::cs336::rope(), 32, "token_positions")},
      {"rope_cs336_far", ropeOf(seeds::cs336::rope(), 8192, "token_positions")},
      {"rope_cs190c_3d", ropeOf(seeds::cs190c::rope(), 32, "token_positions")},
      {"rope_cs190c_4d", ropeOf(seeds::cs190c::rope(), 32, "token_positions")},
      {"rope_cs190c_far", ropeOf(seeds::cs190c::rope(), 8192, "token_positions")},
      {"rope_half", ropeOf(RopeOptions::llama(), 32, "positions")},
      {"mha_cs336", selfAttentionOf(heads336, 24, 3)},
      {"mha_cs336_rope", selfAttentionOf(heads336, 40, 2, rows(seeds::cs336::rope(), 32))},
      {"mha_cs190c", selfAttentionOf(heads190, 24, 3)},
      {"mha_cs190c_rope", selfAttentionOf(heads190, 40, 2, rows(seeds::cs190c::rope(), 32))},
      {"gqa", groupedOf(40, 6, 2, 12, 10000, false)},
      {"gqa_one_kv_head_bias", groupedOf(24, 3, 1, 8, 500000, true)},
      {"causal_attention_modern", selfAttentionOf(seeds::modern::selfAttention(), 24, 3)},
      {"causal_attention_modern_batch3", selfAttentionOf(seeds::modern::selfAttention(), 40, 2)},
      {"swiglu_cs336", swigluOf(seeds::cs336::swiglu(), 24, 50)},
      {"swiglu_cs336_default_d_ff",
       swigluOf(seeds::cs336::swiglu(), 40, seeds::cs336::hiddenSize(40))},
      {"swiglu_cs190c", swigluOf(seeds::cs190c::swiglu(), 24, 50)},
      {"swiglu_modern", swigluOf(seeds::modern::swiglu(), 40, 40)},
      {"block_cs336", blockOf(seeds::cs336::style(), 24, 3, 50, {})},
      {"block_cs336_rope", blockOf(seeds::cs336::style(), 40, 2, 64, rows(seeds::cs336::rope(), 32))},
      {"block_cs190c", blockOf(seeds::cs190c::style(), 24, 3, 50, rows(seeds::cs190c::rope(), 32))},
      {"lm_cs336_logits",
       modelOf(seeds::cs336::style(), 24, 3, 50, Positions::Rotary, false, "input_ids")},
      {"lm_cs336_probabilities",
       modelOf(seeds::cs336::style(), 24, 3, 50, Positions::Rotary, true, "input_ids")},
      {"lm_learnt_positions",
       modelOf(seeds::cs336::style(), 24, 3, 50, Positions::Learnt, false, "input_ids")},
      {"lm_cs190c", modelOf(seeds::cs190c::style(), 40, 2, 64, Positions::None, false, "token_ids")},
      {"lm_cs190c_rope",
       modelOf(seeds::cs190c::style(), 40, 2, 64, Positions::Rotary, false, "token_ids")},
      {"block_modern", blockOf(seeds::modern::style(), 40, 2, 40, {})},
      {"lm_modern",
       modelOf(seeds::modern::style(), 24, 3, 24, Positions::Learnt, false, "token_ids")},
      {"mha_gpt", selfAttentionOf(SelfAttentionOptions::gpt(), 40, 2)},
      {"block_gpt", blockOf(ModelStyle::gpt(), 24, 3, 50, {})},
      {"lm_gpt",
       [](const Case& c) {
         const TransformerLM model(c.g, "",
                                   {.vocabSize = 61,
                                    .dModel = 24,
                                    .dHidden = 50,
                                    .layers = 2,
                                    .heads = 3,
                                    .maxPositions = 16,
                                    .positions = Positions::Learnt,
                                    .tiedHead = true,
                                    .dtype = c.dtype,
                                    .style = ModelStyle::gpt()});
         return model.forward(c.in("token_ids"));
       }},
  };
  return table;
}

// SDPA has one recording for all its masks.
const Record& recordOf(const std::string& name) {
  static const Record sdpa336 = attentionOf(seeds::cs336::attention());
  static const Record sdpa190 = attentionOf(seeds::cs190c::attention());
  if (name.starts_with("sdpa_cs336")) return sdpa336;
  if (name.starts_with("sdpa_cs190c")) return sdpa190;
  return records().at(name);
}

class Seeds : public ::testing::TestWithParam<Golden> {};
constexpr const char* kFolder = "seeds";

TEST_P(Seeds, F32EqualsPyTorch) {
  expectF32EqualsPyTorch(kFolder, GetParam(), recordOf(GetParam().name));
}

TEST_P(Seeds, Bf16IsAsExactAsPyTorch) {
  expectBf16IsAsExactAsPyTorch(kFolder, GetParam(), recordOf(GetParam().name));
}

INSTANTIATE_TEST_SUITE_P(PyTorch, Seeds, ::testing::ValuesIn(goldensIn(kFolder)), testName);

}  // namespace
}  // namespace lathe::seeds
