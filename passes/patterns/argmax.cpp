// SPDX-License-Identifier: Apache-2.0
//
//   x ── softmax ── argmax ──           argmax(x)
//   x ── mul|div c > 0 ── argmax ──
//
// Both keep the order. Elements that rounding makes equal may change places: the first of the exact
// maxima is taken instead of the first of the rounded ones. A NaN in x is found at its own place,
// where the softmax makes the whole row NaN. Not where somebody else reads the probabilities.
#include <cmath>

#include "ir/ops.h"
#include "passes/patterns/forms.h"
#include "passes/patterns/library.h"

using namespace mlir;

namespace lathe {
namespace {

Value argmaxOf(Match& m, Value x) {
  return m.make("lathe.argmax", {x}, {{"axis", int64_t(cast<ArgMaxOp>(m.root()).getAxis())}});
}

void ofSoftmax(DagPattern& p) {
  Tensor x = p.any();
  Tensor soft = anyPlainSoftmax(p, x);
  p.root(p.anyAttribute(argmax(soft, 0), "axis"));
  p.replaceWith([=](Match& m) -> Value {
    if (m[soft].getDefiningOp<SoftmaxOp>().getAxis() != cast<ArgMaxOp>(m.root()).getAxis())
      return m.decline("'axis' of lathe.softmax is not that of lathe.argmax");
    return argmaxOf(m, m[x]);
  });
}

void ofScaled(DagPattern& p, bool divides) {
  Tensor x = p.any();
  Tensor factor = p.constantWhere("a positive constant factor",
                                  [](double v) { return v > 0 && std::isfinite(v); });
  p.root(p.anyAttribute(argmax(divides ? div(x, factor) : mul(x, factor), 0), "axis"));
  p.replaceWith([=](Match& m) -> Value { return argmaxOf(m, m[x]); });
}

}  // namespace

void addArgmaxPatterns(PatternLibrary& library, MLIRContext* context) {
  addPattern(library, context, "argmax-softmax", ofSoftmax);
  addPattern(library, context, "argmax-product", [](DagPattern& p) { ofScaled(p, false); });
  addPattern(library, context, "argmax-quotient", [](DagPattern& p) { ofScaled(p, true); });
}

}  // namespace lathe
