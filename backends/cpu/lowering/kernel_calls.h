// SPDX-License-Identifier: Apache-2.0
#pragma once
// Calls of the CPU's kernels: what they are told, and which become one.
#include "lathe/backends/to_kernels.h"

namespace lathe::cpu {

/// What the CPU's kernels are told about their calls.
CallAttributes kernelConfig(mlir::Operation* op);

/// Calls of a layer whose two halves alone meet in a gate become one call with it (gated_config.h):
/// what is gated need not be written to memory and read again. Runs on kernel calls.
void joinGates(mlir::ModuleOp module);

}  // namespace lathe::cpu
