// SPDX-License-Identifier: Apache-2.0
#pragma once
// Layers whose weights are one tensor of the checkpoint, taken apart for the ranks' plan.
#include "passes/shard/by_hand.h"

namespace lathe {

/// A linear op of which nothing is read but slices of its columns, such as queries, keys and values
/// or gate and up of one weight, becomes a linear op for each of them, with slices of the weight:
/// then each is cut for itself. What the ranks do not cut the layout passes merge again. Weights
/// that something was said of by hand stay as they are.
void splitMergedLinears(mlir::ModuleOp module, const CutsByHand& byHand);

}  // namespace lathe
