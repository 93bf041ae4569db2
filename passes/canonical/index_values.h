// SPDX-License-Identifier: Apache-2.0
#pragma once
// What tensors of indices and conditions hold, where that follows from sizes and places alone.
#include <optional>
#include <string>

#include "lathe/ir/types.h"

namespace lathe {

/// The element of an integer tensor, or of a condition (0 or 1), at every place as one polynomial
/// of the sizes and of the place, read through any chain of layouts, arithmetic, gathers, running
/// and whole sums. `axes` are the symbols that stand for the place, one per axis; each is at least
/// 0 and below its dim.
struct IndexValue {
  DimExpr value;
  llvm::SmallVector<std::string> axes;
};
/// Nothing for what depends on an input or may wrap, and where no polynomial holds everywhere.
std::optional<IndexValue> indexValueOf(mlir::Value tensor);

}  // namespace lathe
