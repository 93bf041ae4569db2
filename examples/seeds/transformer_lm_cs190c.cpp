// SPDX-License-Identifier: Apache-2.0
// CS190C's Transformer_LM: weights held as [in, out], the spelled sigmoid, positions divided by
// theta^(2i/d). It returns logits.
#include "presets.h"
#include "run_seed.h"

using namespace lathe;

namespace {

Graph buildModel() {
  Graph g("cs190c");
  Dim batch = g.dim("batch", 1, 4), seq = g.dim("seq", 1, 64);
  nn::TransformerLM model(g, "",
                          {.vocabSize = 96,
                           .dModel = 40,
                           .dHidden = seeds::cs190c::hiddenSize(40),
                           .layers = 2,
                           .heads = 2,
                           .maxPositions = 64,
                           .style = seeds::cs190c::style()});
  g.output("out", model.forward(g.input("ids", DType::I64, {batch, seq})));
  return g;
}

}  // namespace

int main() { return runSeed(buildModel, {{"forward", {{"ids", tokenIds({2, 7}, 96)}}}}); }
