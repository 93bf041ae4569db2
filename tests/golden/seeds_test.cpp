// SPDX-License-Identifier: Apache-2.0
// The modules of nn:: against the courses' PyTorch classes: every file of tests/golden/seeds, in
// f32 and bf16, on each backend. scripts/make_goldens.py says what a file holds.
#include <cmath>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>

#include <gtest/gtest.h>

#include "lathe/lathe.h"
#include "runtime/safetensors.h"

namespace lathe {
namespace {

using nn::ModelStyle;
using nn::SigmoidForm;

// A module's graph under construction, with the file's inputs by name.
struct Case {
  Graph& g;
  std::map<std::string, Tensor> inputs;
  DType dtype;
  const Tensor& in(const std::string& name) const { return inputs.at(name); }
  const Tensor& x() const { return in("x"); }
  Tensor mask() const { return inputs.count("mask") ? in("mask") : Tensor(); }
};
using Record = std::function<Tensor(const Case&)>;

Record attentionOf(nn::AttentionOptions options) {
  return [options](const Case& c) mutable {
    options.mask = c.mask();
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
  const auto cs336 = SelfAttentionOptions::cs336(), cs190c = SelfAttentionOptions::cs190c();
  static const std::map<std::string, Record> table = {
      {"linear_cs336", linearOf(LinearOptions::cs336())},
      {"linear_cs190c", linearOf(LinearOptions::cs190c())},
      {"embedding_cs336", embeddingOf(EmbeddingOptions::cs336())},
      {"embedding_cs190c", embeddingOf(EmbeddingOptions::cs190c())},
      {"rms_norm_cs336", normOf(NormOptions::cs336(), 40, 1e-5)},
      {"rms_norm_cs336_tiny_values", normOf(NormOptions::cs336(), 24, 1e-6)},
      {"rms_norm_cs190c", normOf(NormOptions::cs190c(), 40, 1e-5)},
      {"rms_norm_cs190c_tiny_values", normOf(NormOptions::cs190c(), 24, 1e-6)},
      {"rms_norm_modern", normOf(NormOptions::modern(), 40, 1e-5)},
      {"rms_norm_modern_tiny_values", normOf(NormOptions::modern(), 24, 1e-6)},
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
      {"rope_cs336", ropeOf(RopeOptions::cs336(), 32, "token_positions")},
      {"rope_cs336_far", ropeOf(RopeOptions::cs336(), 8192, "token_positions")},
      {"rope_cs190c_3d", ropeOf(RopeOptions::cs190c(), 32, "token_positions")},
      {"rope_cs190c_4d", ropeOf(RopeOptions::cs190c(), 32, "token_positions")},
      {"rope_cs190c_far", ropeOf(RopeOptions::cs190c(), 8192, "token_positions")},
      {"rope_half", ropeOf(RopeOptions::llama(), 32, "positions")},
      {"mha_cs336", selfAttentionOf(cs336, 24, 3)},
      {"mha_cs336_rope", selfAttentionOf(cs336, 40, 2, rows(RopeOptions::cs336(), 32))},
      {"mha_cs190c", selfAttentionOf(cs190c, 24, 3)},
      {"mha_cs190c_rope", selfAttentionOf(cs190c, 40, 2, rows(RopeOptions::cs190c(), 32))},
      {"gqa", groupedOf(40, 6, 2, 12, 10000, false)},
      {"gqa_one_kv_head_bias", groupedOf(24, 3, 1, 8, 500000, true)},
      {"causal_attention_modern", selfAttentionOf(SelfAttentionOptions::modern(), 24, 3)},
      {"causal_attention_modern_batch3", selfAttentionOf(SelfAttentionOptions::modern(), 40, 2)},
      {"swiglu_cs336", swigluOf(SwiGLUOptions::cs336(), 24, 50)},
      {"swiglu_cs336_default_d_ff",
       swigluOf(SwiGLUOptions::cs336(), 40, SwiGLU::hiddenSizeCs336(40))},
      {"swiglu_cs190c", swigluOf(SwiGLUOptions::cs190c(), 24, 50)},
      {"swiglu_modern", swigluOf(SwiGLUOptions::modern(), 40, 40)},
      {"block_cs336", blockOf(ModelStyle::cs336(), 24, 3, 50, {})},
      {"block_cs336_rope", blockOf(ModelStyle::cs336(), 40, 2, 64, rows(RopeOptions::cs336(), 32))},
      {"block_cs190c", blockOf(ModelStyle::cs190c(), 24, 3, 50, rows(RopeOptions::cs190c(), 32))},
      {"lm_cs336_logits",
       modelOf(ModelStyle::cs336(), 24, 3, 50, Positions::Rotary, false, "input_ids")},
      {"lm_cs336_probabilities",
       modelOf(ModelStyle::cs336(), 24, 3, 50, Positions::Rotary, true, "input_ids")},
      {"lm_learnt_positions",
       modelOf(ModelStyle::cs336(), 24, 3, 50, Positions::Learnt, false, "input_ids")},
      {"lm_cs190c", modelOf(ModelStyle::cs190c(), 40, 2, 64, Positions::None, false, "token_ids")},
      {"lm_cs190c_rope",
       modelOf(ModelStyle::cs190c(), 40, 2, 64, Positions::Rotary, false, "token_ids")},
  };
  return table;
}

// SDPA has one recording for all its masks.
const Record& recordOf(const std::string& name) {
  static const Record sdpa336 = attentionOf(nn::AttentionOptions::cs336());
  static const Record sdpa190 = attentionOf(nn::AttentionOptions::cs190c());
  if (name.starts_with("sdpa_cs336")) return sdpa336;
  if (name.starts_with("sdpa_cs190c")) return sdpa190;
  return records().at(name);
}

Array runOn(const std::string& backend, const SafetensorsFile& file, const std::string& name,
            DType dtype) {
  auto narrow = [&](const Array& a) { return isFloat(a.dtype()) ? a.to(dtype) : a; };
  Graph g;
  Case c{g, {}, dtype};
  Arrays inputs, weights;
  for (const SafetensorsEntry& entry : file.tensors()) {
    if (entry.name.starts_with("w."))
      weights[entry.name.substr(2)] = narrow(file.array(entry.name));
    if (!entry.name.starts_with("in.")) continue;
    const std::string input = entry.name.substr(3);
    const Array value = narrow(file.array(entry.name));
    // The CS190C and CS336 models number their tokens themselves.
    if (name.starts_with("lm_") && input == "token_positions") continue;
    c.inputs[input] =
        g.input(input, value.dtype(), Dims(value.shape().begin(), value.shape().end()));
    inputs[input] = value;
  }
  g.output("out", recordOf(name)(c));
  CompileOptions options;
  options.backend = backend;
  Session session(compile(g, options));
  session.bindWeights([&](const std::string& weight) { return weights.at(weight); });
  return session.run("forward", inputs).at("out");
}

// Largest |a - b|; NaN must meet NaN and infinity its like.
double largestError(const Array& a, const Array& b) {
  double worst = 0;
  if (a.shape() != b.shape()) return std::numeric_limits<double>::infinity();
  for (int64_t i = 0; i < a.size(); ++i) {
    const double x = a.at(i), y = b.at(i);
    if (std::isnan(x) && std::isnan(y)) continue;
    if (x == y) continue;
    const double error = std::abs(x - y);
    worst = std::isnan(error) ? std::numeric_limits<double>::infinity() : std::max(worst, error);
  }
  return worst;
}
// Root of the mean square of a - b, where both are finite: steadier than the largest error, which
// on a few hundred rounded numbers differs by a factor of 2 from one order of sums to another.
double typicalError(const Array& a, const Array& b) {
  double sum = 0;
  for (int64_t i = 0; i < a.size(); ++i)
    if (std::isfinite(a.at(i)) && std::isfinite(b.at(i))) sum += std::pow(a.at(i) - b.at(i), 2);
  return std::sqrt(sum / double(a.size()));
}
double largestValue(const Array& a) {
  double worst = 0;
  for (int64_t i = 0; i < a.size(); ++i)
    if (std::isfinite(a.at(i))) worst = std::max(worst, std::abs(a.at(i)));
  return worst;
}

struct Parameter {
  std::string name, backend;
};
class Seeds : public ::testing::TestWithParam<Parameter> {
 protected:
  SafetensorsFile file() const {
    return SafetensorsFile::open(LATHE_TEST_DATA "/golden/seeds/" + GetParam().name +
                                 ".safetensors");
  }
};

TEST_P(Seeds, F32EqualsPyTorch) {
  const SafetensorsFile f = file();
  const Array expected = f.array("out");
  const Array got = runOn(GetParam().backend, f, GetParam().name, DType::F32);
  EXPECT_LE(largestError(got, expected), 1e-5 * largestValue(expected));
}

// As near to the float64 result on the same bf16 numbers as PyTorch's own bf16 is.
TEST_P(Seeds, Bf16IsAsExactAsPyTorch) {
  const SafetensorsFile f = file();
  const Array truth = f.array("out.f64_of_bf16");
  const Array got = runOn(GetParam().backend, f, GetParam().name, DType::BF16);
  const Array theirs = f.array("out.bf16");
  const double floor = 1e-6 * largestValue(truth);
  EXPECT_LE(typicalError(got, truth), 1.5 * typicalError(theirs, truth) + floor);
  EXPECT_LE(largestError(got, truth), 2.5 * largestError(theirs, truth) + floor);
}

std::vector<Parameter> parameters() {
  std::vector<Parameter> all;
  for (const auto& entry : std::filesystem::directory_iterator(LATHE_TEST_DATA "/golden/seeds"))
    for (const char* backend : {"reference", "cpu"})
      if (entry.path().extension() == ".safetensors")
        all.push_back({entry.path().stem().string(), backend});
  return all;
}
INSTANTIATE_TEST_SUITE_P(PyTorch, Seeds, ::testing::ValuesIn(parameters()), [](const auto& info) {
  return info.param.name + "_" + info.param.backend;
});

}  // namespace
}  // namespace lathe
