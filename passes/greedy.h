// SPDX-License-Identifier: Apache-2.0
#pragma once
// The one way in which lathe passes apply patterns: numbered and with merged locations.
#include "mlir/IR/PatternMatch.h"
#include "mlir/Rewrite/FrozenRewritePatternSet.h"

namespace lathe {

/// Applies patterns top-down until none matches. The driver neither folds nor merges constants by
/// itself, because it would do so without a number and lose locations; see addFoldPattern.
llvm::LogicalResult applyPatterns(mlir::Operation* root,
                                  const mlir::FrozenRewritePatternSet& patterns);
/// Folding as a pattern, so that it has a number and can be refused.
void addFoldPattern(mlir::RewritePatternSet& patterns);
/// Merges common subexpressions inside `root`; the survivor carries the origins of all.
void mergeCommonSubexpressions(mlir::Operation* root);

}  // namespace lathe
