// SPDX-License-Identifier: Apache-2.0
#include "passes/why_not.h"

#include <algorithm>
#include <map>
#include <set>

#include "lathe/ir/types.h"
#include "lathe/passes/passes.h"
#include "passes/patterns/library.h"
#include "passes/rewrite/locations.h"

using namespace mlir;

namespace lathe {
#define GEN_PASS_DEF_WHYNOTPASS
#include "lathe/passes/passes.h.inc"
namespace {

// Another op in its place says less than an attribute, a constant or a user in the way.
bool isStructural(const NearMiss& near) {
  return !near.pattern || near.miss.why <= Miss::Why::OperandCount;
}

// How near a pattern came, as a share: a short pattern must not win by being short, nor by a root
// that the others have, too.
bool isNearer(const NearMiss& a, const NearMiss& b) {
  auto matched = [](const NearMiss& near) {
    return near.miss.matched == 1 && isStructural(near) ? 0 : near.miss.matched;
  };
  const int mine = matched(a) * b.pattern->opCount(), other = matched(b) * a.pattern->opCount();
  if (mine != other) return mine > other;
  return std::pair(a.miss.matched > 0, a.miss.why) > std::pair(b.miss.matched > 0, b.miss.why);
}

bool hasGoal(const DagPattern& p) {
  return llvm::any_of(fusionGoals(), [&](const Goal& goal) { return goal.owns(p.name()); });
}

// Of a fusion that the op is not meant for. By the root's name, or with other ops in most places,
// every op would be near to something. Where another op or constant stands, that is what its author
// means: it is told of the author's own patterns, and of fusions without a goal that it is most of.
bool isWorthTelling(const NearMiss& near, bool isUsers) {
  if (near.goal || near.miss.why == Miss::Why::Declined) return true;
  const int of = near.pattern->opCount();
  // The op that is not there did not match, however many others of a longer spelling did.
  const int matched = isStructural(near) ? std::min(near.miss.matched, of - 1) : near.miss.matched;
  if (matched <= 1 || matched * 2 < of) return false;
  if (isUsers || !(isStructural(near) || near.miss.why == Miss::Why::Constant)) return true;
  return !hasGoal(*near.pattern) && matched * 4 >= of * 3;
}

// Empty if a pattern takes the op.
std::vector<NearMiss> nearest(Operation* op, const PatternLibrary& library) {
  const Goal* meant = nullptr;
  for (const Goal& goal : fusionGoals())
    if (!meant && goal.isMeant(op)) meant = &goal;
  std::map<std::string, NearMiss> best;  // of each fusion
  auto isOwned = [&](const DagPattern& p) { return meant && meant->owns(p.name()); };
  for (auto& p : library) {
    if (p->rootOp() != op->getName().getStringRef()) continue;
    Match match;
    Miss miss;
    if (p->match(op, match, miss, /*thorough=*/true)) {
      // The replacement is tried and taken back: only it knows its own conditions.
      IRRewriter rewriter(op->getContext());
      if (Value made = p->build(rewriter, match)) {
        p->discard(rewriter, match);
        return {};
      }
      miss = {Miss::Why::Declined, p->opCount(), p->root(), op->getResult(0), match.reason()};
    }
    NearMiss near{op, p, miss, isOwned(*p) && !meant->certain ? meant : nullptr};
    auto [known, isNew] = best.try_emplace(p->name().substr(0, p->name().find('-')), near);
    if (!isNew && isNearer(near, known->second)) known->second = near;
  }
  std::vector<NearMiss> misses;
  for (auto& [family, near] : best) misses.push_back(near);
  std::sort(misses.begin(), misses.end(), [](const NearMiss& a, const NearMiss& b) {
    if (bool(a.goal) != bool(b.goal)) return bool(a.goal);
    if (isNearer(a, b) != isNearer(b, a)) return isNearer(a, b);
    return a.name() < b.name();
  });
  if (meant && (misses.empty() || !misses[0].goal))
    misses.insert(misses.begin(), NearMiss{op, nullptr, {}, meant});
  return misses;
}

class WhyNotPass : public impl::WhyNotPassBase<WhyNotPass> {
 public:
  explicit WhyNotPass(PatternsFor more = {}) : more_(std::move(more)) {}

  LogicalResult initialize(MLIRContext* context) final {
    library_ = fusionPatterns(context);
    if (more_)
      for (auto& p : more_(context)) library_.push_back(p);
    return success();
  }
  void runOnOperation() final {
    for (const NearMiss& near : findMisses(getOperation(), library_))
      near.op->emitRemark() << near.explain();
    markAllAnalysesPreserved();
  }

 private:
  PatternsFor more_;
  PatternLibrary library_;
};

}  // namespace

std::string NearMiss::name() const { return pattern ? pattern->name() : goal->fused; }
std::string NearMiss::explain() const {
  if (pattern) return pattern->explain(miss);
  return std::string(goal->fused) + ": " + goal->otherwise + " at " + originText(op->getLoc());
}

std::vector<NearMiss> findMisses(Operation* root, const PatternLibrary& library, bool evenFar) {
  SmallVector<Operation*> ops;
  root->walk([&](Operation* op) { ops.push_back(op); });
  // Who writes a pattern wants to know of it, whatever the op is meant for besides.
  std::set<std::string> builtIn;
  for (auto& p : fusionPatterns(root->getContext())) builtIn.insert(p->name());
  auto isUsers = [&](const NearMiss& near) {
    return near.pattern && !builtIn.count(near.pattern->name());
  };
  std::vector<NearMiss> misses;
  for (Operation* op : ops) {
    std::vector<NearMiss> ofOp = nearest(op, library);
    const bool isMeant = !ofOp.empty() && ofOp[0].goal;
    for (NearMiss& near : ofOp)
      // Beside what was meant no other built-in fusion is an answer, unless everything is asked
      // for.
      if (evenFar ||
          (near.goal ? &near == &ofOp[0]
                     : (!isMeant || isUsers(near)) && isWorthTelling(near, isUsers(near))))
        misses.push_back(std::move(near));
  }
  if (evenFar) return misses;
  // Part of what was meant to be larger.
  llvm::DenseSet<Operation*> meant;
  for (const NearMiss& near : misses)
    if (near.goal) meant.insert(near.op);
  std::erase_if(misses, [&](const NearMiss& near) {
    return !near.goal && !isUsers(near) &&
           llvm::any_of(near.op->getUsers(), [&](Operation* user) { return meant.contains(user); });
  });
  // Part of what a larger fusion nearly took: that one's reason is the one to tell.
  llvm::DenseSet<Operation*> told;
  for (const NearMiss& near : misses)
    if (!isStructural(near)) told.insert(near.op);
  std::erase_if(misses, [&](const NearMiss& near) {
    return !near.goal && isStructural(near) &&
           llvm::any_of(near.op->getUsers(), [&](Operation* user) { return told.contains(user); });
  });
  // The best fusion of an op that is meant for none.
  llvm::DenseSet<Operation*> seen;
  std::erase_if(
      misses, [&](const NearMiss& near) { return !isUsers(near) && !seen.insert(near.op).second; });
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

std::unique_ptr<Pass> createWhyNotPass(PatternsFor more) {
  return std::make_unique<WhyNotPass>(std::move(more));
}

}  // namespace lathe
