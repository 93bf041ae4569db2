// SPDX-License-Identifier: Apache-2.0
#pragma once
// From the calls of a lowered module to the kernels of its program.
#include "backends/cuda/lowering/kernel/kernel_text.h"
#include "lathe/backends/backend.h"
#include "lathe/ir/types.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace lathe::cuda {

/// The kernels of a call that is no region; their names begin with `name`.
KernelSet kernelsOf(KernelOp call, const std::string& name);
/// The kernel printed from a region's ops, none of which has a kernel of its own.
KernelSet printedRegion(mlir::func::FuncOp region, const std::string& name);

/// The kernels of any call of a lowered module.
KernelSet kernelsOfCall(KernelOp call, const std::string& name);

/// Prints the kernels of every call and stores their table and code in the program, with machine
/// code for the request's target. Throws Error (Unsupported) with the line of a call that has none.
void buildKernels(mlir::ModuleOp module, const BackendRequest& request, Program& program);

}  // namespace lathe::cuda
