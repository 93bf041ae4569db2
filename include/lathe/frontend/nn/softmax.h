// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "lathe/ir/ops.h"

namespace lathe::nn {

/// exp(x - max) / sum(exp(x - max)) along one axis (negative: from the back), with the shape and
/// dtype of x. bf16 and f16 are computed in f32 and rounded once. A row of -inf gives NaN.
Tensor softmax(const Tensor& x, int64_t axis = -1, LATHE_AT);

}  // namespace lathe::nn
