// SPDX-License-Identifier: Apache-2.0
#include "passes/layout/fold_norm_gain.h"

#include "ir/op_builder.h"
#include "lathe/passes/greedy.h"
#include "passes/rewrite/numerics_scope.h"
#include "passes/rewrite/weight_only.h"

using namespace mlir;

namespace lathe {
namespace {

bool mayTakeGain(OpOperand& use) {
  auto linear = dyn_cast<LinearOp>(use.getOwner());
  return linear && use.getOperandNumber() == 0 && linear.getLayout() != WeightLayout::packed &&
         isWeightOnly(linear.getW()) && (!linear.getBias() || isWeightOnly(linear.getBias()));
}

// Weights are multiplied in f32 and rounded once.
class GainFolder {
 public:
  GainFolder(PatternRewriter& rewriter, LinearOp linear, Value gain, Value bias)
      : m(rewriter, linear.getLoc()), linear(linear), gain(gain), bias(bias) {
    Type element = tensorType(linear.getW()).getElementType();
    wide = computeType(element);
    for (Value v : {gain, bias})
      if (v) moveWeightBefore(v, linear, rewriter);
    rewriter.setInsertionPoint(linear);
  }

  Value weight() {
    Type element = tensorType(linear.getW()).getElementType();
    if (!gain) return linear.getW();
    Value g = m.cast(gain, wide);
    if (linear.getLayout() == WeightLayout::in_out) g = column(g);
    return m.cast(m.make<MulOp>(m.cast(linear.getW(), wide), g), element);
  }
  // The bias of the norm through the unscaled weight, and the layer's own.
  Value biasOf() {
    if (!bias) return linear.getBias();
    auto type = tensorType(linear.getW());
    Value w = m.cast(linear.getW(), wide);
    if (linear.getLayout() == WeightLayout::in_out) w = m.swapLastTwo(w);
    Value product = m.make<MatmulOp>(w, column(m.cast(bias, wide)));
    Value b = m.reshape(product, {dimOf(tensorType(product), 0)});
    if (linear.getBias()) b = m.make<AddOp>(b, m.cast(linear.getBias(), wide));
    return m.cast(b, type.getElementType());
  }

 private:
  Value column(Value v) { return m.reshape(v, {dimOf(tensorType(v), 0), m.dim(1)}); }

  OpMaker m;
  LinearOp linear;
  Value gain, bias;
  Type wide;
};

template <class NormOp>
struct FoldGain : OpRewritePattern<NormOp> {
  explicit FoldGain(MLIRContext* context) : OpRewritePattern<NormOp>(context) {
    this->setDebugName("fold-norm-gain");
  }
  LogicalResult matchAndRewrite(NormOp norm, PatternRewriter& rewriter) const override {
    Value gain = norm.getGain(), bias = biasOf(norm);
    if ((!gain && !bias) || (gain && !isWeightOnly(gain)) || (bias && !isWeightOnly(bias)) ||
        norm.getY().use_empty() || !llvm::all_of(norm.getY().getUses(), mayTakeGain) ||
        !weaken(norm.getContext(), Contract::GainPlacement))
      return failure();
    rewriter.setInsertionPoint(norm);
    Value plain = withoutGain(rewriter, norm);
    for (Operation* user : llvm::to_vector(norm.getY().getUsers())) {
      auto linear = cast<LinearOp>(user);
      GainFolder folder(rewriter, linear, gain, bias);
      Value w = folder.weight(), b = folder.biasOf();
      rewriter.replaceOpWithNewOp<LinearOp>(linear, plain, w, b, linear.getResidual(),
                                            linear.getActivation(), linear.getLayout(),
                                            linear.getUnrounded());
    }
    rewriter.eraseOp(norm);
    return success();
  }
  static Value biasOf(RmsNormOp) { return {}; }
  static Value biasOf(LayerNormOp norm) { return norm.getBias(); }
  static Value withoutGain(OpBuilder& b, RmsNormOp norm) {
    return RmsNormOp::create(b, norm.getLoc(), norm.getX(), Value(), norm.getEpsilonAttr(),
                             norm.getRoundingAttr());
  }
  static Value withoutGain(OpBuilder& b, LayerNormOp norm) {
    return LayerNormOp::create(b, norm.getLoc(), norm.getX(), Value(), Value(),
                               norm.getEpsilonAttr());
  }
};

}  // namespace

void foldNormGain(ModuleOp module) {
  RewritePatternSet patterns(module.getContext());
  patterns.add<FoldGain<RmsNormOp>, FoldGain<LayerNormOp>>(module.getContext());
  (void)applyPatterns(module, std::move(patterns));
}

}  // namespace lathe
