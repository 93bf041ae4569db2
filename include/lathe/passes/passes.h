// SPDX-License-Identifier: Apache-2.0
#pragma once
// Rewrites of the dialect. Every pass numbers what it does in the context's rewrite log, if there
// is one, and merges locations in any case.
#include <functional>
#include <memory>

#include "lathe/passes/dag_pattern.h"
#include "lathe/passes/pipeline.h"
#include "mlir/Pass/Pass.h"

namespace lathe {

/// `lathe-canonicalize`: one spelling per idea (passes/canonical/, docs/canonical-form.md).
std::unique_ptr<mlir::Pass> createCanonicalizePass();
/// Its rewrites, with the folds of the dialect, as patterns among others.
void addCanonicalPatterns(mlir::RewritePatternSet& patterns);
/// `lathe-cse`: equal ops become one, which carries the origins of all.
std::unique_ptr<mlir::Pass> createCsePass();
/// `lathe-decompose`: fused ops become the elementary ops they stand for. All of them, or those for
/// which `decomposes` is true.
std::unique_ptr<mlir::Pass> createDecomposePass();
std::unique_ptr<mlir::Pass> createDecomposePass(std::function<bool(mlir::Operation*)> decomposes);
/// The same as a pattern among others.
void addDecomposePattern(mlir::RewritePatternSet& patterns);
/// `lathe-fuse`: the built-in fusions, and the user's own.
std::unique_ptr<mlir::Pass> createFusePass();
std::unique_ptr<mlir::Pass> createFusePass(PatternsFor more);
/// The user's fusions alone, for the graph as recorded: a pattern is matched as it is written, and
/// `lathe-fuse` tries it again on the canonical form.
std::unique_ptr<mlir::Pass> createUserFusionsPass(PatternLibrary own);
/// `lathe-why-not`: a remark on each op that no fusion took although one came near, with the first
/// constraint that failed. Run it after `lathe-fuse`; it changes nothing.
std::unique_ptr<mlir::Pass> createWhyNotPass();
std::unique_ptr<mlir::Pass> createWhyNotPass(PatternsFor more);
/// `lathe-check-locations`: an error on each op that lost its origin.
std::unique_ptr<mlir::Pass> createCheckLocationsPass();
/// `lathe-strip-dims`: tensor types lose their named dims, for upstream passes that would drop some
/// of them. Only once no lathe op is left: their inference cannot prove `?` equal to `?`.
std::unique_ptr<mlir::Pass> createStripDimsPass();

/// `lathe-fold-norm-gain`, `lathe-merge-linears`, `lathe-choose-weight-layout`,
/// `lathe-hoist-weights`, `lathe-form-regions`: the steps that a backend takes from `fused` to
/// `lowered`, with the widest answers a backend could give.
std::unique_ptr<mlir::Pass> createFoldNormGainPass();
std::unique_ptr<mlir::Pass> createMergeLinearsPass();
std::unique_ptr<mlir::Pass> createChooseWeightLayoutPass();
std::unique_ptr<mlir::Pass> createHoistWeightsPass();
std::unique_ptr<mlir::Pass> createFormRegionsPass();

/// Makes the passes of this header known to `lathe-opt`.
void registerRewritePasses();

}  // namespace lathe

/// What every pass of ours defines besides runOnOperation.
#define LATHE_PASS(Name, argument, description)                  \
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(Name)             \
  llvm::StringRef getArgument() const final { return argument; } \
  llvm::StringRef getDescription() const final { return description; }
