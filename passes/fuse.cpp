// SPDX-License-Identifier: Apache-2.0
#include "lathe/ir/types.h"
#include "lathe/passes/greedy.h"
#include "lathe/passes/passes.h"
#include "mlir/Dialect/PDL/IR/PDL.h"
#include "mlir/IR/Diagnostics.h"
#include "passes/patterns/library.h"
#include "passes/user_patterns.h"

using namespace mlir;

namespace lathe {
#define GEN_PASS_DEF_FUSEPASS
#include "lathe/passes/passes.h.inc"
namespace {

// False if the driver gave up or a pattern's function threw: the pattern has said so, and the
// driver takes that for a miss.
bool applyAll(Operation* root, ArrayRef<FrozenRewritePatternSet> stages) {
  bool said = false;
  ScopedDiagnosticHandler watch(root->getContext(), [&](Diagnostic& d) {
    said |= d.getSeverity() == DiagnosticSeverity::Error;
    return failure();
  });
  return llvm::all_of(stages, [&](const FrozenRewritePatternSet& patterns) {
    return succeeded(applyPatterns(root, patterns)) && !said;
  });
}

class FusePass : public impl::FusePassBase<FusePass> {
 public:
  using FusePassBase::FusePassBase;
  FusePass() = default;
  explicit FusePass(PatternsFor more) : more_(std::move(more)) {}

  LogicalResult initialize(MLIRContext* context) final {
    PatternLibrary own;
    try {
      own = userPatterns(context, more_, files);
    } catch (const std::exception& e) {
      return emitError(UnknownLoc::get(context), e.what());
    }
    if (own.empty()) {
      stages_ = fusionRewrites(context);
      return success();
    }
    // A user's fusion comes first: a built-in one could take a part of what it matches.
    RewritePatternSet first(context);
    for (auto& p : own) first.add(toRewrite(p));
    stages_.assign(1, FrozenRewritePatternSet(std::move(first)));
    PatternLibrary all = fusionPatterns(context);
    all.insert(all.end(), own.begin(), own.end());
    llvm::append_range(stages_, rewritesByPhase(all, context));
    return success();
  }
  void runOnOperation() final {
    if (!applyAll(getOperation(), stages_)) signalPassFailure();
  }

 private:
  PatternsFor more_;
  std::vector<FrozenRewritePatternSet> stages_;
};

// The user's fusions alone. It has no name for lathe-opt, where there are no patterns of a program.
class UserFusionsPass : public PassWrapper<UserFusionsPass, OperationPass<>> {
 public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(UserFusionsPass)
  explicit UserFusionsPass(PatternLibrary own) : own_(std::move(own)) {}
  void runOnOperation() final {
    RewritePatternSet patterns(&getContext());
    for (auto& p : own_) patterns.add(toRewrite(p));
    if (!applyAll(getOperation(), FrozenRewritePatternSet(std::move(patterns))))
      signalPassFailure();
  }

 private:
  PatternLibrary own_;
};

}  // namespace

std::unique_ptr<Pass> createUserFusionsPass(PatternLibrary own) {
  return std::make_unique<UserFusionsPass>(std::move(own));
}
std::unique_ptr<Pass> createFusePass(PatternsFor more) {
  return std::make_unique<FusePass>(std::move(more));
}

}  // namespace lathe
