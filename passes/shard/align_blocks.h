// SPDX-License-Identifier: Apache-2.0
#pragma once
// Blocks of weights in few bits that the ranks' pieces do not end with.
#include "passes/shard/cut.h"

namespace lathe {

/// Where a rank's columns of a value of weights end amid a block of `lathe.dequantize`, its blocks
/// become smaller ones, of which pieces are made up, with the scales and zero points that they were
/// in: the same numbers.
void alignBlocks(mlir::Value v, const Cut& cut);

}  // namespace lathe
