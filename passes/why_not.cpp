// SPDX-License-Identifier: Apache-2.0
#include "ir/types.h"
#include "passes/match.h"
#include "passes/passes.h"
#include "passes/patterns/library.h"

using namespace mlir;

namespace lathe {
namespace {

// How near a pattern came, as a share: a short pattern must not win by being short.
struct Nearest {
  const DagPattern* pattern = nullptr;
  Miss miss;
  bool isBetter(const DagPattern& p, const Miss& m) const {
    if (!pattern) return true;
    int mine = m.matched * pattern->opCount(), best = miss.matched * p.opCount();
    return mine > best || (mine == best && m.why > miss.why);
  }
  // Below half, or by the root's name alone, every op would be near to something.
  bool isWorthTelling() const {
    if (!pattern) return false;
    if (miss.why == Miss::Why::Declined) return true;
    return miss.matched > 1 && miss.matched * 2 >= pattern->opCount();
  }
};

class WhyNotPass : public PassWrapper<WhyNotPass, OperationPass<>> {
 public:
  LATHE_PASS(WhyNotPass, "lathe-why-not", "says which fusion nearly took an op and what stopped it")
  explicit WhyNotPass(PatternsFor more = {}) : more_(std::move(more)) {}

  void runOnOperation() final {
    PatternLibrary library = fusionPatterns(&getContext());
    if (more_)
      for (auto& p : more_(&getContext())) library.push_back(p);
    SmallVector<Operation*> ops;
    getOperation()->walk([&](Operation* op) { ops.push_back(op); });
    for (Operation* op : ops) explain(op, library);
    markAllAnalysesPreserved();
  }

 private:
  void explain(Operation* op, const PatternLibrary& library) {
    Nearest nearest;
    for (auto& p : library) {
      if (p->rootOp() != op->getName().getStringRef()) continue;
      Match match;
      Miss miss;
      if (p->match(op, match, miss, /*thorough=*/true)) {
        // The replacement is tried and taken back: only it knows its own conditions.
        IRRewriter rewriter(op->getContext());
        if (Value made = p->build(rewriter, match)) {
          p->discard(rewriter, match);
          return;
        }
        miss = {Miss::Why::Declined, p->opCount(), p->root(), op->getResult(0), match.reason()};
      }
      if (nearest.isBetter(*p, miss)) nearest = {p.get(), miss};
    }
    if (nearest.isWorthTelling()) op->emitRemark() << nearest.pattern->explain(nearest.miss);
  }

  PatternsFor more_;
};

}  // namespace

std::unique_ptr<Pass> createWhyNotPass() { return std::make_unique<WhyNotPass>(); }
std::unique_ptr<Pass> createWhyNotPass(PatternsFor more) {
  return std::make_unique<WhyNotPass>(std::move(more));
}

}  // namespace lathe
