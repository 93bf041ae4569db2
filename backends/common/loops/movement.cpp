// SPDX-License-Identifier: Apache-2.0
// Ops that only move elements: the operand is read at another index.
#include "backends/common/loops/evaluator.h"
#include "lathe/backends/region_plan.h"
#include "llvm/ADT/TypeSwitch.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace lathe::loops {

Value Evaluator::anyLane(Value mask) {
  return k.make<vector::ReductionOp>(vector::CombiningKind::OR, mask);
}

// `inside` where the condition holds, else `otherwise`. Memory is touched only in such lanes, and
// nothing at all is read if there are none: a scalar that `inside` loads may lie out of bounds
// then.
Value Evaluator::masked(Value condition, const Index& index,
                        function_ref<Value(const Index&)> inside, Value otherwise) {
  if (!isa<VectorType>(condition.getType())) {
    return k.branch(
        condition, [&] { return Values{spread(inside(index), index)}; },
        [&] { return Values{otherwise}; })[0];
  }
  Index guarded = index;
  guarded.mask = index.mask ? Value(k.make<arith::AndIOp>(index.mask, condition)) : condition;
  return k.branch(
      anyLane(guarded.mask),
      [&]() -> Values {
        Value v = spread(inside(guarded), index);
        return {k.make<arith::SelectOp>(condition, v, otherwise)};
      },
      [&] { return Values{otherwise}; })[0];
}

Value Evaluator::concat(ConcatOp op, const Index& index) {
  const int64_t axis = op.getAxis(), width = index.width;
  const Coord& c = index.coords[axis];
  SmallVector<Value> inputs;
  llvm::copy_if(op.getInputs(), std::back_inserter(inputs), [](Value v) { return !isEmpty(v); });
  SmallVector<DimExpr> starts{0};
  for (Value v : inputs) starts.push_back(starts.back() + dims(v)[axis]);
  const size_t pieces = inputs.size();
  bool fixed = llvm::all_of(starts, [](const DimExpr& e) { return e.asConstant().has_value(); });
  auto piece = [&](size_t i, const Index& where) {
    Index inner = where;
    Coord shifted = m.minus(where.coords[axis], size(starts[i]), where.width);
    inner.coords[axis] = m.clip(shifted, 0, lastOf(starts[i + 1] - starts[i]));
    return eval(inputs[i], inner);
  };
  for (size_t i = 0; i < pieces; ++i) {
    auto from = starts[i].asConstant(), to = starts[i + 1].asConstant();
    if (from && to && c.lo >= *from && c.hi < *to) return piece(i, index);
  }
  if (fixed && c.lanes && c.terms.empty()) {
    // The piece of every lane is known: compute each piece on its own lanes and put them together.
    std::vector<SmallVector<int32_t>> chosen(pieces);
    for (int32_t lane = 0; lane < width; ++lane) {
      size_t i = 0;
      while (i + 1 < pieces && c.constant + (*c.lanes)[lane] >= *starts[i + 1].asConstant()) ++i;
      chosen[i].push_back(lane);
    }
    Value result;
    int64_t have = 0;  // lanes of the result so far
    SmallVector<int32_t> taken(width, 0);
    for (size_t i = 0; i < pieces; ++i) {
      if (chosen[i].empty()) continue;
      if (int64_t(chosen[i].size()) == width) return piece(i, index);
      SmallVector<int32_t> lanes = chosen[i];
      // Types of a text are vectors of a power of two.
      while (k.style == IndexStyle::narrow && !llvm::isPowerOf2_64(lanes.size()))
        lanes.push_back(lanes.back());
      const int64_t count = int64_t(lanes.size());
      const Index picked = m.pick(index, lanes);
      auto ofPiece = [&](const Index& where) { return piece(i, where); };
      Value part;
      if (index.mask && picked.uniform()) {
        // One element for all of these lanes, which none of them may want.
        Value wanted = count > 1 ? anyLane(k.shuffle(index.mask, index.mask, lanes))
                                 : k.extract(index.mask, lanes[0]);
        Type type = typeAt(tensorType(op.getResult()).getElementType(), picked);
        part = masked(wanted, picked, ofPiece, k.none(type));
      } else {
        part = ofPiece(picked);
      }
      if (!isa<VectorType>(part.getType())) part = k.splat(part, count);
      for (auto [n, lane] : llvm::enumerate(chosen[i])) taken[lane] = int32_t(have + n);
      result = result ? k.shuffle(result, part, taken) : part;
      if (have) std::iota(taken.begin(), taken.end(), 0);
      have = have ? width : count;
    }
    return result;
  }
  // A chunk that no border can cut is asked once, else every lane.
  const bool whole = fixed && c.lanes && llvm::all_of(starts, [&](const DimExpr& e) {
                       return *e.asConstant() == 0 || m.insideOne(c, *e.asConstant());
                     });
  const Coord at = whole ? c.base() : c;
  std::function<Value(size_t, const Index&)> from = [&](size_t i, const Index& where) -> Value {
    if (i + 1 == pieces) return spread(piece(i, where), where);
    Value below = m.compare(arith::CmpIPredicate::slt, at, size(starts[i + 1]), width);
    if (isa<VectorType>(below.getType())) {
      Value from0 = m.compare(arith::CmpIPredicate::sge, at, size(starts[i]), width);
      Value rest = k.make<arith::XOrIOp>(below, k.integer(below.getType(), 1));
      Value zero = k.none(typeAt(tensorType(op.getResult()).getElementType(), where));
      Value later = masked(rest, where, [&](const Index& w) { return from(i + 1, w); }, zero);
      Value mine = k.make<arith::AndIOp>(below, from0);
      return masked(mine, where, [&](const Index& w) { return piece(i, w); }, later);
    }
    return k.branch(
        below, [&] { return Values{spread(piece(i, where), where)}; },
        [&] { return Values{from(i + 1, where)}; })[0];
  };
  return from(0, index);
}

