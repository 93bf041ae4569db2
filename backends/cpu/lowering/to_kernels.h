// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "mlir/IR/BuiltinOps.h"

namespace lathe::cpu {

/// Every op that is not a view, a weight or a constant becomes a `lathe.kernel`. The bodies of
/// regions move into functions of a nested module @kernels; equal bodies share one function, so
/// that the layers of a model compile once.
void toKernels(mlir::ModuleOp module);

/// Transposes next to contractions become strides: the right operand of a matmul, and the operands
/// and result of attention between [b, s, h, d] and [b, h, s, d]. Marks them with unit attributes
/// that toKernels puts into the kernel's config.
void foldTransposes(mlir::ModuleOp module);

}  // namespace lathe::cpu
