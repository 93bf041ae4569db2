// SPDX-License-Identifier: Apache-2.0
//
//   x ──┬─────────── sub ── exp ──┬───────── div          softmax(x), a row of -inf gives NaN
//       └─ reduce_max ┘           └─ reduce_sum ┘
//
//   p = softmax(x) ──┬──── select ──                      masked_row zero
//                    └ is_nan ┘ (0 where true)
//
//   select(reduce_any(x != -inf), softmax(x), 0)          masked_row zero
//
//   exp(d - log(reduce_sum(exp(d))))                      softmax(x), d = x - reduce_max(x)
//
//   matmul(exp(d), v) / reduce_sum(exp(d))                matmul(softmax(x), v)
//
//   softmax(x - reduce_max(x))                            softmax(x): the second maximum is 0
//
//   softmax(select(c, x, -inf)) ── select c, 0            masked_row zero, as softmax(where=) of
//   JAX exp((x - max) c)                                      softmax(c x), c > 0
//
// Decomposition spells `zero` and `uniform` with a test of the maximum instead:
//
//   top = reduce_max(x); empty = top == -inf; top' = select(empty, 0, top); e = exp(x - top')
//   zero:    div(e, select(empty, 1, reduce_sum(e)))
//   uniform: e' = select(empty, 1, e); div(e', reduce_sum(e'))
//
// What stands in front, scale, softcap and masks, becomes part of it in a late phase: attention
// takes what it can first.
#include <cmath>

#include "lathe/ir/ops.h"
#include "passes/patterns/library.h"
#include "passes/patterns/scores.h"

using namespace mlir;