Value Evaluator::pad(PadOp op, const Index& index) {
  Index nowhere = index;
  nowhere.coords.clear();
  auto outside = [&] { return spread(eval(op.getValue(), nowhere), index); };
  if (isEmpty(op.getX())) return outside();
  auto from = dims(op.getX());
  Index inner = index;
  Value scalarCondition, laneCondition;
  for (size_t i = 0; i < from.size(); ++i) {
    int64_t low = op.getLow()[i], high = op.getHigh()[i];
    if (!low && !high) continue;
    const Coord& c = index.coords[i];
    auto known = from[i].asConstant();
    Coord shifted = m.minus(c, low, index.width);
    inner.coords[i] = m.clip(shifted, 0, lastOf(from[i]));
    const bool sureLow = c.lo >= low, sureHigh = !high || (known && c.hi < low + *known);
    if (sureLow && sureHigh) continue;
    // Below 0 wraps to a large unsigned number: one comparison serves both ends.
    Value ok = m.compare(arith::CmpIPredicate::ult, shifted, size(from[i]), index.width);
    Value& all = c.uniform() ? scalarCondition : laneCondition;
    all = all ? Value(k.make<arith::AndIOp>(all, ok)) : ok;
  }
  auto lanes = [&](const Index& where) -> Value {
    Index at = where.with(inner.coords);
    if (!laneCondition) return spread(eval(op.getX(), at), where);
    return masked(
        laneCondition, where, [&](const Index& w) { return eval(op.getX(), w.with(inner.coords)); },
        outside());
  };
  if (!scalarCondition) return lanes(index);
  return masked(scalarCondition, index, lanes, outside());
}

Value Evaluator::gather(GatherOp op, const Index& index) {
  const int64_t axis = op.getAxis(), rank = tensorType(op.getIndices()).getRank();
  auto all = ArrayRef<Coord>(index.coords);
  Index where = index.with(SmallVector<Coord, 4>(all.slice(axis, rank)));
  Value id = eval(op.getIndices(), where);
  Type wide = withElementOf(id.getType(), k.b.getI64Type());
  auto vector = dyn_cast<VectorType>(id.getType());
  DimExpr dim = dims(op.getX())[axis];
  // Row 0 stands in for an index out of range, which is told to the host. Gathers of one row share
  // its check.
  const Coord length = size(dim);
  size_t level = std::max(k.barrier(), k.levelOf(id));
  if (vector && index.mask) level = std::max(level, k.levelOf(index.mask));
  Value chosen = k.shared(level, keyOf("row", id, index.mask, length), [&]() -> Value {
    Value at = id.getType() == wide ? id : Value(k.make<arith::ExtSIOp>(wide, id));
    Value bound = k.widened(m.scalar(length));
    if (vector) bound = k.splat(bound, index.width);
    Value bad = k.make<arith::CmpIOp>(arith::CmpIPredicate::uge, at, bound);
    if (vector && index.mask) bad = k.make<arith::AndIOp>(bad, index.mask);
    report(op, bad, at);
    return k.make<arith::SelectOp>(bad, k.integer(wide, 0), at);
  });
  Coord picked = m.of(chosen, 1, 0, lastOf(dim));
  if (vector) {
    picked = Coord();
    picked.vec = chosen;
    picked.hi = lastOf(dim);
  }
  SmallVector<Coord, 4> coords(all.take_front(axis));
  coords.push_back(picked);
  coords.append(all.begin() + axis + rank, all.end());
  auto read = [&](const Index& w) { return eval(op.getX(), w.with(coords)); };
  if (dim.asConstant().value_or(0) > 0) return read(index);
  // Row 0 is there for an index out of range only if the axis is not empty.
  Value zero = k.none(typeAt(tensorType(op.getX()).getElementType(), index));
  Value some = m.compare(arith::CmpIPredicate::ne, length, 0, 1);
  return masked(some, index, read, zero);
}

