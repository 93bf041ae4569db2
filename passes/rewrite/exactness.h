// SPDX-License-Identifier: Apache-2.0
#pragma once
// Is what a rewrite puts in place of some ops exactly what they compute?
#include <optional>
#include <string>

#include "passes/rewrite/cut_out.h"
#include "passes/rewrite/numerics_scope.h"

namespace lathe {

/// The first place where two values are not computed in the same way.
struct Difference {
  std::string what;  ///< "lathe.mul of bf16[4] became lathe.mul of f32[4]"
  bool rounds;       ///< dtypes or casts differ: other roundings; else only another formula
};

/// Compares each matched value with what replaces it. Both are cut out of the graph at the same
/// values, expanded to elementary ops, brought to canonical form by exact rewrites alone, and
/// numbered: equal numbers are equal ops on equal operands, so the bits are equal for every input.
/// `matched` are the ops that the rewrite removes or looks through, `created` those it makes.
/// Nothing if all are equal. A difference says that they may differ, not that they do.
std::optional<Difference> exactDifference(NumericsPolicy& policy, Replacements replaced,
                                          llvm::ArrayRef<mlir::Operation*> matched,
                                          llvm::ArrayRef<mlir::Operation*> created);

}  // namespace lathe
