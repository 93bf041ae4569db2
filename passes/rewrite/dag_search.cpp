// SPDX-License-Identifier: Apache-2.0
// The matcher behind DagPattern::match, and the words for its misses.
#include <exception>

#include "lathe/ir/types.h"
#include "lathe/passes/dag_pattern.h"
#include "lathe/passes/match.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include "passes/rewrite/locations.h"

using namespace mlir;

namespace lathe {

// Depth-first search with the rest of the goals as continuation: values that two sub-terms share
// are found whatever order the commutative ops have.
class PatternSearch {
 public:
  PatternSearch(const DagPattern& pattern, Match& match, Miss& miss, bool lastFirst)
      : p_(pattern), bound_(match.bound_), match_(match), miss_(miss), lastFirst_(lastFirst) {}

  bool run(Operation* root) {
    Goal goal{p_.root_, root->getResult(0), nullptr};
    return solve(&goal);
  }

 private:
  // Each commutative op matches two ways, and the last op of a long chain may fit in none of them.
  // The library's own patterns take some hundred steps at most.
  static constexpr int64_t kMostSteps = 100'000;

  struct Goal {
    size_t node;
    Value value;
    const Goal* next;
  };

  bool fail(Miss::Why why, size_t node, Value value, std::string detail = {}) {
    if (matched_ > miss_.matched || (matched_ == miss_.matched && why > miss_.why))
      miss_ = {why, matched_, node, value, std::move(detail)};
    return false;
  }

  bool holds(const PatternNode& n, const Goal* goal) {
    if (n.oneUse && !goal->value.hasOneUse())
      return fail(Miss::Why::OneUse, goal->node, goal->value);
    for (const PatternNode::Condition& c : n.conditions)
      if (!c.holds(goal->value))
        return fail(Miss::Why::Where, goal->node, goal->value,
                    c.text + (c.ofType ? ", found " + shortType(goal->value.getType()) : ""));
    return true;
  }

  bool solve(const Goal* goal) {
    if (steps_ == kMostSteps) return false;
    if (++steps_ == kMostSteps) {
      miss_ = {Miss::Why::Declined, matched_, p_.root_, match_.root()->getResult(0),
               "its ops would fit in too many ways to try them all"};
      return false;
    }
    if (!goal) return checkDims() && checkRequirements() && checkUsers();
    const PatternNode& n = p_.nodes_[goal->node];
    if (Value b = bound_[goal->node])
      return b == goal->value ? solve(goal->next)
                              : fail(Miss::Why::Identity, goal->node, goal->value);
    switch (n.kind) {
      case PatternNode::Kind::AnyOf:
      case PatternNode::Kind::Optional:
        if (!holds(n, goal)) return false;
        bound_[goal->node] = goal->value;
        for (auto alternative : n.operands) {
          Goal first{*alternative, goal->value, goal->next};
          if (solve(&first)) return true;
        }
        bound_[goal->node] = {};
        return false;
      case PatternNode::Kind::Constant:
        if (!acceptsConstant(n, goal->value))
          return fail(Miss::Why::Constant, goal->node, goal->value);
        return holds(n, goal) && bind(goal, goal->next);
      case PatternNode::Kind::Any:
        return holds(n, goal) && bind(goal, goal->next);
      case PatternNode::Kind::Result: {
        auto result = dyn_cast<OpResult>(goal->value);
        if (!result || result.getResultNumber() != n.result)
          return fail(Miss::Why::OpName, *n.operands[0], goal->value);
        Goal op{*n.operands[0], result.getOwner()->getResult(0), goal->next};
        return bind(goal, &op);
      }
      case PatternNode::Kind::Op:
        return solveOp(n, goal);
    }
    return false;
  }

  static bool acceptsConstant(const PatternNode& n, Value value) {
    if (n.exact) return isSplatOf(value, *n.exact, n.tolerance);
    auto number = splatValue(value);
    return number && n.constant(*number);
  }

