// SPDX-License-Identifier: Apache-2.0
#pragma once
// Rewrites of the dialect. What the passes of lathe-opt do is said in passes/passes.td and on
// docs/passes.md; each has a function createXPass(), and registerRewritePasses() makes them known.
#include <functional>
#include <memory>
#include <string>

#include "lathe/passes/dag_pattern.h"
#include "lathe/passes/pipeline.h"
#include "mlir/Pass/Pass.h"

namespace lathe {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "lathe/passes/passes.h.inc"

/// The rewrites of `lathe-canonicalize` as patterns among others.
void addCanonicalPatterns(mlir::RewritePatternSet& patterns);
/// `lathe-decompose` of the ops for which `decomposes` is true.
std::unique_ptr<mlir::Pass> createDecomposePass(std::function<bool(mlir::Operation*)> decomposes);
/// `lathe-decompose` as a pattern among others.
void addDecomposePattern(mlir::RewritePatternSet& patterns);
/// `lathe-fuse` with the user's own fusions.
std::unique_ptr<mlir::Pass> createFusePass(PatternsFor more);
/// The user's fusions alone, for the graph as recorded: a pattern is matched as it is written, and
/// `lathe-fuse` tries it again on the canonical form.
std::unique_ptr<mlir::Pass> createUserFusionsPass(PatternLibrary own);
/// `lathe-why-not` with the user's own fusions.
std::unique_ptr<mlir::Pass> createWhyNotPass(PatternsFor more);

}  // namespace lathe
