// SPDX-License-Identifier: Apache-2.0
// BERT under Hugging Face's names: EncoderLayer with names of its own, and a padding mask of ones
// and zeros.
#include "run_golden.h"

using namespace lathe;

int main(int argc, char** argv) {
  constexpr int64_t kWidth = 24;
  const nn::LayerNormOptions norm{.eps = 1e-12};
  const nn::PostNormOptions layer{.attention = {.dModel = kWidth,
                                                .heads = 3,
                                                .names = {.q = "self.query",
                                                          .k = "self.key",
                                                          .v = "self.value",
                                                          .o = "output.dense"}},
                                  .dHidden = 40,
                                  .feedForward = {.in = "intermediate.dense",
                                                  .out = "output.dense",
                                                  .activation = Activation::gelu},
                                  .norm = norm,
                                  .names = {.selfAttention = "attention",
                                            .feedForward = "",
                                            .norm1 = "attention.output.LayerNorm",
                                            .norm2 = "output.LayerNorm"}};

  Graph g("bert");
  Dim batch = g.dim("batch", 1, 8), seq = g.dim("seq", 1, 16);
  Tensor ids = g.input("ids", DType::I64, {batch, seq});
  Tensor mask = g.input("mask", DType::I64, {batch, seq});
  Tensor x = nn::Embedding(g, "embeddings.word_embeddings", 50, kWidth)(ids);
  x = x + nn::Embedding(g, "embeddings.token_type_embeddings", 2, kWidth)(zerosLike(ids));
  x = nn::LearntPositions(g, "embeddings.position_embeddings", kWidth, 16)(x);
  x = nn::LayerNorm(g, "embeddings.LayerNorm", kWidth, norm)(x);

  // Along the keys, for every head and query.
  Tensor visible = reshape(mask, {batch, 1, 1, seq}) != 0;
  for (int i = 0; i < 2; ++i)
    x = nn::EncoderLayer(g, "encoder.layer." + std::to_string(i), layer)(x, visible);
  g.output("out", x);
  return runGolden(argc, argv, g);
}