  // An axis that counts from the back is the matched value's own.
  static bool sameAttribute(Operation* op, const NamedAttribute& wanted) {
    Attribute found = op->getAttr(wanted.getName());
    return found == wanted.getValue() ||
           (found && found == axesFromFront(wanted, op->getOperands()));
  }

  bool solveOp(const PatternNode& n, const Goal* goal) {
    Operation* op = goal->value.getDefiningOp();
    if (!op) return fail(Miss::Why::NotAnOp, goal->node, goal->value);
    if (op->getName().getStringRef() != n.op || op->getResult(0) != goal->value)
      return fail(Miss::Why::OpName, goal->node, goal->value);
    SmallVector<size_t, 4> operands;
    SmallVector<int32_t, 4> segments;
    for (auto operand : n.operands) {
      segments.push_back(operand ? 1 : 0);
      if (operand) operands.push_back(*operand);
    }
    auto sizes = op->getAttrOfType<DenseI32ArrayAttr>("operandSegmentSizes");
    if (op->getNumOperands() != operands.size() ||
        (sizes && sizes.asArrayRef() != ArrayRef(segments)))
      return fail(Miss::Why::OperandCount, goal->node, goal->value);
    for (const NamedAttribute& a : n.attributes) {
      StringRef name = a.getName().getValue();
      if (!llvm::is_contained(n.free, name) && !sameAttribute(op, a))
        return fail(Miss::Why::Attribute, goal->node, goal->value, name.str());
    }
    if (!holds(n, goal)) return false;

    int orders = n.commutative && operands.size() == 2 ? 2 : 1;
    for (int order = 0; order < orders; ++order) {
      SmallVector<Goal, 4> goals;
      for (bool bare : {false, true})  // constrain early: ops before bare placeholders
        for (size_t k = 0; k < operands.size(); ++k)
          if (size_t i = lastFirst_ ? operands.size() - 1 - k : k; isBare(operands[i]) == bare)
            goals.push_back({operands[i], op->getOperand(unsigned(order ? 1 - i : i)), nullptr});
      const Goal* next = goal->next;
      for (Goal& g : llvm::reverse(goals)) {
        g.next = next;
        next = &g;
      }
      if (bind(goal, next)) return true;
    }
    return false;
  }

  bool isBare(size_t node) const { return p_.nodes_[node].kind == PatternNode::Kind::Any; }

  bool bind(const Goal* goal, const Goal* rest) {
    bool isOp = p_.nodes_[goal->node].kind == PatternNode::Kind::Op;
    bound_[goal->node] = goal->value;
    matched_ += isOp;
    if (solve(rest)) return true;
    matched_ -= isOp;
    bound_[goal->node] = {};
    return false;
  }

  bool checkDims() {
    for (const DagPattern::SameDim& d : p_.sameDims_) {
      if (!bound_[d.a] || !bound_[d.b]) continue;
      for (auto [node, axis] : {std::pair(d.a, d.axisA), std::pair(d.b, d.axisB)})
        if (auto type = tensorType(bound_[node]); !axisOf(type, axis))
          return fail(Miss::Why::Dim, node, bound_[node],
                      "axis " + std::to_string(axis) + " lies outside of " + shortType(type));
      auto dim = [&](size_t node, int64_t axis) {
        auto type = tensorType(bound_[node]);
        return dimOf(type, *axisOf(type, axis));
      };
      if (dim(d.a, d.axisA) != dim(d.b, d.axisB))
        return fail(Miss::Why::Dim, d.a, bound_[d.a], "dims cannot be proved equal");
    }
    return true;
  }

  bool checkRequirements() {
    for (const DagPattern::Requirement& r : p_.requirements_)
      if (!r.holds(match_)) return fail(Miss::Why::Require, p_.root_, bound_[p_.root_], r.text);
    return true;
  }

