// SPDX-License-Identifier: Apache-2.0
#pragma once
// Calls of products, as the kernels' printer takes them.
#include "backends/cuda/lowering/matmul/gemm_kernels.h"
#include "lathe/ir/types.h"

namespace lathe::cuda {

/// x w^T of a linear op with `rows` = all leading axes of x and dense x and w; without hooks.
MatmulKernel matmulOf(mlir::Value x, mlir::Value w, const std::string& name);

KernelSet linearKernels(KernelOp call, const std::string& name);
KernelSet matmulKernels(KernelOp call, const std::string& name);
KernelSet convolutionKernels(KernelOp call, const std::string& name);

}  // namespace lathe::cuda
