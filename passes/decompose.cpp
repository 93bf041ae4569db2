// SPDX-License-Identifier: Apache-2.0
#include "lathe/ir/types.h"
#include "lathe/passes/greedy.h"
#include "lathe/passes/passes.h"

using namespace mlir;

namespace lathe {
#define GEN_PASS_DEF_DECOMPOSEPASS
#include "lathe/passes/passes.h.inc"
namespace {

using Filter = std::function<bool(Operation*)>;

struct DecomposePattern : OpInterfaceRewritePattern<DecomposableOp> {
  DecomposePattern(MLIRContext* context, Filter decomposes)
      : OpInterfaceRewritePattern(context), decomposes_(std::move(decomposes)) {
    setDebugName("decompose");
  }
  LogicalResult matchAndRewrite(DecomposableOp op, PatternRewriter& rewriter) const override {
    if (decomposes_ && !decomposes_(op)) return failure();
    auto values = op.decompose(rewriter);
    if (failed(values))
      return rewriter.notifyMatchFailure(op, "the op has no elementary form here");
    rewriter.replaceOp(op, *values);
    return success();
  }
  Filter decomposes_;
};

class DecomposePass : public impl::DecomposePassBase<DecomposePass> {
 public:
  explicit DecomposePass(Filter decomposes = {}) : decomposes_(std::move(decomposes)) {}
  void runOnOperation() final {
    RewritePatternSet patterns(&getContext());
    patterns.add<DecomposePattern>(&getContext(), decomposes_);
    if (failed(applyPatterns(getOperation(), std::move(patterns)))) signalPassFailure();
  }

 private:
  Filter decomposes_;
};

}  // namespace

void addDecomposePattern(RewritePatternSet& patterns) {
  patterns.add<DecomposePattern>(patterns.getContext(), Filter());
}

std::unique_ptr<Pass> createDecomposePass(Filter decomposes) {
  return std::make_unique<DecomposePass>(std::move(decomposes));
}

}  // namespace lathe
