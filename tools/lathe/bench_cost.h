// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a model must compute and read, from its config alone: the measure that speed is held to.
#include <cstdint>

#include "runtime/model_config.h"

namespace lathe::cli {

struct ModelCost {
  /// Elements of the matrices of all blocks: each token multiplies with every one.
  int64_t blockWeights = 0;
  /// Elements of the output head: vocab x hidden.
  int64_t headWeights = 0;
  int64_t layers = 0, queryWidth = 0, kvWidth = 0, hidden = 0;
  int64_t elementBytes = 4;  ///< of weights as the kernels read them, and of the KV cache

  ModelCost(const LlamaConfig& config, DType arithmetic);

  /// FLOPs (a multiply-add counts two) of `tokens` causal prompt tokens with the head once per
  /// chunk of `chunk`: 2 * tokens * blockWeights + 2 * chunks * headWeights + attention
  /// 4 * layers * queryWidth * tokens * (tokens + 1) / 2.
  double prefillFlops(int64_t tokens, int64_t chunk) const;
  /// FLOPs of one token that attends to `context` positions, itself included.
  double decodeFlops(int64_t context) const;
  /// Bytes that one such token must read: every block's weights and the head once, keys and values
  /// of `context` positions, one row of the embedding. Norm gains and biases, below a thousandth
  /// of it, are left out.
  double decodeBytes(int64_t context) const;
  /// Bytes of the weights among them.
  double weightBytes() const;
};

}  // namespace lathe::cli
