// SPDX-License-Identifier: Apache-2.0
// Reductions: accumulators in registers; lanes along the reduced axis when the result is one
// scalar, else along the result's own lanes.
#include "backends/cpu/lowering/region_emitter_evaluator.h"
#include "passes/region_ops.h"
#include "llvm/ADT/SetOperations.h"

using namespace mlir;

namespace lathe::cpu {
namespace {

using Values = KernelBuilder::Values;

bool isArg(Operation* op) { return isa<ArgMaxOp, ArgMinOp>(op); }
// Results that cost more than reading them back from the first-level cache.
bool isExpensive(Operation* op) {
  return (op->hasTrait<fact::IsTranscendental>() || isa<SqrtOp, RsqrtOp, DivOp, GatherOp>(op)) &&
         tensorType(op->getResult(0)).getElementType().isFloat();
}

}  // namespace

/// How one reduction accumulates: as the op says, except that the largest and smallest of floats
/// are found by one vmaxps, which loses a NaN, beside a second accumulator that keeps the last NaN.
class Reduction {
 public:
  Reduction(Evaluator& e, Operation* reduction) : e(e), k(e.k), op(cast<ReductionOp>(reduction)) {
    type = computedType(tensorType(reduction->getOperand(0)).getElementType());
    const StringRef combiner = op.combiner();
    beside = isa<FloatType>(type) && (combiner == "Max" || combiner == "Min");
    better = combiner == "Min" ? Compare::lt : Compare::gt;
  }

  size_t count() const { return isArg(op) || beside ? 2 : 1; }

  Values start(int64_t width) {
    Values none = op.start(k, width == 1 ? type : VectorType::get({width}, type));
    if (beside) none.push_back(none[0]);
    return none;
  }

  /// The accumulators of the operand's value alone.
  Values lift(Value x, const Coord& position, Value mask, int64_t width) {
    Value at;
    if (isArg(op)) {
      at = e.m.values(position, width);
      if (isa<VectorType>(x.getType()) && !isa<VectorType>(at.getType())) at = k.splat(at, width);
    }
    Values one = op.lift(k, x, at);
    if (mask)
      for (auto [value, none] : llvm::zip(one, op.start(k, x.getType())))
        value = k.make<arith::SelectOp>(mask, value, none);
    if (beside) one.push_back(one[0]);
    return one;
  }

  Values combine(ValueRange a, ValueRange b) {
    if (!beside) return op.combine(k, a, b);
    Value best = k.make<arith::SelectOp>(k.compare(better, a[0], b[0]), a[0], b[0]);
    return {best, k.make<arith::SelectOp>(k.isNan(b[1]), b[1], a[1])};
  }

  /// All lanes into one, halving.
  Values fold(Values acc, int64_t width) {
    for (; width > 1; width /= 2) {
      SmallVector<int32_t> low, high;
      for (int32_t i = 0; i < width / 2; ++i)
        low.push_back(i), high.push_back(int32_t(width / 2) + i);
      Values a, b;
      for (Value v : acc) a.push_back(k.shuffle(v, v, low)), b.push_back(k.shuffle(v, v, high));
      acc = combine(a, b);
    }
    for (Value& v : acc)
      if (isa<VectorType>(v.getType()))
        v = k.make<LLVM::ExtractElementOp>(v, k.integer(k.b.getI32Type(), 0));
    return acc;
  }

  Value finish(ValueRange acc, Value elements) {
    if (!beside) return op.finish(k, acc, elements);
    Value best = k.make<arith::SelectOp>(k.isNan(acc[1]), acc[1], acc[0]);
    return op.finish(k, best, elements);
  }

