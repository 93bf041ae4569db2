// SPDX-License-Identifier: Apache-2.0
#include "passes/regions/form_regions.h"

#include <map>
#include <set>

#include "lathe/ir/types.h"
#include "lathe/passes/region_ops.h"
#include "llvm/ADT/SetVector.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace lathe {
namespace {

// Costs nothing where it is read, so every consumer may have its own copy.
bool isFree(Operation* op) { return isa<ConstantOp, IotaOp>(op); }
// Reads its operand at other indices; may be inlined into a consumer that reads each element once.
bool isIndexing(Operation* op) {
  return (isMovement(op) && !isa<IotaOp>(op)) || isa<EmbeddingOp>(op);
}
// Reduces the rows of its last axis and keeps the shape, or leaves one value per row.
bool isRowOp(Operation* op) {
  if (auto softmax = dyn_cast<SoftmaxOp>(op))
    return int64_t(softmax.getAxis()) == tensorType(softmax.getX()).getRank() - 1;
  if (op->hasTrait<fact::IsRowNorm>()) return true;
  auto axes = op->getAttrOfType<DenseI64ArrayAttr>("axes");
  auto keep = op->getAttrOfType<BoolAttr>("keep_dims");
  if (!axes || !keep || !keep.getValue() || axes.size() != 1 || op->getNumOperands() != 1)
    return false;
  return axes[0] == tensorType(op->getOperand(0)).getRank() - 1;
}
// Reads its first operand in the result's own row, though at other elements of it.
bool isRotation(Operation* op) { return isa<RopeOp, NormRopeOp>(op); }
// The use is read in a pass over the row before the row's results are.
bool isPassed(OpOperand& use) {
  Operation* user = use.getOwner();
  return isRowOp(user) || (isa<NormRopeOp>(user) && use.getOperandNumber() == 0);
}

// In how many places of a kernel the code of one op may stand.
constexpr size_t kMostPlaces = 16;

class Former {
 public:
  Former(func::FuncOp f, const RegionLimits& limits) : function(f), limits(limits) {}

  void run() {
    SmallVector<Operation*> order;
    for (Operation& op : function.getBody().front()) {
      position[&op] = int(order.size());
      order.push_back(&op);
    }
    for (Operation* op : llvm::reverse(order)) {
      if (clustered.contains(op) || !mayRoot(op)) continue;
      clusters.push_back(grow(op));
      for (Operation* member : clusters.back()) clustered.insert(member);
    }
    for (auto& cluster : clusters) outline(cluster);
    for (Operation& op : llvm::make_early_inc_range(llvm::reverse(function.getBody().front())))
      if (isOpTriviallyDead(&op)) op.erase();
    if (limits.joinsTwins) joinTwins();
  }

 private:
  bool emittable(Operation* op) {
    return op->getDialect() && op->getName().getDialectNamespace() == "lathe" && limits.canEmit(op);
  }
  // A lone reshape is a view, a constant a buffer of the program.
  bool mayRoot(Operation* op) {
    return op->getNumResults() && emittable(op) && !isa<WeightOp, ConstantOp, ReshapeOp>(op) &&
           !op->use_empty();
  }

