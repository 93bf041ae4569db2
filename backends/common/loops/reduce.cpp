// SPDX-License-Identifier: Apache-2.0
// Reductions: accumulators in registers; lanes along the reduced axis when the result is one
// scalar, else along the result's own lanes; or all threads that share a row together.
#include "backends/common/loops/evaluator.h"
#include "lathe/backends/region_plan.h"

using namespace mlir;

namespace lathe::loops {

using Values = LoopBuilder::Values;

/// How one reduction accumulates in a loop: what its op says (ReductionOp), lane by lane. Several
/// may share the loop; the accumulators of this one are those from `first` on.
class Reduction {
 public:
  Reduction(Evaluator& e, Operation* op, const Index& place, size_t first)
      : location(e.locationOf(op)),
        place(place),
        k(e.k),
        m(e.m),
        op(cast<ReductionOp>(op)),
        first(first) {
    compute = computedType(tensorType(op->getOperand(0)).getElementType());
    const auto combiner = this->op.combiner();
    isArg = combiner == "ArgMax" || combiner == "ArgMin";
    split = e.splitsNan() && isa<FloatType>(compute) && (combiner == "Max" || combiner == "Min");
    least = combiner == "Min";
  }

  Location location;
  Index place;  ///< at which its result is wanted

  Operation* operation() const { return op; }
  Value operand() const { return op->getOperand(0); }
  /// Where along the reduced axis an element lies, if that counts.
  Coord positionAt(const Index& at) const {
    return isArg ? at.coords[reducedAxes(op)[0]] : Coord();
  }
  size_t count() const { return isArg || split ? 2 : 1; }
  size_t end() const { return first + count(); }
  ValueRange own(ValueRange all) const { return all.slice(first, count()); }

  Values start(int64_t width) const {
    Type type = compute;
    if (width > 1) type = VectorType::get({width}, compute);
    Values acc = op.start(k, type);
    if (split) acc.push_back(acc[0]);
    return acc;
  }

  /// The accumulators of the operand's value alone; lanes outside of the mask count as nothing.
  Values lift(Value x, const Coord& position, Value mask, int64_t width) const {
    Value at;
    if (isArg) {
      at = k.widened(m.values(position, width));
      if (width > 1 && position.uniform()) at = k.splat(at, width);
    }
    Values acc = split ? Values{x, x} : op.lift(k, x, at);
    if (!mask) return acc;
    Values none = start(width);
    for (auto [value, nothing] : llvm::zip(acc, none))
      value = k.make<arith::SelectOp>(mask, value, nothing);
    return acc;
  }

  Values combine(ValueRange a, ValueRange b) const {
    if (!split) return op.combine(k, a, b);
    Value better = k.compare(least ? Compare::lt : Compare::gt, a[0], b[0]);
    // The best loses a NaN (one vmaxps); the second accumulator keeps the last one seen.
    return {k.make<arith::SelectOp>(better, a[0], b[0]),
            k.make<arith::SelectOp>(k.isNan(b[1]), b[1], a[1])};
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
      if (isa<VectorType>(v.getType())) v = k.extract(v, 0);
    return acc;
  }

  Value finish(Values acc, Value elements) const {
    if (split) acc = {k.make<arith::SelectOp>(k.isNan(acc[1]), acc[1], acc[0])};
    return op.finish(k, acc, elements);
  }

