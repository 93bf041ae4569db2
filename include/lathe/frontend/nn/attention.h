// SPDX-License-Identifier: Apache-2.0
#pragma once
// Scaled dot-product attention: Vaswani et al., "Attention Is All You Need", 2017.
#include <limits>
#include <optional>

#include "lathe/ir/ops.h"

namespace lathe::nn {

struct AttentionOptions {
  enum class ScaleForm {
    Divide,    ///< scores / sqrt(d)
    Multiply,  ///< scores * d^-0.5
    Query,     ///< q * d^-0.5, before the product and in q's dtype (timm, and DiT with it)
  };
  /// Bool (true = visible) or a float that is added; broadcasts to the scores. Throws Error for one
  /// of fewer axes that could be read in two ways: a [batch, keys] mask is [batch, 1, 1, keys].
  Tensor mask = {};
  Tensor bias = {};     ///< floats that are added to the scaled scores before any mask is applied
  bool causal = false;  ///< query i sees keys 0..i
  /// Integers [batch]: query i sees keys 0..positions[batch] + i. Excludes `causal`.
  Tensor positions = {};
  /// If positive, a query sees that many keys at most: its own and those before it. It goes with
  /// `causal` or `positions`. A cache may hold more keys than that; the others are skipped.
  int64_t window = 0;
  /// If positive, c: scaled scores s become c tanh(s / c), before any mask (Gemma 2).
  double softcap = 0;
  ScaleForm scaleForm = ScaleForm::Divide;
  std::optional<double> scale = {};  ///< a factor of the scores; 1 / sqrt(d) unless given
  /// What a query that sees no key gets: `nan`, 0 / 0 as PyTorch's softmax gives, or `zero`, NaN
  /// weights replaced by 0 where there is a mask at all. `uniform` is what a finite
  /// `maskFill` gives, and an error without one.
  MaskedRow maskedRow = MaskedRow::nan;
  /// What the score of a hidden key becomes. With a finite one a query that sees no key gets the
  /// mean of all values, and `maskedRow` has nothing to do.
  double maskFill = -std::numeric_limits<double>::infinity();
  bool useFused = false;  ///< records the op `attention`

  static AttentionOptions llama() { return {.scaleForm = ScaleForm::Multiply}; }
  static AttentionOptions dit() { return {.scaleForm = ScaleForm::Query}; }
};

/// Bool [queries, keys]: true where key <= query.
Tensor causalMask(const Tensor& like, const Dim& queries, const Dim& keys, LATHE_AT);
/// Bool [batch, 1, queries, keys] (or [batch, queries, keys] for rank 3): true where
/// key <= positions[batch] + query.
Tensor positionMask(const Tensor& positions, const Dim& queries, const Dim& keys, int64_t rank = 4,
                    LATHE_AT);

/// Bool, in the shapes of the two above: true where key > query - window, or > positions + query -
/// window. `positions` may be empty.
Tensor windowMask(const Tensor& like, const Tensor& positions, const Dim& queries, const Dim& keys,
                  int64_t window, int64_t rank = 4, LATHE_AT);

/// x [batch, seq, heads * d] -> [batch, heads, seq, d]. Throws Error(InvalidArgument) unless x has
/// rank 3 and `heads` divides its last axis.
Tensor splitHeads(const Tensor& x, int64_t heads, LATHE_AT);
/// x [batch, heads, seq, d] -> [batch, seq, heads * d].
Tensor mergeHeads(const Tensor& x, LATHE_AT);

/// Keys or values of sequences that lie in blocks [blocks, heads, m, d]: by a table, integers
/// [batch, n], those of each sequence, [batch, heads, n m, d]. attention() of them with positions
/// becomes the fused op paged_attention, which reads the blocks where they lie.
Tensor gatherBlocks(const Tensor& blocks, const Tensor& table, LATHE_AT);

/// softmax(scale * q k^T + bias + mask) v in q's dtype. q [batch, heads, s, d], k [batch, groups,
/// t, d], v [batch, groups, t, e] -> [batch, heads, s, e], where groups divides heads and head i
/// reads group i / (heads / groups); the rank-3 form leaves the heads out. Scale, mask and softmax
/// are computed in f32 (f64 for f64).
Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v,
                 const AttentionOptions& options = {}, LATHE_AT);

}  // namespace lathe::nn
