// SPDX-License-Identifier: Apache-2.0
// Ops that only move elements: the operand is read at another index.
#include "backends/cpu/lowering/region_emitter_evaluator.h"
#include "backends/region_plan.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace lathe::cpu {

Value Evaluator::anyLane(Value mask) {
  auto bits = k.b.getIntegerType(unsigned(widthOf(mask.getType())));
  Value word = k.make<LLVM::BitcastOp>(bits, mask);
  return k.make<arith::CmpIOp>(arith::CmpIPredicate::ne, word, k.integer(bits, 0));
}

// `inside` where the condition holds, else `otherwise`. Memory is touched only in such lanes, and
// nothing at all is read if there are none: a scalar that `inside` loads may lie out of bounds
// then.
Value Evaluator::masked(Value condition, const Index& index,
                        function_ref<Value(const Index&)> inside, Value otherwise) {
  if (!isa<VectorType>(condition.getType())) {
    return k.branch(
        condition, [&] { return KernelBuilder::Values{spread(inside(index), index)}; },
        [&] { return KernelBuilder::Values{otherwise}; })[0];
  }
  Index guarded = index;
  guarded.mask = index.mask ? Value(k.make<arith::AndIOp>(index.mask, condition)) : condition;
  return k.branch(
      anyLane(guarded.mask),
      [&]() -> KernelBuilder::Values {
        Value v = spread(inside(guarded), index);
        return {k.make<arith::SelectOp>(condition, v, otherwise)};
      },
      [&] { return KernelBuilder::Values{otherwise}; })[0];
}

Value Evaluator::concat(ConcatOp op, const Index& index) {
  int64_t axis = op.getAxis(), width = index.width;
  const Coord& c = index.coords[axis];
  SmallVector<DimExpr> starts{0};
  for (Value v : op.getInputs()) starts.push_back(starts.back() + dims(v)[axis]);
  size_t pieces = op.getInputs().size();
  bool fixed = llvm::all_of(starts, [](const DimExpr& e) { return e.asConstant().has_value(); });
  auto piece = [&](size_t i, const Index& where) {
    Index inner = where;
    Coord shifted = m.plus(where.coords[axis], size(DimExpr(0) - starts[i]), where.width);
    DimExpr length = starts[i + 1] - starts[i];
    inner.coords[axis] = m.clip(shifted, 0, length.asConstant().value_or(Coord::kUnbounded) - 1);
    return eval(op.getInputs()[i], inner);
  };
  if (fixed)
    for (size_t i = 0; i < pieces; ++i)
      if (c.lo >= *starts[i].asConstant() && c.hi < *starts[i + 1].asConstant())
        return piece(i, index);
  auto base = c.base ? KernelBuilder::constOf(c.base) : std::nullopt;
  if (fixed && c.lanes && base) {
    // The piece of every lane is known: compute each piece on its own lanes and put them together.
    std::vector<SmallVector<int32_t>> chosen(pieces);
    for (int32_t lane = 0; lane < width; ++lane) {
      size_t i = 0;
      while (i + 1 < pieces && *base + (*c.lanes)[lane] >= *starts[i + 1].asConstant()) ++i;
      chosen[i].push_back(lane);
    }
    Value result;
    for (size_t i = 0; i < pieces; ++i) {
      if (chosen[i].empty()) continue;
      int64_t count = int64_t(chosen[i].size());
      if (count == width) return piece(i, index);
      Value part = piece(i, m.pick(index, chosen[i]));
      if (!isa<VectorType>(part.getType())) part = k.splat(part, count);
      SmallVector<int32_t> spreadLanes(width, 0), merge(width);
      for (int32_t n = 0; n < int32_t(count); ++n) spreadLanes[chosen[i][n]] = n;
      part = k.shuffle(part, part, spreadLanes);
      if (!result) {
        result = part;
        continue;
      }
      for (int32_t lane = 0; lane < width; ++lane)
        merge[lane] = llvm::is_contained(chosen[i], lane) ? int32_t(width) + lane : lane;
      result = k.shuffle(result, part, merge);
    }
    return result;
  }
  // A chunk that no border can cut is asked once, else every lane.
  bool whole = fixed && c.lanes && llvm::all_of(starts, [&](const DimExpr& e) {
                 return *e.asConstant() == 0 || m.insideOne(c, *e.asConstant());
               });
  Value at = whole ? c.base : m.values(c, width);
  std::function<Value(size_t, const Index&)> from = [&](size_t i, const Index& where) -> Value {
    if (i + 1 == pieces) return spread(piece(i, where), where);
    Value border = size(starts[i + 1]);
    if (isa<VectorType>(at.getType())) {
      Value below = k.make<arith::CmpIOp>(arith::CmpIPredicate::slt, at, k.splat(border, width));
      Value from0 =
          k.make<arith::CmpIOp>(arith::CmpIPredicate::sge, at, k.splat(size(starts[i]), width));
      Value rest = k.make<arith::XOrIOp>(below, k.integer(below.getType(), 1));
      Type type = typeAt(tensorType(op.getResult()).getElementType(), where);
      Value zero =
          isa<FloatType>(getElementTypeOrSelf(type)) ? k.number(type, 0) : k.integer(type, 0);
      Value later = masked(rest, where, [&](const Index& w) { return from(i + 1, w); }, zero);
      Value mine = k.make<arith::AndIOp>(below, from0);
      return masked(mine, where, [&](const Index& w) { return piece(i, w); }, later);
    }
    Value below = k.make<arith::CmpIOp>(arith::CmpIPredicate::slt, at, border);
    return k.branch(
        below, [&] { return KernelBuilder::Values{spread(piece(i, where), where)}; },
        [&] { return KernelBuilder::Values{from(i + 1, where)}; })[0];
  };
  return from(0, index);
}

