// SPDX-License-Identifier: Apache-2.0
// FlashAttention's blocks written out, and ordinary attention, which gives the same numbers.
#include "run_seed.h"

using namespace lathe;

namespace {

Graph buildModel() {
  Graph g("tiled_attention");
  Dim batch = g.dim("batch", 1, 4), queries = g.dim("queries", 1, 64);
  for (const char* entry : {"tiled", "ordinary"}) {
    g.entry(entry);
    Tensor q = g.input("q", DType::F32, {batch, 4, queries, 16});
    Tensor k = g.input("k", DType::F32, {batch, 4, 29, 16});
    Tensor v = g.input("v", DType::F32, {batch, 4, 29, 16});
    g.output("out",
             entry[0] == 't' ? nn::tiledAttention(q, k, v, /*block=*/8) : nn::attention(q, k, v));
  }
  return g;
}

}  // namespace

int main() {
  const Arrays inputs = {
      {"q", waves({2, 4, 7, 16})}, {"k", waves({2, 4, 29, 16})}, {"v", waves({2, 4, 29, 16})}};
  return runSeed(buildModel, {{"tiled", inputs}, {"ordinary", inputs}});
}
