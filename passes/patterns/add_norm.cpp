// SPDX-License-Identifier: Apache-2.0
//
//   x ── add ─┬───────────────────── sum                  sum, y = add_norm(x, r)
//   r ────┘   └─ rms_norm|layer_norm ── y
//
// A late phase: a linear op that the sum may go into as its residual takes it first.
#include "lathe/ir/ops.h"
#include "passes/patterns/forms.h"
#include "passes/patterns/library.h"

using namespace mlir;

namespace lathe {
namespace {

// Builds add_norm from the matched add; the first result replaces the sum, the second is the norm.
Value build(Match& m, const Tensor& sum, const Tensor& x, const Tensor& residual, Value gain,
            Value bias, std::vector<NamedAttr> attributes) {
  auto type = m[sum].getType();
  if (m[x].getType() != type || m[residual].getType() != type)
    return m.decline("an operand of lathe.add is broadcast: " + shortType(m[x].getType()) +
                     " and " + shortType(m[residual].getType()));
  Value first = m.make("lathe.add_norm", {m[x], m[residual], gain, bias}, attributes);
  if (!first) return {};
  m.replaceToo(sum, first);
  return first.getDefiningOp()->getResult(1);
}

void rms(DagPattern& p, bool hasGain) {
  Tensor x = p.any(), residual = p.any(), gain = hasGain ? p.any() : Tensor();
  Tensor sum = p.mayEscape(add(x, residual));
  p.root(anyRmsNorm(p, sum, gain));
  p.replaceWith([=](Match& m) {
    auto op = cast<RmsNormOp>(m.root());
    return build(m, sum, x, residual, op.getGain(), {},
                 {{"norm", Norm::rms},
                  {"epsilon", op.getEpsilon().convertToDouble()},
                  {"rounding", op.getRounding()}});
  });
}

void layer(DagPattern& p, bool hasGain, bool hasBias) {
  Tensor x = p.any(), residual = p.any();
  Tensor gain = hasGain ? p.any() : Tensor(), bias = hasBias ? p.any() : Tensor();
  Tensor sum = p.mayEscape(add(x, residual));
  p.root(anyLayerNorm(p, sum, gain, bias));
  p.replaceWith([=](Match& m) {
    auto op = cast<LayerNormOp>(m.root());
    return build(m, sum, x, residual, op.getGain(), op.getBias(),
                 {{"norm", Norm::layer}, {"epsilon", op.getEpsilon().convertToDouble()}});
  });
}

}  // namespace

void addAddNormPatterns(PatternLibrary& library, MLIRContext* context) {
  auto late = [&](const char* name, const std::function<void(DagPattern&)>& record) {
    addPattern(library, context, name, [&](DagPattern& p) {
      p.phase(kComposites);
      record(p);
    });
  };
  late("add_norm-rms", [](DagPattern& p) { rms(p, true); });
  late("add_norm-rms-plain", [](DagPattern& p) { rms(p, false); });
  late("add_norm-layer", [](DagPattern& p) { layer(p, true, true); });
  late("add_norm-layer-gain", [](DagPattern& p) { layer(p, true, false); });
  late("add_norm-layer-bias", [](DagPattern& p) { layer(p, false, true); });
  late("add_norm-layer-plain", [](DagPattern& p) { layer(p, false, false); });
}

}  // namespace lathe
