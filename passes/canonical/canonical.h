// SPDX-License-Identifier: Apache-2.0
#pragma once
// The canonical form: one spelling per idea (docs/canonical-form.md). Every rewrite is exact, that
// is bit-identical on the interpreter in the op's own dtype, or asks with `weaken` for the contract
// it gives up. addCanonicalPatterns (lathe/passes/passes.h) adds them all.
#include "ir/op_builder.h"
#include "mlir/IR/PatternMatch.h"
#include "passes/rewrite/numerics_scope.h"

namespace lathe {

void addConstantPatterns(mlir::RewritePatternSet& patterns);
void addConstantFolding(mlir::RewritePatternSet& patterns);
void addCastPatterns(mlir::RewritePatternSet& patterns);
void addAxisMapPatterns(mlir::RewritePatternSet& patterns);
void addSlicePatterns(mlir::RewritePatternSet& patterns);
void addRepeatPatterns(mlir::RewritePatternSet& patterns);
void addMaskPatterns(mlir::RewritePatternSet& patterns);
void addRampPatterns(mlir::RewritePatternSet& patterns);
void addScalePatterns(mlir::RewritePatternSet& patterns);
void addNormPatterns(mlir::RewritePatternSet& patterns);
void addActivationPatterns(mlir::RewritePatternSet& patterns);

/// True if the mode lets a rewrite of `op` compute the same formula by other ops, which round
/// elsewhere. To be asked last, as `weaken` is.
inline bool mayRespell(mlir::Operation* op) { return weaken(op->getContext(), Contract::Spelling); }

/// A rewrite of one kind of op: the value that replaces its result, or null. It makes nothing
/// before it is sure.
template <class Op, class Fn>
struct CanonicalRewrite final : mlir::OpRewritePattern<Op> {
  CanonicalRewrite(mlir::MLIRContext* context, llvm::StringRef name, Fn fn)
      : mlir::OpRewritePattern<Op>(context), fn_(fn) {
    this->setDebugName(name);
  }
  llvm::LogicalResult matchAndRewrite(Op op, mlir::PatternRewriter& rewriter) const override {
    OpMaker maker(rewriter, op.getLoc());
    mlir::Value value = fn_(op, maker);
    if (!value) return mlir::failure();
    rewriter.replaceOp(op, value);
    return mlir::success();
  }
  Fn fn_;
};
template <class Op, class Fn>
void addRewrite(mlir::RewritePatternSet& patterns, llvm::StringRef name, Fn fn) {
  patterns.add<CanonicalRewrite<Op, Fn>>(patterns.getContext(), name, fn);
}

}  // namespace lathe
