// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which fusion nearly took an op, and what stopped it, as data.
#include <memory>
#include <string_view>
#include <vector>

#include "lathe/passes/match.h"
#include "passes/patterns/goals.h"

namespace lathe {

/// An op that no pattern takes, a fusion that was meant or came near, and the first constraint that
/// failed.
struct NearMiss {
  mlir::Operation* op;
  /// The nearest pattern of the fusion. Null if the op is meant for `goal` and none starts there.
  std::shared_ptr<const DagPattern> pattern;
  Miss miss;                   ///< Why::Declined if all matched and the replacement refused
  const Goal* goal = nullptr;  ///< the op is meant to be this (passes/patterns/goals.h)

  /// The pattern's name, or the goal's.
  std::string name() const;
  /// What failed, in words with the line.
  std::string explain() const;
};

/// The near misses below `root`, in order of the ops, and of one op the best of each fusion, what
/// was meant first. An op counts if it is meant for a fusion; if two and at least half of a
/// pattern's ops matched and then a user, an attribute, a size or a condition was in the way; of a
/// user's own pattern, or after three quarters of one without a goal, also if another op or
/// constant was; or if only the replacement refused. `evenFar` takes every op at which some pattern
/// could start. Run it on what the fusions left. It leaves the module as it is.
std::vector<NearMiss> findMisses(mlir::Operation* root, const PatternLibrary& library,
                                 bool evenFar = false);

/// The kind of a constraint: "op", "operands", "identity", "constant", "attribute", "uses",
/// "condition", "dim" or "replacement".
std::string_view nameOf(Miss::Why why);

}  // namespace lathe
