// SPDX-License-Identifier: Apache-2.0
#pragma once
// The fusions that are built in; one file per fused op.
#include "passes/match.h"

namespace lathe {

/// All built-in fusions, most specific first.
PatternLibrary fusionPatterns(mlir::MLIRContext* context);

void addSoftmaxPatterns(PatternLibrary& library, mlir::MLIRContext* context);
void addRmsNormPatterns(PatternLibrary& library, mlir::MLIRContext* context);
void addRopePatterns(PatternLibrary& library, mlir::MLIRContext* context);
void addSiluGatePatterns(PatternLibrary& library, mlir::MLIRContext* context);
void addAttentionPatterns(PatternLibrary& library, mlir::MLIRContext* context);
void addLinearPatterns(PatternLibrary& library, mlir::MLIRContext* context);
void addEmbeddingPatterns(PatternLibrary& library, mlir::MLIRContext* context);
/// Casts around a fused op that computes in f32 anyway become part of it.
void addNarrowingPatterns(PatternLibrary& library, mlir::MLIRContext* context);

/// A cast to any dtype.
Tensor anyCast(DagPattern& pattern, const Tensor& x, LATHE_PATTERN_AT);

}  // namespace lathe
