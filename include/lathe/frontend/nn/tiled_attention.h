// SPDX-License-Identifier: Apache-2.0
#pragma once
// Softmax and attention block by block, with a running maximum and sum: Dao et al.,
// "FlashAttention: Fast and Memory-Efficient Exact Attention with IO-Awareness", 2022, section 3.1.
// In exact arithmetic they equal softmax and attention without a mask. They are written out for
// those who study the algorithm; `attention` is the one to build models from.
#include "lathe/ir/ops.h"

namespace lathe::nn {

/// softmax over the last axis, whose size is a number, in blocks of `block` (the last may be
/// shorter). Shape and dtype of x; computed in f32, or in f64 when x is.
Tensor tiledSoftmax(const Tensor& x, int64_t block, LATHE_AT);

/// softmax(scale * q k^T) v over blocks of `block` keys; scale is 1 / sqrt(d). q [..., s, d],
/// k [..., t, d], v [..., t, e] -> [..., s, e] in q's dtype, where t is a number.
Tensor tiledAttention(const Tensor& q, const Tensor& k, const Tensor& v, int64_t block, LATHE_AT);

}  // namespace lathe::nn
