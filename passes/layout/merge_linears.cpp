// SPDX-License-Identifier: Apache-2.0
#include "passes/layout/merge_linears.h"

#include "ir/op_builder.h"
#include "lathe/passes/greedy.h"
#include "passes/rewrite/locations.h"
#include "passes/rewrite/rewrite_log.h"
#include "passes/rewrite/weight_only.h"

using namespace mlir;

namespace lathe {
namespace {

using Wants = std::function<bool(ArrayRef<LinearOp>)>;

bool mayMerge(LinearOp op) {
  return op.getLayout() != WeightLayout::packed && !op.getResidual() && !op.getUnrounded() &&
         op.getActivation() == Activation::none && isWeightOnly(op.getW()) &&
         (!op.getBias() || isWeightOnly(op.getBias()));
}

// The linear ops on the input of `first` that can share a weight with it, in the block's order;
// none if `first` is not the first of them.
SmallVector<LinearOp> siblingsOf(LinearOp first) {
  SmallVector<LinearOp> all;
  for (OpOperand& use : first.getX().getUses()) {
    auto op = dyn_cast<LinearOp>(use.getOwner());
    bool fits = op && use.getOperandNumber() == 0 && op->getBlock() == first->getBlock() &&
                op.getLayout() == first.getLayout() && mayMerge(op);
    if (fits) all.push_back(op);
  }
  llvm::sort(all, [](LinearOp a, LinearOp b) { return a->isBeforeInBlock(b); });
  if (all.empty() || all.front() != first) return {};
  return all;
}

int64_t columnsOf(LinearOp op) {
  auto type = tensorType(op.getY());
  return type.getDimSize(type.getRank() - 1);
}

// Two layers whose products meet in one gated activation.
bool isGateAndUp(ArrayRef<LinearOp> siblings) {
  if (siblings.size() != 2) return false;
  SmallVector<Operation*> users;
  for (LinearOp op : siblings)
    users.push_back(op.getY().hasOneUse() ? *op.getY().getUsers().begin() : nullptr);
  return users[0] && users[0] == users[1] && isa<SiluGateOp>(users[0]);
}

class MergeSiblings : public OpRewritePattern<LinearOp> {
 public:
  MergeSiblings(MLIRContext* context, Wants wants, bool gateAndUp)
      : OpRewritePattern(context, /*benefit=*/gateAndUp ? 2 : 1),
        wants_(std::move(wants)),
        gateAndUp_(gateAndUp) {
    setDebugName(gateAndUp ? "merge-gate-up" : "merge-qkv");
    addDebugLabels(kExactLocations);
  }

  LogicalResult matchAndRewrite(LinearOp first, PatternRewriter& rewriter) const override {
    SmallVector<LinearOp> siblings = siblingsOf(first);
    if (siblings.size() < 2 || isGateAndUp(siblings) != gateAndUp_ || !wants_(siblings))
      return failure();
    bool biased = false;
    SmallVector<Value> weights, biases;
    for (LinearOp op : siblings) {
      moveWeightBefore(op.getW(), first, rewriter);
      weights.push_back(op.getW());
      if (op.getBias()) {
        moveWeightBefore(op.getBias(), first, rewriter);
        biased = true;
      }
    }
    Origins origins;
    for (LinearOp op : siblings) addOrigins(origins, op.getLoc());
    rewriter.setInsertionPoint(first);
    OpMaker m(rewriter, fuseOrigins(rewriter.getContext(), origins, getDebugName()));
    int64_t outAxis = first.getLayout() == WeightLayout::out_in ? 0 : 1;
    Value w = m.make<ConcatOp>(weights, outAxis), bias;
    if (biased) {
      for (LinearOp op : siblings) biases.push_back(biasOf(m, op));
      bias = m.make<ConcatOp>(biases, int64_t(0));
    }
    Value merged =
        m.make<LinearOp>(first.getX(), w, bias, Value(), Activation::none, first.getLayout());
    int64_t start = 0;
    for (LinearOp op : siblings) {
      OpMaker part(rewriter, op.getLoc());
      int64_t columns = columnsOf(op);
      rewriter.setInsertionPointAfter(merged.getDefiningOp());
      Value y = part.sliceLast(merged, start, columns);
      rewriter.replaceOp(op, y);
      start += columns;
    }
    return success();
  }

 private:
  static Value biasOf(OpMaker& m, LinearOp op) {
    if (op.getBias()) return op.getBias();
    Value zero = m.scalar(tensorType(op.getY()).getElementType(), 0);
    return m.broadcast(zero, {m.dim(columnsOf(op))});
  }

  Wants wants_;
  bool gateAndUp_;
};

}  // namespace

void mergeLinears(ModuleOp module, const Wants& wants) {
  RewritePatternSet patterns(module.getContext());
  for (bool gateAndUp : {true, false})
    patterns.add<MergeSiblings>(module.getContext(), wants, gateAndUp);
  (void)applyPatterns(module, std::move(patterns));
}

}  // namespace lathe
