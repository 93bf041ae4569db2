// SPDX-License-Identifier: Apache-2.0
//
//   x ───────────────────────── matmul ── add ── add ──     linear(x, w) bias(b) residual(r)
//   weight ─ (cast) ─ transpose ┘       b ┘    r ┘
//
// One pattern per step: the product, then the bias, then the residual.
#include "ir/ops.h"
#include "ir/types.h"
#include "passes/match.h"
#include "passes/patterns/library.h"

using namespace mlir;

namespace lathe {
namespace {

bool isWeightMatrix(Value v) { return isWeight(v) && tensorType(v).getRank() == 2; }
Tensor weightMatrix(DagPattern& p) { return p.where(p.any(), "a weight matrix", isWeightMatrix); }
// A product of two weights is weight-only arithmetic, not a layer.
Tensor input(DagPattern& p) {
  return p.where(p.any(), "an input that is no weight", [](Value v) { return !isWeight(v); });
}
Tensor linearOp(DagPattern& p, const Tensor& x, const Tensor& w, const Tensor& bias) {
  return p.emit("lathe.linear", {x, w, bias, Tensor()}, {}, std::source_location::current());
}
NamedAttr layout(const char* value) { return {"layout", Keyword{"weight_layout", value}}; }
NamedAttr layoutOf(Match& m, const Tensor& linear) {
  auto op = m[linear].getDefiningOp<LinearOp>();
  return {"layout", Keyword{"weight_layout", stringifyWeightLayout(op.getLayout()).str()}};
}

void transposed(DagPattern& p) {
  Tensor x = input(p), w = weightMatrix(p);
  Tensor turned = p.mayEscape(transpose(w, {1, 0}));
  Tensor converted = p.mayEscape(anyCast(p, turned));
  p.root(matmul(x, p.optional(converted, turned)));
  p.replaceWith([=](Match& m) -> Value {
    Value weight = m[w];
    if (m.has(converted))
      weight = m.make("lathe.cast", {weight},
                      {{"dtype", *dtypeOf(tensorType(m[converted]).getElementType())}});
    return m.make("lathe.linear", {m[x], weight, {}, {}}, {layout("out_in")});
  });
}

void plain(DagPattern& p) {
  Tensor x = input(p), w = weightMatrix(p);
  p.root(matmul(x, w));
  p.replaceWith([=](Match& m) -> Value {
    return m.make("lathe.linear", {m[x], m[w], {}, {}}, {layout("in_out")});
  });
}

void withBias(DagPattern& p) {
  Tensor x = p.any(), w = p.any();
  Tensor bias =
      p.where(p.any(), "a bias of rank 1", [](Value v) { return tensorType(v).getRank() == 1; });
  Tensor product = linearOp(p, x, w, Tensor());
  p.root(add(product, bias));
  p.replaceWith([=](Match& m) -> Value {
    return m.make("lathe.linear", {m[x], m[w], m[bias], {}}, {layoutOf(m, product)});
  });
}

void withResidual(DagPattern& p) {
  Tensor x = p.any(), w = p.any(), bias = p.any(), residual = p.any();
  Tensor with = linearOp(p, x, w, bias), without = linearOp(p, x, w, Tensor());
  p.root(add(p.anyOf({without, with}), residual));
  p.replaceWith([=](Match& m) -> Value {
    const Tensor& product = m.has(with) ? with : without;
    if (m[residual].getType() != m[product].getType())
      return m.decline("the residual is " + shortType(m[residual].getType()) + ", the product " +
                       shortType(m[product].getType()));
    return m.make("lathe.linear", {m[x], m[w], m[bias], m[residual]}, {layoutOf(m, product)});
  });
}

}  // namespace

void addLinearPatterns(PatternLibrary& library, MLIRContext* context) {
  addPattern(library, context, "linear", transposed);
  addPattern(library, context, "linear-in-out", plain);
  addPattern(library, context, "linear-bias", withBias);
  addPattern(library, context, "linear-residual", withResidual);
}

}  // namespace lathe
