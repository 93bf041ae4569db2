// SPDX-License-Identifier: Apache-2.0
// Stanford CS336's TransformerLM: RMSNorm before each part, RoPE of neighbouring pairs, SwiGLU; it
// returns probabilities.
#include "presets.h"
#include "run_seed.h"

using namespace lathe;

namespace {

Graph buildModel() {
  Graph g("cs336");
  Dim batch = g.dim("batch", 1, 4), seq = g.dim("seq", 1, 64);
  nn::TransformerLM model(g, "",
                          {.vocabSize = 96,
                           .dModel = 48,
                           .dHidden = seeds::cs336::hiddenSize(48),
                           .layers = 2,
                           .heads = 4,
                           .maxPositions = 64,
                           .style = seeds::cs336::style()});
  g.output("out", model.forward(g.input("ids", DType::I64, {batch, seq})));
  return g;
}

}  // namespace

int main() { return runSeed(buildModel, {{"forward", {{"ids", tokenIds({2, 7}, 96)}}}}); }
