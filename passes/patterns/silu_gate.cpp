// SPDX-License-Identifier: Apache-2.0
//
//   x ─┬─ (cast) ─ activation ─ (cast) ── mul ──        silu_gate(x, u)
//   u ─┼──────────────────────────────────┘
//
//   silu        x * sigmoid(x), x * (1 / (1 + exp(-x))), x / (1 + exp(-x))
//   gelu        x / 2 * (1 + erf(x / sqrt 2))
//   gelu_tanh   x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3)))
//   relu        max(x, 0)
#include <numbers>

#include "ir/ops.h"
#include "ir/types.h"
#include "passes/match.h"
#include "passes/patterns/library.h"

using namespace mlir;

namespace lathe {
namespace {

using ActivationForm = std::function<Tensor(DagPattern&, const Tensor&)>;

Tensor siluForm(DagPattern& p, const Tensor& x) {
  auto onePlusExp = [&] { return add(exp(neg(x)), p.constant(1)); };
  Tensor sigmoids = p.anyOf({sigmoid(x), div(p.constant(1), onePlusExp())});
  return p.anyOf({mul(x, sigmoids), div(x, onePlusExp())});
}

// x / 2 * (1 + inner) in any association.
Tensor halfOnePlus(DagPattern& p, const Tensor& x, const Tensor& inner) {
  Tensor sum = add(inner, p.constant(1));
  return p.anyOf({mul(mul(x, p.constant(0.5)), sum), mul(mul(x, sum), p.constant(0.5)),
                  mul(x, mul(sum, p.constant(0.5)))});
}

Tensor geluForm(DagPattern& p, const Tensor& x) {
  using std::numbers::sqrt2;
  Tensor scaled = p.anyOf({mul(x, p.constant(1 / sqrt2)), div(x, p.constant(sqrt2))});
  return halfOnePlus(p, x, erf(scaled));
}

Tensor geluTanhForm(DagPattern& p, const Tensor& x) {
  using std::numbers::inv_sqrtpi, std::numbers::sqrt2;
  Tensor cube = p.anyOf({mul(mul(x, x), x), pow(x, p.constant(3))});
  Tensor inner = add(x, mul(cube, p.constant(0.044715)));
  return halfOnePlus(p, x, tanh(mul(inner, p.constant(sqrt2 * inv_sqrtpi))));
}

Tensor reluForm(DagPattern& p, const Tensor& x) { return max(x, p.constant(0)); }

void record(DagPattern& p, const ActivationForm& form, const std::string& activation) {
  Tensor x = p.any(), up = p.any();
  Tensor active = form(p, x);
  Tensor rounded = anyCast(p, active);
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
    return m.make("lathe.silu_gate", {gate, m[up]},
                  {{"activation", Keyword{"activation", activation}}});
  });
}

}  // namespace

void addSiluGatePatterns(PatternLibrary& library, MLIRContext* context) {
  struct Form {
    const char *pattern, *activation;
    ActivationForm form;
  };
  for (const Form& f :
       {Form{"silu_gate", "silu", siluForm}, Form{"gelu_gate", "gelu", geluForm},
        Form{"gelu_tanh_gate", "gelu_tanh", geluTanhForm}, Form{"relu_gate", "relu", reluForm}})
    addPattern(library, context, f.pattern,
               [&](DagPattern& p) { record(p, f.form, f.activation); });
}

}  // namespace lathe
