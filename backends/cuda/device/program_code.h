// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where a CUDA program keeps its kernel table and its kernels' code among the program's blobs.
#include <vector>

#include "backends/cuda/device/driver.h"
#include "backends/cuda/device/kernel_table.h"
#include "lathe/runtime/program.h"

namespace lathe::cuda {

void storeKernels(Program& program, const KernelTable& table,
                  const std::vector<KernelCode>& kernels);
/// Both throw Error (InvalidFile) for a program that holds no sound table.
KernelTable kernelTableOf(const Program& program);
std::vector<KernelCode> kernelCodeOf(const Program& program);

}  // namespace lathe::cuda
