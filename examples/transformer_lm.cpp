// SPDX-License-Identifier: Apache-2.0
// A small transformer language model: one compilation serves every batch and sequence length, and
// a cached step continues a prompt. Weights are random, so the tokens mean nothing.
#include <cstdio>
#include <vector>

#include <lathe/lathe.h>

using namespace lathe;

namespace {

constexpr int64_t kVocabulary = 256, kPositions = 128;

Graph buildModel() {
  Graph g("transformer_lm");
  Dim batch = g.dim("batch", 1, 4), seq = g.dim("seq", 1, kPositions);
  Dim cache = g.dim("cache", 1, kPositions);
  nn::TransformerLM lm(g, "",
                       {.vocabSize = kVocabulary,
                        .dModel = 64,
                        .dHidden = 172,
                        .layers = 2,
                        .heads = 4,
                        .kvHeads = 2,
                        .maxPositions = kPositions});
  lm.declareCache(batch, cache);

  g.entry("forward");
  g.output("logits", lm.forward(g.input("ids", DType::I64, {batch, seq})));

  g.entry("step");
  Tensor ids = g.input("ids", DType::I64, {batch, seq});
  Tensor positions = g.input("positions", DType::I64, {batch});
  g.output("logits", lm.step(ids, positions));
  return g;
}

// The index of the largest of the last `kVocabulary` logits.
int64_t topToken(const Array& logits) {
  int64_t first = logits.size() - kVocabulary, best = 0;
  for (int64_t i = 1; i < kVocabulary; ++i)
    if (logits.at(first + i) > logits.at(first + best)) best = i;
  return best;
}

}  // namespace

int main() {
  try {
    Session session(compile(buildModel()));
    session.bindRandomWeights(/*seed=*/1);

    std::vector<int64_t> prompt = {72, 101, 108, 108, 111};
    for (size_t length : {size_t(3), prompt.size()}) {
      Array ids = Array::fromInts({prompt.data(), length}, {1, int64_t(length)});
      Array logits = session.run("forward", {{"ids", ids}}).at("logits");
      std::printf("forward %s: next token %lld\n", describe(logits.dtype(), logits.shape()).c_str(),
                  (long long)topToken(logits));
    }

    session.setSymbol("cache", 16);
    std::printf("cached:");
    std::vector<int64_t> next = prompt;
    int64_t position = 0;
    for (int i = 0; i < 5; ++i) {
      Array logits = session
                         .run("step", {{"ids", Array::fromInts(next, {1, int64_t(next.size())})},
                                       {"positions", Array::fromInts({&position, 1}, {1})}})
                         .at("logits");
      position += int64_t(next.size());
      next = {topToken(logits)};
      std::printf(" %lld", (long long)next[0]);
    }
    std::printf("\n");
  } catch (const Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
