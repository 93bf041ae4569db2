// SPDX-License-Identifier: Apache-2.0
//
//   layer_norm|rms_norm(x) ── mul ─────── add ──        adaln_modulate(x) shift(s) scale(c)
//   c ── add 1 ───────────────┘         s ┘
//
// The norm has neither gain nor bias. shift and scale broadcast over the tokens.
#include "lathe/ir/ops.h"
#include "passes/patterns/forms.h"
#include "passes/patterns/library.h"

using namespace mlir;

namespace lathe {
namespace {

void record(DagPattern& p, Norm kind) {
  Tensor x = p.any(), shift = p.any(), scale = p.any();
  Tensor norm = kind == Norm::layer ? anyLayerNorm(p, x, {}, {}) : anyRmsNorm(p, x, {});
  p.root(add(mul(norm, add(scale, p.constant(1))), shift));
  p.replaceWith([=](Match& m) -> Value {
    Operation* op = m[norm].getDefiningOp();
    auto layer = dyn_cast<LayerNormOp>(op);
    double epsilon =
        (layer ? layer.getEpsilon() : cast<RmsNormOp>(op).getEpsilon()).convertToDouble();
    return m.make("lathe.adaln_modulate", {m[x], m[shift], m[scale]},
                  {{"norm", kind}, {"epsilon", epsilon}});
  });
}

}  // namespace

void addAdalnPatterns(PatternLibrary& library, MLIRContext* context) {
  addPattern(library, context, "adaln_modulate", [](DagPattern& p) { record(p, Norm::layer); });
  addPattern(library, context, "adaln_modulate-rms", [](DagPattern& p) { record(p, Norm::rms); });
}

}  // namespace lathe