  llvm::SetVector<Operation*> grow(Operation* root) {
    llvm::SetVector<Operation*> members;
    members.insert(root);
    Places places{{root, {0}}};
    SmallVector<StringAttr> rows = dimsOf(tensorType(root->getResult(0)));
    if (!isPointwise(root) && !isRowOp(root) && !isIndexing(root) && !isFree(root) &&
        !isRotation(root))
      return members;  // e.g. reductions of other axes
    llvm::DenseMap<Operation*, Reads> reads{{root, {true, false}}};
    for (size_t i = 0; i < members.size() && int(members.size()) < limits.ops; ++i) {
      for (Value operand : members[i]->getOperands()) {
        Operation* p = operand.getDefiningOp();
        if (!p || members.contains(p) || clustered.contains(p) || p->getNumResults() != 1) continue;
        if (isa<WeightOp>(p) || !emittable(p) || isFree(p)) continue;
        bool only = llvm::all_of(p->getUsers(), [&](Operation* u) { return members.contains(u); });
        if (!only) continue;
        Reads of = readsOf(p, reads);
        if (isRowOp(p)) {
          if (!of.ownRow || dimsOf(tensorType(p->getOperand(0))) != rows) continue;
        } else if (isIndexing(p)) {
          // A row reduction reads its operand several times: only what is cheap to re-read joins.
          if (of.passes && !isOnePlace(p) && !keepsRows(p)) continue;
          if (isa<ReshapeOp>(p) && !joins(cast<ReshapeOp>(p))) continue;
        } else if (!isPointwise(p)) {
          continue;
        }
        if (!readInFewPlaces(p, places)) continue;
        reads[p] = of;
        members.insert(p);
      }
    }
    // Constants and ramps are copied in by outline().
    return members;
  }
  // Where in a kernel the members are evaluated: a pointwise op reads its operands where it is
  // itself, any other in a place of its own for each of its places. A value costs its code once a
  // place, and through chains such as x = x + shifted(x) places double with every step.
  using Places = llvm::DenseMap<Operation*, std::set<int>>;
  bool readInFewPlaces(Operation* op, Places& places) {
    std::set<int> all;
    for (OpOperand& use : op->getUses()) {
      Operation* user = use.getOwner();
      for (int place : places[user]) {
        if (isPointwise(user)) {
          all.insert(place);
          continue;
        }
        // The rows of a row op are read in passes of their own, and where its result is.
        if (isRowOp(user)) all.insert(place);
        std::pair<std::pair<Operation*, unsigned>, int> key{{user, use.getOperandNumber()},
                                                            isRowOp(user) ? 0 : place};
        all.insert(placeOf.try_emplace(key, int(placeOf.size()) + 1).first->second);
      }
    }
    if (all.size() > kMostPlaces) return false;
    places[op] = std::move(all);
    return true;
  }
  // How the members around an op read it.
  struct Reads {
    bool ownRow;  // at the result's own row: a reduction of that row may join
    bool passes;  // in a pass of a row reduction
  };
  static Reads readsOf(Operation* op, const llvm::DenseMap<Operation*, Reads>& reads) {
    Reads all{true, false};
    for (OpOperand& use : op->getUses()) {
      Operation* user = use.getOwner();
      Reads outer = reads.lookup(user);
      bool stays = isPointwise(user) || isRowOp(user) || isRotation(user) || isOnePlace(user);
      all.ownRow &= outer.ownRow && stays;
      all.passes |= outer.passes || isPassed(use);
    }
    return all;
  }
  static bool isOnePlace(Operation* op) {
    auto type = tensorType(op->getResult(0));
    return isa<BroadcastOp>(op) ||
           (isa<ReshapeOp>(op) && type.hasStaticShape() && type.getNumElements() == 1);
  }
  // A row of the result is a stretch of a row of the operand: it loads like the operand itself.
  static bool keepsRows(Operation* op) {
    if (auto t = dyn_cast<TransposeOp>(op))
      return !t.getPermutation().empty() &&
             t.getPermutation().back() == int64_t(t.getPermutation().size()) - 1;
    if (auto slice = dyn_cast<SliceOp>(op))
      return !slice.getStrides().empty() && slice.getStrides().back() == 1;
    return isa<ReshapeOp>(op) && (sameLastDim(op) || splitsLastDim(op));
  }
  // A reshape of a buffer is a view outside of the region; splitting an axis pays where it lets the
  // slice in front join.
  static bool joins(ReshapeOp op) {
    Operation* from = op.getX().getDefiningOp();
    return from && (sameLastDim(op) || (isa<SliceOp>(from) && splitsLastDim(op)));
  }
  // Splitting or merging dims in front of the last one keeps rows whole.
  static bool sameLastDim(Operation* reshape) {
    auto from = tensorType(reshape->getOperand(0)), to = tensorType(reshape->getResult(0));
    return from.getRank() && to.getRank() &&
           dimOf(from, from.getRank() - 1) == dimOf(to, to.getRank() - 1);
  }
  // [.., h * d] -> [.., h, d]
  static bool splitsLastDim(Operation* reshape) {
    auto from = tensorType(reshape->getOperand(0)), to = tensorType(reshape->getResult(0));
    if (!from.getRank() || from.isDynamicDim(from.getRank() - 1)) return false;
    int64_t width = from.getDimSize(from.getRank() - 1), product = 1;
    for (int64_t i = to.getRank(); i-- > 0 && product < width;) {
      if (to.isDynamicDim(i)) return false;
      product *= to.getDimSize(i);
    }
    return product == width;
  }

