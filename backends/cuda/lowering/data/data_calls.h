// SPDX-License-Identifier: Apache-2.0
#pragma once
// Calls that move or order data, as the kernels' printer takes them.
#include <optional>

#include "backends/cuda/lowering/kernel/kernel_text.h"
#include "lathe/ir/types.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace lathe::cuda {

KernelSet updateKernels(KernelOp call, const std::string& name);
KernelSet pagedUpdateKernels(KernelOp call, const std::string& name);
KernelSet topKKernels(KernelOp call, const std::string& name);
KernelSet cumSumKernels(KernelOp call, const std::string& name);
KernelSet randomBitsKernels(KernelOp call, const std::string& name);

KernelSet packedCastKernels(KernelOp call, const std::string& name);

/// The kernels of a region that only moves elements, so that neighbours of its result are no
/// neighbours of its operand, by tiles. Nothing for other regions, and where tiles would be narrow.
std::optional<KernelSet> transposedCopyKernels(mlir::func::FuncOp region, const std::string& name);

}  // namespace lathe::cuda
