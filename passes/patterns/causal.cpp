// SPDX-License-Identifier: Apache-2.0
#include "passes/patterns/causal.h"

#include <cmath>

#include "lathe/passes/match.h"
#include "lathe/runtime/dim_expr.h"

using namespace mlir;

namespace lathe {
namespace {

// A sum of ramps (0, 1, 2, ... along an axis), of position vectors laid along an axis, and of a
// number. Axes count from the back.
struct Term {
  int64_t axis;
  int64_t factor;
  Value positions;  // null for a ramp
};
struct Sum {
  SmallVector<Term, 4> terms;
  DimExpr offset;
};

// The axis of the same elements after a reshape that only adds or drops literal 1s.
std::optional<int64_t> mapAxis(RankedTensorType from, RankedTensorType to, int64_t axisFromBack) {
  auto long_ = [](RankedTensorType t) {
    SmallVector<int64_t> axes;
    for (int64_t i = 0; i < t.getRank(); ++i)
      if (!isOne(dimOf(t, i))) axes.push_back(i);
    return axes;
  };
  auto a = long_(from), b = long_(to);
  if (a.size() != b.size()) return std::nullopt;
  int64_t axis = from.getRank() - 1 - axisFromBack;
  for (auto [i, j] : llvm::zip(a, b)) {
    if (!dimOf(from, i) || dimOf(from, i) != dimOf(to, j)) return std::nullopt;
    if (i == axis) return to.getRank() - 1 - j;
  }
  // An axis of one element may lie anywhere; the first is where a batch of one is looked for.
  return to.getRank() - 1;
}

// A term of a value in front of a reshape, transposition or slice as one of the value behind it;
// what a slice starts with goes into the offset.
bool moveThrough(Operation* op, Term& t, DimExpr& offset) {
  auto from = tensorType(op->getOperand(0)), to = tensorType(op->getResult(0));
  if (isa<ReshapeOp>(op)) {
    auto axis = mapAxis(from, to, t.axis);
    if (axis) t.axis = *axis;
    return axis.has_value();
  }
  int64_t axis = from.getRank() - 1 - t.axis;
  if (auto turn = dyn_cast<TransposeOp>(op)) {
    auto permutation = turn.getPermutation();
    t.axis = to.getRank() - 1 - (llvm::find(permutation, axis) - permutation.begin());
    return true;
  }
  auto slice = cast<SliceOp>(op);
  if (slice.getStrides()[axis] != 1) return false;
  if (t.positions) return from.getDimSize(axis) == to.getDimSize(axis) && !from.isDynamicDim(axis);
  offset = offset + exprOf(slice.getStarts().getDims()[axis]) * DimExpr(t.factor);
  return true;
}

// A ramp along an axis of one element is what it starts with, wherever that is stretched to.
bool isPoint(const Term& t, RankedTensorType type) {
  return !t.positions && isOne(dimOf(type, type.getRank() - 1 - t.axis));
}

// A constant that sums with indices do not leave the range of: of f32, in which a ramp is exact up
// to 2^24, or of i32.
std::optional<int64_t> smallNumber(Value v) {
  auto number = splatValue(v);
  double most = tensorType(v).getElementType().isF32() ? 0x1p23 : 0x1p30;
  if (!number || std::abs(*number) > most || double(int64_t(*number)) != *number)
    return std::nullopt;
  return int64_t(*number);
}

// A condition of more ops is none that anybody spells: few may be reached by many paths.
constexpr size_t kMostOps = 512;

// The number that all elements of an integer vector are, computed or not.
std::optional<int64_t> uniform(Value v, SmallVectorImpl<Operation*>& ops) {
  if (ops.size() > kMostOps || !isa<IntegerType>(tensorType(v).getElementType()))
    return std::nullopt;
  if (auto number = smallNumber(v)) return number;
  Operation* def = v.getDefiningOp();
  const bool moves = isa_and_nonnull<BroadcastOp, ReshapeOp, SliceOp, TransposeOp>(def);
  if (!moves && !isa_and_nonnull<MulOp, AddOp, SubOp>(def)) return std::nullopt;
  ops.push_back(def);
  auto a = uniform(def->getOperand(0), ops);
  if (moves) return a;
  auto b = uniform(def->getOperand(1), ops);
  // 0 times anything finite; an integer is.
  if (isa<MulOp>(def) && ((a && *a == 0) || (b && *b == 0))) {
    if (!a && isa_and_nonnull<IotaOp>(def->getOperand(0).getDefiningOp()))
      ops.push_back(def->getOperand(0).getDefiningOp());
    if (!b && isa_and_nonnull<IotaOp>(def->getOperand(1).getDefiningOp()))
      ops.push_back(def->getOperand(1).getDefiningOp());
    return 0;
  }
  if (!a || !b) return std::nullopt;
  // Neither operand is above 2^30, so 64 bits hold every result.
  int64_t value = isa<MulOp>(def) ? *a * *b : isa<AddOp>(def) ? *a + *b : *a - *b;
  return std::abs(value) <= int64_t(1) << 30 ? std::optional(value) : std::nullopt;
}

// A dim as a value: the sum of as many ones, or the last element of a ramp.
std::optional<DimExpr> readDim(Operation* def, SmallVectorImpl<Operation*>& ops) {
  if (auto sum = dyn_cast<ReduceSumOp>(def)) {
    std::optional<DimExpr> count = DimExpr(1);
    for (int64_t axis : sum.getAxes()) {
      auto dim = dimExprOf(tensorType(sum.getX()), axis);
      if (!dim) return std::nullopt;
      count = *count * *dim;
    }
    ops.push_back(def);
    auto each = uniform(sum.getX(), ops);
    if (!each) return std::nullopt;
    return *count * DimExpr(*each);
  }
  auto top = dyn_cast<ReduceMaxOp>(def);
  auto ramp = top ? top.getX().getDefiningOp<IotaOp>() : IotaOp();
  if (!ramp || !llvm::is_contained(top.getAxes(), int64_t(ramp.getAxis()))) return std::nullopt;
  auto dim = dimExprOf(tensorType(top.getX()), int64_t(ramp.getAxis()));
  if (!dim) return std::nullopt;
  ops.append({def, ramp});
  return *dim - DimExpr(1);
}

// Holds every index that an i64 one may be, up to 2^24.
bool holdsIndices(Type element) {
  return element.isF32() || element.isF64() || element.isSignlessInteger(32) ||
         element.isSignlessInteger(64);
}

bool read(Value v, int64_t factor, Sum& sum, SmallVectorImpl<Operation*>& ops) {
  auto type = tensorType(v);
  if (ops.size() > kMostOps || !holdsIndices(type.getElementType())) return false;
  if (splatElement(v)) {
    auto number = smallNumber(v);
    if (number) sum.offset = sum.offset + DimExpr(factor * *number);
    return number.has_value();
  }
  Operation* def = v.getDefiningOp();
  if (auto ramp = dyn_cast_or_null<IotaOp>(def)) {
    ops.push_back(def);
    // One element: the ramp is 0.
    if (!isOne(dimOf(type, int64_t(ramp.getAxis()))))
      sum.terms.push_back({type.getRank() - 1 - int64_t(ramp.getAxis()), factor, {}});
    return true;
  }
  if (isa_and_nonnull<AddOp, SubOp>(def)) {
    ops.push_back(def);
    return read(def->getOperand(0), factor, sum, ops) &&
           read(def->getOperand(1), isa<SubOp>(def) ? -factor : factor, sum, ops);
  }
  if (isa_and_nonnull<NegOp>(def)) {
    ops.push_back(def);
    return read(def->getOperand(0), -factor, sum, ops);
  }
  if (isa_and_nonnull<BroadcastOp, CastOp>(def)) {
    ops.push_back(def);
    const size_t first = sum.terms.size();
    if (!read(def->getOperand(0), factor, sum, ops)) return false;
    // Values that a program is given may lie beyond a narrower type, which wraps them.
    const bool narrows =
        tensorType(def->getOperand(0)).getElementTypeBitWidth() > type.getElementTypeBitWidth();
    return !narrows || std::none_of(sum.terms.begin() + first, sum.terms.end(),
                                    [](const Term& t) { return bool(t.positions); });
  }
  if (isa_and_nonnull<ReduceSumOp, ReduceMaxOp>(def)) {
    auto dim = readDim(def, ops);
    if (dim) sum.offset = sum.offset + *dim * DimExpr(factor);
    return dim.has_value();
  }
  if (isa_and_nonnull<ReshapeOp, SliceOp, TransposeOp>(def)) {
    ops.push_back(def);
    Sum inner;
    if (!read(def->getOperand(0), factor, inner, ops)) return false;
    for (Term t : inner.terms) {
      if (!moveThrough(def, t, inner.offset)) return false;
      if (!isPoint(t, type)) sum.terms.push_back(t);
    }
    sum.offset = sum.offset + inner.offset;
    return true;
  }
  if (type.getRank() != 1 || !type.getElementType().isSignlessInteger()) return false;
  sum.terms.push_back({0, factor, v});
  return true;
}

}  // namespace

std::optional<RampBound> readBound(Value condition, bool hidden, RankedTensorType scores) {
  RampBound bound;
  while (auto negated = condition.getDefiningOp<LogicalNotOp>()) {
    bound.ops.push_back(negated);
    condition = negated.getX();
    hidden = !hidden;
  }
  // A box of a larger table, or the same laid out anew.
  SmallVector<Operation*> layout;
  while (isa_and_nonnull<BroadcastOp, ReshapeOp, SliceOp, TransposeOp>(condition.getDefiningOp())) {
    layout.push_back(condition.getDefiningOp());
    condition = layout.back()->getOperand(0);
  }
  bound.ops.append(layout.begin(), layout.end());
  auto compare = condition.getDefiningOp<CompareOp>();
  if (!compare) return std::nullopt;
  bound.ops.push_back(compare);
  Sum sum;  // of a - b
  if (!read(compare.getA(), 1, sum, bound.ops) || !read(compare.getB(), -1, sum, bound.ops))
    return std::nullopt;
  for (Operation* op : llvm::reverse(layout)) {
    if (isa<BroadcastOp>(op)) continue;
    for (Term& t : sum.terms)
      if (!moveThrough(op, t, sum.offset)) return std::nullopt;
    llvm::erase_if(sum.terms,
                   [&](const Term& t) { return isPoint(t, tensorType(op->getResult(0))); });
  }

  // Visible where sign * sum + strict <= 0.
  int64_t sign = 1, strict = 0;
  switch (compare.getPredicate()) {
    case Compare::le:
      break;
    case Compare::lt:
      strict = 1;
      break;
    case Compare::ge:
      sign = -1;
      break;
    case Compare::gt:
      sign = -1, strict = 1;
      break;
    default:
      return std::nullopt;
  }
  if (hidden) {  // not (e <= 0) is 1 - e <= 0
    sign = -sign;
    strict = 1 - strict;
  }
  int64_t key = 0, query = 0, position = 0;
  for (const Term& t : sum.terms) {
    int64_t factor = sign * t.factor;
    if (t.positions) {
      const StringAttr count = dimOf(tensorType(t.positions), 0);
      const bool alongBatch = t.axis == scores.getRank() - 1 || isOne(count);
      if (bound.positions || !alongBatch || count != dimOf(scores, 0)) return std::nullopt;
      bound.positions = t.positions;
      position = factor;
    } else if (t.axis == 0) {
      key += factor;
    } else if (t.axis == 1) {
      query += factor;
    } else {
      return std::nullopt;
    }
  }
  bool oneQuery = isOne(dimOf(scores, scores.getRank() - 2));
  bool fits = (key == 1 || key == -1) && (query == -key || (query == 0 && oneQuery)) &&
              (!bound.positions || position == -key);
  if (!fits) return std::nullopt;
  DimExpr rest = sum.offset * DimExpr(sign) + DimExpr(strict);
  bound.upper = key == 1;
  bound.offset = bound.upper ? DimExpr(0) - rest : rest;
  return bound;
}

Causal alignmentOf(const RampBound& upper, RankedTensorType scores) {
  if (!upper.upper) return Causal::none;
  if (upper.offset == DimExpr(0)) return upper.positions ? Causal::positions : Causal::top_left;
  auto queries = dimExprOf(scores, scores.getRank() - 2),
       keys = dimExprOf(scores, scores.getRank() - 1);
  bool atEnd = !upper.positions && queries && keys && upper.offset == *keys - *queries;
  return atEnd ? Causal::bottom_right : Causal::none;
}

int64_t windowOf(const RampBound& upper, const RampBound& lower) {
  if (!upper.upper || lower.upper || upper.positions != lower.positions) return 0;
  // j >= i + lower: of the keys up to i + upper these are the last upper - lower + 1.
  auto width = (upper.offset - lower.offset + DimExpr(1)).asConstant();
  return width && *width > 0 ? *width : 0;
}

}  // namespace lathe