Value Evaluator::iota(IotaOp op, const Index& index) {
  const Coord& c = index.coords[op.getAxis()];
  Type element = op.getDtype();
  // Ramps of 32 bits wrap as such.
  const bool wide = element.isInteger(64) || element.isF64();
  Type word = wide ? k.b.getI64Type() : k.b.getI32Type();
  Value at = m.values(c, index.width);
  Type type = withElementOf(at.getType(), word);
  if (wide)
    at = k.widened(at);
  else if (at.getType() != type)
    at = k.make<arith::TruncIOp>(type, at);
  return k.convert(at, word, element);
}

Index Evaluator::reshapeIndex(ReshapeOp op, const Index& index) {
  auto from = dims(op.getX()), to = dims(op.getResult());
  Index out = index;
  out.coords.assign(from.size(), Coord(0));
  for (const ReshapeRun& run : reshapeRuns(from, to)) {
    const size_t width = run.fromEnd - run.from, count = run.toEnd - run.to;
    if (width == 1 && count == 1) {
      out.coords[run.from] = index.coords[run.to];
      continue;
    }
    Index part = index;
    part.coords.assign(index.coords.begin() + run.to, index.coords.begin() + run.toEnd);
    Coord at = linear(ArrayRef<DimExpr>(to).slice(run.to, count), part);
    const auto box = ArrayRef<DimExpr>(from).slice(run.from, width);
    if (auto elements = productOf(box).asConstant()) at = m.clip(at, 0, *elements - 1);
    auto inner = split(at, box, index.width);
    llvm::copy(inner, out.coords.begin() + run.from);
  }
  return out;
}

Value Evaluator::movement(Operation* op, const Index& index) {
  const int64_t width = index.width;
  return TypeSwitch<Operation*, Value>(op)
      .Case([&](TransposeOp t) {
        Index inner = index;
        for (auto [i, p] : llvm::enumerate(t.getPermutation())) inner.coords[p] = index.coords[i];
        return eval(t.getX(), inner);
      })
      .Case([&](BroadcastOp t) { return eval(t.getX(), broadcastIndex(t.getX(), index)); })
      .Case([&](ReshapeOp t) {
        return eval(t.getX(), flat_ ? broadcastIndex(t.getX(), index) : reshapeIndex(t, index));
      })
      .Case([&](SliceOp t) {
        Index inner = index;
        for (size_t i = 0; i < inner.coords.size(); ++i) {
          Coord scaled = m.times(index.coords[i], t.getStrides()[i], width);
          inner.coords[i] = m.sum(scaled, size(exprOf(t.getStarts().getDims()[i])), width);
        }
        return eval(t.getX(), inner);
      })
      .Case([&](ReverseOp t) {
        Index inner = index;
        auto shape = dims(t.getX());
        for (int64_t axis : t.getAxes())
          inner.coords[axis] = m.minus(size(shape[axis] - DimExpr(1)), index.coords[axis], width);
        return eval(t.getX(), inner);
      })
      .Case([&](ConcatOp t) { return concat(t, index); })
      .Case([&](PadOp t) { return pad(t, index); })
      .Case([&](GatherOp t) { return gather(t, index); })
      .Case([&](IotaOp t) { return iota(t, index); });
}

}  // namespace lathe::loops
