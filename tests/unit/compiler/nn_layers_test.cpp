// SPDX-License-Identifier: Apache-2.0
// What Linear, Embedding, norms, activations, softmax and RoPE record.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "examples/seeds/presets.h"
#include "lathe/lathe.h"
#include "tests/unit/compiler/nn_recording.h"

namespace lathe {
namespace {

using nn::SigmoidForm;

LATHE_NN_DTYPES(NnLayers);

TEST_P(NnLayers, LinearTransposesItsWeight) {
  Recording r(GetParam());
  Tensor y = nn::Linear(r.g, "proj", 64, 96, {.bias = false})(r.x);
  EXPECT_EQ(y.dtype(), GetParam());
  EXPECT_EQ(y.shape(), (Dims{r.batch, r.seq, 96}));
  std::string t = r.text(y);
  EXPECT_TRUE(has(t, "lathe.weight \"proj.weight\" : tensor<96x64x"));
  EXPECT_EQ(ops(t, "transpose"), 1);
  EXPECT_EQ(ops(t, "matmul"), 1);
  EXPECT_EQ(ops(t, "add"), 0);
}

// The default is PyTorch's: a bias in the checkpoint must not be left out silently.
TEST(NnLinear, BiasIsAdded) {
  Recording r;
  std::string t = r.text(nn::Linear(r.g, "proj", 64, 96)(r.x));
  EXPECT_TRUE(has(t, "\"proj.bias\" : tensor<96xf32>"));
  EXPECT_EQ(ops(t, "add"), 1);
}

TEST(NnLinear, SeedsNameAndHoldTheWeightDifferently) {
  Recording r;
  Tensor a = nn::Linear(r.g, "a", 64, 96, seeds::cs336::linear())(r.x);
  Tensor b = nn::Linear(r.g, "b", 64, 96, seeds::cs190c::linear())(r.x);
  std::string t = r.text(a + b);
  EXPECT_TRUE(has(t, "\"a.W\" : tensor<96x64xf32>"));
  EXPECT_TRUE(has(t, "\"b.linear_matrix\" : tensor<64x96xf32>"));
  EXPECT_EQ(ops(t, "transpose"), 1);
}

TEST(NnLinear, StoredWeightsAreConverted) {
  Recording r;
  std::string t =
      r.text(nn::Linear(r.g, "p", 64, 8, {.bias = false, .weightDType = DType::BF16})(r.x));
  EXPECT_TRUE(has(t, "\"p.weight\" : tensor<8x64xbf16>"));
  EXPECT_EQ(ops(t, "cast"), 1);
}

TEST(NnLinear, TakesAVector) {
  Graph g;
  Tensor y = nn::Linear(g, "p", 64, 8)(g.input("x", DType::F32, {64}));
  EXPECT_EQ(y.shape(), Dims{8});
}

TEST(NnEmbedding, GathersRowsByIdAndConvertsThem) {
  Graph g;
  Dim seq = g.dim("seq", 1, 128);
  Tensor ids = g.input("ids", DType::I32, {2, seq});
  nn::EmbeddingOptions options = seeds::cs336::embedding();
  options.weightDType = DType::BF16;
  Tensor y = nn::Embedding(g, "tok", 100, 64, options)(ids);
  EXPECT_EQ(y.dtype(), DType::F32);
  EXPECT_EQ(y.shape(), (Dims{2, seq, 64}));
  g.output("y", y);
  EXPECT_TRUE(has(g.text(), "\"tok.embeddings\" : tensor<100x64xbf16>"));
  EXPECT_TRUE(has(g.text(), "axis 0"));
  EXPECT_EQ(ops(g.text(), "gather"), 1);
}

TEST_P(NnLayers, RmsNormMultipliesByTheInverseRoot) {
  Recording r(GetParam());
  Tensor y = nn::RMSNorm(r.g, "norm", 64)(r.x);
  EXPECT_EQ(y.dtype(), GetParam());
  std::string t = r.text(y);
  EXPECT_TRUE(has(t, "\"norm.weight\" : tensor<64x"));
  EXPECT_EQ(ops(t, "reduce_mean"), 1);
  EXPECT_EQ(ops(t, "rsqrt"), 1);
  EXPECT_EQ(ops(t, "div"), 0);
  EXPECT_EQ(ops(t, "cast"), castsOf(GetParam(), 2));
}

TEST_P(NnLayers, RmsNormOfCs190cDividesByTheRootOfSumOverCount) {
  Recording r(GetParam());
  std::string t = r.text(nn::RMSNorm(r.g, "norm", 64, seeds::cs190c::norm())(r.x));
  EXPECT_TRUE(has(t, "\"norm.g\""));
  EXPECT_EQ(ops(t, "reduce_sum"), 1);
  EXPECT_EQ(ops(t, "reduce_mean"), 0);
  EXPECT_EQ(ops(t, "sqrt"), 1);
  EXPECT_EQ(ops(t, "div"), 2);
}

// The gain's place is what tells CS336 from the others in bf16.
TEST(NnRmsNorm, GainBeforeOrAfterTheCastBack) {
  Recording late(DType::BF16), early(DType::BF16);
  std::string after = late.text(nn::RMSNorm(late.g, "n", 64, seeds::modern::norm())(late.x));
  std::string before = early.text(nn::RMSNorm(early.g, "n", 64, seeds::cs336::norm())(early.x));
  EXPECT_TRUE(after.rfind("lathe.cast") < after.rfind("lathe.mul"));
  EXPECT_TRUE(before.rfind("lathe.cast") > before.rfind("lathe.mul"));
  EXPECT_EQ(ops(before, "cast"), 3);  // x, gain, result
}

// A gain stored in f32 keeps its bits when it is applied in f32.
TEST(NnRmsNorm, StoredGainIsNotRoundedOnTheWay) {
  Recording r(DType::BF16);
  nn::NormOptions options = seeds::cs336::norm();
  options.weightDType = DType::F32;
  std::string t = r.text(nn::RMSNorm(r.g, "n", 64, options)(r.x));
  EXPECT_TRUE(has(t, "\"n.g\" : tensor<64xf32>"));
  EXPECT_EQ(ops(t, "cast"), 2);  // x, result
}

TEST_P(NnLayers, LayerNormCentresBeforeTheVariance) {
  Recording r(GetParam());
  Tensor y = nn::LayerNorm(r.g, "ln", 64)(r.x);
  EXPECT_EQ(y.dtype(), GetParam());
  std::string t = r.text(y);
  EXPECT_EQ(ops(t, "reduce_mean"), 2);
  EXPECT_EQ(ops(t, "sub"), 1);
  EXPECT_TRUE(has(t, "\"ln.weight\"") && has(t, "\"ln.bias\""));
}

TEST(NnActivations, SigmoidIsTheOpOrSpelled) {
  Recording r;
  Tensor op = nn::sigmoid(r.x, SigmoidForm::Op), spelled = nn::sigmoid(r.x, SigmoidForm::Spelled);
  std::string t = r.text(op + spelled);
  EXPECT_EQ(ops(t, "sigmoid"), 1);
  EXPECT_EQ(ops(t, "exp"), 1);
  EXPECT_EQ(ops(t, "neg"), 1);
  EXPECT_EQ(ops(t, "div"), 1);
}

TEST_P(NnLayers, ActivationsKeepShapeAndDType) {
  Recording r(GetParam());
  EXPECT_EQ(nn::activate(r.x, Activation::none).id(), r.x.id());
  for (Activation kind : valuesOf<Activation>()) {
    Tensor y = nn::activate(r.x, kind);
    EXPECT_EQ(y.dtype(), GetParam());
    EXPECT_EQ(y.shape(), r.x.shape());
  }
  std::string t = r.text(nn::gelu(r.x));
  EXPECT_EQ(ops(t, "erf"), 2);
  EXPECT_EQ(ops(t, "tanh"), 1);
  EXPECT_EQ(ops(t, "sigmoid"), 1);
  EXPECT_EQ(ops(t, "cast"), castsOf(GetParam(), 6));  // gelu cancels: computed in f32
}

// OpenAI's stand-in for GELU, of which checkpoints ask the very factor.
TEST(NnActivations, QuickGeluHasItsFactor) {
  const std::vector<float> x{-2, 0.5, 3};
  Graph g;
  g.output("y", nn::quickGelu(g.constant(Array::fromFloats(x, {3}))));
  Session session(compile(g, {.backend = "reference"}));
  const Array y = session.run("forward", {}).at("y");
  for (int64_t i = 0; i < 3; ++i) {
    const double v = x[size_t(i)];
    EXPECT_NEAR(y.at(i), v / (1 + std::exp(-1.702 * v)), 1e-6) << v;
  }
}

TEST_P(NnLayers, SoftmaxOverAnyAxis) {
  Recording r(GetParam());
  Tensor y = nn::softmax(r.x, 1);
  EXPECT_EQ(y.shape(), r.x.shape());
  EXPECT_EQ(y.dtype(), GetParam());
  std::string t = r.text(y);
  EXPECT_EQ(countOf(t, "axes [1] keep_dims true"), 2);
  EXPECT_EQ(
      ops(t, "reduce_max") + ops(t, "sub") + ops(t, "exp") + ops(t, "reduce_sum") + ops(t, "div"),
      5);
  EXPECT_EQ(ops(t, "cast"), castsOf(GetParam(), 2));
}

TEST(NnRope, FrequenciesAreThoseOfEachSource) {
  nn::RopeOptions hf{.headDim = 8, .theta = 10000};
  nn::RopeOptions cs336 = seeds::cs336::rope(), cs190c = seeds::cs190c::rope();
  cs336.headDim = cs190c.headDim = 8;
  const std::vector<float> expected = {1, 0.1f, 0.01f, 0.001f};
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_FLOAT_EQ(nn::ropeFrequencies(hf)[i], expected[i]);
    EXPECT_FLOAT_EQ(nn::ropeFrequencies(cs336)[i], expected[i]);
    EXPECT_FLOAT_EQ(nn::ropeFrequencies(cs190c)[i], 1 / expected[i]);
  }
}

TEST(NnRope, LinearScalingDividesEveryFrequency) {
  nn::RopeOptions o{.headDim = 8};
  const std::vector<float> plain = nn::ropeFrequencies(o);
  o.scaling = {.type = nn::RopeScalingOptions::Type::Linear, .factor = 4};
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(nn::ropeFrequencies(o)[i], plain[i] / 4);
}

// The formula of Llama 3.1 in double, by wavelength: below 8192 / 4, above 8192 / 1, between.
TEST(NnRope, Llama3ScalingKeepsHighAndStretchesLowFrequencies) {
  nn::RopeOptions o{.headDim = 16, .theta = 500000};
  const std::vector<float> plain = nn::ropeFrequencies(o);
  o.scaling = {.type = nn::RopeScalingOptions::Type::Llama3, .factor = 8};
  const std::vector<float> scaled = nn::ropeFrequencies(o);
  for (size_t i = 0; i < plain.size(); ++i) {
    const double wave = 2 * std::numbers::pi / plain[i];
    if (wave < 2048) {
      EXPECT_EQ(scaled[i], plain[i]) << i;
    } else if (wave > 8192) {
      EXPECT_EQ(scaled[i], plain[i] / 8) << i;
    } else {
      const double smooth = (8192 / wave - 1) / 3;
      EXPECT_NEAR(scaled[i], ((1 - smooth) / 8 + smooth) * plain[i], 1e-6 * plain[i]) << i;
      EXPECT_GT(scaled[i], plain[i] / 8);
    }
  }
  EXPECT_LT(scaled.back(), plain.back());
}

// The paper's ramp in double. Its ends are whole dimensions unless they are not to be.
TEST(NnRope, YarnScalingRampsBetweenItsEnds) {
  constexpr double kTheta = 10000, kFactor = 4, kSize = 32;
  nn::RopeOptions o{.headDim = int64_t(kSize), .theta = kTheta};
  const std::vector<float> plain = nn::ropeFrequencies(o);
  // An upper end among the frequencies, behind them and behind the last dimension, where it is cut.
  struct Trained {
    double length, fast, slow;
  };
  for (const auto& [length, fast, slow] :
       {Trained{100, 2, 0.2}, Trained{131072, 50, 0.3}, Trained{1e9, 1e6, 0.4}}) {
    auto endOf = [&](double turns) {
      return kSize * std::log(length / (turns * 2 * std::numbers::pi)) / (2 * std::log(kTheta));
    };
    const double low = endOf(fast), high = endOf(slow);
    // Neither end is near a whole number, to either side of it.
    ASSERT_GT(std::abs(low - std::round(low)), 0.1);
    ASSERT_GT(std::abs(high - std::round(high)), 0.1);
    for (bool truncate : {true, false}) {
      o.scaling = {.type = nn::RopeScalingOptions::Type::Yarn,
                   .factor = kFactor,
                   .originalMaxPositions = int64_t(length),
                   .betaFast = fast,
                   .betaSlow = slow,
                   .truncate = truncate};
      const std::vector<float> scaled = nn::ropeFrequencies(o);
      const double from = truncate ? std::floor(low) : low;
      const double to = std::min(truncate ? std::ceil(high) : high, kSize - 1);
      for (size_t i = 0; i < plain.size(); ++i) {
        const double ramp = std::clamp((double(i) - from) / (to - from), 0.0, 1.0);
        EXPECT_NEAR(scaled[i], plain[i] * (ramp / kFactor + 1 - ramp), 1e-5 * plain[i])
            << i << " of " << length << (truncate ? " truncated" : "");
      }
    }
  }
}

// Both ends at the first dimension: it stays and all others are stretched.
TEST(NnRope, ARampOfYarnThatHasNoWidthIsAStep) {
  nn::RopeOptions o{.headDim = 6, .theta = 10000};
  const std::vector<float> plain = nn::ropeFrequencies(o);
  o.scaling = {.type = nn::RopeScalingOptions::Type::Yarn,
               .factor = 4,
               .originalMaxPositions = 4,
               .betaFast = 32,
               .betaSlow = 1};
  const std::vector<float> scaled = nn::ropeFrequencies(o);
  EXPECT_FLOAT_EQ(scaled[0], plain[0]);
  EXPECT_FLOAT_EQ(scaled[1], plain[1] / 4);
  EXPECT_FLOAT_EQ(scaled[2], plain[2] / 4);
}

// A call whose last position is the last trained one is a short call; one position more is not.
TEST(NnRope, LongRopeTakesTheShortFactorsUpToTheTrainedLength) {
  Graph g;
  const Dim seq = g.dim("seq", 1, 16);
  nn::RopeOptions o{.headDim = 4, .maxPositions = 16};
  o.scaling = {.type = nn::RopeScalingOptions::Type::LongRope,
               .originalMaxPositions = 8,
               .shortFactor = {1, 1},
               .longFactor = {2, 2},
               .attentionFactor = 1.25};
  g.output("sin", nn::RoPE(g, "rope", o).angles(iota(g.zeros({1}), {seq}, 0)).sin);
  Session session(compile(g, {.backend = "reference"}));
  for (int64_t length : {7, 8, 9}) {
    session.setSymbol("seq", length);
    const Array sines = session.run("forward", {}).at("sin");
    const double factor = length > 8 ? 2 : 1;
    for (int64_t i = 0; i < length; ++i)
      EXPECT_NEAR(sines.at(2 * i), 1.25 * std::sin(double(i) / factor), 1e-6)
          << length << " at " << i;
  }
}

// A row is rotated by its own length, whatever others run with it.
TEST(NnRope, RowsOfScalingsThatFollowTheLengthAreApart) {
  using Type = nn::RopeScalingOptions::Type;
  nn::RopeOptions longRope{.headDim = 4, .maxPositions = 16}, dynamic = longRope;
  longRope.scaling = {.type = Type::LongRope,
                      .originalMaxPositions = 8,
                      .shortFactor = {1, 1},
                      .longFactor = {2, 2}};
  dynamic.scaling = {.type = Type::Dynamic, .factor = 4, .originalMaxPositions = 8};
  for (const nn::RopeOptions& o : {longRope, dynamic}) {
    Graph g;
    const Dim rows = g.dim("rows", 1, 4), seq = g.dim("seq", 1, 16);
    const Tensor positions = g.input("positions", DType::I64, {rows, seq});
    const nn::RopeAngles angles = nn::RoPE(g, "rope", o).angles(positions);
    g.output("cos", angles.cos);
    g.output("sin", angles.sin);
    Session session(compile(g, {.backend = "reference"}));
    auto run = [&](const std::vector<int64_t>& first) {
      Array ids(DType::I64, {int64_t(first.size()), 3});
      for (int64_t i = 0; i < ids.size(); ++i) ids.set(i, double(first[size_t(i / 3)] + i % 3));
      return session.run("forward", {{"positions", ids}});
    };
    const Arrays both = run({2, 12});
    const std::vector<Arrays> alone{run({2}), run({12})};
    for (const char* table : {"cos", "sin"})
      for (int64_t i = 0; i < 12; ++i)
        EXPECT_EQ(both.at(table).at(i), alone[size_t(i / 6)].at(table).at(i % 6)) << table << i;
    EXPECT_NE(both.at("sin").at(2), 0);
  }
}

TEST_P(NnLayers, RopeRotatesHalves) {
  Recording r(GetParam());
  Tensor positions = r.g.input("positions", DType::I64, {r.batch, r.seq});
  Tensor heads = transpose(reshape(r.x, {r.batch, r.seq, 4, 16}), {0, 2, 1, 3});
  Tensor y = nn::RoPE(r.g, "rope", {.headDim = 16, .maxPositions = 128})(heads, positions);
  EXPECT_EQ(y.shape(), heads.shape());
  EXPECT_EQ(y.dtype(), GetParam());
  std::string t = r.text(y);
  EXPECT_TRUE(has(t, "lathe.iota <128, 1> axis 0 dtype f32"));
  EXPECT_EQ(ops(t, "cos") + ops(t, "sin"), 2);
  EXPECT_EQ(ops(t, "gather"), 2);
  EXPECT_TRUE(has(t, "to <batch, 1, seq, 8>"));
  EXPECT_TRUE(has(t, "strides [1, 1, 1, 1]"));
  EXPECT_EQ(ops(t, "concat"), 1);
}

TEST(NnRope, InterleavedPairsAreStridedAndJoinedOnANewAxis) {
  Recording r;
  nn::RopeOptions o = seeds::cs190c::rope();
  o.headDim = 64;
  Tensor positions = iota(r.x, {r.seq}, 0);
  std::string t = r.text(nn::RoPE(r.g, "rope", o)(r.x, positions));
  EXPECT_EQ(countOf(t, "strides [1, 1, 2]"), 2);
  EXPECT_TRUE(has(t, "axis 3"));
  EXPECT_TRUE(has(t, "to <batch, seq, 32, 1>"));
  EXPECT_EQ(ops(t, "div"), 1);  // positions / theta^(2i/d)
}

TEST(NnRope, TablesMayBeRoundedAsHuggingFaceDoes) {
  Recording wide(DType::BF16), narrow(DType::BF16);
  auto record = [](Recording& r, bool tablesInDType) {
    Tensor positions = iota(r.x, {r.seq}, 0);
    nn::RoPE rope(r.g, "rope", {.headDim = 64, .tablesInDType = tablesInDType});
    return r.text(rope(r.x, positions));
  };
  EXPECT_EQ(countOf(record(wide, false), " to f32"), 1);
  EXPECT_EQ(countOf(record(narrow, true), " to bf16"), 2);
}

}  // namespace
}  // namespace lathe
