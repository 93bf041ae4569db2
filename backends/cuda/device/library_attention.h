// SPDX-License-Identifier: Apache-2.0
#pragma once
// An attention that a vendor's library computes as well.
#include <cstdint>

#include "lathe/runtime/dtype.h"

namespace lathe::cuda {

/// y = softmax(scale q k^T) v of tensors [batch, heads, tokens, depth] whose last axis is dense;
/// query head h reads key head h * keyHeads / queryHeads. Sums, maxima and exponentials are f32.
struct LibraryAttention {
  /// Strides of an operand in elements; its last axis is dense.
  struct View {
    int64_t batch = 0, head = 0, token = 0;
    bool operator==(const View&) const = default;
  };
  DType dtype = DType::BF16;  ///< of all four: BF16 or F16
  int64_t batch = 1, queryHeads = 1, keyHeads = 1, queries = 1, keys = 1;
  int64_t depth = 64, valueDepth = 64;  ///< multiples of 8
  View q, k, v, y;
  float scale = 1;
  /// Query i sees keys 0 to i; with lengths 0 to i + length - queries.
  bool causal = false;
  /// Every batch has as many keys as LibraryAttentionOperands::lengths says.
  bool lengths = false;
  bool operator==(const LibraryAttention&) const = default;
};

struct LibraryAttentionOperands {
  const void* q = nullptr;
  const void* k = nullptr;
  const void* v = nullptr;
  /// On the device: the keys of every batch, at most `keys`, then the queries of every batch, all
  /// `queries`. Null unless `lengths` is set.
  const int32_t* lengths = nullptr;
  void* y = nullptr;
};

}  // namespace lathe::cuda
