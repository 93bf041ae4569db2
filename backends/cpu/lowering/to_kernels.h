// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "mlir/IR/BuiltinOps.h"

namespace lathe::cpu {

/// Every op that is not a view, a weight or a constant becomes a `lathe.kernel`. The bodies of
/// regions move into functions of a nested module @kernels; equal bodies share one function, so
/// that the layers of a model compile once.
void toKernels(mlir::ModuleOp module);

/// Transposes, reshapes and slices in front of contractions and cache writes become strides: the
/// right operand of a matmul, the operands of attention and the new block of an update (heads of a
/// projection, slices of a merged one), and the transpose behind attention.
void foldTransposes(mlir::ModuleOp module);

}  // namespace lathe::cpu