Value Evaluator::pad(PadOp op, const Index& index) {
  auto from = dims(op.getX());
  Index inner = index;
  Value scalarCondition, laneCondition;
  auto require = [&](Value& all, Value one) {
    all = all ? Value(k.make<arith::AndIOp>(all, one)) : one;
  };
  for (size_t i = 0; i < from.size(); ++i) {
    int64_t low = op.getLow()[i], high = op.getHigh()[i];
    if (!low && !high) continue;
    const Coord& c = index.coords[i];
    auto known = from[i].asConstant();
    int64_t length = known.value_or(Coord::kUnbounded);
    inner.coords[i] = m.clip(m.plus(c, k.i64(-low), index.width), 0, length - 1);
    bool sureLow = c.lo >= low, sureHigh = !high || (known && c.hi < low + length);
    if (sureLow && sureHigh && (c.lo > -Coord::kUnbounded)) continue;
    // Below 0 wraps to a large unsigned number: one comparison serves both ends.
    Value at = m.values(inner.coords[i], index.width);
    Value bound = size(from[i]);
    if (!c.uniform()) bound = k.splat(bound, index.width);
    Value ok = k.make<arith::CmpIOp>(arith::CmpIPredicate::ult, at, bound);
    require(c.uniform() ? scalarCondition : laneCondition, ok);
  }
  Index nowhere = index;
  nowhere.coords.clear();
  auto outside = [&] { return spread(eval(op.getValue(), nowhere), index); };
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
  int64_t axis = op.getAxis(), rank = tensorType(op.getIndices()).getRank();
  auto all = ArrayRef<Coord>(index.coords);
  Index where = index.with(SmallVector<Coord, 4>(all.slice(axis, rank)));
  Value at = eval(op.getIndices(), where);
  Type wide = withElementOf(at.getType(), k.b.getI64Type());
  if (at.getType() != wide) at = k.make<arith::ExtSIOp>(wide, at);
  auto vector = dyn_cast<VectorType>(at.getType());
  DimExpr dim = dims(op.getX())[axis];
  Value bound = vector ? k.splat(size(dim), index.width) : size(dim);
  Value bad = k.make<arith::CmpIOp>(arith::CmpIPredicate::uge, at, bound);
  if (vector && index.mask) bad = k.make<arith::AndIOp>(bad, index.mask);
  Value report = k.make<arith::OrIOp>(at, k.integer(wide, int64_t(1) << 62));
  k.branch(
      vector ? anyLane(bad) : bad,
      [&]() -> KernelBuilder::Values {
        if (vector) {
          report = k.make<arith::SelectOp>(bad, report, k.integer(wide, 0));
          report = k.make<LLVM::vector_reduce_umax>(k.b.getI64Type(), report);
        }
        k.make<LLVM::StoreOp>(report, kernel_.getArgument(5), 8, false, false, false,
                              LLVM::AtomicOrdering::monotonic);
        return {};
      },
      [] { return KernelBuilder::Values(); });
  at = k.make<arith::SelectOp>(bad, k.integer(wide, 0), at);
  Coord chosen = vector ? Coord{{}, nullptr, at} : Coord{at};
  chosen.hi = dim.asConstant().value_or(Coord::kUnbounded) - 1;
  SmallVector<Coord, 4> coords(all.take_front(axis));
  coords.push_back(chosen);
  coords.append(all.begin() + axis + rank, all.end());
  auto read = [&](const Index& w) { return eval(op.getX(), w.with(coords)); };
  if (dim.asConstant().value_or(0) > 0) return read(index);
  // Row 0 is there for an index out of range only if the axis is not empty.
  Type type = typeAt(tensorType(op.getX()).getElementType(), index);
  Value zero = isa<FloatType>(getElementTypeOrSelf(type)) ? k.number(type, 0) : k.integer(type, 0);
  Value some = k.make<arith::CmpIOp>(arith::CmpIPredicate::ne, size(dim), k.i64(0));
  return masked(some, index, read, zero);
}

