// SPDX-License-Identifier: Apache-2.0
#pragma once
// How the operands and results of one op are cut when one of them is.
#include <optional>
#include <string>

#include "passes/shard/cut.h"

namespace lathe {

/// Whole operands serve all pieces.
struct OpCuts {
  llvm::SmallVector<Cut, 4> operands, results;
  /// What the ranks compute are addends of the results, which are whole.
  bool isSum = false;
};

/// The cuts that go with a cut of result `index`. Nothing where the op has no rule or sizes do not
/// divide, of which `why` is told.
std::optional<OpCuts> cutsOfResult(mlir::Operation* op, unsigned index, const Cut& cut,
                                   std::string* why = nullptr);
/// The same of operand `index`.
std::optional<OpCuts> cutsOfOperand(mlir::Operation* op, unsigned index, const Cut& cut);

/// Where a slice begins that takes neighbours along this axis, and all of the others. Nothing for
/// other slices.
std::optional<int64_t> startAlong(SliceOp slice, int64_t axis);

}  // namespace lathe
