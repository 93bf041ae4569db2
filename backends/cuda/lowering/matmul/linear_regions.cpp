// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/lowering/kernel/steps.h"

#include "backends/cuda/lowering/kernel/kernel_names.h"
#include "backends/cuda/lowering/matmul/rotated_projection.h"
#include "lathe/ir/types.h"
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

// The two halves of a merged gate and up, and the gate behind them.
bool addGate(LinearOp linear, Cluster& cluster) {
  Cluster found;
  GluOp gate;
  for (Operation* user : linear->getUsers()) {
    auto slice = dyn_cast<SliceOp>(user);
    if (!slice || !slice->hasOneUse() || !cutsLastAxis(slice)) return false;
    auto next = dyn_cast<GluOp>(*slice->getUsers().begin());
    if (!next || (gate && gate != next)) return false;
    gate = next;
    found.insert(slice);
  }
  if (!gate || found.size() != 2) return false;
  // Both operands come from the linear op, and have the same half of its columns each.
  for (Value v : gate->getOperands())
    if (!v.getDefiningOp() || !found.contains(v.getDefiningOp())) return false;
  if (gate.getGate() == gate.getUp() || gate.getGate().getType() != gate.getUp().getType())
    return false;
  auto all = tensorType(linear.getY()), half = tensorType(gate.getUp());
  if (2 * half.getDimSize(half.getRank() - 1) != all.getDimSize(all.getRank() - 1)) return false;
  cluster.insert(found.begin(), found.end());
  cluster.insert(gate);
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

// The conversion of a model's head to f32.
void addCast(LinearOp linear, Cluster& cluster) {
  if (!linear->hasOneUse()) return;
  auto cast = dyn_cast<CastOp>(*linear->getUsers().begin());
  if (cast && tensorType(cast.getY()).getElementType().isF32()) cluster.insert(cast);
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
          linear.getActivation() == Activation::none && !addGate(linear, cluster))
        addRotations(linear, cluster);
      addNorm(linear, cluster);
      addCast(linear, cluster);
      if (cluster.size() == 1) continue;
      linear->setAttr(kConstantWeight, UnitAttr::get(linear.getContext()));
      outline(cluster);
    }
  }

 private:
  // The region stands where the last of its ops did, if everything that reads from it comes later.
  void outline(Cluster& cluster) {
    SmallVector<Operation*> ops(cluster.begin(), cluster.end());
    llvm::sort(ops, [](Operation* a, Operation* b) { return a->isBeforeInBlock(b); });
    Operation* last = ops.back();
    llvm::SetVector<Value> inputs;
    SmallVector<Value> outputs;
    for (Operation* op : ops) {
      for (Value v : op->getOperands())
        if (!v.getDefiningOp() || !cluster.contains(v.getDefiningOp())) inputs.insert(v);
      for (Value v : op->getResults()) {
        bool leaves = false;
        for (Operation* user : v.getUsers()) {
          if (cluster.contains(user)) continue;
          leaves = true;
          if (user->isBeforeInBlock(last)) return;
        }
        if (leaves) outputs.push_back(v);
      }
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
    for (Operation* op : ops) b.clone(*op, map);
    SmallVector<Value> results;
    for (Value v : outputs) results.push_back(map.lookup(v));
    YieldOp::create(b, loc, results);
    for (auto [old, made] : llvm::zip(outputs, region.getOutputs())) old.replaceAllUsesWith(made);
    for (Operation* op : llvm::reverse(ops)) op->erase();
  }

  func::FuncOp function;
};

}  // namespace

void formLinearRegions(ModuleOp module) {
  for (auto f : module.getOps<func::FuncOp>())
    if (!f.isExternal()) Former(f).run();
}

}  // namespace lathe::cuda
