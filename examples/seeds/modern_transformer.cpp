// SPDX-License-Identifier: Apache-2.0
// "Modern Transformers": its CausalAttention, whose one linear layer gives q, k and v through an
// odd view, its MLP and RMSNorm, put together with learnt positions.
#include "presets.h"
#include "run_seed.h"

using namespace lathe;

namespace {

Graph buildModel() {
  Graph g("modern");
  Dim batch = g.dim("batch", 1, 4), seq = g.dim("seq", 1, 64);
  nn::TransformerLM model(g, "",
                          {.vocabSize = 96,
                           .dModel = 48,
                           .dHidden = 48,
                           .layers = 2,
                           .heads = 4,
                           .maxPositions = 64,
                           .positions = nn::TransformerLMOptions::Positions::Learnt,
                           .style = seeds::modern::style()});
  g.output("out", model.forward(g.input("ids", DType::I64, {batch, seq})));
  return g;
}

}  // namespace

int main() { return runSeed(buildModel, {{"forward", {{"ids", tokenIds({2, 7}, 96)}}}}); }
