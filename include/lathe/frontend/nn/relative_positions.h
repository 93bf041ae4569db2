// SPDX-License-Identifier: Apache-2.0
#pragma once
// Positions that enter attention as the distance from query to key. Both give floats to be added to
// the scores: AttentionOptions::bias.
#include <optional>
#include <string>
#include <vector>

#include "lathe/frontend/nn/module.h"

namespace lathe::nn {

struct RelativeBiasOptions {
  int64_t heads = 0;
  int64_t buckets = 32;       ///< rows of the table
  int64_t maxDistance = 128;  ///< this far and farther shares the last bucket
  bool bothSides = true;      ///< keys after the query have half of the buckets (an encoder)
  std::string weightName = "weight";
  std::optional<DType> weightDType = {};  ///< what the checkpoint holds; the bias's unless given
};

/// The bucket of each distance 0..maxDistance on one side that has `buckets` of them: one per
/// distance in the first half, then logarithmic.
std::vector<int64_t> relativeBuckets(int64_t buckets, int64_t maxDistance, LATHE_AT);

/// One learnt number per head and bucket of distances: Raffel et al., "Exploring the Limits of
/// Transfer Learning with a Unified Text-to-Text Transformer" (T5), 2019. Weight [buckets, heads].
class RelativePositionBias : public Module {
 public:
  RelativePositionBias(Graph& graph, std::string path, RelativeBiasOptions options, LATHE_AT);
  /// [1, heads, queries, keys] in `dtype`; `like` only names the graph.
  Tensor operator()(const Tensor& like, const Dim& queries, const Dim& keys, DType dtype,
                    LATHE_AT) const;
  /// The same for queries that begin at positions i64 [batch]: [batch, heads, queries, keys].
  Tensor at(const Tensor& positions, const Dim& queries, const Dim& keys, DType dtype,
            LATHE_AT) const;

 private:
  /// Of distances i64 [rows, queries, keys]: [rows, heads, queries, keys].
  Tensor ofDistances(const Tensor& distance, DType dtype) const;
  RelativeBiasOptions options_;
};

/// The factors of ALiBi's heads: powers of 2^(-8/heads), and for a number of heads that is no power
/// of two those of the next smaller one and every other of the next larger one.
std::vector<float> alibiSlopes(int64_t heads, LATHE_AT);

/// A head's slope times the key's position: Press, Smith and Lewis, "Train Short, Test Long:
/// Attention with Linear Biases Enables Input Length Extrapolation", 2022. The softmax does not see
/// what the paper's distance from the query has more, which is the same for all keys. f32
/// [1, heads, 1, keys]; slopes, positions and products are rounded to `rounding`.
Tensor alibi(Graph& graph, int64_t heads, const Dim& keys, DType rounding = DType::F32, LATHE_AT);

/// One learnt vector per distance, clipped to -maxDistance..maxDistance, that queries are
/// multiplied with as they are with keys: Shaw, Uszkoreit and Vaswani, "Self-Attention with
/// Relative Position Representations", 2018, the term of the keys. Weight [2 * maxDistance + 1,
/// headDim] in `weightDType`: what the checkpoint holds, q's unless given.
class RelativePositionKeys : public Module {
 public:
  RelativePositionKeys(Graph& graph, std::string path, int64_t headDim, int64_t maxDistance,
                       std::optional<DType> weightDType = {}, LATHE_AT);
  /// q [batch, heads, queries, headDim] -> [batch, heads, queries, keys]: q_i a_(j - i), unscaled.
  Tensor operator()(const Tensor& q, const Dim& keys, LATHE_AT) const;

 private:
  int64_t headDim_, maxDistance_;
  std::optional<DType> weightDType_;
};

}  // namespace lathe::nn
