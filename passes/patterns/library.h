// SPDX-License-Identifier: Apache-2.0
#pragma once
// The fusions that are built in; one file per fused op.
#include "lathe/passes/match.h"
#include "mlir/Rewrite/FrozenRewritePatternSet.h"

namespace lathe {

/// All built-in fusions, most specific first. Recorded once for a context, which keeps them; not
/// for the first time while passes run in several threads.
const PatternLibrary& fusionPatterns(mlir::MLIRContext* context);
/// The same as rewrites, a set for each phase.
const std::vector<mlir::FrozenRewritePatternSet>& fusionRewrites(mlir::MLIRContext* context);
/// A phase holds the patterns of the earlier ones too: what it makes may be theirs again.
std::vector<mlir::FrozenRewritePatternSet> rewritesByPhase(const PatternLibrary& library,
                                                           mlir::MLIRContext* context);

/// Phases of the built-in fusions (DagPattern::phase); 0 holds what nothing larger wants.
constexpr int kEpilogues = 1;   ///< activations and residuals that no gate took go into linear
constexpr int kComposites = 2;  ///< ops made of fused ops and what stands before them

void addSoftmaxPatterns(PatternLibrary& library, mlir::MLIRContext* context);
void addRmsNormPatterns(PatternLibrary& library, mlir::MLIRContext* context);
void addLayerNormPatterns(PatternLibrary& library, mlir::MLIRContext* context);
void addAddNormPatterns(PatternLibrary& library, mlir::MLIRContext* context);
void addAdalnPatterns(PatternLibrary& library, mlir::MLIRContext* context);
void addGatedResidualPatterns(PatternLibrary& library, mlir::MLIRContext* context);
void addRopePatterns(PatternLibrary& library, mlir::MLIRContext* context);
void addNormRopePatterns(PatternLibrary& library, mlir::MLIRContext* context);
void addGluPatterns(PatternLibrary& library, mlir::MLIRContext* context);
void addAttentionPatterns(PatternLibrary& library, mlir::MLIRContext* context);
void addGroupedLinearPatterns(PatternLibrary& library, mlir::MLIRContext* context);
void addPagedAttentionPatterns(PatternLibrary& library, mlir::MLIRContext* context);
void addLinearPatterns(PatternLibrary& library, mlir::MLIRContext* context);
void addEmbeddingPatterns(PatternLibrary& library, mlir::MLIRContext* context);
/// A convolution whose windows tile the image becomes a linear op.
void addPatchifyPatterns(PatternLibrary& library, mlir::MLIRContext* context);
/// Rows that nobody reads are cut off before a linear op and a norm, not after.
void addRowSlicePatterns(PatternLibrary& library, mlir::MLIRContext* context);
/// argmax ignores what keeps the order.
void addArgmaxPatterns(PatternLibrary& library, mlir::MLIRContext* context);
/// Casts around a fused op that computes in f32 anyway become part of it.
void addNarrowingPatterns(PatternLibrary& library, mlir::MLIRContext* context);

// --- fused ops in patterns, with any attributes; an undefined operand is absent
Tensor anyPlainSoftmax(DagPattern& p, const Tensor& x);
Tensor anyRmsNorm(DagPattern& p, const Tensor& x, const Tensor& gain);
Tensor anyLayerNorm(DagPattern& p, const Tensor& x, const Tensor& gain, const Tensor& bias);

/// x through an activation in one of its spellings.
struct ActivationForm {
  Activation kind;
  Tensor (*record)(DagPattern& p, const Tensor& x);
};
const std::vector<ActivationForm>& activationForms();

}  // namespace lathe
