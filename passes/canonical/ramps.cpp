// SPDX-License-Identifier: Apache-2.0
// Comparisons and tables of indices. All rewrites are exact.
//
//   c < x, ramp < x         x > c, x > ramp            constants and index ramps on the right
//   a > b, a >= b           b < a, b <= a              where both sides are of one kind
//   i < j + 1, i - j <= 0   i <= j                     of integers made of index ramps
//   gather(table, i)        a ramp or a number         where its elements follow from their places
#include "passes/canonical/ramps.h"

#include <array>
#include <cmath>

#include "passes/canonical/canonical.h"
#include "passes/canonical/index_values.h"
#include "passes/canonical/values.h"
#include "passes/rewrite/asked_once.h"

using namespace mlir;

namespace lathe {
namespace {

// Lowest and highest value of sums and differences of index ramps and numbers; nothing for anything
// else, nor for what may wrap. An axis of a named size counts as kLongestAxis: what follows from
// that is not known for certain.
struct Reach {
  int64_t low, high;
  bool knowsLow = true, knowsHigh = true;
};
constexpr int64_t kLongestAxis = int64_t(1) << 29;
using Reaches = AskedOnce<std::optional<Reach>>;
std::optional<Reach> reachOf(Value v, Reaches& asked) {
  if (isFloat(v) || elementOf(v).getIntOrFloatBitWidth() < 32) return std::nullopt;
  if (auto c = constantOf(v)) {
    if (std::abs(*c) > 0x1p30) return std::nullopt;
    return Reach{int64_t(*c), int64_t(*c)};
  }
  Operation* def = v.getDefiningOp();
  if (auto ramp = dyn_cast_or_null<IotaOp>(def)) {
    auto type = tensorType(v);
    int64_t axis = int64_t(ramp.getAxis());
    if (type.isDynamicDim(axis)) return Reach{0, kLongestAxis, true, false};
    return Reach{0, type.getDimSize(axis) - 1};
  }
  return asked.of(v, [&]() -> std::optional<Reach> {
    if (isa_and_nonnull<ReshapeOp, BroadcastOp>(def)) return reachOf(def->getOperand(0), asked);
    if (!isa_and_nonnull<AddOp, SubOp>(def)) return std::nullopt;
    auto a = reachOf(def->getOperand(0), asked), b = reachOf(def->getOperand(1), asked);
    if (!a || !b) return std::nullopt;
    if (isa<SubOp>(def)) b = Reach{-b->high, -b->low, b->knowsHigh, b->knowsLow};
    Reach sum{a->low + b->low, a->high + b->high, a->knowsLow && b->knowsLow,
              a->knowsHigh && b->knowsHigh};
    const int64_t end = elementOf(v).isInteger(32) ? int64_t(1) << 31 : int64_t(1) << 60;
    return sum.low >= -end && sum.high < end ? std::optional(sum) : std::nullopt;
  });
}
// Longer sums are not followed: masks of libraries have a few dozen ops.
constexpr size_t kMostSums = 512;
std::optional<Reach> reachOf(Value v) {
  Reaches asked(kMostSums, std::nullopt);
  return reachOf(v, asked);
}

// The highest of a named size is missing.
struct Range {
  int64_t low;
  std::optional<int64_t> high;
};
std::optional<Range> rangeOf(Value v) {
  auto reach = reachOf(v);
  if (!reach || !reach->knowsLow) return std::nullopt;
  return Range{reach->low, reach->knowsHigh ? std::optional(reach->high) : std::nullopt};
}

bool isRamp(Value v) { return !constantOf(v) && reachOf(v); }
// What stands further right.
int rankOf(Value v) { return splatElement(v) ? 2 : isRamp(v) ? 1 : 0; }

Compare mirrored(Compare p) {
  switch (p) {
    case Compare::lt:
      return Compare::gt;
    case Compare::le:
      return Compare::ge;
    case Compare::gt:
      return Compare::lt;
    case Compare::ge:
      return Compare::le;
    default:
      return p;
  }
}

Value orderSides(CompareOp op, OpMaker& m) {
  int a = rankOf(op.getA()), b = rankOf(op.getB());
  Compare p = op.getPredicate();
  bool greater = p == Compare::gt || p == Compare::ge;
  if (a < b || (a == b && !greater)) return {};
  return m.compare(mirrored(p), op.getB(), op.getA());
}

// lt with a 1 on one side is le without, and the reverse.
Value dropOne(CompareOp op, OpMaker& m) {
  Compare p = op.getPredicate();
  if ((p != Compare::lt && p != Compare::le) || !isRamp(op.getA()) || !isRamp(op.getB())) return {};
  auto left = withConstant<AddOp>(op.getA()), right = withConstant<AddOp>(op.getB());
  auto made = [&](Compare q, Value a, Value b) {
    return broadcastTo(op, {a, b}) ? m.compare(q, a, b) : Value();
  };
  if (p == Compare::lt && right && right->c == 1) return made(Compare::le, op.getA(), right->x);
  if (p == Compare::lt && left && left->c == -1) return made(Compare::le, left->x, op.getB());
  if (p == Compare::le && right && right->c == -1) return made(Compare::lt, op.getA(), right->x);
  if (p == Compare::le && left && left->c == 1) return made(Compare::lt, left->x, op.getB());
  return {};
}

// i - j compared with 0 or 1 is i compared with j.
Value splitDifference(CompareOp op, OpMaker& m) {
  auto difference = op.getA().getDefiningOp<SubOp>();
  auto c = constantOf(op.getB());
  if (!difference || !c || !isRamp(difference) || !isRamp(difference.getA()) ||
      !isRamp(difference.getB()) || !broadcastTo(op, {difference.getA(), difference.getB()}))
    return {};
  Compare p = op.getPredicate();
  if (*c == 1 && p == Compare::lt)
    p = Compare::le;
  else if (*c == 1 && p == Compare::ge)
    p = Compare::gt;
  else if (*c == -1 && p == Compare::gt)
    p = Compare::ge;
  else if (*c == -1 && p == Compare::le)
    p = Compare::lt;
  else if (*c != 0)
    return {};
  return m.compare(p, difference.getA(), difference.getB());
}

// Of ramps inside and outside their range.
std::optional<bool> provedByRange(Value condition) {
  if (auto c = constantOf(condition)) return *c != 0;
  if (auto stretched = condition.getDefiningOp<BroadcastOp>())
    return provedByRange(stretched.getX());
  auto op = condition.getDefiningOp<CompareOp>();
  if (!op) return std::nullopt;
  auto a = rangeOf(op.getA()), b = rangeOf(op.getB());
  if (!a || !b) return std::nullopt;
  auto below = [](const std::optional<int64_t>& x, int64_t y) { return x && *x < y; };
  auto notAbove = [](const std::optional<int64_t>& x, int64_t y) { return x && *x <= y; };
  switch (op.getPredicate()) {
    case Compare::lt:
      if (below(a->high, b->low)) return true;
      return notAbove(b->high, a->low) ? std::optional(false) : std::nullopt;
    case Compare::le:
      if (notAbove(a->high, b->low)) return true;
      return below(b->high, a->low) ? std::optional(false) : std::nullopt;
    case Compare::gt:
      if (below(b->high, a->low)) return true;
      return notAbove(a->high, b->low) ? std::optional(false) : std::nullopt;
    case Compare::ge:
      if (notAbove(b->high, a->low)) return true;
      return below(a->high, b->low) ? std::optional(false) : std::nullopt;
    default:
      return std::nullopt;
  }
}

// A gather of indices that are known by their places, such as a table of positions flattened and
// read row by row, is an index ramp or a number.
Value knownGather(GatherOp op, OpMaker& m) {
  auto integer = dyn_cast<IntegerType>(elementOf(op));
  if (!integer || integer.getWidth() < 32) return {};
  auto known = indexValueOf(op);
  if (!known) return {};
  std::optional<size_t> along;
  int64_t offset = 0;
  for (auto& [symbols, factor] : known->value.terms()) {
    auto axis = symbols.size() == 1 ? llvm::find(known->axes, symbols[0]) : known->axes.end();
    if (symbols.empty()) {
      offset = factor;
    } else if (axis == known->axes.end() || factor != 1 || along) {
      return {};
    } else {
      along = size_t(axis - known->axes.begin());
    }
  }
  auto dims = dimsOf(op.getType());
  Value value = scalarLike(m, op, double(offset));
  if (along) {
    SmallVector<StringAttr> shape(dims.size(), m.dim(DimExpr(1)));
    shape[*along] = dims[*along];
    Value ramp = m.reshape(m.iota({dims[*along]}, 0, integer), shape);
    value = offset ? m.make<AddOp>(ramp, value) : ramp;
  }
  return m.broadcast(value, dims);
}

}  // namespace

std::optional<bool> provedCondition(Value condition) {
  if (auto proved = provedByRange(condition)) return proved;
  if (!elementOf(condition).isInteger(1)) return std::nullopt;
  auto known = indexValueOf(condition);
  auto number = known ? known->value.asConstant() : std::nullopt;
  return number ? std::optional(*number != 0) : std::nullopt;
}

void addRampPatterns(RewritePatternSet& patterns) {
  addRewrite<GatherOp>(patterns, "known-gather", knownGather);
  addRewrite<CompareOp>(patterns, "order-sides", orderSides);
  addRewrite<CompareOp>(patterns, "drop-one", dropOne);
  addRewrite<CompareOp>(patterns, "split-difference", splitDifference);
}

}  // namespace lathe
