// SPDX-License-Identifier: Apache-2.0
#pragma once
// From the calls of a lowered module to the kernels of its program.
#include "backends/backend.h"
#include "backends/cuda/lowering/kernel_text.h"
#include "ir/types.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace lathe::cuda {

/// The kernels of a call that is no region.
KernelSet kernelsOf(KernelOp call);
/// The kernels of an outlined region: of its linear op with what surrounds it, or one printed from
/// its ops.
KernelSet kernelsOfRegion(mlir::func::FuncOp region);

/// Prints the kernels of every call and stores their table and code in the program, with machine
/// code for the options' target. Throws Error (Unsupported) with the line of a call that has none.
void buildKernels(mlir::ModuleOp module, const BackendOptions& options, Program& program);

}  // namespace lathe::cuda