  // An interior value with a user outside would be computed twice.
  bool checkUsers() {
    auto ops = match_.ops();
    for (size_t i = 0; i < p_.end_; ++i) {
      const PatternNode& n = p_.nodes_[i];
      if (n.kind != PatternNode::Kind::Op || !bound_[i] || i == p_.root_ || n.mayEscape) continue;
      for (Operation* user : bound_[i].getDefiningOp()->getUsers())
        if (!ops.contains(user)) return fail(Miss::Why::Escapes, i, bound_[i]);
    }
    return true;
  }

  const DagPattern& p_;
  SmallVectorImpl<Value>& bound_;
  Match& match_;
  Miss& miss_;
  bool lastFirst_;
  int matched_ = 0;
  int64_t steps_ = 0;
};

bool DagPattern::match(Operation* op, Match& match, Miss& miss, bool thorough) const {
  if (op->getName().getStringRef() == rootOp() && op->getNumResults() == 0) return false;
  for (bool lastFirst : {false, true}) {
    match = Match();
    match.pattern_ = this;
    match.root_ = op;
    match.bound_.assign(nodes_.size(), Value());
    try {
      if (PatternSearch(*this, match, miss, lastFirst).run(op)) return true;
    } catch (const std::exception& e) {
      // A function of the pattern's threw; MLIR's frames above must not see it.
      match.threw_ = true;
      match.reason_ = e.what();
      miss = {Miss::Why::Declined, opCount_, root_, op->getResult(0), match.reason_};
      return false;
    } catch (...) {
      match.threw_ = true;
      match.reason_ = "a condition threw something that is no std::exception";
      miss = {Miss::Why::Declined, opCount_, root_, op->getResult(0), match.reason_};
      return false;
    }
    if (!thorough) break;
  }
  return false;
}

std::string DagPattern::explain(const Miss& miss) const {
  const PatternNode& n = nodes_[miss.node];
  std::string text;
  llvm::raw_string_ostream os(text);
  Operation* def = miss.value ? miss.value.getDefiningOp() : nullptr;
  // A longer spelling than the first one may have matched more ops than are counted.
  const int most = miss.why <= Miss::Why::OperandCount ? opCount_ - 1 : opCount_;
  os << name_ << ": " << std::clamp(miss.matched, 0, std::max(most, 0)) << " of " << opCount_
     << " ops, then ";
  switch (miss.why) {
    case Miss::Why::NotAnOp:
      os << "wanted " << n.op << ", found an argument";
      break;
    case Miss::Why::OpName:
      os << "wanted " << n.op << ", found ";
      if (def)
        os << def->getName();
      else
        os << "an argument";
      break;
    case Miss::Why::OperandCount:
      os << n.op << " has other operands";
      break;
    case Miss::Why::Identity:
      os << "one value is needed twice and two differ";
      break;
    case Miss::Why::Constant:
      os << "wanted " << n.text;
      break;
    case Miss::Why::Attribute:
      os << n.op << " differs in '" << miss.detail << "': wanted ";
      for (const NamedAttribute& a : n.attributes)
        if (a.getName().getValue() == miss.detail) os << a.getValue();
      os << ", found ";
      if (Attribute found = def->getAttr(miss.detail))
        os << found;
      else
        os << "none";
      break;
    case Miss::Why::OneUse:
    case Miss::Why::Escapes:
      os << (n.op.empty() ? "a value" : n.op) << " has another user";
      break;
    case Miss::Why::Where:
    case Miss::Why::Require:
      os << "wanted " << miss.detail;
      break;
    case Miss::Why::Dim:
      os << miss.detail;
      break;
    case Miss::Why::Declined:
      os << miss.detail;
      break;
  }
  if (def) os << " at " << originText(def->getLoc());
  // Helpers that record ops for many patterns have no line of their own.
  if (!n.place.empty())
    os << " (" << n.place << ")";
  else if (n.at.line() > 0)
    os << " (pattern " << llvm::sys::path::filename(n.at.file_name()) << ":" << n.at.line() << ")";
  return text;
}

}  // namespace lathe
