// SPDX-License-Identifier: Apache-2.0
#include "passes/rewrite/cut_out.h"

#include "lathe/ir/types.h"
#include "llvm/ADT/SetVector.h"
#include "mlir/IR/IRMapping.h"
#include "passes/rewrite/asked_once.h"

using namespace mlir;

namespace lathe {
namespace {

using OpSet = llvm::SmallPtrSet<Operation*, 16>;

// A value of constants and index ramps alone: a part of whatever reads it. Bounded, because nothing
// of interest is deep.
bool isFixed(Value v, int depth, AskedOnce<bool, std::pair<Value, int>>& asked) {
  Operation* def = v.getDefiningOp();
  return def && depth > 0 && asked.of({v, depth}, [&] {
    return isMemoryEffectFree(def) && !isa<RandomBitsOp>(def) && def->getNumRegions() == 0 &&
           llvm::all_of(def->getOperands(), [&](Value o) { return isFixed(o, depth - 1, asked); });
  });
}
bool isFixed(Value v) {
  AskedOnce<bool, std::pair<Value, int>> asked;
  return isFixed(v, 8, asked);
}

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

}  // namespace

CutOut cutOut(Replacements replaced, ArrayRef<Operation*> matched, ArrayRef<Operation*> created,
              int reach) {
  OpSet old(matched.begin(), matched.end()), made(created.begin(), created.end());
  SmallVector<Value> before, after;
  for (auto [value, by] : replaced) {
    before.push_back(value);
    after.push_back(by);
    old.insert(value.getDefiningOp());
  }
  // What the new ops read is where the old ones are cut, too.
  llvm::SetVector<Value> leaves;
  for (int step = 0;; ++step) {
    leaves.clear();
    Cut gets(made, leaves), had(old, leaves);
    for (Value v : after) gets.collect(v);
    for (Value v : before) had.collect(v);
    if (step == reach) break;
    for (Value leaf : leaves) {
      Operation* def = leaf.getDefiningOp();
      if (!def || !isMemoryEffectFree(def) || def->getNumRegions() || isa<RandomBitsOp>(def))
        continue;
      old.insert(def);
      made.insert(def);
    }
  }
  MLIRContext* context = before.front().getContext();
  OpBuilder b(context);
  CutOut cut{ModuleOp::create(b, b.getUnknownLoc()), {}, {}};
  b.setInsertionPointToEnd(cut.module->getBody());
  cut.was = Cut(old, leaves).copy(b, "was", before);
  cut.is = Cut(made, leaves).copy(b, "is", after);
  return cut;
}

}  // namespace lathe
