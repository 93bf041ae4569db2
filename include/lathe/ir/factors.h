// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which axes of an op's operands and results are one loop.
#include <optional>

#include "llvm/ADT/SmallVector.h"
#include "mlir/IR/Operation.h"

namespace lathe {

struct Factors {
  /// An axis that cannot be cut.
  static constexpr int kWhole = -1;
  using Axes = llvm::SmallVector<int, 4>;

  /// A factor, or kWhole, for every axis of every operand and result. An operand without a factor
  /// serves all of its pieces.
  llvm::SmallVector<Axes, 4> operands, results;
  /// Factors that the results sum over: pieces give addends.
  llvm::SmallVector<int, 1> sums;
};

/// Operands that broadcast to the result, aligned at the last axis: one factor for each of its
/// axes.
Factors factorsOfBroadcast(mlir::Operation* op);
/// The axes that stay; the reduced ones are cut only in sums.
Factors factorsOfReduction(mlir::Operation* op);

}  // namespace lathe
