// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "backends/cuda/lowering/kernel/kernel_text.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace lathe::cuda {

/// A region as its parts, one launch after the other: what serves where no fused kernel does. The
/// kernels' names begin with `name`.
KernelSet stepwiseKernels(mlir::func::FuncOp region, const std::string& name);

}  // namespace lathe::cuda
