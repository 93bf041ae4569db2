// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reads the conditions of an attention mask: which keys do they let a query see?
#include <optional>

#include "lathe/ir/types.h"
#include "llvm/ADT/SmallVector.h"

namespace lathe {

/// A condition on index ramps: key j is visible to query i exactly if j <= i + p[b] + offset
/// (`upper`) or j >= i + p[b] + offset.
struct RampBound {
  bool upper = true;
  DimExpr offset;
  mlir::Value positions;                       ///< p: [batch]; null for 0
  llvm::SmallVector<mlir::Operation*, 8> ops;  ///< what spells the condition
};

/// The bound that a comparison of index ramps spells. Any predicate, order, placement of numbers
/// and of dims counts, so `j < i + 1` and, under `hidden` (true means masked), `j > i` are the
/// same. Nothing for any other condition. `scores` is [.., queries, keys]; the condition is aligned
/// to its last axes. Ramps rounded to 16 bits are no ramps.
std::optional<RampBound> readBound(mlir::Value condition, bool hidden,
                                   mlir::RankedTensorType scores);

/// The alignment of a causal mask whose bound is `upper`: top_left, positions, or bottom_right
/// where the offset is provably keys - queries. `none` for any other.
Causal alignmentOf(const RampBound& upper, mlir::RankedTensorType scores);
/// w where `lower` hides all but the last w keys that `upper` shows; 0 if it is something else.
int64_t windowOf(const RampBound& upper, const RampBound& lower);

}  // namespace lathe
