// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "backends/cuda/lowering/kernel/kernel_text.h"
#include "lathe/runtime/program.h"

namespace lathe::cuda {

/// Leaves out variants that no sizes within the symbols' ranges can take, and kernels that only
/// those launch.
void pruneVariants(KernelSet& set, const std::vector<SymbolInfo>& symbols);

}  // namespace lathe::cuda
