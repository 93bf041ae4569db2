// SPDX-License-Identifier: Apache-2.0
#include "passes/patterns/causal.h"

#include "passes/match.h"

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
  int64_t offset = 0;
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

bool read(Value v, int64_t factor, Sum& sum, SmallVectorImpl<Operation*>& ops) {
  auto type = tensorType(v);
  if (auto number = splatValue(v)) {
    sum.offset += factor * int64_t(*number);
    return double(int64_t(*number)) == *number;
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
  if (isa_and_nonnull<BroadcastOp, CastOp>(def)) {
    ops.push_back(def);
    return read(def->getOperand(0), factor, sum, ops);
  }
  if (auto reshape = dyn_cast_or_null<ReshapeOp>(def)) {
    ops.push_back(def);
    Sum inner;
    if (!read(reshape.getX(), factor, inner, ops)) return false;
    for (Term& t : inner.terms) {
      auto axis = mapAxis(tensorType(reshape.getX()), type, t.axis);
      if (!axis) return false;
      t.axis = *axis;
      sum.terms.push_back(t);
    }
    sum.offset += inner.offset;
    return true;
  }
  if (type.getRank() != 1 || !type.getElementType().isSignlessInteger()) return false;
  sum.terms.push_back({0, factor, v});
  return true;
}

}  // namespace

std::optional<CausalMask> readCausal(Value condition, bool hidden, RankedTensorType scores) {
  CausalMask mask;
  while (auto negated = condition.getDefiningOp<LogicalNotOp>()) {
    mask.ops.push_back(negated);
    condition = negated.getX();
    hidden = !hidden;
  }
  auto compare = condition.getDefiningOp<CompareOp>();
  if (!compare) return std::nullopt;
  mask.ops.push_back(compare);
  Sum sum;  // of a - b
  if (!read(compare.getA(), 1, sum, mask.ops) || !read(compare.getB(), -1, sum, mask.ops))
    return std::nullopt;

  // Visible where sign * sum + strict <= 0.
  int64_t sign = 1, strict = 0;
  switch (compare.getPredicate()) {
    case Predicate::le:
      break;
    case Predicate::lt:
      strict = 1;
      break;
    case Predicate::ge:
      sign = -1;
      break;
    case Predicate::gt:
      sign = -1, strict = 1;
      break;
    default:
      return std::nullopt;
  }
  if (hidden) {  // not (e <= 0) is 1 - e <= 0
    sign = -sign;
    strict = 1 - strict;
  }
  int64_t key = 0, query = 0;
  for (const Term& t : sum.terms) {
    int64_t factor = sign * t.factor;
    if (t.positions) {
      bool alongBatch = t.axis == scores.getRank() - 1 || isOne(dimOf(tensorType(t.positions), 0));
      if (factor != -1 || mask.positions || !alongBatch) return std::nullopt;
      mask.positions = t.positions;
    } else if (t.axis == 0) {
      key += factor;
    } else if (t.axis == 1) {
      query += factor;
    } else {
      return std::nullopt;
    }
  }
  bool oneQuery = isOne(dimOf(scores, scores.getRank() - 2));
  if (key != 1 || !(query == -1 || (query == 0 && oneQuery)) || sign * sum.offset + strict != 0)
    return std::nullopt;
  mask.alignment = mask.positions ? Causal::positions : Causal::top_left;
  return mask;
}

}  // namespace lathe
