// SPDX-License-Identifier: Apache-2.0
// GPT-2's form: one linear layer gives q, k and v in that order. The whole text at once, and the
// same text through a key/value cache: five tokens, then one.
#include "run_seed.h"

using namespace lathe;

namespace {

Graph buildModel() {
  Graph g("gpt");
  Dim batch = g.dim("batch", 1, 4), seq = g.dim("seq", 1, 64), cache = g.dim("cache", 1, 64);
  nn::TransformerLM model(g, "",
                          {.vocabSize = 96,
                           .dModel = 48,
                           .layers = 2,
                           .heads = 4,
                           .maxPositions = 64,
                           .positions = nn::TransformerLMOptions::Positions::Learnt,
                           .tiedHead = true,
                           .style = nn::ModelStyle::gpt()});
  model.declareCache(batch, cache);

  g.entry("forward");
  g.output("out", model.forward(g.input("ids", DType::I64, {batch, seq})));
  g.entry("step");
  Tensor ids = g.input("ids", DType::I64, {batch, seq});
  g.output("out", model.step(ids, g.input("positions", DType::I64, {batch})));
  return g;
}

Array part(const Array& ids, int64_t from, int64_t to) {
  Array some(DType::I64, {1, to - from});
  for (int64_t i = from; i < to; ++i) some.set(i - from, ids.at(i));
  return some;
}

}  // namespace

int main() {
  const Array ids = tokenIds({1, 6}, 96);
  const int64_t start = 0, next = 5;
  const Array first = Array::fromInts({&start, 1}, {1}), second = Array::fromInts({&next, 1}, {1});
  return runSeed(buildModel,
                 {{"forward", {{"ids", ids}}},
                  {"step", {{"ids", part(ids, 0, 5)}, {"positions", first}}},
                  {"step", {{"ids", part(ids, 5, 6)}, {"positions", second}}}},
                 {{"cache", 16}});
}
