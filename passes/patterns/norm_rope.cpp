// SPDX-License-Identifier: Apache-2.0
//
//   x ── rms_norm gain ── rope ──                           norm_rope(x, gain, cos, sin)
//   x ── rms_norm gain ── transpose ── rope ──              the same of transpose(x), whose last
//                                                           axis is that of x
//
//   x ── (rms_norm gain) ── rope ── update ──               rope_append(cache, x, gain, cos, sin,
//                           cache, positions ┘                          positions)
//
// A late phase: a projection's own fusions come first. Tables are shared by layers and escape.
#include "lathe/ir/ops.h"
#include "passes/patterns/forms.h"
#include "passes/patterns/library.h"

using namespace mlir;

namespace lathe {
namespace {

NamedAttr pairing(Pairing value) { return {"pairing", value}; }
NamedAttr rounding(GainRounding value) { return {"rounding", value}; }

void normRope(DagPattern& p) {
  p.phase(kComposites);
  Tensor x = p.any(), gain = p.any(), cos = p.any(), sin = p.any();
  Tensor norm = anyRmsNorm(p, x, gain);
  p.root(p.emit("lathe.rope", {norm, cos, sin}, {}, std::source_location::current()));
  p.replaceWith([=](Match& m) -> Value {
    auto op = m[norm].getDefiningOp<RmsNormOp>();
    return m.make("lathe.norm_rope", {m[x], m[gain], m[cos], m[sin]},
                  {pairing(cast<RopeOp>(m.root()).getPairing()),
                   {"epsilon", op.getEpsilon().convertToDouble()},
                   rounding(op.getRounding())});
  });
}

void normTurnedRope(DagPattern& p) {
  p.phase(kComposites);
  Tensor x = p.any(), gain = p.any(), cos = p.any(), sin = p.any();
  Tensor norm = anyRmsNorm(p, x, gain);
  Tensor turned = p.anyAttribute(transpose(norm, {0}), "permutation");
  p.root(p.emit("lathe.rope", {turned, cos, sin}, {}, std::source_location::current()));
  p.replaceWith([=](Match& m) -> Value {
    auto permutation = m[turned].getDefiningOp<TransposeOp>().getPermutation();
    if (permutation.back() != int64_t(permutation.size()) - 1)
      return m.decline("'permutation' of lathe.transpose: the normed axis does not stay the last");
    auto op = m[norm].getDefiningOp<RmsNormOp>();
    Value first = m.make("lathe.transpose", {m[x]}, {{"permutation", permutation.vec()}});
    return m.make("lathe.norm_rope", {first, m[gain], m[cos], m[sin]},
                  {pairing(cast<RopeOp>(m.root()).getPairing()),
                   {"epsilon", op.getEpsilon().convertToDouble()},
                   rounding(op.getRounding())});
  });
}

void append(DagPattern& p, bool normed) {
  p.phase(kComposites);
  Tensor cache = p.any(), x = p.any(), gain = p.any(), cos = p.any(), sin = p.any();
  Tensor positions = p.any();
  auto at = std::source_location::current();
  Tensor turned = normed ? p.emit("lathe.norm_rope", {x, gain, cos, sin}, {}, at)
                         : p.emit("lathe.rope", {x, cos, sin}, {}, at);
  Tensor written = p.anyAttribute(update(cache, turned, positions, 0), "axis");
  p.root(written);
  p.replaceWith([=](Match& m) -> Value {
    std::vector<NamedAttr> attributes{
        {"axis", cast<IntegerAttr>(m.attribute(written, "axis")).getInt()}};
    if (auto op = m[turned].getDefiningOp<NormRopeOp>()) {
      attributes.push_back(pairing(op.getPairing()));
      attributes.push_back({"epsilon", op.getEpsilon().convertToDouble()});
      attributes.push_back(rounding(op.getRounding()));
    } else {
      attributes.push_back(pairing(m[turned].getDefiningOp<RopeOp>().getPairing()));
    }
    return m.make("lathe.rope_append", {m[cache], m[x], m[gain], m[cos], m[sin], m[positions]},
                  attributes);
  });
}

}  // namespace

void addNormRopePatterns(PatternLibrary& library, MLIRContext* context) {
  addPattern(library, context, "norm_rope", normRope);
  addPattern(library, context, "norm_rope-turned", normTurnedRope);
  addPattern(library, context, "rope_append", [](DagPattern& p) { append(p, false); });
  addPattern(library, context, "rope_append-normed", [](DagPattern& p) { append(p, true); });
}

}  // namespace lathe
