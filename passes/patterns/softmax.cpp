// SPDX-License-Identifier: Apache-2.0
//
//   x ──┬─────────── sub ── exp ──┬───────── div          softmax(x), a row of -inf gives NaN
//       └─ reduce_max ┘           └─ reduce_sum ┘
//
//   p = softmax(x) ──┬──── select ──                      masked_row zero
//                    └ is_nan ┘ (0 where true)
//
// Decomposition spells `zero` and `uniform` with a test of the maximum instead:
//
//   top = reduce_max(x); empty = top == -inf; top' = select(empty, 0, top); e = exp(x - top')
//   zero:    div(e, select(empty, 1, reduce_sum(e)))
//   uniform: e' = select(empty, 1, e); div(e', reduce_sum(e'))
#include <cmath>

#include "ir/ops.h"
#include "ir/types.h"
#include "passes/match.h"
#include "passes/patterns/library.h"

using namespace mlir;

namespace lathe {
namespace {

struct Reductions {
  Tensor top, sum;
};

Tensor anyAxes(DagPattern& p, const Tensor& reduce) { return p.anyAttribute(reduce, "axes"); }

Value buildSoftmax(Match& m, const Tensor& x, const Reductions& r, const char* maskedRow) {
  Attribute axes = m.attribute(r.top, "axes");
  if (axes != m.attribute(r.sum, "axes"))
    return m.decline("the maximum and the sum run over different axes");
  auto list = cast<DenseI64ArrayAttr>(axes).asArrayRef();
  if (list.size() != 1) return m.decline("the softmax runs over more than one axis");
  return m.make("lathe.softmax", {m[x]},
                {{"axis", list[0]}, {"masked_row", Keyword{"masked_row", maskedRow}}});
}

void plain(DagPattern& p) {
  Tensor x = p.any();
  Tensor top = anyAxes(p, reduceMax(x, {0}, true));
  Tensor e = exp(sub(x, top));
  Tensor sum = anyAxes(p, reduceSum(e, {0}, true));
  p.root(div(e, sum));
  p.replaceWith([=](Match& m) { return buildSoftmax(m, x, {top, sum}, "nan"); });
}

void emptyRows(DagPattern& p, bool uniform) {
  Tensor x = p.any();
  Tensor top = anyAxes(p, reduceMax(x, {0}, true));
  Tensor empty = compare(top, p.constant(-INFINITY), "eq");
  Tensor e = exp(sub(x, select(empty, p.constant(0), top)));
  if (uniform) e = select(empty, p.constant(1), e);
  Tensor sum = anyAxes(p, reduceSum(e, {0}, true));
  p.root(div(e, uniform ? sum : select(empty, p.constant(1), sum)));
  p.replaceWith(
      [=](Match& m) { return buildSoftmax(m, x, {top, sum}, uniform ? "uniform" : "zero"); });
}

void nanToZero(DagPattern& p) {
  Tensor x = p.any();
  Tensor soft = p.emit("lathe.softmax", {x}, {}, std::source_location::current());
  p.root(select(isNan(soft), p.constant(0), soft));
  p.replaceWith([=](Match& m) -> Value {
    auto op = m[soft].getDefiningOp<SoftmaxOp>();
    if (op.getMaskedRow() != MaskedRow::nan)
      return m.decline("the softmax already gives no NaN for a masked row");
    return m.make("lathe.softmax", {m[x]},
                  {{"axis", int64_t(op.getAxis())}, {"masked_row", Keyword{"masked_row", "zero"}}});
  });
}

}  // namespace

void addSoftmaxPatterns(PatternLibrary& library, MLIRContext* context) {
  addPattern(library, context, "softmax", plain);
  addPattern(library, context, "softmax-zero", [](DagPattern& p) { emptyRows(p, false); });
  addPattern(library, context, "softmax-uniform", [](DagPattern& p) { emptyRows(p, true); });
  addPattern(library, context, "softmax-nan-to-zero", nanToZero);
}

}  // namespace lathe