 private:
  LoopBuilder& k;
  IndexMath& m;
  mutable ReductionOp op;
  Type compute;
  size_t first;
  bool isArg, split, least;
};

// Others of the same box that wait for no more than the first of the group share its pass.
void Evaluator::addPassMates(ArrayRef<Coord> coords, SmallVectorImpl<Reduction>& group) {
  Operation* op = group.front().operation();
  auto shape = dims(op->getOperand(0));
  auto axes = reducedAxes(op);
  for (Operation& other : region_.getBody().front()) {
    if (&other == op || !isReduction(&other) || depthOf(&other) != depthOf(op)) continue;
    if (dims(other.getOperand(0)) != shape || reducedAxes(&other) != axes || !mayJoin(&other))
      continue;
    Index place = group.front().place;
    place.coords.clear();
    for (int64_t i = 0; i < int64_t(shape.size()); ++i)
      if (!llvm::is_contained(axes, i) || keepsDims(&other)) place.coords.push_back(coords[i]);
    if (!k.find(keyAt(other.getResult(0), place)))
      group.emplace_back(*this, &other, place, group.back().end());
  }
}

Value Evaluator::reduce(Operation* op, const Index& index) {
  const bool together = isShared(op, index);
  // Threads come together in the scope of their row, whoever asks first.
  if (together && k.top() > sharedLevel())
    return k.at(sharedLevel(), [&] { return reduceHere(op, index, true); });
  return reduceHere(op, index, together);
}

Value Evaluator::reduceHere(Operation* op, const Index& index, bool together) {
  auto shape = dims(op->getOperand(0));
  SmallVector<int64_t> axes = reducedAxes(op);
  SmallVector<bool> reduced(shape.size());
  for (int64_t axis : axes) reduced[axis] = true;
  // The free coordinates, under either spelling of the result.
  SmallVector<Coord, 4> coords(shape.size(), Coord(0));
  size_t next = 0;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (!reduced[i]) coords[i] = index.coords[next];
    if (!reduced[i] || keepsDims(op)) ++next;
  }
  llvm::erase_if(axes, [&](int64_t axis) { return shape[axis] == DimExpr(1); });
  const bool uniform = index.uniform();
  SmallVector<DimExpr> box;
  for (int64_t axis : axes) box.push_back(shape[axis]);
  const DimExpr elements = productOf(box);

  SmallVector<Reduction, 2> group;
  group.emplace_back(*this, op, index, 0);
  if (together ? !isMadeBefore(op) : uniform && spreadsLanes() && k.barrier() <= k.ground())
    addPassMates(coords, group);

  const int64_t laneAxis = uniform && spreadsLanes() && !axes.empty() ? axes.back() : -1;
  const int64_t width = laneAxis >= 0 && !together ? laneWidth(op->getOperand(0), laneAxis)
                        : uniform                  ? 1
                                                   : index.width;
  Accumulators acc;
  for (const Reduction& r : group) {
    if (width > 1) acc.vectors.append(r.start(width));
    acc.scalars.append(r.start(1));
  }
  const Values startVectors = acc.vectors, startScalars = acc.scalars;

  auto step = [&](const Index& at, int64_t w, ValueRange a) {
    Values out;
    for (const Reduction& r : group) {
      Value x = eval(r.operand(), at);
      if (w > 1 && !isa<VectorType>(x.getType())) x = k.splat(x, w);
      k.loc = r.location;
      Values lifted = r.lift(x, r.positionAt(at), laneAxis >= 0 ? at.mask : Value(), w);
      out.append(r.combine(r.own(a), lifted));
    }
    return out;
  };
  // The same, lane after lane into accumulators of one element.
  auto fold = [&](const Index& at, int64_t w, ValueRange a) {
    if (w == 1) return step(at, 1, a);
    Values xs;
    for (const Reduction& r : group) xs.push_back(eval(r.operand(), at));
    return k.loop(
        k.index(0), k.index(w), 1, a,
        [&](Value j, ValueRange a) {
          Values out;
          for (auto [r, x] : llvm::zip(group, xs)) {
            Value one = isa<VectorType>(x.getType()) ? k.extract(x, j) : x;
            Coord position = r.positionAt(at);
            if (position.vec)
              position = m.of(k.extract(position.vec, j));
            else if (position.lanes)
              position = position.lanes == k.ramp(w)
                             ? m.sum(position.base(), m.of(j, 1, 0, w - 1), 1)
                             : m.of(k.extract(m.vector(position, w), j));
            k.loc = r.location;
            out.append(r.combine(r.own(a), r.lift(one, position, {}, 1)));
          }
          return out;
        },
        "lanes");
  };
  // A pass in front of the loop that stores may read any of the row; of threads that share a row,
  // only a pass that all of them end before any of them stores.
  const auto storing = storedPosition;
  if (together || (!sharesRows() && k.top() < storedLevel)) storedPosition.reset();
  // The position of no element: a row of one element is read by all threads, one of which stores.
  if (sharesRows() && !storedPosition && (!together || axes.empty())) storedPosition = Coord(-1);
  Pass pass;
  if (axes.size() == 1 && laneAxis + 1 == int64_t(shape.size())) pass.length = shape.back();
  Pass* outerPass = std::exchange(pass_, &pass);

