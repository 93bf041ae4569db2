// SPDX-License-Identifier: Apache-2.0
// The encoder-decoder's modules and positions: what is recorded, and the words for misuse.
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

}  // namespace
}  // namespace lathe
