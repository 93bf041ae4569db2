// SPDX-License-Identifier: Apache-2.0
#include "lathe/ir/types.h"
#include "lathe/passes/greedy.h"
#include "lathe/passes/passes.h"
#include "passes/canonical/canonical.h"

using namespace mlir;

namespace lathe {
#define GEN_PASS_DEF_CANONICALIZEPASS
#include "lathe/passes/passes.h.inc"
namespace {

class CanonicalizePass : public impl::CanonicalizePassBase<CanonicalizePass> {
 public:
  LogicalResult initialize(MLIRContext* context) final {
    RewritePatternSet patterns(context);
    addCanonicalPatterns(patterns);
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

void addCanonicalPatterns(RewritePatternSet& patterns) {
  MLIRContext* context = patterns.getContext();
  auto* dialect = context->getOrLoadDialect<LatheDialect>();
  dialect->getCanonicalizationPatterns(patterns);
  for (RegisteredOperationName op : context->getRegisteredOperationsByDialect("lathe"))
    op.getCanonicalizationPatterns(patterns, context);
  addFoldPattern(patterns);
  addConstantPatterns(patterns);
  addConstantFolding(patterns);
  addCastPatterns(patterns);
  addAxisMapPatterns(patterns);
  addSlicePatterns(patterns);
  addRepeatPatterns(patterns);
  addMaskPatterns(patterns);
  addRampPatterns(patterns);
  addScalePatterns(patterns);
  addNormPatterns(patterns);
  addActivationPatterns(patterns);
}

}  // namespace lathe
