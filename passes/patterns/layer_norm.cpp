// SPDX-License-Identifier: Apache-2.0
//
//   x ─┬──────── sub ──┬───────────────────────────── mul|div ──          layer_norm(x)
//      └─ mean ──┘     └─ mul|pow 2 ── mean ── add ── rsqrt|sqrt ┘
//                                       eps ┘
//
//   layer_norm(x) ── mul ── add ──                                        layer_norm(x) gain(g)
//   bias(b)
//                  g ┘    b ┘
//
// One pattern per step. The variance is the mean of the squared differences. E[x^2] - E[x]^2
// cancels in f32 where the mean is large against the spread: it keeps its own meaning and is
// refused by name.
#include "lathe/ir/ops.h"
#include "passes/patterns/forms.h"
#include "passes/patterns/library.h"

using namespace mlir;

namespace lathe {
namespace {

struct Centered {
  Tensor x, value;
  AverageForm mean;
};
Centered centered(DagPattern& p) {
  Centered c{.x = p.any()};
  c.mean = averageForm(p, c.x);
  c.value = sub(c.x, c.mean.value);
  return c;
}
Tensor square(DagPattern& p, const Tensor& x) {
  return p.anyOf({mul(x, x), pow(x, p.constant(2))});
}

Value build(Match& m, const Centered& c, const AverageForm& variance, double epsilon,
            const Tensor& gain) {
  if (!isMeanOfLastAxis(m, c.mean) || !isMeanOfLastAxis(m, variance)) return {};
  Value g;
  if (gain.defined() && !(g = perLastDim(m, m[gain], tensorType(m[c.x]))))
    return m.decline("the gain is not one element per last dim");
  return m.make("lathe.layer_norm", {m[c.x], g, {}}, {{"epsilon", epsilon}});
}

void bareLayerNorm(DagPattern& p, RootSpelling spelling) {
  Centered c = centered(p);
  AverageForm variance = averageForm(p, square(p, c.value));
  RootForm f = rootForm(p, c.value, variance.value, spelling);
  p.root(f.scaled);
  p.replaceWith([=](Match& m) { return build(m, c, variance, epsilonOf(m, f), {}); });
}

// (x - mean) * (gain / sqrt(..)): the gain is in the factor.
void gainInFactor(DagPattern& p) {
  Centered c = centered(p);
  Tensor gain = p.any();
  AverageForm variance = averageForm(p, square(p, c.value));
  RootForm f = rootForm(p, gain, variance.value, RootSpelling::Product);
  p.root(mul(c.value, f.scaled));
  p.replaceWith([=](Match& m) { return build(m, c, variance, epsilonOf(m, f), gain); });
}

// x f + (bias - mean f), f = gain / sqrt(..): the mean is taken off last, as a batch norm does.
void meanBehindFactor(DagPattern& p) {
  Centered c = centered(p);
  Tensor gain = p.any(), bias = p.any();
  AverageForm variance = averageForm(p, square(p, c.value));
  RootForm f = rootForm(p, gain, variance.value, RootSpelling::Product);
  p.root(add(mul(c.x, f.scaled), sub(bias, mul(c.mean.value, f.scaled))));
  p.replaceWith([=](Match& m) -> Value {
    Value norm = build(m, c, variance, epsilonOf(m, f), gain);
    if (!norm) return {};
    Value b = perLastDim(m, m[bias], tensorType(m[c.x]));
    if (!b) return m.decline("the bias is not one element per last dim");
    auto op = norm.getDefiningOp<LayerNormOp>();
    return m.make("lathe.layer_norm", {m[c.x], op.getGain(), b},
                  {{"epsilon", op.getEpsilon().convertToDouble()}});
  });
}

void ofMoments(DagPattern& p, RootSpelling spelling) {
  Centered c = centered(p);
  AverageForm squares = averageForm(p, square(p, c.x));
  Tensor variance = sub(squares.value, square(p, c.mean.value));
  RootForm f = rootForm(p, c.value, variance, spelling);
  p.root(f.scaled);
  p.replaceWith([](Match& m) {
    return m.decline(
        "the variance is E[x^2] - E[x]^2, which cancels in f32; lathe.layer_norm takes the mean of "
        "the squared differences");
  });
}

// What is multiplied or added comes before the rounding: in the compute type there is none.
bool isWide(Value v) {
  Type element = tensorType(v).getElementType();
  return element == computeType(element);
}

void withGain(DagPattern& p) {
  Tensor x = p.any(), gain = p.any();
  Tensor norm = anyLayerNorm(p, x, {}, {});
  p.root(mul(norm, gain));
  p.replaceWith([=](Match& m) -> Value {
    if (!isWide(m[norm])) return m.decline("the normalized value is rounded before the gain");
    Value g = perLastDim(m, m[gain], tensorType(m[x]));
    if (!g) return m.decline("the gain is not one element per last dim");
    auto op = m[norm].getDefiningOp<LayerNormOp>();
    return m.make("lathe.layer_norm", {m[x], g, {}},
                  {{"epsilon", op.getEpsilon().convertToDouble()}});
  });
}

void normWithBias(DagPattern& p) {
  Tensor x = p.any(), gain = p.any(), bias = p.any();
  Tensor with = anyLayerNorm(p, x, gain, {}), without = anyLayerNorm(p, x, {}, {});
  Tensor norm = p.anyOf({with, without});
  p.root(add(norm, bias));
  p.replaceWith([=](Match& m) -> Value {
    if (!isWide(m[norm])) return m.decline("the normalized value is rounded before the bias");
    Value b = perLastDim(m, m[bias], tensorType(m[x]));
    if (!b) return m.decline("the bias is not one element per last dim");
    auto op = m[norm].getDefiningOp<LayerNormOp>();
    return m.make("lathe.layer_norm", {m[x], m[gain], b},
                  {{"epsilon", op.getEpsilon().convertToDouble()}});
  });
}

}  // namespace

Tensor anyLayerNorm(DagPattern& p, const Tensor& x, const Tensor& gain, const Tensor& bias) {
  return p.emit("lathe.layer_norm", {x, gain, bias}, {}, std::source_location());
}

void addLayerNormPatterns(PatternLibrary& library, MLIRContext* context) {
  for (RootSpelling s : {RootSpelling::Product, RootSpelling::Quotient}) {
    const char* kind = s == RootSpelling::Product ? "" : "-quotient";
    addPattern(library, context, std::string("layer_norm") + kind,
               [&](DagPattern& p) { bareLayerNorm(p, s); });
    addPattern(library, context, std::string("layer_norm-of-moments") + kind,
               [&](DagPattern& p) { ofMoments(p, s); });
  }
  addPattern(library, context, "layer_norm-factor", gainInFactor);
  addPattern(library, context, "layer_norm-mean-behind-factor", meanBehindFactor);
  addPattern(library, context, "layer_norm-gain", withGain);
  addPattern(library, context, "layer_norm-bias", normWithBias);
}

}  // namespace lathe
