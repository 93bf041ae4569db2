// SPDX-License-Identifier: Apache-2.0
// Which ops of a block share a loop over lanes, and in what order a block is written.
#include "backends/cuda/lowering/text/loop_printer.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/EmitC/IR/EmitC.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace lathe::cuda {
namespace {

// Rounding that the store does which takes it.
bool isPacked(Operation* op) {
  if (!isa<arith::TruncFOp>(op) || !op->hasOneUse()) return false;
  auto store = dyn_cast<LLVM::StoreOp>(*op->user_begin());
  return store && store.getValue() == op->getResult(0) && storedWhole(store) != store.getValue();
}

// The position of an extraction that is the variable of a loop over lanes: that loop.
Operation* laneLoopOf(Value position) {
  while (Operation* op = position.getDefiningOp()) {
    if (!isConversion(op)) return nullptr;
    position = op->getOperand(0);
  }
  auto loop = dyn_cast<scf::ForOp>(llvm::cast<BlockArgument>(position).getOwner()->getParentOp());
  return loop && loop.getInductionVar() == position && laneLoop(loop) ? loop : nullptr;
}

Operation* laneLoopOfExtract(Operation* op) {
  if (auto extract = dyn_cast<vector::ExtractOp>(op); extract && extract.hasDynamicPosition())
    return laneLoopOf(extract.getDynamicPosition()[0]);
  return nullptr;
}

// Reads a vector lane by lane, at lanes that are known when the text is made.
bool readsLanes(Operation* op) {
  if (lanesOf(op)) return !isa<scf::ForOp>(op);
  if (auto gep = dyn_cast<LLVM::GEPOp>(op)) return isa<VectorType>(gep.getType());
  if (auto extract = dyn_cast<vector::ExtractOp>(op); extract && !extract.hasDynamicPosition())
    return true;
  return laneLoopOfExtract(op);
}

bool isIdentity(vector::ShuffleOp op, unsigned operand) {
  const int64_t border = vectorOf(op.getV1().getType()).getDimSize(0);
  auto source = vectorOf(op->getOperand(operand).getType());
  if (source.getDimSize(0) != int64_t(op.getMask().size())) return false;
  for (auto [lane, from] : llvm::enumerate(op.getMask()))
    if (from >= 0 && (from >= border) == (operand == 1) &&
        from - (operand ? border : 0) != int64_t(lane))
      return false;
  return true;
}

// Calls `visit` for what `op`, its regions and the free ops that they stand on take from outside.
void usesOf(Operation* op, llvm::function_ref<void(OpOperand&)> visit) {
  op->walk([&](Operation* inner) {
    for (OpOperand& use : inner->getOpOperands()) {
      Operation* source = use.get().getDefiningOp();
      if (source && op->isAncestor(source)) continue;
      visit(use);
      if (source && isFree(source)) usesOf(source, visit);
    }
  });
}

bool depends(Operation* op, const Step& step) {
  bool found = false;
  usesOf(op, [&](OpOperand& use) {
    Operation* source = use.get().getDefiningOp();
    if (!source || !step.has(source)) return;
    found |= !(isRebuildable(use.get()) && readsLanes(use.getOwner()));
  });
  return found;
}

// `op` may be part of the loop: of what is made there it takes the own lane.
bool takesOwnLanes(Operation* op, Step& step) {
  bool fits = true;
  step.members.insert(op);
  usesOf(op, [&](OpOperand& use) {
    Operation* source = use.get().getDefiningOp();
    if (!source || source == op || !step.has(source)) return;
    fits &= vectorOf(use.get().getType()) &&
            (isLaneUse(use, step) || (isRebuildable(use.get()) && readsLanes(use.getOwner())));
  });
  step.members.erase(op);
  return fits;
}

// Nothing in the loop or behind it reads the vector at another lane than its own.
bool isOwnLaneOnly(Value vector, const Step& step) {
  for (OpOperand& use : vector.getUses()) {
    Operation* owner = use.getOwner();
    if (llvm::is_contained(step.behind, owner) || isPacked(owner)) return false;
    const bool inside =
        llvm::any_of(step.ops, [&](Operation* op) { return op->isAncestor(owner); });
    if (!inside) continue;
    if (!isLaneUse(use, step)) return false;
    for (Value result : owner->getResults())
      if (vectorOf(result.getType()) && isRebuildable(result) && !isOwnLaneOnly(result, step))
        return false;
  }
  return true;
}

// The vectors that the block yields are assigned to their variables in the last loop over lanes,
// if nothing there still reads those variables at other lanes; else all of them in one behind it.
void planYields(Block& block, std::vector<Step>& steps, int open) {
  auto loop = dyn_cast<scf::ForOp>(block.getParentOp());
  std::vector<std::pair<unsigned, int64_t>> yields;  // operands and their lanes
  bool together = open >= 0;
  for (OpOperand& operand : block.getTerminator()->getOpOperands()) {
    const unsigned number = operand.getOperandNumber();
    auto type = vectorOf(operand.get().getType());
    if (!type || (loop && operand.get() == loop.getRegionIterArg(number))) continue;
    yields.push_back({number, type.getDimSize(0)});
    together = together && steps[size_t(open)].lanes == type.getDimSize(0) &&
               (!loop || isOwnLaneOnly(loop.getRegionIterArg(number), steps[size_t(open)]));
  }
  if (together) {
    for (auto [number, lanes] : yields) steps[size_t(open)].yields.push_back(number);
    return;
  }
  const size_t before = steps.size();
  for (auto [number, lanes] : yields) {
    auto it = std::find_if(steps.begin() + long(before), steps.end(),
                           [lanes = lanes](const Step& step) { return step.lanes == lanes; });
    if (it == steps.end()) {
      it = steps.insert(it, Step());
      it->lanes = lanes;
      it->block = &block;
    }
    it->yields.push_back(number);
  }
}

}  // namespace

