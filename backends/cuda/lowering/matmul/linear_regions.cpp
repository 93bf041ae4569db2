// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/lowering/kernel/steps.h"

#include "backends/cuda/lowering/kernel/kernel_names.h"
#include "backends/cuda/lowering/matmul/rotated_projection.h"
#include "backends/cuda/lowering/region/region_printer.h"
#include "lathe/ir/types.h"
#include "lathe/passes/region_ops.h"
#include "llvm/ADT/SetVector.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace lathe::cuda {
namespace {

using Cluster = llvm::SetVector<Operation*>;

// Slices of the last axis alone.
bool cutsLastAxis(SliceOp op) {
  auto from = tensorType(op.getX()), to = tensorType(op.getY());
  for (int64_t i = 0; i + 1 < from.getRank(); ++i)
    if (!(dimOf(from, i) == dimOf(to, i))) return false;
  return op.getStrides().empty() || op.getStrides().back() == 1;
}

// What formRegions copies into a region that reads it.
bool isCopied(Operation* op) {
  auto constant = dyn_cast<ConstantOp>(op);
  return isa<IotaOp>(op) || (constant && tensorType(constant.getY()).getNumElements() <= 1024);
}

// In the cluster's place, behind the last of its ops, everything that it reads is there, and nobody
// has read its results before.
bool standsTogether(const Cluster& cluster) {
  Operation* last = cluster.front();
  for (Operation* op : cluster)
    if (last->isBeforeInBlock(op)) last = op;
  return llvm::all_of(cluster, [&](Operation* op) {
    return llvm::all_of(op->getUsers(), [&](Operation* user) {
      return cluster.contains(user) || !user->isBeforeInBlock(last);
    });
  });
}

// Ops in one epilogue, as in one region.
constexpr size_t kMostOps = 64;

// What turns, cuts or spreads an operand of the ops from number `first` on, and of nobody else, is
// done where they read it. A reshape is a view wherever it stands. A gather stays a kernel of its
// own, which tells of an index that is out of range.
void addMovements(size_t first, Cluster& cluster) {
  for (size_t i = first; i < cluster.size(); ++i)
    for (Value v : cluster[i]->getOperands()) {
      Operation* made = v.getDefiningOp();
      if (!made || cluster.size() >= kMostOps || cluster.contains(made)) continue;
      if (!isMovement(made) || isa<ReshapeOp, IotaOp, GatherOp>(made) ||
          !isPrintedFromRegions(made))
        continue;
      if (llvm::all_of(made->getUsers(), [&](Operation* user) { return cluster.contains(user); }))
        cluster.insert(made);
    }
}

// Everything that computes the elements of `results`, which have the same dims, further at their
// own places. Other operands may lie and broadcast in any way.
void addElementwise(ArrayRef<Value> results, Cluster& cluster) {
  if (!elementCountOf(tensorType(results[0]))) return;
  auto dims = dimExprs(results[0]);
  const size_t first = cluster.size();
  llvm::SetVector<Value> made(results.begin(), results.end());
  auto isBehind = [&](Operation* op) {
    if (!isPointwise(op) || !isPrintedFromRegions(op) || op->getNumResults() != 1) return false;
    return dimExprs(op->getResult(0)) == dims && llvm::all_of(op->getOperands(), [&](Value v) {
             return !v.getDefiningOp() || !cluster.contains(v.getDefiningOp()) || made.contains(v);
           });
  };
  for (size_t i = 0; i < made.size(); ++i)
    for (Operation* user : made[i].getUsers())
      if (cluster.size() < kMostOps && !cluster.contains(user) && isBehind(user)) {
        cluster.insert(user);
        made.insert(user->getResult(0));
      }
  // Where others stand between them, as many as come in front of these.
  while (cluster.size() > first && !standsTogether(cluster)) {
    auto added = ArrayRef(cluster.getArrayRef()).drop_front(first);
    cluster.remove(*llvm::max_element(
        added, [](Operation* a, Operation* b) { return a->isBeforeInBlock(b); }));
  }
  addMovements(first, cluster);
}

// The two halves of a merged gate and up, and the gate behind them: or whatever else is made of
// pairs of columns.
bool addPairs(LinearOp linear, Cluster& cluster) {
  Cluster found = cluster;
  SmallVector<Value> halves;
  for (Operation* user : linear->getUsers()) {
    auto slice = dyn_cast<SliceOp>(user);
    if (!slice || !cutsLastAxis(slice)) return false;
    halves.push_back(slice.getY());
    found.insert(slice);
  }
  if (halves.size() != 2 || halves[0].getType() != halves[1].getType()) return false;
  auto all = tensorType(linear.getY()), half = tensorType(halves[0]);
  if (2 * half.getDimSize(half.getRank() - 1) != all.getDimSize(all.getRank() - 1)) return false;
  addElementwise(halves, found);
  // Each half is read, and by nobody else.
  auto staysInside = [&](Value v) {
    return !v.use_empty() &&
           llvm::all_of(v.getUsers(), [&](Operation* user) { return found.contains(user); });
  };
  if (!staysInside(halves[0]) || !staysInside(halves[1])) return false;
  cluster = std::move(found);
  return true;
}

// Every slice of the projection ends in a rotation, in a cache, or in both.
void addRotations(LinearOp linear, Cluster& cluster) {
  if (auto rotated = rotatedProjectionOf(linear))
    cluster.insert(rotated->ops.begin(), rotated->ops.end());
}

void addNorm(LinearOp linear, Cluster& cluster) {
  Operation* norm = linear.getX().getDefiningOp();
  if (norm && isa<RmsNormOp, LayerNormOp>(norm) && norm->hasOneUse()) cluster.insert(norm);
}

class Former {
 public:
  explicit Former(func::FuncOp function) : function(function) {}

