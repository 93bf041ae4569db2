// SPDX-License-Identifier: Apache-2.0
// The encoder-decoder of nn::, its parts and every kind of positions against PyTorch: every file of
// tests/golden/seeds/encoder_decoder, in f32 and bf16, on each backend.
#include "examples/seeds/presets.h"
#include "lathe/lathe.h"
#include "tests/golden/seed_golden.h"

namespace lathe::seeds {
namespace {

nn::MultiHeadAttentionOptions heads(int64_t dModel, int64_t count) {
  nn::MultiHeadAttentionOptions o = seeds::rice::multiHeadAttention();
  o.dModel = dModel;
  o.heads = count;
  return o;
}
nn::PostNormOptions layer(int64_t dModel = 24, int64_t count = 3) {
  return {.attention = heads(dModel, count), .dHidden = 50};
}
nn::EncoderDecoderOptions model(DType dtype, int64_t dModel, int64_t count, int64_t layers,
                                int64_t maxPositions) {
  nn::EncoderDecoderOptions o = seeds::rice::encoderDecoder();
  o.sourceVocab = 31;
  o.targetVocab = 37;
  o.layers = layers;
  o.maxPositions = maxPositions;
  o.layer = layer(dModel, count);
  o.dtype = dtype;
  return o;
}

Tensor crossAttention(const Case& c) {
  return nn::MultiHeadAttention(c.g, "", heads(24, 3))(c.in("query"), c.in("key"), c.in("value"),
                                                       c.maybe("mask"));
}
Record sinesOf(int64_t size, int64_t rows) {
  return [=](const Case& c) { return nn::SinePositions(c.g, "", size, rows)(c.x()); };
}
Record tiledSoftmaxOf(int64_t block) {
  return [=](const Case& c) { return nn::tiledSoftmax(c.x(), block); };
}
Record tiledAttentionOf(int64_t block) {
  return [=](const Case& c) { return nn::tiledAttention(c.in("Q"), c.in("K"), c.in("V"), block); };
}
Record biasOf(bool bothSides) {
  return [=](const Case& c) {
    const nn::RelativePositionBias bias(c.g, "", {.heads = 3, .bothSides = bothSides});
    return bias(c.in("q"), c.in("q").dim(1), c.in("k").dim(1), c.dtype);
  };
}
Tensor relativeKeys(const Case& c) {
  nn::MultiHeadAttentionOptions o = heads(24, 3);
  o.relativeDistance = 3;
  return nn::MultiHeadAttention(c.g, "", o)(c.x());
}
Tensor relativeEncoder(const Case& c) {
  const Tensor& ids = c.in("ids");
  Tensor x = nn::Embedding(c.g, "embedding", 31, 24, {.dtype = c.dtype})(ids);
  const nn::RelativePositionBias bias(c.g, "bias", {.heads = 3, .buckets = 8, .maxDistance = 10});
  const Tensor mask = bias(ids, ids.dim(1), ids.dim(1), c.dtype);
  for (const char* name : {"layers.0", "layers.1"})
    x = nn::EncoderLayer(c.g, name, layer())(x, mask);
  return x;
}
Tensor translate(const Case& c) {
  return nn::EncoderDecoder(c.g, "", model(c.dtype, 24, 3, 2, 16))
      .forward(c.in("src"), c.in("tgt"), c.in("src_mask"), c.in("tgt_mask"));
}
Tensor translatePadded(const Case& c) {
  const Tensor source = nn::paddingMask(c.in("src"), 0), target = nn::targetMask(c.in("tgt"), 0);
  return nn::EncoderDecoder(c.g, "", model(c.dtype, 48, 4, 1, 11))
      .forward(c.in("src"), c.in("tgt"), source, target);
}

const std::map<std::string, Record>& records() {
  static const std::map<std::string, Record> table = {
      {"attention_cross", crossAttention},
      {"attention_no_mask", crossAttention},
      {"attention_masked_row", crossAttention},
      {"feed_forward", [](const Case& c) { return nn::FeedForward(c.g, "", 24, 50)(c.x()); }},
      {"encoder_layer",
       [](const Case& c) { return nn::EncoderLayer(c.g, "", layer())(c.x(), c.in("mask")); }},
      {"decoder_layer",
       [](const Case& c) {
         return nn::DecoderLayer(c.g, "", layer())(c.x(), c.in("encoded"), c.in("src_mask"),
                                                   c.in("tgt_mask"));
       }},
      {"model", translate},
      {"model_padding", translatePadded},
      {"tiled_softmax", tiledSoftmaxOf(4)},
      {"tiled_softmax_large_values", tiledSoftmaxOf(5)},
      {"tiled_attention", tiledAttentionOf(5)},
      {"tiled_attention_one_block", tiledAttentionOf(32)},
      {"sine_positions", sinesOf(24, 32)},
      {"sine_positions_far", sinesOf(6, 512)},
      {"learnt_positions",
       [](const Case& c) { return nn::LearntPositions(c.g, "", 24, 16)(c.x()); }},
      {"relative_bias_both_sides", biasOf(true)},
      {"relative_bias_one_side", biasOf(false)},
      {"relative_keys", relativeKeys},
      {"relative_encoder", relativeEncoder},
  };
  return table;
}

class EncoderDecoderSeeds : public ::testing::TestWithParam<Golden> {};
constexpr const char* kFolder = "seeds/encoder_decoder";

TEST_P(EncoderDecoderSeeds, F32EqualsPyTorch) {
  expectF32EqualsPyTorch(kFolder, GetParam(), records().at(GetParam().name));
}

TEST_P(EncoderDecoderSeeds, Bf16IsAsExactAsPyTorch) {
  expectBf16IsAsExactAsPyTorch(kFolder, GetParam(), records().at(GetParam().name));
}

INSTANTIATE_TEST_SUITE_P(PyTorch, EncoderDecoderSeeds, ::testing::ValuesIn(goldensIn(kFolder)),
                         testName);

// The op `attention` has one mask and a policy for rows that see nothing; a fill of -1e9 and a bias
// under it are expressed in them.
class RecordedFused : public ::testing::TestWithParam<const char*> {};

TEST_P(RecordedFused, AttentionKeepsTheFillAndTheBias) {
  auto of = [](int64_t relativeDistance) -> Record {
    nn::MultiHeadAttentionOptions o = heads(24, 3);
    o.attention.useFused = true;
    o.relativeDistance = relativeDistance;
    return [o](const Case& c) {
      const nn::MultiHeadAttention attention(c.g, "", o);
      if (c.inputs.count("x")) return attention(c.x());
      return attention(c.in("query"), c.in("key"), c.in("value"), c.maybe("mask"));
    };
  };
  expectF32EqualsPyTorch(kFolder, {"attention_masked_row", GetParam()}, of(0));
  expectF32EqualsPyTorch(kFolder, {"relative_keys", GetParam()}, of(3));
}

INSTANTIATE_TEST_SUITE_P(Backends, RecordedFused, ::testing::Values("reference", "cpu"));

}  // namespace
}  // namespace lathe::seeds
