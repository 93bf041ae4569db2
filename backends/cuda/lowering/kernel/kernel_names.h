// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "lathe/backends/call_attributes.h"

namespace lathe::cuda {

/// Marks a linear op inside a region whose weight comes from the checkpoint.
inline constexpr const char* kConstantWeight = "lathe.constant_weight";
/// No kernel of the program writes the op's weight.
bool hasConstantWeight(LinearOp linear);

/// The `config` of every call that is no region: all that its kernels are printed from, beside the
/// types. A region's has the source lines that its errors name (index_checks.h).
CallAttributes kernelConfig(mlir::Operation* op);

/// What ranks tell each other: the runtime runs it on memory of the device, without a kernel.
bool isCollective(KernelOp call);

/// Gives every call but a region's and a collective its callee: calls of one kind, config and types
/// share one, so that the layers of a model share their kernels.
void nameKernels(mlir::ModuleOp module);

}  // namespace lathe::cuda
