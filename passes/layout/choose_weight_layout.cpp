// SPDX-License-Identifier: Apache-2.0
#include "passes/layout/choose_weight_layout.h"

#include "lathe/ir/types.h"
#include "lathe/passes/greedy.h"
#include "passes/rewrite/weight_only.h"

using namespace mlir;

namespace lathe {
namespace {

template <class Op>
struct PackWeight : OpRewritePattern<Op> {
  PackWeight(MLIRContext* context, std::function<bool(Value)> wants)
      : OpRewritePattern<Op>(context), wants(std::move(wants)) {
    this->setDebugName("pack-weight");
  }
  LogicalResult matchAndRewrite(Op op, PatternRewriter& rewriter) const override {
    if (op.getLayout() == WeightLayout::packed || !isWeightOnly(op.getW()) || !wants(op.getX()))
      return failure();
    Value packed = PackOp::create(rewriter, op.getLoc(), op.getW(), op.getLayout());
    rewriter.modifyOpInPlace(op, [&] {
      op.getWMutable().assign(packed);
      op.setLayout(WeightLayout::packed);
    });
    return success();
  }
  std::function<bool(Value)> wants;
};

}  // namespace

void chooseWeightLayout(ModuleOp module, const std::function<bool(Value)>& wants) {
  RewritePatternSet patterns(module.getContext());
  patterns.add<PackWeight<LinearOp>, PackWeight<GroupedLinearOp>>(module.getContext(), wants);
  (void)applyPatterns(module, std::move(patterns));
}

}  // namespace lathe
