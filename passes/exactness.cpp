// SPDX-License-Identifier: Apache-2.0
#include "passes/exactness.h"

#include <map>

#include "ir/types.h"
#include "llvm/ADT/SetVector.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Rewrite/FrozenRewritePatternSet.h"
#include "passes/canonical/canonical.h"
#include "passes/greedy.h"
#include "passes/passes.h"

using namespace mlir;

namespace lathe {
namespace {

using OpSet = llvm::SmallPtrSet<Operation*, 16>;

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

// Copies values into a function whose arguments are the values where the copying stops.
class Cut {
 public:
  Cut(const OpSet& inside, llvm::SetVector<Value>& leaves) : inside_(inside), leaves_(leaves) {}

  void collect(Value v) {
    if (!seen_.insert(v).second || leaves_.contains(v) || isFixed(v)) return;
    Operation* def = v.getDefiningOp();
    if (!def || !inside_.contains(def)) {
      leaves_.insert(v);
      return;
    }
    for (Value operand : def->getOperands()) collect(operand);
  }

  // The leaves of both sides are the arguments of both, in one order.
  func::FuncOp copy(OpBuilder& b, StringRef name, ArrayRef<Value> values) {
    SmallVector<Type> arguments, results;
    for (Value v : leaves_) arguments.push_back(v.getType());
    for (Value v : values) results.push_back(v.getType());
    auto function =
        func::FuncOp::create(b, b.getUnknownLoc(), name, b.getFunctionType(arguments, results));
    OpBuilder inner(function.addEntryBlock(), function.getBody().front().end());
    mapping_.clear();
    for (auto [leaf, argument] : llvm::zip(leaves_, function.getArguments()))
      mapping_.map(leaf, argument);
    SmallVector<Value> copied;
    for (Value v : values) copied.push_back(copyOf(inner, v));
    func::ReturnOp::create(inner, b.getUnknownLoc(), copied);
    return function;
  }

 private:
  // A value of constants and index ramps alone: a part of whatever reads it. Bounded, because
  // nothing of interest is deep.
  static bool isFixed(Value v, int depth = 8) {
    Operation* def = v.getDefiningOp();
    return def && depth > 0 && isMemoryEffectFree(def) && !isa<RandomBitsOp>(def) &&
           def->getNumRegions() == 0 &&
           llvm::all_of(def->getOperands(), [&](Value o) { return isFixed(o, depth - 1); });
  }
  Value copyOf(OpBuilder& b, Value v) {
    if (Value mapped = mapping_.lookupOrNull(v)) return mapped;
    Operation* def = v.getDefiningOp();
    for (Value operand : def->getOperands()) copyOf(b, operand);
    b.clone(*def, mapping_);
    return mapping_.lookup(v);
  }

  const OpSet& inside_;
  llvm::SetVector<Value>& leaves_;
  llvm::DenseSet<Value> seen_;
  IRMapping mapping_;
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
        addTerms(op, operands);  // associative as well
        std::sort(operands.begin(), operands.end());
        operands.erase(std::unique(operands.begin(), operands.end()), operands.end());
      } else {
        for (Value operand : op->getOperands()) operands.push_back(of(operand));
        if (op->hasTrait<OpTrait::IsCommutative>()) std::sort(operands.begin(), operands.end());
      }
    }
    return keys_.try_emplace(std::move(key), keys_.size()).first->second;
  }
  void addTerms(Operation* op, std::vector<size_t>& terms) {
    for (Value operand : op->getOperands()) {
      Operation* def = operand.getDefiningOp();
      if (def && def->getName() == op->getName())
        addTerms(def, terms);
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

std::optional<Difference> exactDifference(NumericsPolicy& policy,
                                          ArrayRef<std::pair<Value, Value>> replaced,
                                          ArrayRef<Operation*> matched,
                                          ArrayRef<Operation*> created) {
  MLIRContext* context = replaced.front().first.getContext();
  if (!policy.elementaryForm) {
    RewritePatternSet patterns(context);
    addDecomposePattern(patterns);
    addCanonicalPatterns(patterns);
    policy.elementaryForm = std::make_shared<FrozenRewritePatternSet>(std::move(patterns));
  }
  OpSet old(matched.begin(), matched.end()), made(created.begin(), created.end());
  llvm::SetVector<Value> leaves;
  SmallVector<Value> before, after;
  for (auto [value, by] : replaced) {
    before.push_back(value);
    after.push_back(by);
    old.insert(value.getDefiningOp());
  }
  // What the new ops read is where the old ones are cut, too.
  Cut had(old, leaves), gets(made, leaves);
  for (Value v : after) gets.collect(v);
  for (Value v : before) had.collect(v);

  Trial trial(context, policy);
  OpBuilder b(context);
  OwningOpRef<ModuleOp> scratch = ModuleOp::create(b, b.getUnknownLoc());
  b.setInsertionPointToEnd(scratch->getBody());
  func::FuncOp was = had.copy(b, "was", before), is = gets.copy(b, "is", after);
  if (failed(applyPatterns(*scratch, *policy.elementaryForm)))
    return Difference{"the canonical form was not reached", false};
  Numbering numbering;
  auto x = was.getBody().front().getTerminator()->getOperands();
  auto y = is.getBody().front().getTerminator()->getOperands();
  for (auto [a, c] : llvm::zip(x, y))
    if (numbering.of(a) != numbering.of(c))
      return Difference{numbering.firstDifference(a, c), roundingsOf(was) != roundingsOf(is)};
  return std::nullopt;
}

}  // namespace lathe
