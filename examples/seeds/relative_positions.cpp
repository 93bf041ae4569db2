// SPDX-License-Identifier: Apache-2.0
// Positions as distances: one layer with T5's bias of the scores, one with Shaw's vectors that are
// added to the keys.
#include "run_seed.h"

using namespace lathe;

namespace {

Graph buildModel() {
  Graph g("relative_positions");
  Dim batch = g.dim("batch", 1, 4), seq = g.dim("seq", 1, 64);
  nn::PostNormOptions layer{.dHidden = 100};
  layer.attention.dModel = 48;
  layer.attention.heads = 4;

  Tensor ids = g.input("ids", DType::I64, {batch, seq});
  Tensor x = nn::Embedding(g, "embedding", 96, 48)(ids);
  nn::RelativePositionBias bias(g, "bias", {.heads = 4});
  x = nn::EncoderLayer(g, "layers.0", layer)(x, bias(x, seq, seq, DType::F32));
  layer.attention.relativeDistance = 8;
  g.output("out", nn::EncoderLayer(g, "layers.1", layer)(x));
  return g;
}

}  // namespace

int main() { return runSeed(buildModel, {{"forward", {{"ids", tokenIds({2, 13}, 96)}}}}); }
