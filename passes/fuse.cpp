// SPDX-License-Identifier: Apache-2.0
#include "ir/types.h"
#include "mlir/Dialect/PDL/IR/PDL.h"
#include "mlir/IR/Diagnostics.h"
#include "passes/greedy.h"
#include "passes/passes.h"
#include "passes/patterns/library.h"
#include "passes/user_patterns.h"

using namespace mlir;

namespace lathe {
namespace {

class FusePass : public PassWrapper<FusePass, OperationPass<>> {
 public:
  LATHE_PASS(FusePass, "lathe-fuse", "elementary ops become fused ops")
  explicit FusePass(PatternsFor more = {}) : more_(std::move(more)) {}
  FusePass(const FusePass& other) : PassWrapper(other), more_(other.more_) {}

  void getDependentDialects(DialectRegistry& registry) const final {
    registry.insert<pdl::PDLDialect>();
  }
  LogicalResult initialize(MLIRContext* context) final {
    PatternLibrary own;
    try {
      own = userPatterns(context, more_, files_);
    } catch (const std::exception& e) {
      return emitError(UnknownLoc::get(context), e.what());
    }
    RewritePatternSet first(context), all(context);
    for (auto& p : own) first.add(toRewrite(p));
    for (auto& p : fusionPatterns(context)) all.add(toRewrite(p));
    for (auto& p : own) all.add(toRewrite(p));
    first_ = FrozenRewritePatternSet(std::move(first));
    all_ = FrozenRewritePatternSet(std::move(all));
    hasOwn_ = !own.empty();
    return success();
  }
  void runOnOperation() final {
    // A pattern whose function threw has said so; the driver takes that for a miss.
    bool said = false;
    ScopedDiagnosticHandler watch(&getContext(), [&](Diagnostic& d) {
      said |= d.getSeverity() == DiagnosticSeverity::Error;
      return failure();
    });
    // A user's fusion comes first: a built-in one could take a part of what it matches.
    if (hasOwn_ && failed(applyPatterns(getOperation(), first_))) return signalPassFailure();
    if (failed(applyPatterns(getOperation(), all_)) || said) signalPassFailure();
  }

 private:
  ListOption<std::string> files_{
      *this, "patterns", llvm::cl::desc("files of more patterns, PDL (.mlir) or PDLL (.pdll)")};
  PatternsFor more_;
  FrozenRewritePatternSet first_, all_;
  bool hasOwn_ = false;
};

}  // namespace

std::unique_ptr<Pass> createFusePass() { return std::make_unique<FusePass>(); }
std::unique_ptr<Pass> createFusePass(PatternsFor more) {
  return std::make_unique<FusePass>(std::move(more));
}

}  // namespace lathe
