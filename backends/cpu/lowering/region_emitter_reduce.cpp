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

/// How one reduction accumulates.
class Reduction {
 public:
  Reduction(Evaluator& e, Operation* op)
      : e(e), k(e.k), op(op), element(tensorType(op->getOperand(0)).getElementType()) {
    compute = computeType(element);
    real = isa<FloatType>(compute);
    isUnsigned = element.isUnsignedInteger();
    least = isa<ReduceMinOp, ArgMinOp>(op);
    extreme = isArg(op) || isa<ReduceMaxOp, ReduceMinOp>(op);
    truth = isa<ReduceAnyOp, ReduceAllOp>(op);
  }

  size_t count() const { return isArg(op) || (extreme && real) ? 2 : 1; }

  Values start(int64_t width) const {
    auto wide = [&](Type t) { return width == 1 ? t : Type(VectorType::get({width}, t)); };
    Value v = neutral(wide(compute));
    if (truth) v = k.integer(wide(k.b.getI8Type()), isa<ReduceAllOp>(op));
    if (isArg(op)) return {v, k.integer(wide(k.b.getI64Type()), INT64_MAX)};
    if (extreme && real) return {v, v};
    return {v};
  }

  /// The accumulators of the operand's value alone.
  Values lift(Value x, const Coord& position, Value mask, int64_t width) const {
    if (mask) x = k.make<arith::SelectOp>(mask, x, neutral(x.getType()));
    if (truth) x = k.make<arith::ExtUIOp>(withElementOf(x.getType(), k.b.getI8Type()), x);
    if (isArg(op)) {
      Value at = e.m.values(position, width);
      if (isa<VectorType>(x.getType()) && !isa<VectorType>(at.getType())) at = k.splat(at, width);
      if (mask) at = k.make<arith::SelectOp>(mask, at, k.integer(at.getType(), INT64_MAX));
      return {x, at};
    }
    if (extreme && real) return {x, x};
    return {x};
  }

  Values combine(ValueRange a, ValueRange b) const {
    Value x = a[0], y = b[0];
    if (isArg(op)) return combineArg(a, b);
    if (extreme) {
      Compare p = least ? Compare::lt : Compare::gt;
      Value best = k.make<arith::SelectOp>(e.compare(p, x, y, isUnsigned), x, y);
      if (!real) return {best};
      // The best loses a NaN (one vmaxps); the second accumulator keeps the last one seen.
      Value nan = k.make<arith::CmpFOp>(arith::CmpFPredicate::UNO, b[1], b[1]);
      return {best, k.make<arith::SelectOp>(nan, b[1], a[1])};
    }
    if (isa<ReduceAnyOp>(op)) return {k.make<arith::OrIOp>(x, y)};
    if (isa<ReduceAllOp>(op)) return {k.make<arith::AndIOp>(x, y)};
    if (isa<ReduceProdOp>(op))
      return {real ? Value(k.make<arith::MulFOp>(x, y)) : k.make<arith::MulIOp>(x, y)};
    return {real ? Value(k.make<arith::AddFOp>(x, y)) : k.make<arith::AddIOp>(x, y)};
  }

  /// All lanes into one, halving.
  Values fold(Values acc, int64_t width) const {
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

  Value finish(ValueRange acc, Value elements) const {
    Value x = acc[0];
    if (isArg(op)) {
      Value none = e.compare(Compare::eq, acc[1], k.integer(acc[1].getType(), INT64_MAX), true);
      return k.make<arith::SelectOp>(none, k.integer(acc[1].getType(), 0), acc[1]);
    }
    if (extreme && real) {
      Value nan = k.make<arith::CmpFOp>(arith::CmpFPredicate::UNO, acc[1], acc[1]);
      return k.make<arith::SelectOp>(nan, acc[1], x);
    }
    if (truth) return e.compare(Compare::ne, x, k.integer(x.getType(), 0), true);
    if (!isa<ReduceMeanOp>(op)) return x;
    Value n = k.make<arith::SIToFPOp>(compute, elements);
    if (auto vector = dyn_cast<VectorType>(x.getType())) n = k.splat(n, vector.getDimSize(0));
    return k.make<arith::DivFOp>(x, n);
  }

 private:
  Value neutral(Type type) const {
    unsigned bits = getElementTypeOrSelf(type).getIntOrFloatBitWidth();
    if (extreme && real) return k.number(type, least ? INFINITY : -INFINITY);
    if (extreme && isUnsigned) return k.integer(type, least ? -1 : 0);
    if (extreme) {
      APInt limit = least ? APInt::getSignedMaxValue(bits) : APInt::getSignedMinValue(bits);
      return k.integer(type, limit.getSExtValue());
    }
    if (truth) return k.integer(type, isa<ReduceAllOp>(op));
    int64_t v = isa<ReduceProdOp>(op);
    return real ? k.number(type, double(v)) : k.integer(type, v);
  }

  // The first of equal values; a NaN beats every number, the first NaN beats the others.
  Values combineArg(ValueRange a, ValueRange b) const {
    Value x = a[0], y = b[0];
    auto both = [&](Value p, Value q) -> Value { return k.make<arith::AndIOp>(p, q); };
    auto either = [&](Value p, Value q) -> Value { return k.make<arith::OrIOp>(p, q); };
    Value takes = e.compare(least ? Compare::lt : Compare::gt, y, x, isUnsigned);
    Value ties = e.compare(Compare::eq, y, x, isUnsigned);
    if (real) {
      Value nanX = k.make<arith::CmpFOp>(arith::CmpFPredicate::UNO, x, x);
      Value nanY = k.make<arith::CmpFOp>(arith::CmpFPredicate::UNO, y, y);
      Value notX = k.make<arith::XOrIOp>(nanX, k.integer(nanX.getType(), 1));
      takes = either(takes, both(nanY, notX));
      ties = either(ties, both(nanX, nanY));
    }
    takes = either(takes, both(ties, e.compare(Compare::lt, b[1], a[1], false)));
    return {k.make<arith::SelectOp>(takes, y, x), k.make<arith::SelectOp>(takes, b[1], a[1])};
  }

  Evaluator& e;
  KernelBuilder& k;
  Operation* op;
  Type element, compute;
  bool real, isUnsigned, least, extreme, truth;
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
