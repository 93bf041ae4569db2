// SPDX-License-Identifier: Apache-2.0
#include "ir/types.h"
#include "passes/greedy.h"
#include "passes/passes.h"
#include "passes/patterns/library.h"

using namespace mlir;

namespace lathe {
namespace {

class FusePass : public PassWrapper<FusePass, OperationPass<>> {
 public:
  LATHE_PASS(FusePass, "lathe-fuse", "elementary ops become fused ops")
  explicit FusePass(PatternsFor more = {}) : more_(std::move(more)) {}
  LogicalResult initialize(MLIRContext* context) final {
    RewritePatternSet patterns(context);
    for (auto& p : fusionPatterns(context)) patterns.add(toRewrite(p));
    if (more_)
      for (auto& p : more_(context)) patterns.add(toRewrite(p));
    patterns_ = FrozenRewritePatternSet(std::move(patterns));
    return success();
  }
  void runOnOperation() final {
    if (failed(applyPatterns(getOperation(), patterns_))) signalPassFailure();
  }

 private:
  PatternsFor more_;
  FrozenRewritePatternSet patterns_;
};

}  // namespace

std::unique_ptr<Pass> createFusePass() { return std::make_unique<FusePass>(); }
std::unique_ptr<Pass> createFusePass(PatternsFor more) {
  return std::make_unique<FusePass>(std::move(more));
}

}  // namespace lathe
