// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which fusion nearly took an op, and what stopped it, as data.
#include <memory>
#include <string_view>
#include <vector>

#include "passes/match.h"

namespace lathe {

/// An op that no pattern takes, the pattern that came nearest and the first constraint that failed.
struct NearMiss {
  mlir::Operation* op;
  std::shared_ptr<const DagPattern> pattern;
  Miss miss;  ///< Why::Declined if all matched and the replacement refused
};

/// The near misses below `root`, in order. An op counts if at least half of a pattern's ops
/// matched, and not the root alone, or if only the replacement refused; `evenFar` takes every op at
/// which some pattern could start. Run it on what the fusions left. It leaves the module as it is.
std::vector<NearMiss> findMisses(mlir::Operation* root, const PatternLibrary& library,
                                 bool evenFar = false);

/// The kind of a constraint: "op", "operands", "identity", "constant", "attribute", "uses",
/// "condition", "dim" or "replacement".
std::string_view nameOf(Miss::Why why);

}  // namespace lathe