void Effects::add(const Effects& other) {
  reads |= other.reads;
  writes |= other.writes;
  localReads.insert(other.localReads.begin(), other.localReads.end());
  localWrites.insert(other.localWrites.begin(), other.localWrites.end());
}

bool Effects::conflict(const Effects& other) const {
  auto meet = [](const auto& a, const auto& b) {
    return llvm::any_of(a, [&](Operation* array) { return b.contains(array); });
  };
  return (writes && (other.reads || other.writes)) || (reads && other.writes) ||
         meet(localWrites, other.localReads) || meet(localWrites, other.localWrites) ||
         meet(localReads, other.localWrites);
}

Effects effectsOf(Operation* op) {
  Effects effects;
  op->walk([&](Operation* inner) {
    auto access = [&](Value pointer, bool writes) {
      if (Operation* array = localArray(pointer))
        (writes ? effects.localWrites : effects.localReads).insert(array);
      else
        (writes ? effects.writes : effects.reads) = true;
    };
    if (auto load = dyn_cast<LLVM::LoadOp>(inner)) {
      access(load.getAddr(), false);
    } else if (auto store = dyn_cast<LLVM::StoreOp>(inner)) {
      access(store.getAddr(), true);
    } else if (isa<LLVM::masked_gather>(inner)) {
      effects.reads = true;
    } else if (!inner->getNumRegions() && !isa<LLVM::AllocaOp>(inner) &&
               !inner->hasTrait<OpTrait::IsTerminator>() && !isMemoryEffectFree(inner)) {
      effects.reads = effects.writes = true;
    }
  });
  return effects;
}

bool writesBehind(Operation* array, Operation* op) {
  for (Operation* next = op->getNextNode(); next; next = next->getNextNode())
    if (effectsOf(next).localWrites.contains(array)) return true;
  return false;
}

bool isConversion(Operation* op) {
  return isa<arith::ExtFOp, arith::ExtSIOp, arith::ExtUIOp, arith::TruncIOp, arith::IndexCastOp>(
      op);
}

bool isFree(Operation* op) {
  if (op->hasTrait<OpTrait::ConstantLike>() || isPacked(op)) return true;
  return isa<vector::BroadcastOp, LLVM::GEPOp>(op);
}

int64_t laneLoop(Operation* op) {
  auto loop = dyn_cast<scf::ForOp>(op);
  if (!loop || !loop->hasAttr("lanes")) return 0;
  APInt low, high, step;
  if (!matchPattern(loop.getLowerBound(), m_ConstantInt(&low)) || !low.isZero() ||
      !matchPattern(loop.getUpperBound(), m_ConstantInt(&high)) ||
      !matchPattern(loop.getStep(), m_ConstantInt(&step)) || !step.isOne())
    return 0;
  for (Value carried : loop.getInitArgs())
    if (vectorOf(carried.getType())) return 0;
  return std::max<int64_t>(high.getSExtValue(), 0);
}

