// SPDX-License-Identifier: Apache-2.0
#pragma once
// Linear layers that read one input become one wider layer whose result is sliced: the projections
// of queries, keys and values, or gate and up of a gated MLP. Every output column is the same dot
// product as before, so no bit changes; the merged weight is weight-only arithmetic, which hoisting
// moves into `load`.
#include <functional>

#include "mlir/IR/BuiltinOps.h"

namespace lathe {

/// Merges every set of two or more siblings whose input `wants` accepts: linear ops on it with
/// weights from the checkpoint of one element type and layout, without residual or activation.
/// Biases are joined, with zeros where there is none. Of grouped_linear ops the two are merged that
/// meet in a gate.
void mergeLinears(mlir::ModuleOp module, const std::function<bool(mlir::Value x)>& wants);

}  // namespace lathe
