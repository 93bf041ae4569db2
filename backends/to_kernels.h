// SPDX-License-Identifier: Apache-2.0
#pragma once
// From ops to kernel calls: what every backend does alike on its way to a program.
#include <functional>

#include "mlir/IR/BuiltinOps.h"

namespace lathe {

/// The `config` of the call that an op becomes, or what a region's call has in its besides.
using ConfigOf = std::function<llvm::SmallVector<mlir::NamedAttribute>(mlir::Operation*)>;

/// Numbers and lists of numbers of the op; what a linear op does besides the product; the new value
/// of a state is written over the old one.
llvm::SmallVector<mlir::NamedAttribute> plainConfig(mlir::Operation* op);

/// Every op that is not a view, a weight or a constant becomes a `lathe.kernel`. The bodies of
/// regions move into functions of a nested module @kernels; equal bodies share one function, so
/// that the layers of a model compile once.
void toKernels(mlir::ModuleOp module, const ConfigOf& configOf);

/// Transposes, reshapes and slices in front of contractions and cache writes become strides: the
/// right operand of a matmul, the operands of attention and the new block of an update (heads of a
/// projection, slices of a merged one), and the transpose behind attention.
void foldTransposes(mlir::ModuleOp module);

}  // namespace lathe
