// SPDX-License-Identifier: Apache-2.0
#pragma once
// Arithmetic on checkpoint tensors and constants alone: what hoisting moves into `load`.
#include "mlir/IR/PatternMatch.h"

namespace lathe {

/// True if the value depends on weights and constants alone.
bool isWeightOnly(mlir::Value value);
/// The same, and at least one weight is among them.
bool isLoadedWeight(mlir::Value value);
/// Moves the ops behind a weight-only value in front of `op`, where they are not there already.
void moveWeightBefore(mlir::Value value, mlir::Operation* op, mlir::RewriterBase& rewriter);

}  // namespace lathe
