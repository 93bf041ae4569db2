// SPDX-License-Identifier: Apache-2.0
#include <set>

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
    PatternLibrary library = fusionPatterns(context);
    if (more_)
      for (auto& p : more_(context)) library.push_back(p);
    phases_.clear();
    std::set<int> phases{0};
    for (auto& p : library) phases.insert(p->phase());
    for (int phase : phases) {
      RewritePatternSet patterns(context);
      for (auto& p : library)
        if (p->phase() <= phase) patterns.add(toRewrite(p));
      phases_.emplace_back(std::move(patterns));
    }
    return success();
  }
  void runOnOperation() final {
    for (const FrozenRewritePatternSet& patterns : phases_)
      if (failed(applyPatterns(getOperation(), patterns))) return signalPassFailure();
  }

 private:
  PatternsFor more_;
  // A phase holds the patterns of the earlier ones too: what it makes may be theirs again.
  std::vector<FrozenRewritePatternSet> phases_;
};

}  // namespace

std::unique_ptr<Pass> createFusePass() { return std::make_unique<FusePass>(); }
std::unique_ptr<Pass> createFusePass(PatternsFor more) {
  return std::make_unique<FusePass>(std::move(more));
}

}  // namespace lathe
