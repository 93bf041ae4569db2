// SPDX-License-Identifier: Apache-2.0
#pragma once
// From ops to kernel calls: what every backend does alike on its way to a program.
#include <functional>

#include "lathe/backends/call_attributes.h"
#include "mlir/IR/BuiltinOps.h"

namespace lathe {

/// The `config` of the call that an op becomes, or what a region's call has in its besides.
using ConfigOf = std::function<CallAttributes(mlir::Operation*)>;

/// The config of an op's family (lathe/runtime/call_config.h); the new value of a state is written
/// over the old one.
CallAttributes plainConfig(mlir::Operation* op);
LinearConfig configOf(LinearOp linear);
/// With what says that the new value of the state is written over the old one.
CallAttributes attributesOfUpdate(mlir::Builder b, const UpdateConfig& config);

/// Every op that is not a view, a weight or a constant becomes a `lathe.kernel`. The bodies of
/// regions move into functions of a nested module @kernels; equal bodies share one function, so
/// that the layers of a model compile once.
void toKernels(mlir::ModuleOp module, const ConfigOf& configOf);

/// Transposes, reshapes and slices in front of contractions and cache writes become strides: the
/// right operand of a matmul, the operands of attention and the new block of an update (heads of a
/// projection, slices of a merged one), and the transpose behind attention.
void foldTransposes(mlir::ModuleOp module);

}  // namespace lathe
