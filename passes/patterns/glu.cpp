// SPDX-License-Identifier: Apache-2.0
//
//   x ─── (cast) ─ activation ─ (cast) ── mul ──        glu(x, u)
//   u ────────────────────────────────────┘
#include "lathe/ir/ops.h"
#include "lathe/ir/types.h"
#include "passes/patterns/forms.h"
#include "passes/patterns/library.h"

using namespace mlir;

namespace lathe {
namespace {

void record(DagPattern& p, Activation activation) {
  Tensor x = p.any(), up = p.any();
  std::vector<Tensor> spellings;
  for (const ActivationForm& form : activationForms())
    if (form.kind == activation) spellings.push_back(form.record(p, x));
  Tensor active = p.anyOf(spellings);
  Tensor rounded = roundingCast(p, active);
  p.root(mul(p.optional(rounded, active), up));
  p.replaceWith([=](Match& m) -> Value {
    Value gate = m[x];
    if (m.has(rounded)) {
      auto widened = gate.getDefiningOp<CastOp>();
      if (!widened || widened.getX().getType() != m[rounded].getType())
        return m.decline("the activation is cast back to a type that its input did not have");
      gate = widened.getX();
      m.consume(widened);
    }
    return m.make("lathe.glu", {gate, m[up]}, {{"activation", activation}});
  });
}

}  // namespace

// The goal of why-not owns the one of SiLU, which bears the op's name; a product with another
// activation is told by that one's name.
void addGluPatterns(PatternLibrary& library, MLIRContext* context) {
  for (Activation activation : valuesOf<Activation>()) {
    if (activation == Activation::none) continue;
    const std::string name =
        activation == Activation::silu ? "glu" : std::string(nameOf(activation)) + "_gate";
    addPattern(library, context, name, [=](DagPattern& p) { record(p, activation); });
  }
}

}  // namespace lathe
