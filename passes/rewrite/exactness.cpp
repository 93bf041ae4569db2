// SPDX-License-Identifier: Apache-2.0
#include "passes/rewrite/exactness.h"

#include <map>

#include "lathe/ir/types.h"
#include "lathe/passes/greedy.h"
#include "lathe/passes/passes.h"
#include "mlir/Rewrite/FrozenRewritePatternSet.h"

using namespace mlir;

namespace lathe {
namespace {

// Rewrites of a trial are not the user's: they get no number, and only exact ones apply.
class Trial {
 public:
  Trial(MLIRContext* context, NumericsPolicy& policy)
      : dialect_(context->getOrLoadDialect<LatheDialect>()),
        log_(dialect_->rewriteLog),
        strict_(context, {.mode = NumericsMode::Strict, .elementaryForm = policy.elementaryForm}) {
    dialect_->rewriteLog = nullptr;
  }
  ~Trial() { dialect_->rewriteLog = log_; }

 private:
  LatheDialect* dialect_;
  RewriteLog* log_;
  NumericsScope strict_;
};

// Values of two functions get one number exactly if they are the same op on the same numbers.
class Numbering {
 public:
  size_t of(Value v) {
    if (auto known = numbers_.find(v); known != numbers_.end()) return known->second;
    size_t number = number_(v);
    numbers_[v] = number;
    return number;
  }

  // Words for the first difference of two values with different numbers, in operand order.
  std::string firstDifference(Value a, Value b) {
    Operation *x = a.getDefiningOp(), *y = b.getDefiningOp();
    if (!x || !y || x->getName() != y->getName() || a.getType() != b.getType())
      return describe(a) + " became " + describe(b);
    if (x->getNumOperands() != y->getNumOperands()) return describe(a) + " has other operands";
    SmallVector<Value> left(x->getOperands()), right(y->getOperands());
    // Operands that the other side has too are not the difference, whatever their order.
    if (x->hasTrait<OpTrait::IsCommutative>() && left.size() == 2 &&
        (of(left[0]) == of(right[1]) || of(left[1]) == of(right[0])))
      std::swap(right[0], right[1]);
    for (auto [l, r] : llvm::zip(left, right))
      if (of(l) != of(r)) return firstDifference(l, r);
    return describe(a) + " has other attributes";
  }

 private:
  using Key = std::tuple<const void*, const void*, const void*, unsigned, std::vector<size_t>>;

  size_t number_(Value v) {
    Key key{nullptr, nullptr, v.getType().getAsOpaquePointer(), 0, {}};
    auto& [name, attributes, type, index, operands] = key;
    if (auto argument = dyn_cast<BlockArgument>(v)) {
      index = argument.getArgNumber();
    } else {
      Operation* op = v.getDefiningOp();
      name = op->getName().getAsOpaquePointer();
      attributes = op->getAttrDictionary().getAsOpaquePointer();
      index = cast<OpResult>(v).getResultNumber();
      if (isa<LogicalAndOp, LogicalOrOp>(op)) {
        llvm::SmallPtrSet<Operation*, 8> seen;
        addTerms(op, operands, seen);  // associative as well
        std::sort(operands.begin(), operands.end());
        operands.erase(std::unique(operands.begin(), operands.end()), operands.end());
      } else {
        for (Value operand : op->getOperands()) operands.push_back(of(operand));
        if (op->hasTrait<OpTrait::IsCommutative>()) std::sort(operands.begin(), operands.end());
      }
    }
    return keys_.try_emplace(std::move(key), keys_.size()).first->second;
  }
  void addTerms(Operation* op, std::vector<size_t>& terms,
                llvm::SmallPtrSetImpl<Operation*>& seen) {
    if (!seen.insert(op).second) return;
    for (Value operand : op->getOperands()) {
      Operation* def = operand.getDefiningOp();
      if (def && def->getName() == op->getName())
        addTerms(def, terms, seen);
      else
        terms.push_back(of(operand));
    }
  }
  static std::string describe(Value v) {
    Operation* op = v.getDefiningOp();
    return (op ? op->getName().getStringRef().str() : "a value from outside") + " of " +
           shortType(v.getType());
  }

  llvm::DenseMap<Value, size_t> numbers_;
  std::map<Key, size_t> keys_;
};

// Which roundings a function makes: the dtypes that its ops compute in.
std::map<Type, size_t, bool (*)(Type, Type)> roundingsOf(func::FuncOp function) {
  std::map<Type, size_t, bool (*)(Type, Type)> count(
      +[](Type a, Type b) { return a.getAsOpaquePointer() < b.getAsOpaquePointer(); });
  function.walk([&](Operation* op) {
    for (Type t : op->getResultTypes())
      if (auto tensor = dyn_cast<RankedTensorType>(t); tensor && !isa<ConstantOp>(op))
        count[tensor.getElementType()] += isa<CastOp>(op) ? 1000 : 0;
  });
  return count;
}

}  // namespace

std::optional<Difference> exactDifference(NumericsPolicy& policy, Replacements replaced,
                                          ArrayRef<Operation*> matched,
                                          ArrayRef<Operation*> created) {
  MLIRContext* context = replaced.front().first.getContext();
  if (!policy.elementaryForm) {
    RewritePatternSet patterns(context);
    addDecomposePattern(patterns);
    addCanonicalPatterns(patterns);
    policy.elementaryForm = std::make_shared<FrozenRewritePatternSet>(std::move(patterns));
  }
  Trial trial(context, policy);
  CutOut cut = cutOut(replaced, matched, created);
  if (failed(applyPatterns(*cut.module, *policy.elementaryForm)))
    return Difference{"the canonical form was not reached", false};
  Numbering numbering;
  auto x = cut.was.getBody().front().getTerminator()->getOperands();
  auto y = cut.is.getBody().front().getTerminator()->getOperands();
  for (auto [a, c] : llvm::zip(x, y))
    if (numbering.of(a) != numbering.of(c))
      return Difference{numbering.firstDifference(a, c),
                        roundingsOf(cut.was) != roundingsOf(cut.is)};
  return std::nullopt;
}

}  // namespace lathe
