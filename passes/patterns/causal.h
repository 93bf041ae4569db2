// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reads the condition of an attention mask: which keys does it let a query see?
#include <optional>

#include "ir/types.h"
#include "llvm/ADT/SmallVector.h"

namespace lathe {

struct CausalMask {
  Causal alignment = Causal::none;             ///< top_left or positions
  mlir::Value positions;                       ///< [batch], for `positions`
  llvm::SmallVector<mlir::Operation*, 8> ops;  ///< what spells the condition
};

/// The causal mask that a comparison of index ramps spells: true exactly where key j and query i
/// satisfy j <= i, or j <= i + positions[b]. Any predicate, order and placement of +1 counts, so
/// `j < i + 1` and, under `hidden` (true means masked), `j > i` are the same. Nothing for any other
/// condition. `scores` is [.., queries, keys]; the condition is aligned to its last axes.
std::optional<CausalMask> readCausal(mlir::Value condition, bool hidden,
                                     mlir::RankedTensorType scores);

}  // namespace lathe
