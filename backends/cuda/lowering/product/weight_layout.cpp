// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/lowering/product/weight_layout.h"

#include "lathe/ir/types.h"
#include "lathe/passes/greedy.h"
#include "passes/rewrite/weight_only.h"

using namespace mlir;

namespace lathe::cuda {
namespace {

struct TransposeWeight : OpRewritePattern<LinearOp> {
  explicit TransposeWeight(MLIRContext* context) : OpRewritePattern(context) {
    setDebugName("transpose-weight");
  }
  LogicalResult matchAndRewrite(LinearOp op, PatternRewriter& rewriter) const override {
    if (op.getLayout() != WeightLayout::in_out || !isWeightOnly(op.getW())) return failure();
    Value turned = TransposeOp::create(rewriter, op.getLoc(), op.getW(), ArrayRef<int64_t>{1, 0});
    rewriter.modifyOpInPlace(op, [&] {
      op.getWMutable().assign(turned);
      op.setLayout(WeightLayout::out_in);
    });
    return success();
  }
};

}  // namespace

void transposeWeights(ModuleOp module) {
  RewritePatternSet patterns(module.getContext());
  patterns.add<TransposeWeight>(module.getContext());
  (void)applyPatterns(module, std::move(patterns));
}

}  // namespace lathe::cuda
