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

using Wants = std::function<bool(Value)>;

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
template <class Op>
bool isGateAndUp(ArrayRef<Op> siblings) {
  if (siblings.size() != 2) return false;
  SmallVector<Operation*> users;
  for (Op op : siblings)
    users.push_back(op.getY().hasOneUse() ? *op.getY().getUsers().begin() : nullptr);
  return users[0] && users[0] == users[1] && isa<GluOp>(users[0]);
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
    if (siblings.size() < 2 || isGateAndUp<LinearOp>(siblings) != gateAndUp_ ||
        !wants_(first.getX()))
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

// Gate and up of a mixture's experts: both products of one x by one choice.
class MergeExperts : public OpRewritePattern<GroupedLinearOp> {
 public:
  MergeExperts(MLIRContext* context, Wants wants)
      : OpRewritePattern(context), wants_(std::move(wants)) {
    setDebugName("merge-experts");
    addDebugLabels(kExactLocations);
  }

  LogicalResult matchAndRewrite(GroupedLinearOp first, PatternRewriter& rewriter) const override {
    const SmallVector<GroupedLinearOp> both = siblingsOf(first);
    if (!isGateAndUp<GroupedLinearOp>(both) || !wants_(first.getX())) return failure();
    Origins origins;
    SmallVector<Value> weights;
    for (GroupedLinearOp op : both) {
      moveWeightBefore(op.getW(), first, rewriter);
      weights.push_back(op.getW());
      addOrigins(origins, op.getLoc());
    }
    rewriter.setInsertionPoint(first);
    OpMaker m(rewriter, fuseOrigins(rewriter.getContext(), origins, getDebugName()));
    const int64_t outAxis = first.getLayout() == WeightLayout::out_in ? 1 : 2;
    Value w = m.make<ConcatOp>(weights, outAxis);
    Value merged = m.make<GroupedLinearOp>(first.getX(), w, first.getIndices(), first.getLayout(),
                                           first.getUnrounded());
    int64_t start = 0;
    for (GroupedLinearOp op : both) {
      OpMaker part(rewriter, op.getLoc());
      const int64_t columns = tensorType(op.getY()).getShape().back();
      rewriter.setInsertionPointAfter(merged.getDefiningOp());
      rewriter.replaceOp(op, part.sliceLast(merged, start, columns));
      start += columns;
    }
    return success();
  }

 private:
  // None if `first` is not the first of them.
  static SmallVector<GroupedLinearOp> siblingsOf(GroupedLinearOp first) {
    SmallVector<GroupedLinearOp> all;
    for (OpOperand& use : first.getX().getUses()) {
      auto op = dyn_cast<GroupedLinearOp>(use.getOwner());
      if (op && use.getOperandNumber() == 0 && op->getBlock() == first->getBlock() &&
          op.getIndices() == first.getIndices() && op.getLayout() == first.getLayout() &&
          op.getUnrounded() == first.getUnrounded() && op.getLayout() != WeightLayout::packed &&
          isWeightOnly(op.getW()))
        all.push_back(op);
    }
    llvm::sort(all, [](GroupedLinearOp a, GroupedLinearOp b) { return a->isBeforeInBlock(b); });
    if (all.empty() || all.front() != first) return {};
    return all;
  }

  Wants wants_;
};

}  // namespace

void mergeLinears(ModuleOp module, const Wants& wants) {
  RewritePatternSet patterns(module.getContext());
  for (bool gateAndUp : {true, false})
    patterns.add<MergeSiblings>(module.getContext(), wants, gateAndUp);
  patterns.add<MergeExperts>(module.getContext(), wants);
  (void)applyPatterns(module, std::move(patterns));
}

}  // namespace lathe
