// SPDX-License-Identifier: Apache-2.0
// Masks. What is hidden stands on the right of a select, under a condition that says what is
// visible:
//
//   select(hidden, -inf, x)                select(not hidden, x, -inf); likewise -1e9, finfo.min
//   add(x, select(c, 0, -inf))             select(c, x, -inf)
//   select(a, select(b, x, m), m)          select(a and b, x, m)
//   mul(select(c, x, -inf), s), s > 0      select(c, mul(x, s), -inf)
//   select(true, x, m), a and true         x, a
//   not (a or b), not (a < b)              pushed inside where a negation is free
//
// A finite minimum is a number: it is never taken for -inf, and never added away.
#include <cmath>

#include "passes/canonical/canonical.h"
#include "passes/canonical/ramps.h"
#include "passes/canonical/values.h"

using namespace mlir;

namespace lathe {
namespace {

// What masks put in place of a score: -inf or a number that exp makes 0. -1e4 is what 16-bit models
// use.
bool isHiddenScore(Value v) {
  auto c = isFloat(v) ? constantOf(v) : std::nullopt;
  return c && *c <= -1e4;
}
bool sameConstant(Value a, Value b) {
  TypedAttr x = splatElement(a);
  return x && x == splatElement(b);
}

std::optional<Predicate> negated(Predicate p, bool ordered) {
  if (p == Predicate::eq) return Predicate::ne;
  if (p == Predicate::ne) return Predicate::eq;
  if (!ordered) return std::nullopt;  // with a NaN neither a < b nor a >= b holds
  switch (p) {
    case Predicate::lt:
      return Predicate::ge;
    case Predicate::le:
      return Predicate::gt;
    case Predicate::gt:
      return Predicate::le;
    default:
      return Predicate::lt;
  }
}

// A condition whose negation costs no op.
bool negatesFreely(Value v) {
  if (v.getDefiningOp<LogicalNotOp>()) return true;
  auto compare = v.getDefiningOp<CompareOp>();
  return compare && v.hasOneUse() && negated(compare.getPredicate(), !isFloat(compare.getA()));
}
Value negation(OpMaker& m, Value v) {
  if (auto n = v.getDefiningOp<LogicalNotOp>()) return n.getX();
  return m.make<LogicalNotOp>(v);
}

Value pushNegation(LogicalNotOp op, OpMaker& m) {
  Value x = op.getX();
  if (!x.hasOneUse()) return {};
  if (auto compare = x.getDefiningOp<CompareOp>()) {
    auto p = negated(compare.getPredicate(), !isFloat(compare.getA()));
    return p ? m.compare(*p, compare.getA(), compare.getB()) : Value();
  }
  // One free negation pays for the other: as many ops, and the terms show.
  Operation* def = x.getDefiningOp();
  if (!isa_and_nonnull<LogicalAndOp, LogicalOrOp>(def)) return {};
  Value a = def->getOperand(0), b = def->getOperand(1);
  if (!negatesFreely(a) && !negatesFreely(b)) return {};
  Value notA = negation(m, a), notB = negation(m, b);
  return isa<LogicalOrOp>(def) ? m.make<LogicalAndOp>(notA, notB) : m.make<LogicalOrOp>(notA, notB);
}

// not a and not b is not (a or b): one op less.
template <class Op, class Dual>
Value pullNegation(Op op, OpMaker& m) {
  auto a = op.getA().template getDefiningOp<LogicalNotOp>();
  auto b = op.getB().template getDefiningOp<LogicalNotOp>();
  if (!a || !b || !a->hasOneUse() || !b->hasOneUse() || negatesFreely(a.getX()) ||
      negatesFreely(b.getX()))
    return {};
  return m.make<LogicalNotOp>(m.make<Dual>(a.getX(), b.getX()));
}

void addSelects(RewritePatternSet& patterns) {
  addRewrite<SelectOp>(patterns, "select-proved", [](SelectOp op, OpMaker&) -> Value {
    if (op.getA() == op.getB() && op.getA().getType() == op.getType()) return op.getA();
    auto proved = provedCondition(op.getCondition());
    if (!proved) return {};
    Value taken = *proved ? op.getA() : op.getB();
    return taken.getType() == op.getType() ? taken : Value();
  });
  addRewrite<SelectOp>(patterns, "select-negated", [](SelectOp op, OpMaker& m) -> Value {
    auto n = op.getCondition().getDefiningOp<LogicalNotOp>();
    if (!n || (isHiddenScore(op.getB()) && !isHiddenScore(op.getA()))) return {};
    return m.make<SelectOp>(n.getX(), op.getB(), op.getA());
  });
  addRewrite<SelectOp>(patterns, "hidden-right", [](SelectOp op, OpMaker& m) -> Value {
    if (!isHiddenScore(op.getA()) || isHiddenScore(op.getB())) return {};
    return m.make<SelectOp>(negation(m, op.getCondition()), op.getB(), op.getA());
  });
  addRewrite<SelectOp>(patterns, "join-masks", [](SelectOp op, OpMaker& m) -> Value {
    auto inner = op.getA().getDefiningOp<SelectOp>();
    if (!inner || !inner->hasOneUse() || !isHiddenScore(op.getB()) ||
        !sameConstant(op.getB(), inner.getB()) || op.getCondition() == inner.getCondition())
      return {};
    // The conditions may not stretch against each other.
    SmallVector<Type> both;
    if (failed(inferBroadcast(std::nullopt, "and", {inner.getCondition(), op.getCondition()},
                              nullptr, both)) ||
        !broadcastTo(op, {inner.getCondition(), op.getCondition(), inner.getA()}))
      return {};
    Value all = m.make<LogicalAndOp>(inner.getCondition(), op.getCondition());
    return m.make<SelectOp>(all, inner.getA(), op.getB());
  });
}

void addAddedMasks(RewritePatternSet& patterns) {
  addRewrite<AddOp>(patterns, "added-mask", [](AddOp op, OpMaker& m) -> Value {
    for (auto [x, mask] : {std::pair(op.getA(), op.getB()), std::pair(op.getB(), op.getA())}) {
      auto select = mask.getDefiningOp<SelectOp>();
      if (!select || !isConstant(select.getB(), -INFINITY) || !isConstant(select.getA(), 0) ||
          !broadcastTo(op, {select.getCondition(), x}))
        continue;
      // -0 + 0 is 0; NaN and inf under -inf are NaN.
      MLIRContext* c = op->getContext();
      if (!weaken(c, Contract::IncomingNan) || !weaken(c, Contract::SignedZero)) return {};
      return m.make<SelectOp>(select.getCondition(), x, scalarLike(m, x, -INFINITY));
    }
    return {};
  });
  addRewrite<MulOp>(patterns, "scale-under-mask", [](MulOp op, OpMaker& m) -> Value {
    auto product = withConstant<MulOp>(op);
    auto select = product ? product->x.getDefiningOp<SelectOp>() : SelectOp();
    if (!select || !select->hasOneUse() || !(product->c > 0) || std::isinf(product->c) ||
        !isConstant(select.getB(), -INFINITY) || tensorType(select.getB()).getRank() != 0 ||
        op.getType() != select.getType())
      return {};
    Value scaled = m.make<MulOp>(select.getA(), scalarLike(m, op, product->c));
    return m.make<SelectOp>(select.getCondition(), scaled, select.getB());
  });
  addRewrite<DivOp>(patterns, "scale-under-mask", [](DivOp op, OpMaker& m) -> Value {
    auto c = constantOf(op.getB());
    auto select = op.getA().getDefiningOp<SelectOp>();
    if (!c || !select || !select->hasOneUse() || !(*c > 0) || std::isinf(*c) ||
        !isConstant(select.getB(), -INFINITY) || tensorType(select.getB()).getRank() != 0 ||
        op.getType() != select.getType())
      return {};
    Value scaled = m.make<DivOp>(select.getA(), scalarLike(m, op, *c));
    return m.make<SelectOp>(select.getCondition(), scaled, select.getB());
  });
}

// A mask that became a number and a condition again.
Value conditionOfCast(CompareOp op, OpMaker& m) {
  auto cast = op.getA().getDefiningOp<CastOp>();
  auto c = constantOf(op.getB());
  if (!cast || !c || !elementOf(cast.getX()).isInteger(1) || cast.getX().getType() != op.getType())
    return {};
  auto holds = [&](double v) {
    switch (op.getPredicate()) {
      case Predicate::eq:
        return v == *c;
      case Predicate::ne:
        return v != *c;
      case Predicate::lt:
        return v < *c;
      case Predicate::le:
        return v <= *c;
      case Predicate::gt:
        return v > *c;
      default:
        return v >= *c;
    }
  };
  bool ofTrue = holds(1), ofFalse = holds(0);
  if (ofTrue == ofFalse) return {};
  return ofTrue ? Value(cast.getX()) : m.make<LogicalNotOp>(cast.getX());
}

template <class Op>
void addProvedTerms(RewritePatternSet& patterns, bool neutral) {
  addRewrite<Op>(patterns, "proved-term", [neutral](Op op, OpMaker&) -> Value {
    for (auto [a, b] : {std::pair(op.getA(), op.getB()), std::pair(op.getB(), op.getA())}) {
      auto proved = provedCondition(b);
      bool drops = (proved && *proved == neutral) || a == b;
      if (drops && a.getType() == op.getType()) return a;
    }
    return {};
  });
}

}  // namespace

void addMaskPatterns(RewritePatternSet& patterns) {
  addSelects(patterns);
  addAddedMasks(patterns);
  addRewrite<CompareOp>(patterns, "condition-of-cast", conditionOfCast);
  addRewrite<LogicalNotOp>(patterns, "push-negation", pushNegation);
  addRewrite<LogicalAndOp>(patterns, "pull-negation", pullNegation<LogicalAndOp, LogicalOrOp>);
  addRewrite<LogicalOrOp>(patterns, "pull-negation", pullNegation<LogicalOrOp, LogicalAndOp>);
  addProvedTerms<LogicalAndOp>(patterns, true);
  addProvedTerms<LogicalOrOp>(patterns, false);
}

}  // namespace lathe
