// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "mlir/IR/BuiltinOps.h"

namespace lathe::cpu {

/// Calls of a layer whose two halves alone meet in a gate become one call with it (gated_config.h):
/// what is gated need not be written to memory and read again. Runs on kernel calls.
void joinGates(mlir::ModuleOp module);

}  // namespace lathe::cpu