  void run() {
    SmallVector<LinearOp> linears(function.getOps<LinearOp>());
    for (LinearOp linear : linears) {
      if (!hasConstantWeight(linear)) continue;
      Cluster cluster;
      cluster.insert(linear);
      if (!linear.getResidual() && !linear.getBias() && !linear.getUnrounded() &&
          linear.getActivation() == Activation::none && !addPairs(linear, cluster))
        addRotations(linear, cluster);
      if (cluster.size() == 1 && !linear.getUnrounded())
        addElementwise(Value(linear.getY()), cluster);
      addNorm(linear, cluster);
      if (cluster.size() == 1) continue;
      linear->setAttr(kConstantWeight, UnitAttr::get(linear.getContext()));
      outline(cluster);
    }
  }

 private:
  // The region stands where the last of its ops did, if everything that reads from it comes later.
  void outline(Cluster& cluster) {
    if (!standsTogether(cluster)) return;
    SmallVector<Operation*> ops(cluster.begin(), cluster.end());
    llvm::sort(ops, [](Operation* a, Operation* b) { return a->isBeforeInBlock(b); });
    Operation* last = ops.back();
    llvm::SetVector<Value> inputs;
    Cluster copies;  // constants and ramps
    SmallVector<Value> outputs;
    for (Operation* op : ops) {
      for (Value v : op->getOperands()) {
        Operation* made = v.getDefiningOp();
        if (made && cluster.contains(made)) continue;
        if (made && isCopied(made))
          copies.insert(made);
        else
          inputs.insert(v);
      }
      for (Value v : op->getResults())
        if (llvm::any_of(v.getUsers(), [&](Operation* user) { return !cluster.contains(user); }))
          outputs.push_back(v);
    }
    OpBuilder b(last);
    SmallVector<Location> origins;
    SmallVector<Type> types;
    for (Operation* op : ops) origins.push_back(op->getLoc());
    for (Value v : outputs) types.push_back(v.getType());
    Location loc = b.getFusedLoc(origins);
    auto region = RegionOp::create(b, loc, types, inputs.getArrayRef());
    Block* body = b.createBlock(&region.getBody());
    IRMapping map;
    for (Value v : inputs) map.map(v, body->addArgument(v.getType(), v.getLoc()));
    for (Operation* op : copies) b.clone(*op, map);
    for (Operation* op : ops) b.clone(*op, map);
    SmallVector<Value> results;
    for (Value v : outputs) results.push_back(map.lookup(v));
    YieldOp::create(b, loc, results);
    for (auto [old, made] : llvm::zip(outputs, region.getOutputs())) old.replaceAllUsesWith(made);
    for (Operation* op : llvm::reverse(ops)) op->erase();
    for (Operation* op : copies)
      if (isOpTriviallyDead(op)) op->erase();
  }

  func::FuncOp function;
};

}  // namespace

void formLinearRegions(ModuleOp module) {
  for (auto f : module.getOps<func::FuncOp>())
    if (!f.isExternal()) Former(f).run();
}

}  // namespace lathe::cuda