  void outline(llvm::SetVector<Operation*>& cluster) {
    SmallVector<Operation*> ops(cluster.begin(), cluster.end());
    llvm::sort(ops, [&](Operation* a, Operation* b) { return position[a] < position[b]; });
    Operation* root = cluster[0];
    // Consumers come first and have taken copies of ramps: one of those may be dead by now.
    if (root->use_empty()) return erase(ops);
    llvm::SetVector<Value> inputs;
    llvm::SetVector<Operation*> copies;  // constants and ramps
    for (Operation* op : ops)
      for (Value v : op->getOperands()) {
        Operation* d = v.getDefiningOp();
        if (d && cluster.contains(d)) continue;
        if (d && isFree(d) && isSmall(d))
          copies.insert(d);
        else
          inputs.insert(v);
      }
    OpBuilder b(root);
    SmallVector<Location> origins;
    for (Operation* op : ops) origins.push_back(op->getLoc());
    Location loc = ops.size() == 1 ? root->getLoc() : b.getFusedLoc(origins);
    auto region = RegionOp::create(b, loc, root->getResultTypes(), inputs.getArrayRef());
    Block* body = b.createBlock(&region.getBody());
    IRMapping map;
    for (Value v : inputs) map.map(v, body->addArgument(v.getType(), v.getLoc()));
    for (Operation* op : copies) b.clone(*op, map);
    for (Operation* op : ops) b.clone(*op, map);
    SmallVector<Value> results;
    for (Value v : root->getResults()) results.push_back(map.lookup(v));
    YieldOp::create(b, loc, results);
    root->replaceAllUsesWith(region.getResults());
    erase(ops);
  }
  // Small regions of one text and one result each, whose operands are there when the first begins.
  static bool areTwins(RegionOp a, RegionOp b) {
    constexpr size_t kMostOps = 4;
    return a->getNumResults() == 1 && a->getResultTypes() == b->getResultTypes() &&
           a.getBody().front().getOperations().size() <= kMostOps + 1 &&
           OperationEquivalence::isRegionEquivalentTo(&a.getBody(), &b.getBody(),
                                                      OperationEquivalence::IgnoreLocations) &&
           llvm::all_of(b.getInputs(), [&](Value v) {
             Operation* made = v.getDefiningOp();
             return !made || isa<WeightOp>(made) || made->isBeforeInBlock(a);
           });
  }
  void joinTwins() {
    SmallVector<RegionOp> regions(function.getOps<RegionOp>());
    for (size_t i = 0; i < regions.size(); ++i)
      for (size_t j = i + 1; regions[i] && j < regions.size(); ++j)
        if (regions[j] && areTwins(regions[i], regions[j])) {
          join(regions[i], regions[j]);
          regions[i] = regions[j] = nullptr;
        }
  }
  static void join(RegionOp a, RegionOp b) {
    for (Value v : b.getInputs())
      if (auto weight = v.getDefiningOp<WeightOp>(); weight && !weight->isBeforeInBlock(a))
        weight->moveBefore(a);
    OpBuilder builder(a);
    llvm::SetVector<Value> inputs(a.getInputs().begin(), a.getInputs().end());
    inputs.insert(b.getInputs().begin(), b.getInputs().end());
    auto both = RegionOp::create(builder, builder.getFusedLoc({a.getLoc(), b.getLoc()}),
                                 TypeRange{a->getResult(0).getType(), b->getResult(0).getType()},
                                 inputs.getArrayRef());
    Block* body = builder.createBlock(&both.getBody());
    for (Value v : inputs) body->addArgument(v.getType(), v.getLoc());
    SmallVector<Value> results;
    for (RegionOp each : {a, b}) {
      IRMapping map;
      for (auto [inner, v] : llvm::zip(each.getBody().getArguments(), each.getInputs()))
        map.map(inner, body->getArgument(unsigned(llvm::find(inputs, v) - inputs.begin())));
      for (Operation& op : each.getBody().front().without_terminator()) builder.clone(op, map);
      results.push_back(map.lookup(each.getBody().front().getTerminator()->getOperand(0)));
    }
    YieldOp::create(builder, both.getLoc(), results);
    a->getResult(0).replaceAllUsesWith(both->getResult(0));
    b->getResult(0).replaceAllUsesWith(both->getResult(1));
    b.erase();
    a.erase();
  }
  static void erase(ArrayRef<Operation*> ops) {
    for (Operation* op : llvm::reverse(ops)) op->erase();
  }
  static bool isSmall(Operation* op) {
    return !isa<ConstantOp>(op) || tensorType(op->getResult(0)).getNumElements() <= 1024;
  }

  func::FuncOp function;
  const RegionLimits& limits;
  llvm::DenseMap<Operation*, int> position;
  llvm::DenseSet<Operation*> clustered;
  SmallVector<llvm::SetVector<Operation*>> clusters;
  std::map<std::pair<std::pair<Operation*, unsigned>, int>, int> placeOf;
};

}  // namespace

void formRegions(ModuleOp module, const RegionLimits& limits) {
  for (auto f : module.getOps<func::FuncOp>())
    if (!f.isExternal()) Former(f, limits).run();
}

}  // namespace lathe
