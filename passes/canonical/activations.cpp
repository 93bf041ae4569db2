// SPDX-License-Identifier: Apache-2.0
// Activations; each weakens `spelling`.
//
//   reciprocal(1 + exp(-x))                 sigmoid(x)
//   x / (1 + exp(-y))                       x * sigmoid(y)
//   (1 + tanh(x / 2)) / 2                   sigmoid(x)         also tanh(x / 2) / 2 + 1 / 2
//   x * (1 + g) / 2 in any association      (x / 2) * (1 + g)  g: erf or tanh
//   g / 2 + 1 / 2                           (1 + g) / 2        exact, as both are halves
//   (x * u) * sigmoid(x), x * (sigmoid(x) * u)   (x * sigmoid(x)) * u
//   select(x > 0, x, 0), select(x < 0, 0, x)   max(x, 0)       weakens incoming-nan, signed-zero
//
// exp(x) / (1 + exp(x)) is no sigmoid: it is NaN where exp overflows.
#include <cmath>

#include "passes/canonical/canonical.h"
#include "passes/canonical/values.h"

using namespace mlir;

namespace lathe {
namespace {

// x of 1 + exp(-x).
Value logisticDenominator(Value v) {
  auto sum = withConstant<AddOp>(v);
  auto exponential = sum && sum->c == 1 ? sum->x.getDefiningOp<ExpOp>() : ExpOp();
  auto negated = exponential ? exponential.getX().getDefiningOp<NegOp>() : NegOp();
  bool alone = negated && v.hasOneUse() && exponential->hasOneUse();
  return alone && negated.getType() == v.getType() ? negated.getX() : Value();
}

// x of c * tanh(x / 2) or, without a factor, of tanh(x / 2).
Value halvedTanh(Value v) {
  auto t = v.getDefiningOp<TanhOp>();
  auto half = t && t->hasOneUse() ? withConstant<MulOp>(t.getX()) : std::nullopt;
  return half && half->c == 0.5 && half->x.getType() == v.getType() ? half->x : Value();
}

// 1 + erf(..) or 1 + tanh(..).
bool isOnePlusBounded(Value v) {
  auto sum = withConstant<AddOp>(v);
  return sum && sum->c == 1 && sum->x.getType() == v.getType() &&
         isa_and_nonnull<ErfOp, TanhOp>(sum->x.getDefiningOp());
}

Value sigmoidOfTanh(MulOp op, OpMaker& m) {
  auto product = withConstant<MulOp>(op);
  if (!product || product->c != 0.5 || product->x.getType() != op.getType()) return {};
  auto sum = withConstant<AddOp>(product->x);
  Value x = sum && sum->c == 1 && product->x.hasOneUse() ? halvedTanh(sum->x) : Value();
  return x && x.getType() == op.getType() && mayRespell(op) ? m.make<SigmoidOp>(x) : Value();
}

// A sum of two halves is rounded as half of the sum: halving rounds nothing that is not far below
// 1/2.
Value halfPlusHalf(AddOp op, OpMaker& m) {
  auto sum = withConstant<AddOp>(op);
  auto half =
      sum && sum->c == 0.5 && sum->x.hasOneUse() ? withConstant<MulOp>(sum->x) : std::nullopt;
  bool fits = half && half->c == 0.5 && half->x.getType() == op.getType() &&
              isa_and_nonnull<ErfOp, TanhOp>(half->x.getDefiningOp());
  if (!fits) return {};
  return m.make<MulOp>(m.make<AddOp>(half->x, scalarLike(m, op, 1)), scalarLike(m, op, 0.5));
}

// x where it is above 0, and 0 elsewhere.
Value relu(SelectOp op, OpMaker& m) {
  auto compare = op.getCondition().getDefiningOp<CompareOp>();
  if (!compare || !isConstant(compare.getB(), 0)) return {};
  const Compare p = compare.getPredicate();
  const bool above = p == Compare::gt || p == Compare::ge;
  if (!above && p != Compare::lt && p != Compare::le) return {};
  Value x = above ? op.getA() : op.getB(), zero = above ? op.getB() : op.getA();
  if (compare.getA() != x || x.getType() != op.getType() || !isConstant(zero, 0) ||
      std::signbit(*constantOf(zero)))
    return {};
  // There is no maximum of booleans.
  if (tensorType(op.getResult()).getElementType().isInteger(1)) return {};
  // A NaN is neither above 0 nor below it; -0, of which the maximum with 0 makes 0, is taken as it
  // is where 0 would be. An integer is neither.
  const bool keepsZero = p == Compare::ge || p == Compare::lt;
  MLIRContext* c = op->getContext();
  if (isFloat(op) && keepsZero && !weaken(c, Contract::SignedZero)) return {};
  if (isFloat(op) && above && !weaken(c, Contract::IncomingNan)) return {};
  return m.make<MaxOp>(x, scalarLike(m, op, 0));
}

Value halfOnePlus(MulOp op, OpMaker& m) {
  Value x, bounded;
  auto product = withConstant<MulOp>(op);
  if (product && product->c == 0.5 && product->x.hasOneUse()) {
    // (x * (1 + g)) / 2
    auto inner = product->x.getDefiningOp<MulOp>();
    if (!inner) return {};
    for (unsigned i : {0u, 1u})
      if (isOnePlusBounded(inner->getOperand(i)))
        bounded = inner->getOperand(i), x = inner->getOperand(1 - i);
  } else {
    // x * ((1 + g) / 2)
    for (unsigned i : {0u, 1u}) {
      Value v = op->getOperand(i);
      auto half = withConstant<MulOp>(v);
      if (half && half->c == 0.5 && v.hasOneUse() && isOnePlusBounded(half->x))
        bounded = half->x, x = op->getOperand(1 - i);
    }
  }
  // Two factors of the kind would hand the half to each other for ever.
  if (!x || constantOf(x) || isOnePlusBounded(x) || x.getType() != op.getType() ||
      bounded.getType() != op.getType() || !weaken(op->getContext(), Contract::ScalePlacement))
    return {};
  return m.make<MulOp>(m.make<MulOp>(x, scalarLike(m, x, 0.5)), bounded);
}

// x * sigmoid(x) * u in the associations that part x from its sigmoid.
Value siluFirst(MulOp op, OpMaker& m) {
  for (auto [p, q] : {std::pair(op.getA(), op.getB()), std::pair(op.getB(), op.getA())}) {
    auto inner = q.getDefiningOp<MulOp>();
    if (!inner || !inner->hasOneUse()) continue;
    for (auto [a, u] :
         {std::pair(inner.getA(), inner.getB()), std::pair(inner.getB(), inner.getA())}) {
      auto outside = p.getDefiningOp<SigmoidOp>(), inside = a.getDefiningOp<SigmoidOp>();
      bool parted = (outside && outside.getX() == a && a != u) || (inside && inside.getX() == p);
      if (!parted || a == p || u == p || !mayRespell(op)) continue;
      Value x = inside && inside.getX() == p ? p : a, s = x == p ? a : p;
      return m.make<MulOp>(m.make<MulOp>(x, s), u);
    }
  }
  return {};
}

}  // namespace

void addActivationPatterns(RewritePatternSet& patterns) {
  addRewrite<ReciprocalOp>(patterns, "sigmoid", [](ReciprocalOp op, OpMaker& m) -> Value {
    Value x = logisticDenominator(op.getX());
    return x && mayRespell(op) ? m.make<SigmoidOp>(x) : Value();
  });
  addRewrite<DivOp>(patterns, "silu", [](DivOp op, OpMaker& m) -> Value {
    Value x = constantOf(op.getA()) ? Value() : logisticDenominator(op.getB());
    return x && mayRespell(op) ? m.make<MulOp>(op.getA(), m.make<SigmoidOp>(x)) : Value();
  });
  addRewrite<MulOp>(patterns, "sigmoid-of-tanh", sigmoidOfTanh);
  addRewrite<AddOp>(patterns, "sigmoid-of-tanh", [](AddOp op, OpMaker& m) -> Value {
    auto sum = withConstant<AddOp>(op);
    auto product = sum && sum->c == 0.5 ? withConstant<MulOp>(sum->x) : std::nullopt;
    bool halves = product && product->c == 0.5 && sum->x.hasOneUse();
    Value x = halves ? halvedTanh(product->x) : Value();
    return x && x.getType() == op.getType() && mayRespell(op) ? m.make<SigmoidOp>(x) : Value();
  });
  addRewrite<MulOp>(patterns, "half-one-plus", halfOnePlus);
  addRewrite<MulOp>(patterns, "silu-first", siluFirst);
  addRewrite<AddOp>(patterns, "half-plus-half", halfPlusHalf);
  addRewrite<SelectOp>(patterns, "relu", relu);
}

}  // namespace lathe
