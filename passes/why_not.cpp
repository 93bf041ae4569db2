// SPDX-License-Identifier: Apache-2.0
#include "passes/why_not.h"

#include "ir/types.h"
#include "passes/passes.h"
#include "passes/patterns/library.h"

using namespace mlir;

namespace lathe {
namespace {

// How near a pattern came, as a share: a short pattern must not win by being short.
bool isNearer(const DagPattern& p, const Miss& m, const NearMiss& best) {
  if (!best.pattern) return true;
  int mine = m.matched * best.pattern->opCount(), other = best.miss.matched * p.opCount();
  return mine > other || (mine == other && m.why > best.miss.why);
}

// Below half, or by the root's name alone, every op would be near to something.
bool isWorthTelling(const NearMiss& near) {
  if (near.miss.why == Miss::Why::Declined) return true;
  return near.miss.matched > 1 && near.miss.matched * 2 >= near.pattern->opCount();
}

// Another op in its place says less than an attribute, a constant or a user in the way.
bool isStructural(const NearMiss& near) { return near.miss.why <= Miss::Why::OperandCount; }

// Without a pattern if one takes the op, or none could start there.
NearMiss nearest(Operation* op, const PatternLibrary& library) {
  NearMiss best{op, nullptr, {}};
  for (auto& p : library) {
    if (p->rootOp() != op->getName().getStringRef()) continue;
    Match match;
    Miss miss;
    if (p->match(op, match, miss, /*thorough=*/true)) {
      // The replacement is tried and taken back: only it knows its own conditions.
      IRRewriter rewriter(op->getContext());
      if (Value made = p->build(rewriter, match)) {
        p->discard(rewriter, match);
        return {op, nullptr, {}};
      }
      miss = {Miss::Why::Declined, p->opCount(), p->root(), op->getResult(0), match.reason()};
    }
    if (isNearer(*p, miss, best)) best = {op, p, miss};
  }
  return best;
}

class WhyNotPass : public PassWrapper<WhyNotPass, OperationPass<>> {
 public:
  LATHE_PASS(WhyNotPass, "lathe-why-not", "says which fusion nearly took an op and what stopped it")
  explicit WhyNotPass(PatternsFor more = {}) : more_(std::move(more)) {}

  void runOnOperation() final {
    PatternLibrary library = fusionPatterns(&getContext());
    if (more_)
      for (auto& p : more_(&getContext())) library.push_back(p);
    for (const NearMiss& near : findMisses(getOperation(), library))
      near.op->emitRemark() << near.pattern->explain(near.miss);
    markAllAnalysesPreserved();
  }

 private:
  PatternsFor more_;
};

}  // namespace

std::vector<NearMiss> findMisses(Operation* root, const PatternLibrary& library, bool evenFar) {
  SmallVector<Operation*> ops;
  root->walk([&](Operation* op) { ops.push_back(op); });
  std::vector<NearMiss> misses;
  for (Operation* op : ops)
    if (NearMiss near = nearest(op, library); near.pattern && (evenFar || isWorthTelling(near)))
      misses.push_back(std::move(near));
  // Part of what a larger fusion nearly took: that one's reason is the one to tell.
  llvm::DenseSet<Operation*> told;
  for (const NearMiss& near : misses)
    if (!isStructural(near)) told.insert(near.op);
  std::erase_if(misses, [&](const NearMiss& near) {
    return isStructural(near) &&
           llvm::any_of(near.op->getUsers(), [&](Operation* user) { return told.contains(user); });
  });
  return misses;
}

std::string_view nameOf(Miss::Why why) {
  switch (why) {
    case Miss::Why::NotAnOp:
    case Miss::Why::OpName:
      return "op";
    case Miss::Why::OperandCount:
      return "operands";
    case Miss::Why::Identity:
      return "identity";
    case Miss::Why::Constant:
      return "constant";
    case Miss::Why::Attribute:
      return "attribute";
    case Miss::Why::OneUse:
    case Miss::Why::Escapes:
      return "uses";
    case Miss::Why::Dim:
      return "dim";
    case Miss::Why::Declined:
      return "replacement";
    default:
      return "condition";
  }
}

std::unique_ptr<Pass> createWhyNotPass() { return std::make_unique<WhyNotPass>(); }
std::unique_ptr<Pass> createWhyNotPass(PatternsFor more) {
  return std::make_unique<WhyNotPass>(std::move(more));
}

}  // namespace lathe
