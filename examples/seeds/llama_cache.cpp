// SPDX-License-Identifier: Apache-2.0
// The language model with grouped key/value heads and a key/value cache: a prompt fills the cache,
// then tokens follow one at a time.
#include "run_seed.h"

using namespace lathe;

namespace {

Graph buildModel() {
  Graph g("llama");
  Dim batch = g.dim("batch", 1, 4), seq = g.dim("seq", 1, 64), cache = g.dim("cache", 1, 64);
  nn::TransformerLM model(g, "",
                          {.vocabSize = 96,
                           .dModel = 48,
                           .dHidden = 100,
                           .layers = 2,
                           .heads = 4,
                           .kvHeads = 2,
                           .maxPositions = 64,
                           .tiedHead = true});
  model.declareCache(batch, cache);
  for (const auto& [entry, tokens] : {std::pair{"prefill", seq}, {"decode", Dim(1)}}) {
    g.entry(entry);
    Tensor ids = g.input("ids", DType::I64, {batch, tokens});
    g.output("out", model.step(ids, g.input("positions", DType::I64, {batch})));
  }
  return g;
}

Run run(const char* entry, int64_t tokens, int64_t position) {
  return {
      entry,
      {{"ids", tokenIds({1, tokens}, 96)}, {"positions", Array::fromInts({&position, 1}, {1})}}};
}

}  // namespace

int main() {
  return runSeed(buildModel, {run("prefill", 5, 0), run("decode", 1, 5), run("decode", 1, 6)},
                 {{"cache", 16}});
}