 private:
  Evaluator& e;
  KernelBuilder& k;
  ReductionOp op;
  Type type;
  bool beside;
  Compare better;
};

void Evaluator::findReductions() {
  DenseMap<Value, int> waits;
  auto waitsOf = [&](Value v) { return waits.lookup(v); };
  SmallVector<std::pair<Value, int>> passes;
  for (Operation& op : region_.getBody().front()) {
    int depth = 0;
    for (Value v : op.getOperands()) depth = std::max(depth, waitsOf(v));
    if (isReduction(&op)) {
      depth_[&op] = ++depth;
      passes.push_back({op.getOperand(0), depth});
    }
    for (Value v : op.getResults()) waits[v] = depth;
    if (op.hasTrait<OpTrait::IsTerminator>())
      for (Value v : op.getOperands()) passes.push_back({v, INT_MAX});
  }
  // Expensive values that two passes over a row reach are kept in scratch after the first; of two
  // such values, one inside the other, the outer one is enough.
  for (bool stop : {false, true}) {
    DenseMap<Value, int> seenIn;
    DenseSet<Value> shared;
    for (auto [root, pass] : passes) {
      SmallVector<Value> work{root};
      DenseSet<Value> visited;
      while (!work.empty()) {
        Value v = work.pop_back_val();
        Operation* op = v.getDefiningOp();
        if (!op || isReduction(op) || !visited.insert(v).second) continue;
        if (isExpensive(op)) {
          auto [it, first] = seenIn.try_emplace(v, pass);
          if (!first && it->second != pass) shared.insert(v);
        }
        if (!stop || !kept_.contains(v)) work.append(op->operand_begin(), op->operand_end());
      }
    }
    if (stop)
      llvm::set_intersect(kept_, shared);
    else
      kept_ = shared;
  }
}

// Others of the same box that wait for no more than the first of the group share its pass.
void Evaluator::addPassMates(ArrayRef<Coord> coords,
                             SmallVectorImpl<std::pair<Operation*, Index>>& group) {
  auto [op, index] = group.front();
  auto shape = dims(op->getOperand(0));
  auto axes = reducedAxes(op);
  for (Operation& other : region_.getBody().front()) {
    if (&other == op || !isReduction(&other) || depth_[&other] != depth_[op]) continue;
    if (dims(other.getOperand(0)) != shape || reducedAxes(&other) != axes) continue;
    Index place = index;
    place.coords.clear();
    for (int64_t i = 0; i < int64_t(shape.size()); ++i)
      if (!llvm::is_contained(axes, i) || keepsDims(&other)) place.coords.push_back(coords[i]);
    if (!k.find(keyOf(other.getResult(0), place, kValue))) group.push_back({&other, place});
  }
}

Value Evaluator::reduce(Operation* op, const Index& index) {
  auto shape = dims(op->getOperand(0));
  SmallVector<int64_t> axes = reducedAxes(op);
  SmallVector<bool> reduced(shape.size());
  for (int64_t axis : axes) reduced[axis] = true;
  // The free coordinates, under either spelling of the result.
  SmallVector<Coord, 4> coords(shape.size(), m.constant(0));
  size_t next = 0;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (!reduced[i]) coords[i] = index.coords[next];
    if (!reduced[i] || keepsDims(op)) ++next;
  }
  llvm::erase_if(axes, [&](int64_t axis) { return shape[axis] == DimExpr(1); });
  bool uniform = index.uniform();

  SmallVector<std::pair<Operation*, Index>> group{{op, index}};
  if (uniform && k.barrier() <= 1) addPassMates(coords, group);
  SmallVector<Reduction> kinds;
  for (auto& member : group) kinds.emplace_back(*this, member.first);

  int64_t laneAxis = uniform && !axes.empty() ? axes.back() : -1;
  int64_t width = index.width;
  SmallVector<int64_t> cuts;
  if (laneAxis >= 0) {
    if (laneAxis + 1 == int64_t(shape.size()) && k.tier.avx512) cuts = cutsOf(op->getOperand(0));
    width = widthFor(shape[laneAxis].asConstant(), cuts);
  } else if (uniform) {
    width = 1;
  }
  Accumulators acc;
  for (Reduction& r : kinds) {
    if (width > 1) acc.vectors.append(r.start(width));
    acc.scalars.append(r.start(1));
  }
  Values startVectors = acc.vectors, startScalars = acc.scalars;

