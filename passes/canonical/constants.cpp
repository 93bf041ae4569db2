// SPDX-License-Identifier: Apache-2.0
// Where constants and signs stand.
//
//   c op x          x op c          by the folder of commutative ops
//   x - c           x + (-c)
//   x / 2^n         x * 2^-n        any other divisor stays: its inverse is rounded
//   x * c1 * c2     x * (c1 c2)     if the dtype holds the product
//   x * -1          -x              -(x * c) is x * -c, a + -b is a - b, a - -b is a + b
//   x ^ 2, |x| |x|  x * x
#include <cmath>

#include "passes/canonical/canonical.h"
#include "passes/canonical/values.h"

using namespace mlir;

namespace lathe {
namespace {

// An elementwise op stretches by itself.
template <class Op>
void addStretching(RewritePatternSet& patterns) {
  addRewrite<Op>(patterns, "stretch-by-itself", [](Op op, OpMaker& m) -> Value {
    SmallVector<Value> operands(op->getOperands());
    bool changed = false;
    for (Value& v : operands) {
      auto stretched = v.getDefiningOp<BroadcastOp>();
      if (!stretched) continue;
      Value had = v;
      v = stretched.getX();
      if (broadcastTo(op.getResult(), operands))
        changed = true;
      else
        v = had;
    }
    if (!changed) return {};
    Operation* made = m.b.create(m.loc, op->getName().getIdentifier(), operands,
                                 op->getResultTypes(), op->getAttrs());
    return made->getResult(0);
  });
}

// Constants of one value are scalars.
template <class Op>
void addScalars(RewritePatternSet& patterns) {
  addRewrite<Op>(patterns, "scalar-constant", [](Op op, OpMaker& m) -> Value {
    SmallVector<Value> operands(op->getOperands());
    for (auto [i, v] : llvm::enumerate(op->getOperands())) {
      TypedAttr element = splatElement(v);
      if (!element || tensorType(v).getRank() == 0 || elementOf(v).isInteger(1)) continue;
      SmallVector<Value> others(operands);
      others.erase(others.begin() + i);
      if (!broadcastTo(op.getResult(), others)) continue;
      operands[i] = scalarOf(m, element);
      Operation* made = m.b.create(m.loc, op->getName().getIdentifier(), operands,
                                   op->getResultTypes(), op->getAttrs());
      return made->getResult(0);
    }
    return {};
  });
}

// What `v` is the negative of: x of -x, and x * y of (-x) * y, which has the same bits as -(x * y).
Value withoutSign(OpMaker& m, Value v) {
  if (auto negated = v.getDefiningOp<NegOp>()) return negated.getX();
  auto product = v.getDefiningOp<MulOp>();
  if (!product || !product->hasOneUse()) return {};
  for (unsigned i : {0u, 1u})
    if (auto negated = product->getOperand(i).getDefiningOp<NegOp>())
      return m.make<MulOp>(negated.getX(), product->getOperand(1 - i));
  return {};
}

// concat(-s, s) as a factor of concat(b, a): the sign goes to the part that it turns.
Value signOfPart(MulOp op, OpMaker& m) {
  for (auto [a, b] : {std::pair(op.getA(), op.getB()), std::pair(op.getB(), op.getA())}) {
    auto table = a.getDefiningOp<ConcatOp>(), parts = b.getDefiningOp<ConcatOp>();
    if (!table || !parts || table.getInputs().size() != 2 || parts.getInputs().size() != 2)
      continue;
    Value s = table.getInputs()[1], first = parts.getInputs()[0], second = parts.getInputs()[1];
    auto negated = table.getInputs()[0].getDefiningOp<NegOp>();
    int64_t fromBack = tensorType(table).getRank() - int64_t(table.getAxis());
    // Equal parts are a table, too, once one of them is turned: the sign would come back for ever.
    bool fits = negated && negated.getX() == s && first != second &&
                !first.getDefiningOp<NegOp>() &&
                tensorType(parts).getRank() - int64_t(parts.getAxis()) == fromBack &&
                dimOf(tensorType(s), int64_t(table.getAxis())) &&
                dimOf(tensorType(s), int64_t(table.getAxis())) ==
                    dimOf(tensorType(first), int64_t(parts.getAxis()));
    if (!fits) continue;
    Value turned = m.make<ConcatOp>(ValueRange{m.make<NegOp>(first), second}, parts.getAxis());
    return m.make<MulOp>(turned, m.make<ConcatOp>(ValueRange{s, s}, table.getAxis()));
  }
  return {};
}

void addSigns(RewritePatternSet& patterns) {
  addRewrite<SubOp>(patterns, "subtract-constant", [](SubOp op, OpMaker& m) -> Value {
    if (splatElement(op.getA()) || elementOf(op).isUnsignedInteger() ||
        tensorType(op.getB()).getRank() != 0)
      return {};
    // The lowest integer is its own negative: subtracting and adding it are the same, as all wraps.
    if (auto c = splatInteger(op.getB()))
      return m.make<AddOp>(op.getA(), scalarOf(m, IntegerAttr::get(elementOf(op), -*c)));
    auto c = constantOf(op.getB());
    return c ? m.make<AddOp>(op.getA(), scalarLike(m, op.getB(), -*c)) : Value();
  });
  addRewrite<SubOp>(patterns, "zero-minus", [](SubOp op, OpMaker& m) -> Value {
    auto zero = constantOf(op.getA());
    if (!zero || *zero != 0 || op.getB().getType() != op.getType()) return {};
    // 0 - 0 is 0 and -(0) is -0; -0 - x is -x.
    if (isFloat(op) && !std::signbit(*zero) && !weaken(op->getContext(), Contract::SignedZero))
      return {};
    return m.make<NegOp>(op.getB());
  });
  addRewrite<SubOp>(patterns, "subtract-negative", [](SubOp op, OpMaker& m) -> Value {
    Value b = withoutSign(m, op.getB());
    return b ? m.make<AddOp>(op.getA(), b) : Value();
  });
  addRewrite<AddOp>(patterns, "add-negative", [](AddOp op, OpMaker& m) -> Value {
    for (auto [a, b] : {std::pair(op.getA(), op.getB()), std::pair(op.getB(), op.getA())})
      if (Value x = withoutSign(m, b)) return m.make<SubOp>(a, x);
    return {};
  });
  addRewrite<MulOp>(patterns, "sign-of-part", signOfPart);
  addRewrite<NegOp>(patterns, "negative-of-scaled", [](NegOp op, OpMaker& m) -> Value {
    auto product = withConstant<MulOp>(op.getX());
    if (!product || !isFloat(op) || !op.getX().hasOneUse() || product->x.getType() != op.getType())
      return {};
    return m.make<MulOp>(product->x, scalarLike(m, op, -product->c));
  });
  addRewrite<MulOp>(patterns, "multiply-negative", [](MulOp op, OpMaker& m) -> Value {
    auto a = op.getA().getDefiningOp<NegOp>(), b = op.getB().getDefiningOp<NegOp>();
    if (a && b) return m.make<MulOp>(a.getX(), b.getX());
    auto product = withConstant<MulOp>(op);
    if (!product || !isFloat(op) || product->x.getType() != op.getType()) return {};
    if (product->c == -1) return m.make<NegOp>(product->x);
    auto negated = product->x.getDefiningOp<NegOp>();
    if (!negated) return {};
    return m.make<MulOp>(negated.getX(), scalarLike(m, op, -product->c));
  });
}

void addProducts(RewritePatternSet& patterns) {
  addRewrite<DivOp>(patterns, "divide-by-power-of-two", [](DivOp op, OpMaker& m) -> Value {
    auto c = constantOf(op.getB());
    if (!c || constantOf(op.getA()) || !isFloat(op) || tensorType(op.getB()).getRank() != 0 ||
        !hasExactReciprocal(elementOf(op), *c))
      return {};
    return m.make<MulOp>(op.getA(), scalarLike(m, op, 1 / *c));
  });
  addRewrite<MulOp>(patterns, "merge-factors", [](MulOp op, OpMaker& m) -> Value {
    auto outer = withConstant<MulOp>(op);
    auto inner = outer ? withConstant<MulOp>(outer->x) : std::nullopt;
    if (!inner || !isFloat(op) || inner->x.getType() != op.getType() || !outer->x.hasOneUse())
      return {};
    double c = outer->c * inner->c;
    bool sound = std::isfinite(c) && c != 0 && isRepresentable(elementOf(op), c);
    if (!sound || !weaken(op->getContext(), Contract::ScalePlacement)) return {};
    return m.make<MulOp>(inner->x, scalarLike(m, op, c));
  });
  addRewrite<MulOp>(patterns, "square-of-magnitude", [](MulOp op, OpMaker& m) -> Value {
    auto magnitude = op.getA().getDefiningOp<AbsOp>();
    if (!magnitude || op.getA() != op.getB() || !isFloat(op)) return {};
    return m.make<MulOp>(magnitude.getX(), magnitude.getX());
  });
  addRewrite<PowOp>(patterns, "power", [](PowOp op, OpMaker& m) -> Value {
    auto power = constantOf(op.getB());
    Value x = op.getA();
    if (!power || x.getType() != op.getType()) return {};
    if (*power == 2) {
      // Below f64 the square of a value is exact in double, and both ways round it once.
      if (elementOf(x).isF64() && !mayRespell(op)) return {};
      return m.make<MulOp>(x, x);
    }
    if (*power == 3 && mayRespell(op)) return m.make<MulOp>(m.make<MulOp>(x, x), x);
    if (*power == -1 && mayRespell(op)) return m.make<ReciprocalOp>(x);
    // pow(-inf, 0.5) is inf and pow(-0, 0.5) is 0, sqrt gives NaN and -0.
    if (std::abs(*power) != 0.5 || !isNeverNegative(x) || !mayRespell(op)) return {};
    return *power > 0 ? m.make<SqrtOp>(x) : m.make<RsqrtOp>(x);
  });
  // exp2(x * log2(e)): the exponent's factor is what the dtype makes of it. 16 bits make 1.4453 of
  // log2(e), and the power of a large x a few parts in a hundred more.
  addRewrite<PowOp>(patterns, "exponential", [](PowOp op, OpMaker& m) -> Value {
    auto base = constantOf(op.getA());
    Value exponent = op.getB();
    if (!base || !(*base > 1) || std::isinf(*base) || exponent.getType() != op.getType() ||
        !isFloat(op) || elementOf(op).getIntOrFloatBitWidth() == 16)
      return {};
    auto product = withConstant<MulOp>(exponent);
    auto quotient = exponent.getDefiningOp<DivOp>();
    auto is = [&](double number, double wanted) {
      return number == roundedTo(elementOf(op), wanted);
    };
    Value x;
    if (product && is(product->c, 1 / std::log(*base))) x = product->x;
    if (quotient)
      if (auto c = constantOf(quotient.getB()); c && is(*c, std::log(*base))) x = quotient.getA();
    if (!x || x.getType() != op.getType() || !mayRespell(op)) return {};
    return m.make<ExpOp>(x);
  });
}

template <class... Ops>
void addStretchingOf(RewritePatternSet& patterns) {
  (addStretching<Ops>(patterns), ...);
}
template <class... Ops>
void addScalarsOf(RewritePatternSet& patterns) {
  (addScalars<Ops>(patterns), ...);
}

}  // namespace

void addConstantPatterns(RewritePatternSet& patterns) {
  addStretchingOf<AddOp, SubOp, MulOp, DivOp, MaxOp, MinOp, PowOp, ModOp, LogicalAndOp, LogicalOrOp,
                  CompareOp, SelectOp>(patterns);
  addScalarsOf<AddOp, SubOp, MulOp, DivOp, MaxOp, MinOp, PowOp, CompareOp, SelectOp>(patterns);
  addSigns(patterns);
  addProducts(patterns);
  // NaN and -inf included: the larger of x and -inf is x.
  addRewrite<MaxOp>(patterns, "max-of-lowest", [](MaxOp op, OpMaker&) -> Value {
    return isConstant(op.getB(), -INFINITY) && op.getA().getType() == op.getType() ? op.getA()
                                                                                   : Value();
  });
  addRewrite<MinOp>(patterns, "min-of-highest", [](MinOp op, OpMaker&) -> Value {
    return isConstant(op.getB(), INFINITY) && op.getA().getType() == op.getType() ? op.getA()
                                                                                  : Value();
  });
  // A bias of zeros. Elsewhere x + 0 stays: it is how -0 is turned into 0.
  addRewrite<AddOp>(patterns, "zero-bias", [](AddOp op, OpMaker&) -> Value {
    bool zero = isFloat(op) && isConstant(op.getB(), 0) && op.getA().getType() == op.getType() &&
                isa_and_nonnull<MatmulOp, ConvolutionOp, LinearOp>(op.getA().getDefiningOp());
    return zero && weaken(op->getContext(), Contract::SignedZero) ? op.getA() : Value();
  });
}

}  // namespace lathe
