// SPDX-License-Identifier: Apache-2.0
// A vision transformer under Hugging Face's names: patches and a class token through pre-norm
// encoder blocks; the class token's vector is classified.
#include "run_golden.h"

using namespace lathe;

int main(int argc, char** argv) {
  constexpr int64_t kWidth = 24, kPatches = 16;
  const nn::LayerNormOptions norm{.eps = 1e-12};
  const nn::FeedForwardOptions mlp{.activation = Activation::gelu};

  Graph g("vit");
  Dim batch = g.dim("batch", 1, 8);
  Tensor image = g.input("image", DType::F32, {batch, 3, 16, 16});
  Tensor patches = nn::PatchEmbedding(g, "vit.embeddings.patch_embeddings", /*channels=*/3,
                                      /*patch=*/4, kWidth, {.projection = "projection"})(image);
  Tensor first = g.weight("vit.embeddings.cls_token", DType::F32, {1, 1, kWidth});
  Tensor x = concat({broadcast(first, {batch, 1, kWidth}), patches}, 1);
  x = x + g.weight("vit.embeddings.position_embeddings", DType::F32, {1, kPatches + 1, kWidth});

  for (int layer = 0; layer < 2; ++layer) {
    const std::string path = "vit.layers." + std::to_string(layer);
    nn::LayerNorm before(g, path + ".layernorm_before", kWidth, norm);
    nn::LayerNorm after(g, path + ".layernorm_after", kWidth, norm);
    nn::MultiHeadAttention attention(g, path + ".attention",
                                     {.dModel = kWidth, .heads = 3, .names = {.o = "o_proj"}});
    x = x + attention(before(x));
    x = x + nn::FeedForward(g, path + ".mlp", kWidth, /*dHidden=*/40, mlp)(after(x));
  }
  x = nn::LayerNorm(g, "vit.layernorm", kWidth, norm)(x);
  Tensor token = squeeze(sliceAxis(x, 1, 0, 1), 1);
  g.output("out", nn::Linear(g, "classifier", kWidth, 10)(token));
  return runGolden(argc, argv, g);
}