namespace lathe {
namespace {

struct Reductions {
  Tensor top, sum;
};

Value buildSoftmax(Match& m, Value x, const Reductions& r, MaskedRow maskedRow) {
  Attribute axes = m.attribute(r.top, "axes");
  if (axes != m.attribute(r.sum, "axes"))
    return m.decline("the maximum and the sum run over different axes");
  auto list = cast<DenseI64ArrayAttr>(axes).asArrayRef();
  if (list.size() != 1) return m.decline("the softmax runs over more than one axis");
  return m.make("lathe.softmax", {x, {}}, {{"axis", list[0]}, {"masked_row", maskedRow}});
}

// e / sum(e), as a quotient or as a product with the inverse of the sum.
Tensor normalized(DagPattern& p, const Tensor& e, const Tensor& sum, RootSpelling spelling) {
  if (spelling == RootSpelling::Quotient) return div(e, sum);
  return mul(e, p.anyOf({reciprocal(sum), div(p.constant(1), sum)}));
}

void plain(DagPattern& p, RootSpelling spelling) {
  Tensor x = p.any();
  Tensor top = anyAxes(p, reduceMax(x, {0}, true));
  Tensor e = exp(sub(x, top));
  Tensor sum = anyAxes(p, reduceSum(e, {0}, true));
  p.root(normalized(p, e, sum, spelling));
  p.replaceWith([=](Match& m) { return buildSoftmax(m, m[x], {top, sum}, MaskedRow::nan); });
}

// The exponential of a log-softmax: of x - max - log(sum), or x - (max + log(sum)).
void ofLogarithm(DagPattern& p) {
  Tensor x = p.any();
  Tensor top = anyAxes(p, reduceMax(x, {0}, true));
  Tensor shifted = sub(x, top);
  Tensor sum = anyAxes(p, reduceSum(exp(shifted), {0}, true));
  Tensor logarithm = log(sum);
  p.root(exp(p.anyOf({sub(shifted, logarithm), sub(x, add(top, logarithm))})));
  p.replaceWith([=](Match& m) { return buildSoftmax(m, m[x], {top, sum}, MaskedRow::nan); });
}

// The weights are divided by their sum behind the product with the values.
void behindProduct(DagPattern& p) {
  Tensor x = p.any(), v = p.any();
  Tensor top = anyAxes(p, reduceMax(x, {0}, true));
  Tensor e = exp(sub(x, top));
  Tensor sum = anyAxes(p, reduceSum(e, {0}, true));
  p.root(div(matmul(e, v), sum));
  p.replaceWith([=](Match& m) -> Value {
    const int64_t last = tensorType(m[x]).getRank() - 1;
    if (cast<DenseI64ArrayAttr>(m.attribute(sum, "axes")).asArrayRef() != ArrayRef<int64_t>{last})
      return m.decline("'axes' of the sum are not the axis of the product");
    Value weights = buildSoftmax(m, m[x], {top, sum}, MaskedRow::nan);
    return weights ? m.make("lathe.matmul", {weights, m[v]}) : Value();
  });
}

// exp((x - max) c), c > 0, is exp(c x - max(c x)).
void scaledShift(DagPattern& p, RootSpelling spelling) {
  Tensor x = p.any();
  Tensor factor = p.constantWhere("a positive constant factor",
                                  [](double c) { return c > 0 && std::isfinite(c); });
  Tensor top = anyAxes(p, reduceMax(x, {0}, true));
  Tensor shifted = sub(x, top);
  Tensor times = mul(shifted, factor), over = div(shifted, factor);
  Tensor e = exp(p.anyOf({times, over}));
  Tensor sum = anyAxes(p, reduceSum(e, {0}, true));
  p.root(normalized(p, e, sum, spelling));
  p.replaceWith([=](Match& m) -> Value {
    if (m[shifted].getType() != m.root()->getResult(0).getType())
      return m.decline("the factor broadcasts " + shortType(m[shifted].getType()));
    Value c = m.scalar(m.constant(factor), m[x]);
    Value scaled = m.make(m.has(times) ? "lathe.mul" : "lathe.div", {m[x], c});
    return buildSoftmax(m, scaled, {top, sum}, MaskedRow::nan);
  });
}

std::vector<NamedAttr> attributesOf(SoftmaxOp op, double scale, double softcap,
                                    MaskedRow maskedRow) {
  return {{"axis", int64_t(op.getAxis())},
          {"scale", scale},
          {"softcap", softcap},
          {"masked_row", maskedRow}};
}

// softmax(where=) of JAX: the condition hides scores and the terms of the sum, which are 0 there
// already, but in a row that hides everything: that one is NaN.
void whereVisible(DagPattern& p, RootSpelling spelling) {
  Tensor condition = p.any();
  Tensor x = select(condition, p.any(), p.constant(-INFINITY));
  Tensor top = anyAxes(p, reduceMax(x, {0}, true));
  Tensor e = exp(sub(x, top));
  Tensor sum = anyAxes(p, reduceSum(select(condition, e, p.constant(0)), {0}, true));
  p.root(normalized(p, e, sum, spelling));
  p.replaceWith([=](Match& m) { return buildSoftmax(m, m[x], {top, sum}, MaskedRow::nan); });
}
// And it hides the weights, so that such a row is zeros.
void whereVisibleToZero(DagPattern& p) {
  Tensor condition = p.any();
  Tensor x = select(condition, p.any(), p.constant(-INFINITY));
  Tensor soft = anyPlainSoftmax(p, x);
  p.root(select(condition, soft, p.constant(0)));
  p.replaceWith([=](Match& m) -> Value {
    auto op = m[soft].getDefiningOp<SoftmaxOp>();
    if (op.getMaskedRow() == MaskedRow::uniform)
      return m.decline("'masked_row' of the softmax: a masked row has equal weights");
    // The NaN that a visible score makes of a row stays one at the hidden scores, too.
    if (!m.weakens(Contract::IncomingNan)) return {};
    return m.make("lathe.softmax", {m[x], {}}, attributesOf(op, 1, 0, MaskedRow::zero));
  });
}

// PyTorch's own guard: where any score of the row is not -inf the softmax counts, else zeros.
void whereAnyVisible(DagPattern& p) {
  Tensor x = p.any();
  Tensor soft = anyPlainSoftmax(p, x);
  Tensor seen = anyAxes(p, reduceAny(compare(x, p.constant(-INFINITY), Compare::ne), {0}, true));
  p.root(select(seen, soft, p.constant(0)));
  p.replaceWith([=](Match& m) -> Value {
    auto op = m[soft].getDefiningOp<SoftmaxOp>();
    if (op.getMaskedRow() == MaskedRow::uniform)
      return m.decline("'masked_row' of the softmax: a masked row has equal weights");
    auto axes = cast<DenseI64ArrayAttr>(m.attribute(seen, "axes")).asArrayRef();
    if (axes != ArrayRef<int64_t>{int64_t(op.getAxis())})
      return m.decline("'axes' of the test are not the softmax's");
    // A row of NaN and -inf is empty for the one and not for the other.
    if (!m.weakens(Contract::IncomingNan)) return {};
    return m.make("lathe.softmax", {m[x], {}}, attributesOf(op, 1, 0, MaskedRow::zero));
  });
}

void emptyRows(DagPattern& p, bool uniform, RootSpelling spelling) {
  Tensor x = p.any();
  Tensor top = anyAxes(p, reduceMax(x, {0}, true));
  Tensor empty = compare(top, p.constant(-INFINITY), Compare::eq);
  Tensor e = exp(sub(x, select(empty, p.constant(0), top)));
  if (uniform) e = select(empty, p.constant(1), e);
  Tensor sum = anyAxes(p, reduceSum(e, {0}, true));
  p.root(normalized(p, e, uniform ? sum : select(empty, p.constant(1), sum), spelling));
  p.replaceWith([=](Match& m) {
    return buildSoftmax(m, m[x], {top, sum}, uniform ? MaskedRow::uniform : MaskedRow::zero);
  });
}

void nanToZero(DagPattern& p, bool hasMask) {
  Tensor x = p.any(), mask = hasMask ? p.any() : Tensor();
  Tensor soft = p.emit("lathe.softmax", {x, mask}, {}, std::source_location::current());
  p.root(select(isNan(soft), p.constant(0), soft));
  p.replaceWith([=](Match& m) -> Value {
    auto op = m[soft].getDefiningOp<SoftmaxOp>();
    if (op.getMaskedRow() != MaskedRow::nan)
      return m.decline("the softmax already gives no NaN for a masked row");
    // Only an empty row becomes zeros: a NaN among the scores stays one.
    if (!m.weakens(Contract::IncomingNan)) return {};
    return m.make("lathe.softmax", {m[x], op.getMask()},
                  attributesOf(op, op.getScale().convertToDouble(),
                               op.getSoftcap().convertToDouble(), MaskedRow::zero));
  });
}

void secondMaximum(DagPattern& p) {
  Tensor x = p.any();
  Tensor top = anyAxes(p, reduceMax(x, {0}, true));
  Tensor soft = anyPlainSoftmax(p, sub(x, top));
  p.root(soft);
  p.replaceWith([=](Match& m) -> Value {
    auto op = cast<SoftmaxOp>(m.root());
    auto axes = cast<DenseI64ArrayAttr>(m.attribute(top, "axes")).asArrayRef();
    if (axes != ArrayRef<int64_t>{int64_t(op.getAxis())})
      return m.decline("'axes' of the first maximum are not the softmax's");
    // A masked row is NaN after the first subtraction, whatever the softmax's policy is.
    if (op.getMaskedRow() != MaskedRow::nan)
      return m.decline("'masked_row' of the softmax: the first maximum makes a masked row NaN");
    return m.make("lathe.softmax", {m[x], {}}, attributesOf(op, 1, 0, MaskedRow::nan));
  });
}

void masked(DagPattern& p) {
  p.phase(kComposites);
  Tensor x = p.where(p.any(), "scores behind a scale, softcap or mask", [](Value v) {
    return isa_and_nonnull<MulOp, DivOp, AddOp, SelectOp>(v.getDefiningOp());
  });
  p.root(anyPlainSoftmax(p, x));
  p.replaceWith([=](Match& m) -> Value {
    auto op = cast<SoftmaxOp>(m.root());
    ScoreReader scores(m, m[x], ScoreReader::Until::Anything);
    if (!scores.read()) return {};
    if (scores.base == m[x]) return m.decline("lathe.softmax: nothing to take in stands before it");
    return m.make("lathe.softmax", {scores.base, scores.mask()},
                  attributesOf(op, scores.scale, scores.softcap, scores.maskedRow(op)));
  });
}

}  // namespace

Tensor anyPlainSoftmax(DagPattern& p, const Tensor& x) {
  return p.where(p.emit("lathe.softmax", {x, Tensor()}, {}, std::source_location::current()),
                 "a softmax without scale, softcap and mask",
                 [](Value v) { return v.getDefiningOp<SoftmaxOp>().isPlain(); });
}

void addSoftmaxPatterns(PatternLibrary& library, MLIRContext* context) {
  for (RootSpelling s : {RootSpelling::Quotient, RootSpelling::Product}) {
    const std::string kind = s == RootSpelling::Quotient ? "" : "-product";
    addPattern(library, context, "softmax" + kind, [&](DagPattern& p) { plain(p, s); });
    addPattern(library, context, "softmax-scaled" + kind,
               [&](DagPattern& p) { scaledShift(p, s); });
    addPattern(library, context, "softmax-where" + kind,
               [&](DagPattern& p) { whereVisible(p, s); });
    addPattern(library, context, "softmax-zero" + kind,
               [&](DagPattern& p) { emptyRows(p, false, s); });
    addPattern(library, context, "softmax-uniform" + kind,
               [&](DagPattern& p) { emptyRows(p, true, s); });
  }
  addPattern(library, context, "softmax-of-logarithm", ofLogarithm);
  addPattern(library, context, "softmax-behind-product", behindProduct);
  addPattern(library, context, "softmax-where-zero", whereVisibleToZero);
  addPattern(library, context, "softmax-where-any", whereAnyVisible);
  addPattern(library, context, "softmax-nan-to-zero", [](DagPattern& p) { nanToZero(p, false); });
  addPattern(library, context, "softmax-masked-nan-to-zero",
             [](DagPattern& p) { nanToZero(p, true); });
  addPattern(library, context, "softmax-second-maximum", secondMaximum);
  addPattern(library, context, "softmax-masked", masked);
}

}  // namespace lathe
