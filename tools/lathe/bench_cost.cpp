// SPDX-License-Identifier: Apache-2.0
#include "tools/lathe/bench_cost.h"

namespace lathe::cli {

ModelCost::ModelCost(const LlamaConfig& c, DType arithmetic)
    : layers(c.layers),
      queryWidth(c.heads * c.headDim),
      kvWidth(c.kvHeads * c.headDim),
      hidden(c.hiddenSize),
      elementBytes(int64_t(sizeOf(arithmetic))) {
  int64_t attention = hidden * (queryWidth + 2 * kvWidth) + queryWidth * hidden;
  int64_t mlp = 3 * hidden * c.intermediateSize;
  blockWeights = layers * (attention + mlp);
  headWeights = c.vocabSize * hidden;
}

double ModelCost::prefillFlops(int64_t tokens, int64_t chunk) const {
  double n = double(tokens), chunks = double((tokens + chunk - 1) / chunk);
  return 2 * n * double(blockWeights) + 2 * chunks * double(headWeights) +
         4 * double(layers) * double(queryWidth) * n * (n + 1) / 2;
}

double ModelCost::decodeFlops(int64_t context) const {
  return 2 * double(blockWeights + headWeights) +
         4 * double(layers) * double(queryWidth) * double(context);
}

double ModelCost::weightBytes() const {
  return double(blockWeights + headWeights) * double(elementBytes);
}

double ModelCost::decodeBytes(int64_t context) const {
  double cache = 2 * double(layers) * double(kvWidth) * double(context);
  return weightBytes() + (cache + double(hidden)) * double(elementBytes);
}

}  // namespace lathe::cli
