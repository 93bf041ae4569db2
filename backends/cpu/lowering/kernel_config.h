// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "lathe/backends/to_kernels.h"

namespace lathe::cpu {

/// What the CPU's kernels are told about their calls.
CallAttributes kernelConfig(mlir::Operation* op);

}  // namespace lathe::cpu
