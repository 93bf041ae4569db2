// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which axes of the two sides of a reshape hold the same elements.
#include "llvm/ADT/SmallVector.h"
#include "mlir/IR/BuiltinTypes.h"

namespace lathe {

/// Axes [from, fromEnd) of one tensor and [to, toEnd) of another, whose sizes have equal products.
struct AxisGroup {
  size_t from, fromEnd, to, toEnd;
};

/// The groups of two tensors with the same elements in the same order, from the slowest axes on.
/// Each begins with axes of other sizes than 1. They end where products are not provably equal.
llvm::SmallVector<AxisGroup, 4> axisGroups(mlir::RankedTensorType from, mlir::RankedTensorType to);

}  // namespace lathe
