// SPDX-License-Identifier: Apache-2.0
// What attention and CausalSelfAttention record.
#include "examples/seeds/presets.h"
#include "tests/unit/compiler/nn_recording.h"

namespace lathe {
namespace {

LATHE_NN_DTYPES(NnSelf);

TEST_P(NnSelf, AttentionIsElementary) {
  Recording r;
  Qkv a(r, 4, GetParam());
  Tensor y = nn::attention(a.q, a.k, a.v, {.causal = true});
  EXPECT_EQ(y.shape(), a.q.shape());
  EXPECT_EQ(y.dtype(), GetParam());
  std::string t = r.text(y);
  EXPECT_EQ(ops(t, "matmul"), 2);
  EXPECT_TRUE(has(t, "[0, 1, 3, 2]"));
  EXPECT_EQ(ops(t, "div"), 2);  // by sqrt(16), by the sum
  EXPECT_TRUE(has(t, "dense<4.000000e+00>"));
  EXPECT_EQ(ops(t, "select"), 1);
  EXPECT_EQ(ops(t, "broadcast"), 0);
  EXPECT_EQ(ops(t, "attention"), 0);
  EXPECT_EQ(ops(t, "cast"), castsOf(GetParam(), 2));
}

TEST(NnAttention, AGivenScaleIsTakenInEveryForm) {
  using Form = nn::AttentionOptions::ScaleForm;
  for (Form form : {Form::Divide, Form::Multiply, Form::Query}) {
    Recording r;
    Qkv a(r, 4, DType::F32);
    std::string t = r.text(nn::attention(a.q, a.k, a.v, {.scaleForm = form, .scale = 0.125}));
    EXPECT_TRUE(has(t, form == Form::Divide ? "dense<8.000000e+00>" : "dense<1.250000e-01>")) << t;
    EXPECT_FALSE(has(t, "dense<4.000000e+00>")) << "the root of the head size, 16";
  }
}

// Heads of a size of their own need not divide the width.
TEST(NnAttention, HeadsMayBeOfAnotherSizeThanTheirShareOfTheWidth) {
  Recording r;
  Tensor x = r.g.input("x10", DType::F32, {1, 3, 10});
  const nn::CausalSelfAttention attention(r.g, "own", {.dModel = 10, .heads = 3, .headDim = 4});
  EXPECT_EQ(attention(x).shape(), x.shape());
}

// Of one text a mask of its keys is that of each query.
TEST(NnAttention, AMaskOfOneTextCanBeReadOneWay) {
  Recording r;
  Tensor q = r.g.input("q1", DType::F32, {1, 2, 3, 16}),
         k = r.g.input("k1", DType::F32, {1, 2, 5, 16});
  Tensor mask = r.g.input("keys", DType::Bool, {1, 5});
  std::string t = r.text(nn::attention(q, k, k, {.mask = mask}));
  EXPECT_EQ(ops(t, "select"), 1);
}

TEST(NnAttention, GroupedHeadsAreRepeated) {
  Recording r;
  Qkv a(r, 2, DType::F32);
  std::string t = r.text(nn::attention(a.q, a.k, a.v, nn::AttentionOptions::llama()));
  EXPECT_EQ(countOf(t, "lathe.broadcast"), 2);
  EXPECT_EQ(countOf(t, "to <batch, 2, 1, seq, 16>"), 2);
  EXPECT_EQ(countOf(t, "to <batch, 2, 2, seq, 16>"), 2);
  EXPECT_EQ(ops(t, "div"), 1);  // scaled by a product
  EXPECT_TRUE(has(t, "dense<2.500000e-01>"));
}

TEST(NnAttention, FullyMaskedRowsBecomeZeroOnlyWhereAsked) {
  for (bool zero : {false, true}) {
    Recording r;
    Tensor mask = r.g.input("mask", DType::Bool, {r.seq, r.seq});
    auto o = zero ? seeds::cs336::attention() : seeds::cs190c::attention();
    o.mask = mask;
    std::string t = r.text(nn::attention(r.x, r.x, r.x, o));
    EXPECT_EQ(ops(t, "is_nan"), zero);
    EXPECT_EQ(ops(t, "select"), zero ? 2 : 1);
  }
}

TEST(NnAttention, FloatMasksAreAdded) {
  Recording r;
  Tensor mask = r.g.input("mask", DType::F32, {r.seq, r.seq});
  std::string t = r.text(nn::attention(r.x, r.x, r.x, {.mask = mask}));
  EXPECT_EQ(ops(t, "add"), 1);
  EXPECT_EQ(ops(t, "select"), 0);
}

TEST(NnAttention, AsOneOp) {
  Recording r;
  Qkv a(r, 2, DType::F32);
  std::string t = r.text(nn::attention(a.q, a.k, a.v, {.causal = true, .useFused = true}));
  EXPECT_EQ(ops(t, "attention"), 1);
  EXPECT_TRUE(has(t, "top_left"));
  EXPECT_EQ(ops(t, "matmul"), 0);
}

TEST_P(NnSelf, SelfAttentionOfLlama) {
  Recording r(GetParam());
  nn::CausalSelfAttention attn(r.g, "layers.0.self_attn",
                               {.dModel = 64,
                                .heads = 4,
                                .kvHeads = 2,
                                .headDim = 32,
                                .rope = nn::RopeOptions{.maxPositions = 128}});
  Tensor y = attn(r.x);
  EXPECT_EQ(y.shape(), r.x.shape());
  EXPECT_EQ(y.dtype(), GetParam());
  std::string t = r.text(y);
  EXPECT_TRUE(has(t, "\"layers.0.self_attn.q_proj.weight\" : tensor<128x64x"));
  EXPECT_TRUE(has(t, "\"layers.0.self_attn.k_proj.weight\" : tensor<64x64x"));
  EXPECT_TRUE(has(t, "\"layers.0.self_attn.v_proj.weight\" : tensor<64x64x"));
  EXPECT_TRUE(has(t, "\"layers.0.self_attn.o_proj.weight\" : tensor<64x128x"));
  EXPECT_EQ(ops(t, "gather"), 2);  // one table for q and k
  EXPECT_EQ(ops(t, "concat"), 2);
}

TEST(NnSelfAttention, FusedQkvIsSplitByRows) {
  Recording r;
  nn::SelfAttentionOptions o{.dModel = 64,
                             .heads = 4,
                             .kvHeads = 2,
                             .projections = nn::SelfAttentionOptions::Projections::Fused,
                             .qkvBias = true};
  std::string t = r.text(nn::CausalSelfAttention(r.g, "attn", o)(r.x));
  EXPECT_TRUE(has(t, "\"attn.qkv.weight\" : tensor<128x64xf32>"));
  EXPECT_TRUE(has(t, "\"attn.qkv.bias\""));
  EXPECT_TRUE(has(t, "starts <0, 0, 96> sizes <batch, seq, 32>"));
}

TEST(NnSelfAttention, ModernTransformersReadsTheFusedResultByAnOddView) {
  Recording r;
  nn::SelfAttentionOptions o = seeds::modern::selfAttention();
  o.dModel = 64;
  o.heads = 4;
  Tensor y = nn::CausalSelfAttention(r.g, "attn", o)(r.x);
  EXPECT_EQ(y.shape(), r.x.shape());
  std::string t = r.text(y);
  EXPECT_TRUE(has(t, "to <3, batch, seq, 16, 4>"));
  EXPECT_TRUE(has(t, "[0, 1, 4, 2, 3]"));
  EXPECT_FALSE(has(t, "attn.o."));
}

TEST(NnSelfAttention, CacheIsUpdatedAndAttendedTo) {
  Recording r;
  Dim cache = r.g.dim("cache", 1, 128);
  Tensor positions = r.g.input("positions", DType::I64, {r.batch});
  r.g.state("k", DType::F32, {r.batch, 2, cache, 16});
  r.g.state("v", DType::F32, {r.batch, 2, cache, 16});
  nn::CausalSelfAttention attn(
      r.g, "attn",
      {.dModel = 64, .heads = 4, .kvHeads = 2, .rope = nn::RopeOptions{.maxPositions = 128}});
  Tensor y = attn(r.x, positions, {.keys = "k", .values = "v"});
  EXPECT_EQ(y.shape(), r.x.shape());
  std::string t = r.text(y);
  EXPECT_EQ(ops(t, "update"), 2);
  EXPECT_TRUE(has(t, "lathe.iota <1, cache> axis 1 dtype i64"));
  EXPECT_TRUE(has(t, "to <batch, 1, 1, 1>"));
  EXPECT_EQ(ops(t, "compare"), 1);
  EXPECT_EQ(countOf(t, "lathe.state = @k}"), 2);  // argument and result
}

}  // namespace
}  // namespace lathe