  auto step = [&](const Index& at, int64_t w, ValueRange a) {
    Values out;
    size_t n = 0;
    for (auto [r, member] : llvm::zip(kinds, group)) {
      Operation* one = member.first;
      Value x = eval(one->getOperand(0), at);
      if (w > 1 && !isa<VectorType>(x.getType())) x = k.splat(x, w);
      Coord position = isArg(one) ? at.coords[reducedAxes(one)[0]] : Coord();
      out.append(r.combine(a.slice(n, r.count()),
                           r.lift(x, position, laneAxis >= 0 ? at.mask : Value(), w)));
      n += r.count();
    }
    return out;
  };
  // A pass in front of the loop that stores may read any of the row.
  Value storing = storedLane;
  if (k.top() < storedLevel) storedLane = {};
  Pass pass;
  if (axes.size() == 1 && laneAxis + 1 == int64_t(shape.size())) pass.length = shape.back();
  Pass* outerPass = std::exchange(pass_, &pass);

  std::function<Accumulators(size_t, Accumulators)> nest = [&](size_t n, Accumulators a) {
    bool innermost = n + 1 == axes.size();
    if (n == axes.size()) {
      Index at{coords, width, uniform ? Value() : index.mask};
      if (width > 1)
        a.vectors = step(at, width, a.vectors);
      else
        a.scalars = step(at, 1, a.scalars);
      return a;
    }
    Value length = size(shape[axes[n]]);
    if (innermost && laneAxis >= 0) {
      return overLanes(k.i64(0), length, cuts, width, a,
                       [&](const Coord& lane, int64_t w, Value mask, ValueRange v) {
                         Index at{coords, w, mask};
                         at.coords[laneAxis] = lane;
                         pass.lane = lane;
                         pass.level = k.top();
                         pass.done.clear();
                         ++pass.bodies;
                         return step(at, w, v);
                       });
    }
    Values all = a.vectors;
    size_t vectors = all.size();
    all.append(a.scalars);
    all = k.loop(k.i64(0), length, 1, all, [&](Value i, ValueRange v) {
      Coord saved = coords[axes[n]];
      coords[axes[n]] =
          m.clip(m.scalar(i), 0, shape[axes[n]].asConstant().value_or(Coord::kUnbounded) - 1);
      Accumulators inner{Values(v.take_front(vectors)), Values(v.drop_front(vectors))};
      inner = nest(n + 1, inner);
      coords[axes[n]] = saved;
      Values out = inner.vectors;
      out.append(inner.scalars);
      return out;
    });
    return Accumulators{Values(ValueRange(all).take_front(vectors)),
                        Values(ValueRange(all).drop_front(vectors))};
  };
  acc = nest(0, acc);
  pass_ = outerPass;
  storedLane = storing;
  for (auto [tensor, bodies] : pass.stores)
    if (bodies == pass.bodies) k.remember(rowKey(tensor), k.i64(0));

  DimExpr elements = 1;
  for (int64_t axis : axes) elements = elements * shape[axis];
  if (uniform) reducedElements = reducedElements + elements;
  Value mine;
  size_t n = 0;
  for (auto [r, member] : llvm::zip(kinds, group)) {
    auto& [one, place] = member;
    Values result;
    bool single = ValueRange(acc.scalars) != ValueRange(startScalars);
    if (width > 1 && !uniform) {
      result.append(acc.vectors.begin() + n, acc.vectors.begin() + n + r.count());
    } else {
      if (ValueRange(acc.vectors) != ValueRange(startVectors)) {
        Values part(acc.vectors.begin() + n, acc.vectors.begin() + n + r.count());
        result = r.fold(part, width);
      }
      if (single || result.empty()) {
        ValueRange rest = ValueRange(acc.scalars).slice(n, r.count());
        result = result.empty() ? Values(rest) : r.combine(result, rest);
      }
    }
    Value v = r.finish(result, size(elements));
    n += r.count();
    if (one == op)
      mine = v;
    else
      k.remember(keyOf(one->getResult(0), place, kValue), v);
  }
  return mine;
}

}  // namespace lathe::cpu
