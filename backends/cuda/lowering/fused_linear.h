// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "backends/cuda/lowering/kernel/kernel_text.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace lathe::cuda {

/// The kernels of a region around a linear op (steps.h): for few rows one kernel, whose
/// hooks compute the norm in front, the gate or the rotations and cache writes behind; for more the
/// parts one after the other.
KernelSet fusedLinearKernels(mlir::func::FuncOp region, const std::string& name);

}  // namespace lathe::cuda
