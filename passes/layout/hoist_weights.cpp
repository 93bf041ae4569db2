// SPDX-License-Identifier: Apache-2.0
#include "lathe/passes/hoist_weights.h"

#include <functional>
#include <map>
#include <set>

#include "lathe/ir/types.h"
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
bool isTranscendental(Operation* op) { return op->hasTrait<fact::IsTranscendental>(); }

class Hoister {
 public:
  explicit Hoister(ModuleOp module) : module(module), builder(module.getContext()) {}

  void run() {
    SmallVector<func::FuncOp> entries(module.getOps<func::FuncOp>());
    for (func::FuncOp f : entries) collect(f);
    if (frontier.empty()) return;
    // The largest weights first: beside what was read, what is made of it takes memory, which is
    // then still the only one in use.
    std::map<double, SmallVector<Value>, std::greater<>> bySize;
    for (Value v : frontier) bySize[bytesRead(v)].push_back(v);
    frontier.clear();
    for (auto& [size, values] : bySize) frontier.append(values);
    builder.setInsertionPointToEnd(module.getBody());
    SmallVector<Location> origins;
    for (Value v : frontier) origins.push_back(v.getLoc());
    auto load = func::FuncOp::create(builder, builder.getFusedLoc(origins), "load",
                                     builder.getFunctionType({}, {}));
    builder.setInsertionPointToStart(load.addEntryBlock());
    SmallVector<Value> results;
    SmallVector<Type> types;
    SmallVector<Attribute> names;
    std::map<int, std::string> nameOfNumber;
    std::set<std::string> taken;  // a checkpoint may use any name
    module.walk([&](WeightOp op) { taken.insert(op.getName().str()); });
    for (Value v : frontier) {
      std::string& name = nameOfNumber[numberOf(v)];
      if (name.empty()) {
        std::string base = name = nameFor(v.getDefiningOp());
        for (int n = 1; !taken.insert(name).second; ++n) name = base + "." + std::to_string(n);
        results.push_back(copy(v));
        types.push_back(v.getType());
        names.push_back(builder.getStringAttr(name));
      }
    }
    // Only now: a value of the frontier may be part of another.
    for (Value v : frontier) {
      OpBuilder at(v.getDefiningOp());
      v.replaceAllUsesWith(
          WeightOp::create(at, v.getLoc(), v.getType(), nameOfNumber.at(numberOf(v))));
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
      bool leaves = llvm::any_of(op.getUsers(), [&](Operation* u) { return staysOut(u, worthy); });
      if (leaves)
        for (Value v : op.getResults()) frontier.push_back(v);
    }
  }

  // True for an op that is not hoisted: a broadcast is where all that reads it is.
  static bool staysOut(Operation* op, const llvm::DenseSet<Operation*>& worthy) {
    if (!worthy.contains(op)) return true;
    return isa<BroadcastOp>(op) &&
           llvm::any_of(op->getUsers(), [&](Operation* u) { return staysOut(u, worthy); });
  }

  // A number for the expression: equal expressions have equal ones. Operands enter as numbers, so
  // that a value with many uses is spelled once.
  int numberOf(Value v) {
    if (auto it = numbers.find(v); it != numbers.end()) return it->second;
    Operation* d = v.getDefiningOp();
    std::string text;
    llvm::raw_string_ostream os(text);
    os << d->getName() << d->getAttrDictionary() << v.getType() << "#"
       << cast<OpResult>(v).getResultNumber();
    for (Value o : d->getOperands()) os << "," << numberOf(o);
    return numbers[v] = numberOfText.try_emplace(text, int(numberOfText.size())).first->second;
  }

  // Of the weights that a value is made from, once for each path to them.
  double bytesRead(Value v) {
    if (auto it = bytes.find(v); it != bytes.end()) return it->second;
    double sum = 0;
    if (v.getDefiningOp<WeightOp>())
      sum = double(tensorType(v).getNumElements()) * tensorType(v).getElementTypeBitWidth() / 8;
    for (Value o : v.getDefiningOp()->getOperands()) sum += bytesRead(o);
    return bytes[v] = sum;
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
    int number = numberOf(v);
    if (auto it = copies.find(number); it != copies.end()) return it->second;
    Operation* d = v.getDefiningOp();
    IRMapping map;
    for (Value o : d->getOperands()) map.map(o, copy(o));
    Operation* clone = builder.clone(*d, map);
    for (auto [from, to] : llvm::zip(d->getResults(), clone->getResults()))
      copies[numberOf(from)] = to;
    return copies[number];
  }

  static void eraseDead(func::FuncOp f) {
    for (Operation& op : llvm::make_early_inc_range(llvm::reverse(f.getBody().front())))
      if (isOpTriviallyDead(&op)) op.erase();
  }

  ModuleOp module;
  OpBuilder builder;
  SmallVector<Value> frontier;
  llvm::DenseMap<Value, double> bytes;
  llvm::DenseMap<Value, int> numbers;
  std::map<std::string, int> numberOfText;
  std::map<int, Value> copies;  // by number
};

}  // namespace

void hoistWeights(ModuleOp module) { Hoister(module).run(); }

}  // namespace lathe
