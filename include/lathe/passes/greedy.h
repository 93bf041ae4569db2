// SPDX-License-Identifier: Apache-2.0
#pragma once
// The one way in which lathe passes apply patterns: numbered and with merged locations.
#include "mlir/IR/PatternMatch.h"
#include "mlir/Rewrite/FrozenRewritePatternSet.h"

#include <string>

namespace lathe {

/// How much the fusions of one run of applyPatterns may do: one that matches what it makes would go
/// on until memory ends. Once it is used up, every fusion declines, and applyPatterns names the one
/// that used it up.
class RewriteBudget {
 public:
  explicit RewriteBudget(int64_t ops) : rewrites_(8 * ops + 1000), ops_(32 * ops + 2000) {}
  /// False if a rewrite that makes so many ops is not to happen. `place`: the pattern's own,
  /// "glu.pdl.mlir:3", where it has one.
  bool take(const std::string& pattern, int64_t ops, const std::string& place = "");
  bool exhausted() const { return !pattern_.empty(); }
  /// "pattern 'x' was the last of 1080 rewrites, which made 2320 ops", behind the pattern's place
  std::string text() const;

  /// That of the run in this thread; null outside of one.
  static RewriteBudget* current();

 private:
  int64_t rewrites_, ops_;
  int64_t rewritesDone_ = 0, opsMade_ = 0;
  std::string pattern_, place_;
};

/// Applies patterns top-down until none matches. The driver neither folds nor merges constants by
/// itself, because it would do so without a number and lose locations; see addFoldPattern.
llvm::LogicalResult applyPatterns(mlir::Operation* root,
                                  const mlir::FrozenRewritePatternSet& patterns);
/// Folding as a pattern, so that it has a number and can be refused.
void addFoldPattern(mlir::RewritePatternSet& patterns);
/// Merges common subexpressions inside `root`; the survivor carries the origins of all.
void mergeCommonSubexpressions(mlir::Operation* root);

}  // namespace lathe
