// SPDX-License-Identifier: Apache-2.0
#pragma once
// The kernels of lathe.grouped_linear (templates/lathe_grouped.cuh).
#include "backends/cuda/lowering/kernel/kernel_text.h"
#include "lathe/ir/types.h"

namespace lathe::cuda {

KernelSet groupedKernels(KernelOp call, const std::string& name);

}  // namespace lathe::cuda
