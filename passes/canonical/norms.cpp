// SPDX-License-Identifier: Apache-2.0
// Means, roots and quotients. Each weakens `spelling`: equal in exact arithmetic, rounded
// elsewhere.
//
//   sum(x) / n, sum(x) * (1 / n)            mean(x)
//   1 / sqrt(x), reciprocal(sqrt(x))        rsqrt(x)           sqrt(reciprocal(x)) too
//   x / sqrt(y)                             x * rsqrt(y)
//   1 / x                                   reciprocal(x)      exact
//   x * reciprocal(y)                       x / y
//   (x - mean(x)) - mean(x - mean(x))       x - mean(x)
//   (x - max(x)) - max(x - max(x))          x - max(x)         weakens incoming-nan: inf - inf
//
// mean(x^2) - mean(x)^2 is another variance: it cancels, and stays.
#include <cmath>

#include "passes/canonical/canonical.h"
#include "passes/canonical/values.h"

using namespace mlir;

namespace lathe {
namespace {

// The number of elements that one sum adds up; nothing for a named size.
std::optional<int64_t> countOf(ReduceSumOp sum) {
  int64_t count = 1;
  for (int64_t axis : sum.getAxes()) {
    if (tensorType(sum.getX()).isDynamicDim(axis)) return std::nullopt;
    count *= tensorType(sum.getX()).getDimSize(axis);
  }
  return count;
}

// `divides`: by the constant; else times it. A constant is 1/n if it is what the dtype makes of it.
Value meanOf(Operation* op, Value summed, double c, bool divides, OpMaker& m) {
  auto sum = summed.getDefiningOp<ReduceSumOp>();
  auto count = sum && isFloat(summed) ? countOf(sum) : std::nullopt;
  if (!count || *count < 1 || summed.getType() != op->getResult(0).getType() || !sum->hasOneUse())
    return {};
  Type element = elementOf(summed);
  bool isCount = divides ? c == roundedTo(element, double(*count))
                         : c == roundedTo(element, 1 / double(*count));
  if (!isCount || !mayRespell(op)) return {};
  return m.make<ReduceMeanOp>(sum.getX(), sum.getAxes(), sum.getKeepDims());
}

void addRoots(RewritePatternSet& patterns) {
  addRewrite<DivOp>(patterns, "one-over", [](DivOp op, OpMaker& m) -> Value {
    bool inverse = isFloat(op) && isConstant(op.getA(), 1) && op.getB().getType() == op.getType();
    return inverse && !constantOf(op.getB()) ? m.make<ReciprocalOp>(op.getB()) : Value();
  });
  addRewrite<ReciprocalOp>(patterns, "reciprocal-root", [](ReciprocalOp op, OpMaker& m) -> Value {
    auto root = op.getX().getDefiningOp<SqrtOp>();
    return root && root->hasOneUse() && mayRespell(op) ? m.make<RsqrtOp>(root.getX()) : Value();
  });
  addRewrite<SqrtOp>(patterns, "reciprocal-root", [](SqrtOp op, OpMaker& m) -> Value {
    auto inverse = op.getX().getDefiningOp<ReciprocalOp>();
    bool fits = inverse && inverse->hasOneUse() && isNeverNegative(inverse.getX());
    return fits && mayRespell(op) ? m.make<RsqrtOp>(inverse.getX()) : Value();
  });
  addRewrite<DivOp>(patterns, "divide-by-root", [](DivOp op, OpMaker& m) -> Value {
    auto root = op.getB().getDefiningOp<SqrtOp>();
    if (!root || !root->hasOneUse() || constantOf(op.getA()) || !mayRespell(op)) return {};
    return m.make<MulOp>(op.getA(), m.make<RsqrtOp>(root.getX()));
  });
  addRewrite<MulOp>(patterns, "multiply-by-reciprocal", [](MulOp op, OpMaker& m) -> Value {
    for (auto [x, y] : {std::pair(op.getA(), op.getB()), std::pair(op.getB(), op.getA())}) {
      auto inverse = y.getDefiningOp<ReciprocalOp>();
      if (!inverse || !inverse->hasOneUse() || constantOf(x) || x == y || !mayRespell(op)) continue;
      return m.make<DivOp>(x, inverse.getX());
    }
    return {};
  });
}

// x - r(x), where x is y - r(y) already and r(x) is 0 but for rounding.
template <class Reduce>
Value shiftedTwice(SubOp op, OpMaker&, Contract contract) {
  auto outer = op.getB().getDefiningOp<Reduce>();
  auto shifted = op.getA().template getDefiningOp<SubOp>();
  auto inner = shifted ? shifted.getB().template getDefiningOp<Reduce>() : Reduce();
  if (!outer || !inner || outer.getX() != op.getA() || inner.getX() != shifted.getA() ||
      outer.getAxes() != inner.getAxes() || !outer.getKeepDims() || !inner.getKeepDims() ||
      shifted.getType() != op.getType() || !isFloat(op))
    return {};
  return weaken(op->getContext(), contract) ? op.getA() : Value();
}

}  // namespace

void addNormPatterns(RewritePatternSet& patterns) {
  addRewrite<DivOp>(patterns, "mean", [](DivOp op, OpMaker& m) -> Value {
    auto c = constantOf(op.getB());
    return c ? meanOf(op, op.getA(), *c, true, m) : Value();
  });
  addRewrite<MulOp>(patterns, "mean", [](MulOp op, OpMaker& m) -> Value {
    auto product = withConstant<MulOp>(op);
    return product ? meanOf(op, product->x, product->c, false, m) : Value();
  });
  addRoots(patterns);
  addRewrite<SubOp>(patterns, "centered-twice", [](SubOp op, OpMaker& m) {
    return shiftedTwice<ReduceMeanOp>(op, m, Contract::Spelling);
  });
  addRewrite<SubOp>(patterns, "shifted-twice", [](SubOp op, OpMaker& m) {
    return shiftedTwice<ReduceMaxOp>(op, m, Contract::IncomingNan);
  });
}

}  // namespace lathe