int64_t lanesOf(Operation* op) {
  if (isFree(op)) return 0;
  if (int64_t lanes = laneLoop(op)) return lanes;
  if (op->getNumResults() != 1 || op->getNumRegions() ||
      isa<LLVM::LoadOp, vector::FromElementsOp, emitc::CallOpaqueOp>(op))
    return 0;
  auto type = vectorOf(op->getResult(0).getType());
  return type ? type.getDimSize(0) : 0;
}

bool isRebuildable(Value value, int depth) {
  constexpr int kDeepest = 4;
  if (!vectorOf(value.getType()) || depth > kDeepest) return false;
  Operation* op = value.getDefiningOp();
  if (!op || op->getNumRegions()) return true;
  if (op->hasTrait<OpTrait::ConstantLike>() ||
      isa<vector::BroadcastOp, LLVM::LoadOp, vector::FromElementsOp>(op))
    return true;
  auto integers = dyn_cast<arith::ArithIntegerOverflowFlagsInterface>(op);
  const bool index = integers && integers.hasNoSignedWrap();
  const bool logic = isa<arith::AndIOp, arith::OrIOp, arith::XOrIOp>(op) &&
                     getElementTypeOrSelf(value.getType()).isInteger(1);
  if (!isConversion(op) && !index && !logic &&
      !isa<arith::CmpIOp, arith::NegFOp, vector::ShuffleOp>(op))
    return false;
  return llvm::all_of(op->getOperands(), [&](Value operand) {
    return isRebuildable(operand, depth + (isa<vector::ShuffleOp>(op) ? 0 : 1));
  });
}

bool isLaneUse(OpOperand& use, const Step& step) {
  Operation* owner = use.getOwner();
  auto type = vectorOf(use.get().getType());
  if (!type || type.getDimSize(0) != step.lanes) return false;
  if (isa<LLVM::GEPOp>(owner))
    return llvm::all_of(owner->getUses(), [&](OpOperand& next) { return isLaneUse(next, step); });
  if (isa<scf::YieldOp>(owner))
    return owner->getBlock() == step.block &&
           llvm::is_contained(step.yields, use.getOperandNumber());
  if (step.has(owner)) {
    if (auto shuffle = dyn_cast<vector::ShuffleOp>(owner))
      return isIdentity(shuffle, use.getOperandNumber());
    return !isa<scf::ForOp>(owner);
  }
  Operation* loop = laneLoopOfExtract(owner);
  return loop && step.has(loop);
}

bool needsVector(Value value, const Step& step) {
  return llvm::any_of(value.getUses(), [&](OpOperand& use) {
    return !isLaneUse(use, step) && !(isRebuildable(value) && readsLanes(use.getOwner()));
  });
}

std::vector<Step> stepsOf(Block& block, bool assigns) {
  std::vector<Step> steps;
  int open = -1;
  auto single = [](Operation& op) {
    Step step;
    step.op = &op;
    return step;
  };
  for (Operation& op : block) {
    if (op.hasTrait<OpTrait::IsTerminator>() || isFree(&op) || isOpTriviallyDead(&op)) continue;
    const Effects effects = effectsOf(&op);
    auto store = dyn_cast<LLVM::StoreOp>(op);
    int64_t lanes = lanesOf(&op);
    if (open >= 0 && store && localArray(store.getAddr())) {
      // What the loop makes goes into a local array lane by lane.
      auto type = vectorOf(store.getValue().getType());
      Operation* source = store.getValue().getDefiningOp();
      if (type && source && steps[size_t(open)].has(source)) lanes = type.getDimSize(0);
    }
    if (lanes) {
      if (open < 0 || steps[size_t(open)].lanes != lanes ||
          steps[size_t(open)].effects.conflict(effects) ||
          !takesOwnLanes(&op, steps[size_t(open)])) {
        open = int(steps.size());
        steps.emplace_back();
        steps.back().lanes = lanes;
        steps.back().block = &block;
      }
      Step& step = steps[size_t(open)];
      step.ops.push_back(&op);
      step.members.insert(&op);
      step.effects.add(effects);
    } else if (open < 0) {
      steps.push_back(single(op));
    } else if (store) {
      steps[size_t(open)].behind.push_back(&op);
      steps[size_t(open)].effects.add(effects);
    } else if (!depends(&op, steps[size_t(open)]) &&
               !steps[size_t(open)].effects.conflict(effects)) {
      // In front of the loop, which so goes on.
      steps.insert(steps.begin() + open++, single(op));
    } else {
      open = -1;
      steps.push_back(single(op));
    }
  }
  if (assigns) planYields(block, steps, open);
  return steps;
}

}  // namespace lathe::cuda
