// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "lathe/passes/dag_pattern.h"
#include "lathe/passes/pipeline.h"

namespace lathe {

/// The fusions that a user brings, in order: builder patterns, then those of the pattern files.
/// Calls `patterns`, so it runs before any pass: a mistake in one throws Error, which must not pass
/// through MLIR. Throws Error for a pattern without root or replacement, one of another context,
/// and, where the context's policy has an evaluator, one that is wrong wherever it applies
/// (pattern_trial.h).
PatternLibrary userPatterns(mlir::MLIRContext* context, const PatternsFor& patterns,
                            const std::vector<std::string>& files);

}  // namespace lathe
