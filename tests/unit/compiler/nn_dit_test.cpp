// SPDX-License-Identifier: Apache-2.0
// The diffusion transformer's modules: shapes, and the words for misuse.
#include "tests/unit/compiler/nn_recording.h"

namespace lathe {
namespace {

TEST(NnDiT, AnImageComesBackWithNoiseAndVariance) {
  Graph g;
  Dim batch = g.dim("batch", 1, 4);
  const nn::DiTOptions o{.image = {6, 8}, .channels = 3, .dModel = 16, .layers = 1, .heads = 2};
  Tensor image = g.input("image", DType::F32, {batch, 3, 6, 8});
  Tensor steps = g.input("steps", DType::F32, {batch});
  Tensor labels = g.input("labels", DType::I64, {batch});
  const Tensor y = nn::DiT(g, "", o)(image, steps, labels);
  EXPECT_EQ(nn::typeText(y), "f32[batch, 6, 6, 8]");
  g.output("y", y);
  const std::string text = g.text();
  // Norms without gain and bias, two per block and one at the end.
  EXPECT_EQ(ops(text, "rsqrt"), 3);
  EXPECT_FALSE(has(text, "norm1.weight"));
  for (const char* name : {"x_embedder.proj.weight", "t_embedder.mlp.2.bias", "pos_embed",
                           "y_embedder.embedding_table.weight", "blocks.0.attn.qkv.weight",
                           "blocks.0.adaLN_modulation.1.weight", "blocks.0.mlp.fc2.bias",
                           "final_layer.adaLN_modulation.1.bias", "final_layer.linear.weight"})
    EXPECT_TRUE(has(text, "\"" + std::string(name) + "\"")) << name;
}

TEST(NnDiT, PatchesMustTileTheImage) {
  Graph g;
  const nn::DiTOptions o{.image = {6, 7}, .dModel = 16, .layers = 1, .heads = 2};
  expectError([&] { nn::DiT(g, "dit", o); },
              "DiT 'dit': expected an image whose sides are multiples of the patch, got 6 x 7 and "
              "patches of 2; pad the image");
  nn::PatchEmbedding patches(g, "p", 3, 2, 16);
  Tensor image = g.input("image", DType::F32, {1, 3, 6, 7});
  expectError(
      [&] { patches(image); },
      "PatchEmbedding 'p': expected floats [batch, 3, height, width] whose height and width "
      "are numbers and multiples of 2, got f32[1, 3, 6, 7]");
}

// CLIP's patches have none.
TEST(NnDiT, PatchesMayHaveNoBias) {
  for (bool bias : {true, false}) {
    Graph g;
    Tensor image = g.input("image", DType::F32, {1, 3, 6, 8});
    const Tensor y = nn::PatchEmbedding(g, "p", 3, 2, 16, {.bias = bias})(image);
    EXPECT_EQ(nn::typeText(y), "f32[1, 12, 16]");
    g.output("y", y);
    EXPECT_TRUE(has(g.text(), "\"p.proj.weight\""));
    EXPECT_EQ(has(g.text(), "\"p.proj.bias\""), bias);
  }
}

TEST(NnDiT, AnotherImageSizeIsNamed) {
  Graph g;
  nn::DiT model(g, "dit", {.image = {4, 4}, .dModel = 16, .layers = 1, .heads = 2});
  Tensor image = g.input("image", DType::F32, {1, 4, 4, 6});
  Tensor one = g.input("one", DType::I64, {1});
  expectError([&] { model(image, one, one); },
              "DiT 'dit': expected an image f32[batch, channels, 4, 4], got f32[1, 4, 4, 6]");
}

TEST(NnDiT, UnpatchifyAndModulateCheckTheirShapes) {
  Recording r;
  expectError([&] { nn::unpatchify(r.x, 2, 3, 2); },
              "unpatchify: expected [batch, 2 * 3, 4 * channels], got f32[batch, seq, 64]");
  Tensor narrow = r.g.input("narrow", DType::F32, {r.batch, 63});
  expectError([&] { nn::modulate(r.x, narrow, narrow); },
              "modulate: expected x [batch, tokens, d] and shift and scale [batch, d]");
}

TEST(NnDiT, TimestepsNeedPairsOfFrequencies) {
  Graph g;
  expectError([&] { nn::TimestepEmbedding(g, "t", 8, {.frequencies = 7}); },
              "TimestepEmbedding 't': expected an even number of frequencies, got 7");
  expectError([&] { nn::TimestepEmbedding(g, "t", 8, {.maxPeriod = 0}); },
              "expected a positive maxPeriod");
}

}  // namespace
}  // namespace lathe
