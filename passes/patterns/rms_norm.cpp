// SPDX-License-Identifier: Apache-2.0
//
//   x ──┬───────────────────────────────────────── mul|div ──                   rms_norm(x)
//       └─ mul|pow 2 ── mean ── add ── rsqrt|sqrt ┘
//                                eps ┘
//
//   rms_norm(x) ── (cast) ── mul ──                                             rms_norm(x, gain)
//                       gain ┘
//
// mean is reduce_mean, or reduce_sum divided by the size or multiplied by its inverse. With the
// cast, the value is rounded before the gain is applied; without it in f32, casts around the whole
// become part of the op (narrowing.cpp), and a gain after that is one after the rounding.
#include "lathe/ir/ops.h"
#include "passes/patterns/forms.h"
#include "passes/patterns/library.h"

using namespace mlir;

namespace lathe {
namespace {

Value build(Match& m, const Tensor& x, const Tensor& gain, const AverageForm& average,
            double epsilon) {
  if (!isMeanOfLastAxis(m, average)) return {};
  if (tensorType(m[x]) != m.root()->getResult(0).getType())
    return m.decline("the squares are of another shape than the result");
  Value g;
  if (gain.defined() && !(g = perLastDim(m, m[gain], tensorType(m[x]))))
    return m.decline("the gain is not one element per last dim");
  return m.make("lathe.rms_norm", {m[x], g}, {{"epsilon", epsilon}});
}

void bareRmsNorm(DagPattern& p, RootSpelling spelling) {
  Tensor x = p.any();
  AverageForm average = averageForm(p, p.anyOf({mul(x, x), pow(x, p.constant(2))}));
  RootForm f = rootForm(p, x, average.value, spelling);
  p.root(f.scaled);
  p.replaceWith([=](Match& m) { return build(m, x, {}, average, epsilonOf(m, f)); });
}

// x * (gain / sqrt(..)): the gain is in the factor.
void rmsGainInFactor(DagPattern& p) {
  Tensor x = p.any(), gain = p.any();
  AverageForm average = averageForm(p, p.anyOf({mul(x, x), pow(x, p.constant(2))}));
  RootForm f = rootForm(p, gain, average.value, RootSpelling::Product);
  p.root(mul(x, f.scaled));
  p.replaceWith([=](Match& m) { return build(m, x, gain, average, epsilonOf(m, f)); });
}

void rmsWithGain(DagPattern& p) {
  Tensor x = p.any(), gain = p.any();
  Tensor norm = anyRmsNorm(p, x, {});
  Tensor rounded = roundingCast(p, norm);
  p.root(mul(p.optional(rounded, norm), gain));
  p.replaceWith([=](Match& m) -> Value {
    auto op = m[norm].getDefiningOp<RmsNormOp>();
    auto type = tensorType(m.has(rounded) ? m[rounded] : m[norm]);
    Value input = m[x];
    bool rounds = m.has(rounded);
    if (rounds) {
      auto widened = input.getDefiningOp<CastOp>();
      if (!widened || widened.getX().getType() != type)
        return m.decline("the value is cast back to a type that the input did not have");
      input = widened.getX();
      m.consume(widened);
    }
    Value g = perLastDim(m, m[gain], type);
    if (!g) return m.decline("the gain is not one element per last dim");
    // In the compute type nothing is rounded before the gain.
    rounds |= type.getElementType() != computeType(type.getElementType());
    return m.make("lathe.rms_norm", {input, g},
                  {{"epsilon", op.getEpsilon().convertToDouble()},
                   {"rounding", rounds ? GainRounding::before_gain : GainRounding::after_gain}});
  });
}

}  // namespace

Tensor anyRmsNorm(DagPattern& p, const Tensor& x, const Tensor& gain) {
  return p.emit("lathe.rms_norm", {x, gain}, {}, std::source_location());
}

void addRmsNormPatterns(PatternLibrary& library, MLIRContext* context) {
  addPattern(library, context, "rms_norm",
             [](DagPattern& p) { bareRmsNorm(p, RootSpelling::Product); });
  addPattern(library, context, "rms_norm-quotient",
             [](DagPattern& p) { bareRmsNorm(p, RootSpelling::Quotient); });
  addPattern(library, context, "rms_norm-factor", rmsGainInFactor);
  addPattern(library, context, "rms_norm-gain", rmsWithGain);
}

}  // namespace lathe
