// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/lowering/kernel/steps.h"

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

// A matrix that weights alone make is a weight like any other: what multiplies by it streams it.
struct MultiplyByWeight : OpRewritePattern<MatmulOp> {
  explicit MultiplyByWeight(MLIRContext* context) : OpRewritePattern(context) {
    setDebugName("multiply-by-weight");
  }
  LogicalResult matchAndRewrite(MatmulOp op, PatternRewriter& rewriter) const override {
    const auto type = tensorType(op.getB());
    const Type element = type.getElementType();
    const bool isOfLinear = element.isF32() || element.isBF16() || element.isF16();
    if (!isOfLinear || type.getRank() != 2 || !type.hasStaticShape() ||
        !isLoadedWeight(op.getB()) || isWeightOnly(op.getA()))
      return failure();
    Value w = op.getB();
    WeightLayout layout = WeightLayout::in_out;
    if (auto turned = w.getDefiningOp<TransposeOp>()) {
      w = turned.getX();
      layout = WeightLayout::out_in;
    }
    rewriter.replaceOpWithNewOp<LinearOp>(op, op.getType(), op.getA(), w, Value(), Value(),
                                          Activation::none, layout);
    return success();
  }
};

}  // namespace

void transposeWeights(ModuleOp module) {
  RewritePatternSet patterns(module.getContext());
  patterns.add<MultiplyByWeight, TransposeWeight>(module.getContext());
  (void)applyPatterns(module, std::move(patterns));
}

}  // namespace lathe::cuda
