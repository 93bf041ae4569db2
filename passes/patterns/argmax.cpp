// SPDX-License-Identifier: Apache-2.0
//
//   x ── softmax ── argmax ──           argmax(x)
//   x ── mul|div c > 0 ── argmax ──
//
// Both keep the order of floats; integers wrap when multiplied and lose their remainder when
// divided. Elements that rounding makes equal may change places: the first of the exact maxima is
// taken instead of the first of the rounded ones (weakens intermediate-rounding). A NaN or an
// infinity in x is found at its own place, where the softmax makes the whole row NaN (weakens
// incoming-nan). Not where somebody else reads the probabilities.
#include "lathe/ir/ops.h"
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
    return m.weakens(Contract::IncomingNan) && m.weakens(Contract::IntermediateRounding)
               ? argmaxOf(m, m[x])
               : Value();
  });
}

// A temperature. A factor far from 1 would make zeros or infinities of elements that differ.
bool isTemperature(double c) { return c >= 0x1p-16 && c <= 0x1p16; }

void ofScaled(DagPattern& p, bool divides) {
  Tensor x = p.where(p.any(), "floats: integers wrap or lose their remainder",
                     [](Value v) { return isa<FloatType>(tensorType(v).getElementType()); });
  Tensor factor = p.constantWhere("a constant factor between 2^-16 and 2^16", isTemperature);
  Tensor scaled = divides ? div(x, factor) : mul(x, factor);
  p.root(p.anyAttribute(argmax(scaled, 0), "axis"));
  p.replaceWith([=](Match& m) -> Value {
    if (m[x].getType() != m[scaled].getType())
      return m.decline("the factor broadcasts " + shortType(m[x].getType()));
    return m.weakens(Contract::IntermediateRounding) ? argmaxOf(m, m[x]) : Value();
  });
}

}  // namespace

void addArgmaxPatterns(PatternLibrary& library, MLIRContext* context) {
  addPattern(library, context, "argmax-softmax", ofSoftmax);
  addPattern(library, context, "argmax-product", [](DagPattern& p) { ofScaled(p, false); });
  addPattern(library, context, "argmax-quotient", [](DagPattern& p) { ofScaled(p, true); });
}

}  // namespace lathe
