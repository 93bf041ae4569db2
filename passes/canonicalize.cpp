// SPDX-License-Identifier: Apache-2.0
#include "ir/types.h"
#include "passes/greedy.h"
#include "passes/passes.h"

using namespace mlir;

namespace lathe {
namespace {

// transpose(transpose(x, p), q) is transpose(x, p[q]).
struct ComposeTransposes : OpRewritePattern<TransposeOp> {
  explicit ComposeTransposes(MLIRContext* context) : OpRewritePattern(context) {
    setDebugName("compose-transposes");
  }
  LogicalResult matchAndRewrite(TransposeOp op, PatternRewriter& rewriter) const override {
    auto inner = op.getX().getDefiningOp<TransposeOp>();
    if (!inner) return failure();
    SmallVector<int64_t> permutation;
    for (int64_t p : op.getPermutation()) permutation.push_back(inner.getPermutation()[p]);
    rewriter.replaceOpWithNewOp<TransposeOp>(op, inner.getX(), permutation);
    return success();
  }
};

// broadcast(broadcast(x)) is the outer one of x.
struct ComposeBroadcasts : OpRewritePattern<BroadcastOp> {
  explicit ComposeBroadcasts(MLIRContext* context) : OpRewritePattern(context) {
    setDebugName("compose-broadcasts");
  }
  LogicalResult matchAndRewrite(BroadcastOp op, PatternRewriter& rewriter) const override {
    auto inner = op.getX().getDefiningOp<BroadcastOp>();
    if (!inner) return failure();
    rewriter.replaceOpWithNewOp<BroadcastOp>(op, inner.getX(), op.getShape());
    return success();
  }
};

class CanonicalizePass : public PassWrapper<CanonicalizePass, OperationPass<>> {
 public:
  LATHE_PASS(CanonicalizePass, "lathe-canonicalize", "folds and compositions, numbered")
  LogicalResult initialize(MLIRContext* context) final {
    RewritePatternSet patterns(context);
    auto* dialect = context->getOrLoadDialect<LatheDialect>();
    dialect->getCanonicalizationPatterns(patterns);
    for (RegisteredOperationName op : context->getRegisteredOperationsByDialect("lathe"))
      op.getCanonicalizationPatterns(patterns, context);
    patterns.add<ComposeTransposes, ComposeBroadcasts>(context);
    addFoldPattern(patterns);
    patterns_ = FrozenRewritePatternSet(std::move(patterns));
    return success();
  }
  void runOnOperation() final {
    if (failed(applyPatterns(getOperation(), patterns_))) signalPassFailure();
  }

 private:
  FrozenRewritePatternSet patterns_;
};

}  // namespace

std::unique_ptr<Pass> createCanonicalizePass() { return std::make_unique<CanonicalizePass>(); }

}  // namespace lathe
