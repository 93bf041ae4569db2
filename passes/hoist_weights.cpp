// SPDX-License-Identifier: Apache-2.0
#include "passes/hoist_weights.h"

#include "ir/types.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace lathe {
namespace {

bool isStatic(Operation* op) {
  return llvm::all_of(op->getResultTypes(), [](Type t) {
    auto tensor = dyn_cast<RankedTensorType>(t);
    return tensor && tensor.hasStaticShape();
  });
}
// Tables worth keeping although no weight is in them: rotary angles and the like. Masks and ramps
// are cheaper to make than to read.
bool isTranscendental(Operation* op) { return isa<SinOp, CosOp, ExpOp, LogOp, PowOp, TanhOp>(op); }

class Hoister {
 public:
  explicit Hoister(ModuleOp module) : module(module), builder(module.getContext()) {}

  void run() {
    SmallVector<func::FuncOp> entries(module.getOps<func::FuncOp>());
    for (func::FuncOp f : entries) collect(f);
    if (frontier.empty()) return;
    builder.setInsertionPointToEnd(module.getBody());
    SmallVector<Location> origins;
    for (Value v : frontier) origins.push_back(v.getLoc());
    auto load = func::FuncOp::create(builder, builder.getFusedLoc(origins), "load",
                                     builder.getFunctionType({}, {}));
    builder.setInsertionPointToStart(load.addEntryBlock());
    SmallVector<Value> results;
    SmallVector<Type> types;
    SmallVector<Attribute> names;
    std::map<std::string, std::string> nameOfText;
    std::map<std::string, int> taken;
    for (Value v : frontier) {
      std::string text = textOf(v), &name = nameOfText[text];
      if (name.empty()) {
        name = nameFor(v.getDefiningOp());
        if (int n = taken[name]++) name += "." + std::to_string(n);
        results.push_back(copy(v));
        types.push_back(v.getType());
        names.push_back(builder.getStringAttr(name));
      }
      OpBuilder at(v.getDefiningOp());
      v.replaceAllUsesWith(WeightOp::create(at, v.getLoc(), v.getType(), name));
    }
    func::ReturnOp::create(builder, load.getLoc(), results);
    load.setFunctionType(builder.getFunctionType({}, types));
    load->setAttr("lathe.derived", builder.getArrayAttr(names));
    for (func::FuncOp f : entries) eraseDead(f);
  }

 private:
  void collect(func::FuncOp f) {
    llvm::DenseSet<Operation*> weightOnly;  // fed by weights and constants alone
    llvm::DenseSet<Operation*> worthy;      // and worth keeping
    for (Operation& op : f.getBody().front()) {
      if (op.getNumResults() == 0 || !isMemoryEffectFree(&op) || !isStatic(&op)) continue;
      if (op.getNumRegions() != 0) continue;
      bool fed = true, inherits = isa<WeightOp>(op) || isTranscendental(&op);
      for (Value v : op.getOperands()) {
        Operation* d = v.getDefiningOp();
        fed &= d && weightOnly.contains(d);
        inherits |= d && worthy.contains(d);
      }
      if (!fed) continue;
      weightOnly.insert(&op);
      if (inherits) worthy.insert(&op);
    }
    for (Operation& op : f.getBody().front()) {
      // What a broadcast makes is larger than what it reads: it stays, its operand is hoisted.
      if (!worthy.contains(&op) || isa<WeightOp, BroadcastOp>(op)) continue;
      bool leaves = llvm::any_of(op.getUsers(), [&](Operation* u) {
        return !worthy.contains(u) || isa<BroadcastOp>(u);
      });
      if (leaves)
        for (Value v : op.getResults()) frontier.push_back(v);
    }
  }

  // The expression as text: equal texts are equal values.
  std::string textOf(Value v) {
    if (auto it = texts.find(v); it != texts.end()) return it->second;
    Operation* d = v.getDefiningOp();
    std::string text, inner;
    llvm::raw_string_ostream os(text);
    for (Value o : d->getOperands()) inner += textOf(o) + ",";
    os << d->getName() << d->getAttrDictionary() << v.getType() << "#"
       << cast<OpResult>(v).getResultNumber() << "(" << inner << ")";
    return texts[v] = text;
  }

  // "model.layers.0.mlp.up_proj.weight:cast.pack": the first weight and the chain of ops.
  static std::string nameFor(Operation* op) {
    std::string chain;
    while (op && !isa<WeightOp>(op)) {
      chain = op->getName().stripDialect().str() + (chain.empty() ? "" : ".") + chain;
      Operation* next = nullptr;
      for (Value v : op->getOperands())
        if (Operation* d = v.getDefiningOp(); d && !next) next = d;
      op = next;
    }
    std::string base = op ? cast<WeightOp>(op).getName().str() : "table";
    return base + ":" + chain;
  }

  Value copy(Value v) {
    std::string text = textOf(v);
    if (auto it = copies.find(text); it != copies.end()) return it->second;
    Operation* d = v.getDefiningOp();
    IRMapping map;
    for (Value o : d->getOperands()) map.map(o, copy(o));
    Operation* clone = builder.clone(*d, map);
    for (auto [from, to] : llvm::zip(d->getResults(), clone->getResults()))
      copies[textOf(from)] = to;
    return copies[text];
  }

  static void eraseDead(func::FuncOp f) {
    for (Operation& op : llvm::make_early_inc_range(llvm::reverse(f.getBody().front())))
      if (isOpTriviallyDead(&op)) op.erase();
  }

  ModuleOp module;
  OpBuilder builder;
  SmallVector<Value> frontier;
  llvm::DenseMap<Value, std::string> texts;
  std::map<std::string, Value> copies;
};

}  // namespace

void hoistWeights(ModuleOp module) { Hoister(module).run(); }

}  // namespace lathe
