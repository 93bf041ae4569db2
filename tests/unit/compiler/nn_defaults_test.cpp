// SPDX-License-Identifier: Apache-2.0
// What modules are unless told otherwise: numbers and names that checkpoints rely on, and the
// values that formulas give.
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "lathe/lathe.h"
#include "tests/unit/compiler/nn_recording.h"

namespace lathe {
namespace {

TEST(NnDefaults, OfNormsAndLinears) {
  const nn::NormOptions norm, llama = nn::NormOptions::llama(), gemma = nn::NormOptions::gemma();
  EXPECT_EQ(norm.eps, 1e-5);
  EXPECT_EQ(norm.mean, nn::NormOptions::Mean::Mean);
  EXPECT_EQ(norm.form, nn::NormOptions::Form::Rsqrt);
  EXPECT_EQ(norm.rounding, GainRounding::before_gain);
  EXPECT_FALSE(norm.unitOffset);
  EXPECT_EQ(norm.gainName, "weight");
  EXPECT_EQ(llama.eps, 1e-6);
  EXPECT_EQ(llama.rounding, GainRounding::before_gain);
  EXPECT_FALSE(llama.unitOffset);
  EXPECT_EQ(gemma.eps, 1e-6);
  EXPECT_EQ(gemma.rounding, GainRounding::after_gain);
  EXPECT_TRUE(gemma.unitOffset);
  const nn::LayerNormOptions layer, dit = nn::LayerNormOptions::dit();
  EXPECT_EQ(layer.eps, 1e-5);
  EXPECT_TRUE(layer.gain && layer.bias);
  EXPECT_EQ(layer.gainName, "weight");
  EXPECT_EQ(layer.biasName, "bias");
  EXPECT_EQ(dit.eps, 1e-6);
  EXPECT_FALSE(dit.gain || dit.bias);
  const nn::LinearOptions linear, plain = nn::LinearOptions::llama();
  EXPECT_TRUE(linear.bias);
  EXPECT_EQ(linear.weightName, "weight");
  EXPECT_EQ(linear.layout, WeightLayout::out_in);
  EXPECT_FALSE(linear.useFused);
  EXPECT_FALSE(plain.bias);
  const nn::EmbeddingOptions embedding;
  EXPECT_EQ(embedding.weightName, "weight");
  EXPECT_EQ(embedding.dtype, DType::F32);
}

TEST(NnDefaults, OfAttention) {
  const nn::AttentionOptions o, llama = nn::AttentionOptions::llama(),
                                dit = nn::AttentionOptions::dit();
  EXPECT_FALSE(o.causal || o.useFused);
  EXPECT_EQ(o.window, 0);
  EXPECT_EQ(o.softcap, 0);
  EXPECT_EQ(o.scaleForm, nn::AttentionOptions::ScaleForm::Divide);
  EXPECT_FALSE(o.scale);
  EXPECT_EQ(o.maskedRow, MaskedRow::nan);
  EXPECT_EQ(o.maskFill, -std::numeric_limits<double>::infinity());
  EXPECT_EQ(llama.scaleForm, nn::AttentionOptions::ScaleForm::Multiply);
  EXPECT_EQ(dit.scaleForm, nn::AttentionOptions::ScaleForm::Query);
  const nn::SelfAttentionOptions self;
  EXPECT_EQ(self.projections, nn::SelfAttentionOptions::Projections::Separate);
  EXPECT_EQ(self.qkNorm, nn::SelfAttentionOptions::QkNorm::None);
  EXPECT_EQ(self.norm.eps, 1e-6);
  EXPECT_FALSE(self.qkvBias || self.outputBias || self.keyBias || self.rope);
  EXPECT_TRUE(self.applyOutput);
  EXPECT_EQ(self.attention.scaleForm, nn::AttentionOptions::ScaleForm::Multiply);
  EXPECT_EQ(self.names.q + self.names.k + self.names.v + self.names.o, "q_projk_projv_projo_proj");
  EXPECT_EQ(self.names.qkv + self.names.qNorm + self.names.kNorm, "qkvq_normk_norm");
  const nn::MultiHeadAttentionOptions many;
  EXPECT_TRUE(many.bias);
  EXPECT_FALSE(many.fusedProjection || many.qkvBias || many.keyBias);
  EXPECT_EQ(many.relativeDistance, 0);
  EXPECT_EQ(many.names.q + many.names.k + many.names.v + many.names.o,
            "q_projk_projv_projout_proj");
  const nn::CrossAttentionOptions cross;
  EXPECT_TRUE(cross.bias && cross.keyBias);
  EXPECT_EQ(cross.names.q + cross.names.k + cross.names.v + cross.names.o,
            "q_projk_projv_projout_proj");
}

TEST(NnDefaults, OfRotationsAndPositions) {
  const nn::RopeOptions rope;
  EXPECT_EQ(rope.maxPositions, 2048);
  EXPECT_EQ(rope.theta, 10000);
  EXPECT_EQ(rope.pairing, Pairing::half);
  EXPECT_EQ(rope.frequencies, nn::RopeOptions::Frequencies::Reciprocal);
  EXPECT_FALSE(rope.tablesInDType || rope.useFused);
  const nn::RopeScalingOptions s;
  EXPECT_EQ(s.type, nn::RopeScalingOptions::Type::Default);
  EXPECT_EQ(s.factor, 1);
  EXPECT_EQ(s.lowFreqFactor, 1);
  EXPECT_EQ(s.highFreqFactor, 4);
  EXPECT_EQ(s.originalMaxPositions, 8192);
  EXPECT_EQ(s.betaFast, 32);
  EXPECT_EQ(s.betaSlow, 1);
  EXPECT_TRUE(s.truncate);
  EXPECT_EQ(s.attentionFactor, 1);
  const nn::RelativeBiasOptions relative;
  EXPECT_EQ(relative.buckets, 32);
  EXPECT_EQ(relative.maxDistance, 128);
  EXPECT_TRUE(relative.bothSides);
  EXPECT_EQ(relative.weightName, "weight");
}

TEST(NnDefaults, OfInnerLayersAndModels) {
  const nn::FeedForwardOptions plain, dit = nn::FeedForwardOptions::dit();
  EXPECT_EQ(plain.in + plain.out, "fc1fc2");
  EXPECT_EQ(plain.activation, Activation::relu);
  EXPECT_TRUE(plain.bias);
  EXPECT_EQ(dit.activation, Activation::gelu_tanh);
  const nn::FeedForwardOptions gpt = nn::FeedForwardOptions::gpt();
  EXPECT_EQ(gpt.in + gpt.out, "c_fcc_proj");
  EXPECT_EQ(gpt.activation, Activation::gelu_tanh);
  const nn::SwiGLUOptions gated;
  EXPECT_EQ(gated.gate + gated.up + gated.down + gated.gateUp, "gate_projup_projdown_proj");
  EXPECT_EQ(gated.activation, Activation::silu);
  EXPECT_EQ(gated.sigmoid, nn::SigmoidForm::Op);
  EXPECT_FALSE(gated.bias || gated.useFused);
  const nn::MixtureOptions mixture;
  EXPECT_TRUE(mixture.normalize);
  EXPECT_EQ(mixture.router + mixture.expert, "gateexperts");
  const nn::BlockNames block;
  EXPECT_EQ(block.attentionNorm, "input_layernorm");
  EXPECT_EQ(block.attention, "self_attn");
  EXPECT_EQ(block.mlpNorm, "post_attention_layernorm");
  EXPECT_EQ(block.mlp, "mlp");
  const nn::DiTOptions image;
  EXPECT_EQ(image.image.height, 32);
  EXPECT_EQ(image.image.width, 32);
  EXPECT_EQ(image.channels, 4);
  EXPECT_EQ(image.patch, 2);
  EXPECT_TRUE(image.learnSigma);
  EXPECT_EQ(image.labels, 1001);
  EXPECT_EQ(image.timestep.frequencies, 256);
  EXPECT_EQ(image.timestep.maxPeriod, 10000);
  EXPECT_FALSE(image.timestep.endsAtPeriod);
  EXPECT_EQ(image.timestep.first + image.timestep.second, "mlp.0mlp.2");
  const nn::EncoderDecoderOptions both;
  EXPECT_EQ(both.maxPositions, 512);
  EXPECT_EQ(both.embeddingScale, 1);
  EXPECT_EQ(both.positions, nn::EncoderDecoderOptions::Positions::Sine);
}

// --- values

std::vector<double> run(const std::function<Tensor(Graph&, const Tensor&)>& body,
                        const std::vector<double>& x, const Arrays& weights = {}) {
  Graph g;
  g.output("y", body(g, g.input("x", DType::F32, {1, int64_t(x.size())})));
  Session session(compile(g, {.backend = "reference"}));
  session.bindWeights([&](const std::string& name) { return weights.at(name); });
  Array in(DType::F32, {1, int64_t(x.size())});
  for (size_t i = 0; i < x.size(); ++i) in.set(int64_t(i), x[i]);
  const Array y = session.run("forward", {{"x", in}}).at("y");
  std::vector<double> values;
  for (int64_t i = 0; i < y.size(); ++i) values.push_back(y.at(i));
  return values;
}
Array filled(const std::vector<double>& values) {
  Array a(DType::F32, {int64_t(values.size())});
  for (size_t i = 0; i < values.size(); ++i) a.set(int64_t(i), values[i]);
  return a;
}

TEST(NnValues, OfActivations) {
  struct Row {
    Activation kind;
    double (*formula)(double);
  };
  for (const Row& row :
       {Row{Activation::silu, [](double x) { return x / (1 + std::exp(-x)); }},
        {Activation::gelu, [](double x) { return x / 2 * (1 + std::erf(x / std::sqrt(2.0))); }},
        {Activation::gelu_tanh,
         [](double x) {
           return x / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
         }},
        {Activation::relu, [](double x) { return std::max(x, 0.0); }},
        {Activation::none, [](double x) { return x; }}}) {
    const std::vector<double> x{-3, -0.5, 0, 0.75, 2};
    const std::vector<double> y =
        run([&](Graph&, const Tensor& in) { return nn::activate(in, row.kind); }, x);
    for (size_t i = 0; i < x.size(); ++i)
      EXPECT_NEAR(y[i], row.formula(x[i]), 1e-6) << nameOf(row.kind) << " of " << x[i];
  }
  const std::vector<double> quick =
      run([](Graph&, const Tensor& in) { return nn::quickGelu(in); }, {1.5});
  EXPECT_NEAR(quick[0], 1.5 / (1 + std::exp(-1.702 * 1.5)), 1e-6);
}

// Of numbers as small as epsilon its place and size are seen.
TEST(NnValues, OfNorms) {
  const std::vector<double> x{3e-3, -1e-3, 2e-3, 4e-3}, gain{1, 2, 3, 4}, bias{5, 6, 7, 8};
  double mean = 0, square = 0, variance = 0;
  for (double v : x) mean += v / 4, square += v * v / 4;
  for (double v : x) variance += (v - mean) * (v - mean) / 4;
  const Arrays weights{{"n.weight", filled(gain)}, {"n.bias", filled(bias)}};
  for (double eps : {1e-5, 1e-6}) {
    const auto rms =
        run([&](Graph& g, const Tensor& in) { return nn::RMSNorm(g, "n", 4, {.eps = eps})(in); }, x,
            weights);
    const auto offset = run(
        [&](Graph& g, const Tensor& in) {
          return nn::RMSNorm(g, "n", 4, {.eps = eps, .unitOffset = true})(in);
        },
        x, weights);
    const auto divided = run(
        [&](Graph& g, const Tensor& in) {
          return nn::RMSNorm(g, "n", 4,
                             {.eps = eps,
                              .mean = nn::NormOptions::Mean::SumOverCount,
                              .form = nn::NormOptions::Form::Divide})(in);
        },
        x, weights);
    const auto layer =
        run([&](Graph& g, const Tensor& in) { return nn::LayerNorm(g, "n", 4, {.eps = eps})(in); },
            x, weights);
    const auto bare = run(
        [&](Graph& g, const Tensor& in) {
          return nn::LayerNorm(g, "n", 4, {.eps = eps, .gain = false, .bias = false})(in);
        },
        x);
    for (size_t i = 0; i < 4; ++i) {
      const double r = x[i] / std::sqrt(square + eps),
                   c = (x[i] - mean) / std::sqrt(variance + eps);
      EXPECT_NEAR(rms[i], r * gain[i], 1e-5);
      EXPECT_NEAR(offset[i], r * (1 + gain[i]), 1e-5);
      EXPECT_NEAR(divided[i], r * gain[i], 1e-5);
      EXPECT_NEAR(layer[i], c * gain[i] + bias[i], 1e-5);
      EXPECT_NEAR(bare[i], c, 1e-5);
    }
  }
}

TEST(NnValues, OfRotationsThatAreStretched) {
  for (auto [factor, scale, wanted] : {std::tuple(4.0, 1.0, 0.1 * std::log(4.0) + 1),
                                       {4.0, 0.5, 0.05 * std::log(4.0) + 1},
                                       {1.0, 1.0, 1.0},
                                       {0.5, 1.0, 1.0}})
    EXPECT_DOUBLE_EQ(nn::yarnAttentionFactor(factor, scale), wanted);
  EXPECT_DOUBLE_EQ(nn::longRopeAttentionFactor(4, 4096),
                   std::sqrt(1 + std::log(4.0) / std::log(4096.0)));
  EXPECT_EQ(nn::longRopeAttentionFactor(1, 4096), 1);
  EXPECT_EQ(nn::longRopeAttentionFactor(0.5, 4096), 1);
  const std::vector<float> sines = nn::sineFrequencies(8);
  ASSERT_EQ(sines.size(), 4u);
  for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(sines[i], std::pow(10000, -2.0 * double(i) / 8), 1e-6);
  const nn::TimestepOptions o{.frequencies = 8, .maxPeriod = 1000};
  const std::vector<float> steps = nn::timestepFrequencies(o);
  ASSERT_EQ(steps.size(), 4u);
  for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(steps[i], std::pow(1000, -double(i) / 4), 1e-6);
}

}  // namespace
}  // namespace lathe
