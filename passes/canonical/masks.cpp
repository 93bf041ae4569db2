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
//   cast(c) * -1e9, 1 - cast(c)            select(c, -1e9, -0), cast(not c)
//   select(c, 1, 0) == 0                   not c               cast to a condition alike
//   1 - select(c, 1, 0)                    select(c, 0, 1): arithmetic with a third number
//   x * select(c, 1, 0) - select(c, 0, m)  select(c, x, -m)
//   reshape(select(c, 0, -1e9))            select(reshape(c), 0, -1e9)
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
constexpr double kHighestHidden = -1e4;
bool isHiddenScore(Value v) {
  auto c = isFloat(v) ? constantOf(v) : std::nullopt;
  return c && *c <= kHighestHidden;
}
bool sameConstant(Value a, Value b) {
  TypedAttr x = splatElement(a);
  return x && x == splatElement(b);
}

std::optional<Compare> negated(Compare p, bool ordered) {
  if (p == Compare::eq) return Compare::ne;
  if (p == Compare::ne) return Compare::eq;
  if (!ordered) return std::nullopt;  // with a NaN neither a < b nor a >= b holds
  switch (p) {
    case Compare::lt:
      return Compare::ge;
    case Compare::le:
      return Compare::gt;
    case Compare::gt:
      return Compare::le;
    default:
      return Compare::lt;
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
  addRewrite<SelectOp>(patterns, "select-proved", [](SelectOp op, OpMaker& m) -> Value {
    if (op.getA() == op.getB() && op.getA().getType() == op.getType()) return op.getA();
    auto proved = provedCondition(op.getCondition());
    if (!proved) return {};
    Value taken = *proved ? op.getA() : op.getB();
    return taken.getType() == op.getType() ? taken : m.broadcast(taken, dimsOf(op.getType()));
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

// The condition that a comparison with `c` makes of a value which is `a` where `condition` holds
// and `b` elsewhere; null if it does not tell them apart.
Value conditionOf(OpMaker& m, Compare predicate, Value condition, double a, double b, double c) {
  auto holds = [&](double v) {
    switch (predicate) {
      case Compare::eq:
        return v == c;
      case Compare::ne:
        return v != c;
      case Compare::lt:
        return v < c;
      case Compare::le:
        return v <= c;
      case Compare::gt:
        return v > c;
      default:
        return v >= c;
    }
  };
  if (holds(a) == holds(b)) return {};
  return holds(a) ? condition : m.make<LogicalNotOp>(condition);
}

// A mask that became a number and a condition again.
Value conditionOfCast(CompareOp op, OpMaker& m) {
  auto cast = op.getA().getDefiningOp<CastOp>();
  auto c = constantOf(op.getB());
  if (!cast || !c || !elementOf(cast.getX()).isInteger(1) || cast.getX().getType() != op.getType())
    return {};
  return conditionOf(m, op.getPredicate(), cast.getX(), 1, 0, *c);
}
// A constant that is itself in double: whole numbers beyond 2^53 become their neighbours.
std::optional<double> exactConstantOf(Value v) {
  auto c = constantOf(v);
  return c && (isFloat(v) || std::abs(*c) < 0x1p53) ? c : std::nullopt;
}
Value conditionOfSelect(CompareOp op, OpMaker& m) {
  auto select = op.getA().getDefiningOp<SelectOp>();
  if (!select || select.getCondition().getType() != op.getType()) return {};
  auto a = exactConstantOf(select.getA()), b = exactConstantOf(select.getB()),
       c = exactConstantOf(op.getB());
  if (!a || !b || !c) return {};
  return conditionOf(m, op.getPredicate(), select.getCondition(), *a, *b, *c);
}

Value conditionOfNumbers(CastOp op, OpMaker& m) {
  auto select = op.getX().getDefiningOp<SelectOp>();
  if (!select || !elementOf(op).isInteger(1) || select.getCondition().getType() != op.getType())
    return {};
  auto a = constantOf(select.getA()), b = constantOf(select.getB());
  return a && b ? conditionOf(m, Compare::ne, select.getCondition(), *a, *b, 0) : Value();
}

// Masks that were made of conditions by arithmetic are selections.
void addNumbers(RewritePatternSet& patterns) {
  addRewrite<MulOp>(patterns, "select-of-cast", [](MulOp op, OpMaker& m) -> Value {
    auto product = withConstant<MulOp>(op);
    auto cast = product ? product->x.getDefiningOp<CastOp>() : CastOp();
    if (!cast || !cast->hasOneUse() || !elementOf(cast.getX()).isInteger(1) ||
        cast.getType() != op.getType() || !isFloat(op) || std::isinf(product->c) ||
        !(product->c <= kHighestHidden))
      return {};
    // 0 times a negative number is -0.
    return m.make<SelectOp>(cast.getX(), scalarLike(m, op, product->c), scalarLike(m, op, -0.0));
  });
  addRewrite<SubOp>(patterns, "one-minus-condition", [](SubOp op, OpMaker& m) -> Value {
    auto layout = op.getB().getDefiningOp<ReshapeOp>();
    auto cast = (layout ? layout.getX() : op.getB()).getDefiningOp<CastOp>();
    bool fits = cast && isConstant(op.getA(), 1) && elementOf(cast.getX()).isInteger(1) &&
                op.getB().getType() == op.getType();
    if (!fits) return {};
    Value condition = cast.getX();
    if (layout) condition = m.make<ReshapeOp>(condition, layout.getShape());
    return m.cast(m.make<LogicalNotOp>(condition), cast.getDtype());
  });
}

// Arithmetic on a selection of two numbers, with a third one, selects its results. Not of numbers
// that would be rounded.
template <class Op>
void addArithmeticOfSelect(RewritePatternSet& patterns, double (*apply)(double, double)) {
  addRewrite<Op>(patterns, "arithmetic-of-select", [apply](Op op, OpMaker& m) -> Value {
    for (bool left : {true, false}) {
      auto select = (left ? op.getA() : op.getB()).template getDefiningOp<SelectOp>();
      auto c = constantOf(left ? op.getB() : op.getA());
      auto a = select ? constantOf(select.getA()) : std::nullopt;
      auto b = select ? constantOf(select.getB()) : std::nullopt;
      if (!a || !b || !c || !isFloat(op) || select.getType() != op.getType()) continue;
      double numbers[2];
      bool exact = true;
      for (auto [number, v] : {std::pair(&numbers[0], *a), std::pair(&numbers[1], *b)}) {
        *number = left ? apply(v, *c) : apply(*c, v);
        exact &= std::isfinite(*number) && isRepresentable(elementOf(op), *number);
      }
      if (!exact || !broadcastTo(op, {select.getCondition()})) continue;
      return m.make<SelectOp>(select.getCondition(), scalarLike(m, op, numbers[0]),
                              scalarLike(m, op, numbers[1]));
    }
    return {};
  });
}

// The condition of a value that is 1 where it holds and 0 elsewhere.
Value oneWhere(Value v) {
  if (auto cast = v.getDefiningOp<CastOp>(); cast && elementOf(cast.getX()).isInteger(1))
    return cast.getX();
  auto select = v.getDefiningOp<SelectOp>();
  bool fits = select && isConstant(select.getA(), 1) && isConstant(select.getB(), 0);
  return fits ? select.getCondition() : Value();
}
// Scores times 0 where they are hidden, and a large number taken off there.
template <class Op>
Value scoresTimesCondition(Op op, OpMaker& m) {
  const bool adds = std::is_same_v<Op, AddOp>;
  for (bool turned : {false, true}) {
    if (turned && !adds) break;
    Value a = turned ? op.getB() : op.getA(), b = turned ? op.getA() : op.getB();
    auto product = a.getDefiningOp<MulOp>();
    auto select = b.getDefiningOp<SelectOp>();
    auto shown = select ? constantOf(select.getA()) : std::nullopt;
    auto fill = select ? constantOf(select.getB()) : std::nullopt;
    if (!product || !product->hasOneUse() || !isFloat(op) || !shown || *shown != 0 || !fill)
      continue;
    const double hidden = adds ? *fill : -*fill;
    if (!(hidden <= kHighestHidden) || std::isinf(hidden)) continue;
    for (auto [x, mask] :
         {std::pair(product.getA(), product.getB()), std::pair(product.getB(), product.getA())}) {
      if (oneWhere(mask) != select.getCondition() || !broadcastTo(op, {select.getCondition(), x}))
        continue;
      // An infinity times 0 is NaN; -0 + 0 is 0.
      MLIRContext* c = op->getContext();
      if (!weaken(c, Contract::IncomingNan) || !weaken(c, Contract::SignedZero)) return {};
      return m.make<SelectOp>(select.getCondition(), x, scalarLike(m, op, hidden));
    }
  }
  return {};
}

// The condition of a selection between two numbers that a layout may go to instead.
SelectOp selectOfNumbers(Value v) {
  auto select = v.getDefiningOp<SelectOp>();
  bool fits = select && select->hasOneUse() && constantOf(select.getA()) &&
              constantOf(select.getB()) && tensorType(select.getA()).getRank() == 0 &&
              tensorType(select.getB()).getRank() == 0;
  return fits ? select : SelectOp();
}
template <class Op, class... Attributes>
void addLayoutOfSelect(RewritePatternSet& patterns, Attributes (Op::*... get)()) {
  addRewrite<Op>(patterns, "layout-of-select", [=](Op op, OpMaker& m) -> Value {
    SelectOp select = selectOfNumbers(op.getX());
    if (!select) return {};
    Value condition = m.make<Op>(select.getCondition(), (op.*get)()...);
    return m.make<SelectOp>(condition, select.getA(), select.getB());
  });
}

void addArithmetic(RewritePatternSet& patterns) {
  addArithmeticOfSelect<AddOp>(patterns, [](double a, double b) { return a + b; });
  addArithmeticOfSelect<SubOp>(patterns, [](double a, double b) { return a - b; });
  addArithmeticOfSelect<MulOp>(patterns, [](double a, double b) { return a * b; });
  addRewrite<AddOp>(patterns, "scores-times-condition", scoresTimesCondition<AddOp>);
  addRewrite<SubOp>(patterns, "scores-times-condition", scoresTimesCondition<SubOp>);
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
  addNumbers(patterns);
  addArithmetic(patterns);
  addLayoutOfSelect<ReshapeOp>(patterns, &ReshapeOp::getShape);
  addLayoutOfSelect<TransposeOp>(patterns, &TransposeOp::getPermutation);
  addLayoutOfSelect<SliceOp>(patterns, &SliceOp::getStarts, &SliceOp::getSizes,
                             &SliceOp::getStrides);
  addRewrite<CompareOp>(patterns, "condition-of-cast", conditionOfCast);
  addRewrite<CompareOp>(patterns, "condition-of-select", conditionOfSelect);
  addRewrite<CastOp>(patterns, "condition-of-select", conditionOfNumbers);
  addRewrite<LogicalNotOp>(patterns, "push-negation", pushNegation);
  addRewrite<LogicalAndOp>(patterns, "pull-negation", pullNegation<LogicalAndOp, LogicalOrOp>);
  addRewrite<LogicalOrOp>(patterns, "pull-negation", pullNegation<LogicalOrOp, LogicalAndOp>);
  addProvedTerms<LogicalAndOp>(patterns, true);
  addProvedTerms<LogicalOrOp>(patterns, false);
}

}  // namespace lathe
