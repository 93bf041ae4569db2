// SPDX-License-Identifier: Apache-2.0
#pragma once
// What lowerings of quantized ops share.
#include "frontend/onnx/node.h"

namespace lathe::onnx {

/// NumPy's matmul: vectors are rows on the left and columns on the right.
Tensor matrixProduct(const Tensor& a, const Tensor& b);
/// round(x) + zero, ties to even, saturated to an integer dtype. `zero` may be empty.
Tensor rounded(const Tensor& x, const Tensor& zero, DType dtype);

}  // namespace lathe::onnx