  std::function<Accumulators(size_t, Accumulators)> nest = [&](size_t n, Accumulators a) {
    if (n == axes.size()) {
      Index at{coords, width, uniform ? Value() : index.mask};
      if (width > 1)
        a.vectors = step(at, width, a.vectors);
      else
        a.scalars = step(at, 1, a.scalars);
      return a;
    }
    if (n + 1 == axes.size() && laneAxis >= 0)
      return overLanes(op->getOperand(0), laneAxis, a,
                       [&](const Coord& lane, int64_t w, Value mask, ValueRange v) {
                         Index at{coords, w, mask};
                         at.coords[laneAxis] = lane;
                         pass.lane = lane;
                         pass.level = k.top();
                         pass.done.clear();
                         ++pass.bodies;
                         return step(at, w, v);
                       });
    Values all = a.vectors;
    size_t vectors = all.size();
    all.append(a.scalars);
    Value end = m.scalar(size(shape[axes[n]]));
    all = k.loop(k.integer(end.getType(), 0), end, 1, all, [&](Value i, ValueRange v) {
      Coord saved = coords[axes[n]];
      coords[axes[n]] = m.of(i, 1, 0, lastOf(shape[axes[n]]));
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
  if (!together) {
    acc = nest(0, acc);
  } else if (isMadeBefore(op)) {
    acc.scalars = madeBefore(op, acc.scalars);
  } else if (!(elements == DimExpr(0))) {
    const bool isLast = !axes.empty() && axes.back() + 1 == int64_t(shape.size());
    acc.scalars = overThreads(elements, isLast ? shape.back() : DimExpr(1), acc.scalars,
                              [&](const Coord& lane, int64_t w, Value, ValueRange v) {
                                Index at{coords, w, {}};
                                auto inner = split(lane, box, w);
                                for (auto [axis, c] : llvm::zip(axes, inner)) at.coords[axis] = c;
                                return fold(at, w, v);
                              });
  }
  pass_ = outerPass;
  storedPosition = storing;
  for (auto [tensor, bodies] : pass.stores)
    if (bodies == pass.bodies) keptInRow(tensor);
  if (uniform) reducedElements = reducedElements + elements;

  Value mine;
  const bool hasVectors = ValueRange(acc.vectors) != ValueRange(startVectors),
             hasScalars = ValueRange(acc.scalars) != ValueRange(startScalars);
  for (const Reduction& r : group) {
    Values result;
    if (width > 1 && !uniform) {
      result = Values(r.own(acc.vectors));
    } else {
      if (hasVectors) result = r.fold(r.own(acc.vectors), width);
      if (hasScalars || !hasVectors) {
        ValueRange rest = r.own(acc.scalars);
        result = hasVectors ? r.combine(result, rest) : Values(rest);
      }
    }
    k.loc = r.location;
    if (together) result = combineThreads(r.operation(), result);
    Value v = r.finish(result, k.widened(m.scalar(size(elements))));
    if (r.operation() == op)
      mine = v;
    else
      k.remember(keyAt(r.operation()->getResult(0), r.place), v);
  }
  return mine;
}

}  // namespace lathe::loops
