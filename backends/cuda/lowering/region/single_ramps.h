// SPDX-License-Identifier: Apache-2.0
#pragma once
// Sums with a ramp of one element, which is 0: the positions of a step of one token.
#include "mlir/IR/BuiltinOps.h"

namespace lathe::cuda {

/// x + iota over an axis of size 1 is x, where that has the dims of the sum.
void dropSingleRamps(mlir::ModuleOp module);

}  // namespace lathe::cuda
