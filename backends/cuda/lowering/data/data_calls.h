// SPDX-License-Identifier: Apache-2.0
#pragma once
// Calls that move or order data, as the kernels' printer takes them.
#include "backends/cuda/lowering/kernel/kernel_text.h"
#include "lathe/ir/types.h"

namespace lathe::cuda {

KernelSet updateKernels(KernelOp call, const std::string& name);
KernelSet topKKernels(KernelOp call, const std::string& name);
KernelSet cumSumKernels(KernelOp call, const std::string& name);
KernelSet randomBitsKernels(KernelOp call, const std::string& name);

KernelSet packedCastKernels(KernelOp call, const std::string& name);

}  // namespace lathe::cuda
