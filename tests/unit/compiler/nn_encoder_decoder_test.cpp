// SPDX-License-Identifier: Apache-2.0
// The encoder-decoder's modules and positions: what is recorded, and the words for misuse.
#include <bit>
#include <cmath>

#include "lathe/lathe.h"
#include "tests/unit/compiler/nn_recording.h"

namespace lathe {
namespace {

nn::MultiHeadAttentionOptions heads(int64_t count) {
  nn::MultiHeadAttentionOptions o;
  o.dModel = 64;
  o.heads = count;
  return o;
}

TEST(NnMultiHeadAttention, ReadsKeysOfAnotherLength) {
  Recording r;
  Tensor encoded = r.g.input("encoded", DType::F32, {r.batch, 7, 64});
  const Tensor y = nn::MultiHeadAttention(r.g, "cross", heads(4))(r.x, encoded, encoded);
  EXPECT_EQ(nn::typeText(y), "f32[batch, seq, 64]");
  const std::string text = r.text(y);
  EXPECT_TRUE(has(text, "tensor<?x4x?x7xf32, #lathe.dims<batch, 4, seq, 7>>"));
  for (const char* name : {"q_proj", "k_proj", "v_proj", "out_proj"})
    EXPECT_TRUE(has(text, "\"cross." + std::string(name) + ".weight\""));
}

// T5 has heads of any depth.
TEST(NnCrossAttention, HeadsOfAGivenDepthNeedNotDivideTheWidth) {
  Recording r;
  Tensor encoded = r.g.input("encoded", DType::F32, {r.batch, 7, 64});
  const nn::CrossAttention layer(r.g, "cross", {.dModel = 64, .heads = 3, .headDim = 5});
  const std::string text = r.text(layer(r.x, layer.keysOf(encoded)));
  EXPECT_TRUE(has(text, "\"cross.q_proj.weight\" : tensor<15x64xf32>")) << text;
  EXPECT_THROW(nn::CrossAttention(r.g, "other", {.dModel = 64, .heads = 3}), Error);
}

TEST(NnMultiHeadAttention, HidesWithItsOwnNumberNotWithInfinity) {
  Recording r;
  Tensor ids = r.g.input("ids", DType::I64, {r.batch, r.seq});
  nn::MultiHeadAttentionOptions o = heads(4);
  o.attention.maskFill = -1e9;
  const std::string text =
      r.text(nn::MultiHeadAttention(r.g, "a", o)(r.x, nn::paddingMask(ids, /*padding=*/0)));
  EXPECT_TRUE(has(text, "dense<-1.000000e+09>"));
  EXPECT_FALSE(has(text, "0xFF800000"));
}

TEST(NnMultiHeadAttention, TheOptionsMaskHoldsUntilAnotherIsGiven) {
  for (bool given : {false, true}) {
    Recording r;
    nn::MultiHeadAttentionOptions o = heads(4);
    o.attention.mask = r.g.input("always", DType::Bool, {r.batch, 1, 1, r.seq});
    const Tensor other = r.g.input("other", DType::Bool, {r.batch, 1, 1, r.seq});
    const nn::MultiHeadAttention attention(r.g, "a", o);
    const std::string text =
        r.text(given ? attention(r.x, r.x, r.x, other) : attention(r.x, r.x, r.x));
    EXPECT_TRUE(has(text, given ? "lathe.select %arg2" : "lathe.select %arg1")) << text;
  }
}

TEST(NnMultiHeadAttention, HidesWithInfinityAsPyTorchDoes) {
  Recording r;
  Tensor ids = r.g.input("ids", DType::I64, {r.batch, r.seq});
  const std::string text =
      r.text(nn::MultiHeadAttention(r.g, "a", heads(4))(r.x, nn::paddingMask(ids, /*padding=*/0)));
  EXPECT_TRUE(has(text, "0xFF800000"));
}

TEST(NnMultiHeadAttention, RelativeKeysTakeTheScaleOfTheScores) {
  for (bool given : {false, true}) {
    Recording r;
    nn::MultiHeadAttentionOptions o = heads(4);
    o.relativeDistance = 3;
    o.attention.scaleForm = nn::AttentionOptions::ScaleForm::Multiply;
    if (given) o.attention.scale = 0.375;
    const std::string text = r.text(nn::MultiHeadAttention(r.g, "a", o)(r.x));
    // Of the scores and of the products with the relative keys; without one, 1 / sqrt(16).
    EXPECT_EQ(countOf(text, "dense<3.750000e-01>"), given ? 2 : 0) << text;
    EXPECT_EQ(countOf(text, "dense<2.500000e-01>"), given ? 0 : 2) << text;
  }
}

TEST(NnMultiHeadAttention, ChecksItsOptionsAndOperands) {
  Recording r;
  expectError([&] { nn::MultiHeadAttention(r.g, "a", heads(5)); },
              "MultiHeadAttention 'a': expected heads that divide dModel, got 5 heads and dModel "
              "64; change one of them");
  nn::MultiHeadAttentionOptions fused = heads(4);
  fused.fusedProjection = true;
  nn::MultiHeadAttention self(r.g, "a", fused);
  expectError([&] { self(r.x, r.x, r.x, Tensor()); },
              "MultiHeadAttention 'a': expected one tensor for a fused projection");
  Tensor rows = r.g.input("rows", DType::F32, {3, 64});
  expectError([&] { self(rows); },
              "MultiHeadAttention 'a', x: expected [batch, seq, 64], got f32[3, 64]");
}

TEST(NnAttention, ABiasIsAddedBeforeTheMask) {
  Recording r;
  Qkv a(r, 4, DType::F32);
  Tensor bias = r.g.input("bias", DType::F32, {1, 4, r.seq, r.seq});
  Tensor mask = r.g.input("mask", DType::Bool, {r.seq, r.seq});
  const std::string text =
      r.text(nn::attention(a.q, a.k, a.v, {.mask = mask, .bias = bias, .causal = true}));
  EXPECT_LT(text.find("lathe.add"), text.find("lathe.select"));
  EXPECT_EQ(ops(text, "select"), 2);
}

TEST(NnAttention, ChecksItsBiasAndFill) {
  Recording r;
  Qkv a(r, 4, DType::F32);
  Tensor mask = r.g.input("mask", DType::Bool, {r.seq, r.seq});
  expectError([&] { nn::attention(a.q, a.k, a.v, {.bias = mask}); },
              "expected a float bias, got bool[seq, seq]; a bool belongs into `mask`");
  expectError([&] { nn::attention(a.q, a.k, a.v, {.maskFill = 1}); },
              "expected a negative maskFill, got 1.0");
}

TEST(NnEncoderDecoder, ChecksIdsAndSizes) {
  Graph g;
  Tensor floats = g.input("f", DType::F32, {2, 3});
  nn::EncoderDecoderOptions o{.sourceVocab = 9, .targetVocab = 9, .layers = 1};
  o.layer.attention = heads(4);
  o.layer.dHidden = 8;
  nn::EncoderDecoder model(g, "m", o);
  expectError([&] { model.encode(floats); },
              "EncoderDecoder 'm', source: expected integer ids [batch, seq], got f32[2, 3]");
  expectError([&] { nn::paddingMask(floats, 0); },
              "paddingMask: expected integer ids [batch, seq], got f32[2, 3]");
  o.targetVocab = 0;
  expectError([&] { nn::EncoderDecoder(g, "m", o); },
              "EncoderDecoder 'm', targetVocab: expected at least 1, got 0");
}

TEST(NnPositions, SizesMustHoldWholeAngles) {
  Graph g;
  expectError(
      [&] { nn::SinePositions(g, "p", 7, 16); },
      "SinePositions 'p': expected a size that is a multiple of 2, got 7; each angle needs a "
      "sine and a cosine");
  expectError([&] { nn::SinePositions2d(g, "p", 6, 2, 2); }, "a multiple of 4, got 6");
  expectError([&] { nn::RelativePositionBias(g, "b", {.heads = 2, .buckets = 7}); },
              "RelativePositionBias 'b': expected at least 2 buckets per side");
}

// A table has the element type of what it is added to.
TEST(NnPositions, FollowTheDtypeOfX) {
  Graph g;
  for (DType dtype : {DType::F32, DType::BF16, DType::F16}) {
    const std::string name = "p" + std::to_string(int(dtype));
    Tensor x = g.input("x" + name, dtype, {2, 3, 8});
    EXPECT_EQ(nn::LearntPositions(g, name, 8, 16)(x).dtype(), dtype);
    EXPECT_EQ(nn::SinePositions(g, "sines." + name, 8, 16)(x).dtype(), dtype);
  }
}

// One bucket per distance, then logarithmic ones; the last takes all that is far.
TEST(NnPositions, BucketsOfDistances) {
  EXPECT_EQ(nn::relativeBuckets(4, 8), (std::vector<int64_t>{0, 1, 2, 2, 3, 3, 3, 3, 3}));
}

TEST(NnTiledAttention, BlocksNeedANumberOfKeys) {
  Recording r;
  expectError([&] { nn::tiledSoftmax(swapAxes(r.x, 1, 2), 4); },
              "tiledSoftmax: expected an axis -1 whose size is a number, got f32[batch, 64, seq]");
  expectError([&] { nn::tiledSoftmax(r.x, 0); }, "tiledSoftmax, block: expected at least 1");
}

// The running maximum and sums are brought up to each later block, wherever the largest score is.
TEST(NnTiledAttention, IsAttentionWhereverTheLargestScoreLies) {
  constexpr int64_t kKeys = 6, kDepth = 4, kValues = 3;
  for (const char* order : {"rises", "falls", "in the middle"})
    for (int64_t block : {1, 2, 4, 6, 9}) {
      SCOPED_TRACE(order + std::string(", blocks of ") + std::to_string(block));
      Array q(DType::F32, {2, kDepth}), k(DType::F32, {kKeys, kDepth}),
          v(DType::F32, {kKeys, kValues});
      for (int64_t i = 0; i < q.size(); ++i) q.set(i, 1 + double(i) / 8);
      for (int64_t j = 0; j < kKeys; ++j) {
        const double size = *order == 'r'   ? double(j)
                            : *order == 'f' ? double(kKeys - j)
                                            : double(3 - std::abs(j - 3));
        for (int64_t d = 0; d < kDepth; ++d) k.set(j * kDepth + d, size / (1 + double(d)));
        for (int64_t d = 0; d < kValues; ++d) v.set(j * kValues + d, double(j * j - 2 * d));
      }
      Graph g;
      const Tensor tq = g.input("q", DType::F32, {2, kDepth}),
                   tk = g.input("k", DType::F32, {kKeys, kDepth}),
                   tv = g.input("v", DType::F32, {kKeys, kValues});
      g.output("y", nn::tiledAttention(tq, tk, tv, block));
      g.output("p", nn::tiledSoftmax(tk, block));
      Session session(compile(g, {.backend = "reference"}));
      const auto out = session.run("forward", {{"q", q}, {"k", k}, {"v", v}});
      for (int64_t i = 0; i < 2; ++i) {
        std::vector<double> weights;
        double sum = 0;
        for (int64_t j = 0; j < kKeys; ++j) {
          double score = 0;
          for (int64_t d = 0; d < kDepth; ++d)
            score += q.at(i * kDepth + d) * k.at(j * kDepth + d) / std::sqrt(double(kDepth));
          weights.push_back(std::exp(score));
          sum += weights.back();
        }
        for (int64_t d = 0; d < kValues; ++d) {
          double want = 0;
          for (int64_t j = 0; j < kKeys; ++j)
            want += weights[size_t(j)] / sum * v.at(j * kValues + d);
          EXPECT_NEAR(out.at("y").at(i * kValues + d), want, 2e-5);
        }
      }
      for (int64_t j = 0; j < kKeys; ++j) {
        double sum = 0;
        for (int64_t d = 0; d < kDepth; ++d) sum += std::exp(k.at(j * kDepth + d));
        for (int64_t d = 0; d < kDepth; ++d)
          EXPECT_NEAR(out.at("p").at(j * kDepth + d), std::exp(k.at(j * kDepth + d)) / sum, 1e-6);
      }
    }
}

// Press et al., "Train Short, Test Long", 2022: 2^(-8 i / n) for n heads, a power of two; others
// take those of the next lower power, then every other one of the next higher.
TEST(NnPositions, SlopesOfAnyNumberOfHeads) {
  auto ofPower = [](int64_t n) {
    std::vector<double> slopes;
    for (int64_t i = 1; i <= n; ++i) slopes.push_back(std::exp2(-8.0 * double(i) / double(n)));
    return slopes;
  };
  for (int64_t heads : {1, 2, 3, 5, 6, 7, 8, 12, 13, 16, 20, 31, 71}) {
    const int64_t power = int64_t(std::bit_floor(uint64_t(heads)));
    std::vector<double> want = ofPower(power);
    const std::vector<double> further = ofPower(2 * power);
    for (size_t i = 0; int64_t(want.size()) < heads; i += 2) want.push_back(further[i]);
    const std::vector<float> got = nn::alibiSlopes(heads);
    ASSERT_EQ(int64_t(got.size()), heads);
    for (size_t i = 0; i < want.size(); ++i) EXPECT_FLOAT_EQ(got[i], float(want[i])) << heads;
  }
}

}  // namespace
}  // namespace lathe