Value Evaluator::iota(IotaOp op, const Index& index) {
  const Coord& c = index.coords[op.getAxis()];
  Type element = op.getDtype();
  Type word = element.isInteger(64) || element.isF64() ? k.b.getI64Type() : k.b.getI32Type();
  Value at;
  if (word.isInteger(64) || c.vec) {
    at = m.values(c, index.width);
    if (!word.isInteger(64)) at = k.make<arith::TruncIOp>(withElementOf(at.getType(), word), at);
  } else {
    at = k.make<arith::TruncIOp>(word, c.base);
    if (c.lanes) at = k.make<arith::AddIOp>(k.splat(at, index.width), k.constants(word, *c.lanes));
  }
  return k.convert(at, word, element);
}

Index Evaluator::reshapeIndex(ReshapeOp op, const Index& index) {
  auto from = dims(op.getX()), to = dims(op.getResult());
  Index out = index;
  out.coords.assign(from.size(), m.constant(0));
  for (const ReshapeRun& run : reshapeRuns(from, to)) {
    if (run.fromEnd - run.from == 1 && run.toEnd - run.to == 1) {
      out.coords[run.from] = index.coords[run.to];
      continue;
    }
    Coord at = m.constant(0);
    DimExpr elements = 1;
    for (size_t n = run.to; n < run.toEnd; ++n)
      at = m.sum(m.times(at, size(to[n]), index.width), index.coords[n], index.width);
    for (size_t n = run.from; n < run.fromEnd; ++n) elements = elements * from[n];
    if (auto count = elements.asConstant()) at = m.clip(at, 0, *count - 1);
    for (size_t n = run.fromEnd; n-- > run.from;) {
      if (n == run.from) {
        out.coords[n] = at;
        break;
      }
      auto [quotient, remainder] = m.divide(at, size(from[n]), index.width);
      out.coords[n] = remainder;
      at = quotient;
    }
  }
  return out;
}

Value Evaluator::shape(Operation* op, const Index& index) {
  int64_t width = index.width;
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
          Coord scaled = m.times(index.coords[i], k.i64(t.getStrides()[i]), width);
          inner.coords[i] = m.plus(scaled, size(exprOf(t.getStarts().getDims()[i])), width);
        }
        return eval(t.getX(), inner);
      })
      .Case([&](ReverseOp t) {
        Index inner = index;
        auto shape = dims(t.getX());
        for (int64_t axis : t.getAxes())
          inner.coords[axis] = m.mirror(index.coords[axis], size(shape[axis] - DimExpr(1)), width);
        return eval(t.getX(), inner);
      })
      .Case([&](ConcatOp t) { return concat(t, index); })
      .Case([&](PadOp t) { return pad(t, index); })
      .Case([&](GatherOp t) { return gather(t, index); })
      .Case([&](IotaOp t) { return iota(t, index); });
}

}  // namespace lathe::cpu
