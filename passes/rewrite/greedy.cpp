// SPDX-License-Identifier: Apache-2.0
#include "lathe/passes/greedy.h"

#include "llvm/Support/SaveAndRestore.h"
#include "mlir/IR/Dominance.h"
#include "mlir/Transforms/CSE.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "passes/rewrite/rewrite_log.h"

using namespace mlir;

namespace lathe {
namespace {

thread_local RewriteBudget* currentBudget = nullptr;

struct FoldPattern : RewritePattern {
  // Before any other pattern: folding only ever makes less.
  explicit FoldPattern(MLIRContext* context) : RewritePattern(MatchAnyOpTypeTag(), 1000, context) {
    setDebugName("fold");
  }
  LogicalResult matchAndRewrite(Operation* op, PatternRewriter& rewriter) const override {
    if (op->hasTrait<OpTrait::ConstantLike>()) return failure();
    SmallVector<Value> had(op->getOperands());
    SmallVector<OpFoldResult> folded;
    if (failed(op->fold(folded))) return failure();
    if (folded.empty()) {
      // Folded in place: the op has taken over what an operand did, and that operand's origin.
      Origins origins;
      addOrigins(origins, op->getLoc());
      for (Value v : had)
        if (Operation* def = v.getDefiningOp(); def && def->use_empty())
          addOrigins(origins, def->getLoc());
      rewriter.modifyOpInPlace(op,
                               [&] { op->setLoc(fuseOrigins(op->getContext(), origins, "fold")); });
      return success();
    }
    SmallVector<Value> values;
    for (auto [result, value] : llvm::zip(folded, op->getResults())) {
      if (auto v = dyn_cast<Value>(result)) {
        if (v.getType() != value.getType()) return failure();
        values.push_back(v);
        continue;
      }
      Operation* constant = op->getDialect()->materializeConstant(rewriter, cast<Attribute>(result),
                                                                  value.getType(), op->getLoc());
      if (!constant) return failure();
      values.push_back(constant->getResult(0));
    }
    rewriter.replaceOp(op, values);
    return success();
  }
};

}  // namespace

bool RewriteBudget::take(const std::string& pattern, int64_t ops, const std::string& place) {
  if (exhausted()) return false;
  if (rewritesDone_ == rewrites_ || opsMade_ + ops > ops_) {
    pattern_ = pattern;
    place_ = place;
    return false;
  }
  ++rewritesDone_;
  opsMade_ += ops;
  return true;
}

std::string RewriteBudget::text() const {
  return (place_.empty() ? "" : place_ + ": ") + "pattern '" + pattern_ + "' was the last of " +
         std::to_string(rewritesDone_) + " rewrites, which made " + std::to_string(opsMade_) +
         " ops";
}

RewriteBudget* RewriteBudget::current() { return currentBudget; }

LogicalResult applyPatterns(Operation* root, const FrozenRewritePatternSet& patterns) {
  RewriteLog own(root->getContext());
  RewriteLog* log = rewriteLogOf(root->getContext());
  GreedyRewriteConfig config;
  // Built-in patterns only ever make less; one that matches what it makes would go on for ever.
  int64_t ops = 0;
  root->walk([&](Operation*) { ++ops; });
  RewriteLog* seen = log ? log : &own;
  config.setMaxNumRewrites(200 * ops + 1000);
  config.setListener(seen)
      .enableFolding(false)
      .enableConstantCSE(false)
      .setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled)
      .setUseTopDownTraversal();
  RewriteBudget budget(ops);
  llvm::SaveAndRestore run(currentBudget, &budget);
  LogicalResult result = applyPatternsGreedily(root, patterns, config);
  if (budget.exhausted()) {
    root->emitError() << "rewriting does not end: " << budget.text()
                      << "; does it match its own replacement?";
    return failure();
  }
  if (failed(result))
    root->emitError() << "rewriting does not end: pattern '" << seen->lastApplied()
                      << "' was the last of very many; does it match its own replacement?";
  return result;
}

void addFoldPattern(RewritePatternSet& patterns) {
  patterns.add<FoldPattern>(patterns.getContext());
}

void mergeCommonSubexpressions(Operation* root) {
  RewriteLog own(root->getContext());
  RewriteLog* log = rewriteLogOf(root->getContext());
  IRRewriter rewriter(root->getContext(), log ? log : &own);
  DominanceInfo dominance(root);
  eliminateCommonSubExpressions(rewriter, dominance, root);
}

}  // namespace lathe
