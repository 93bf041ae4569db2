// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "mlir/IR/BuiltinOps.h"

namespace lathe::cuda {

/// Weights that lie as `[in, out]` are transposed to `[out, in]`, which hoisting moves into `load`:
/// a warp that computes an output column then reads one contiguous row, and both kinds of matrix
/// kernels share that one layout.
void transposeWeights(mlir::ModuleOp module);

}  // namespace lathe::cuda
