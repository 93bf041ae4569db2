// SPDX-License-Identifier: Apache-2.0
//
//   x ───────────────────────── matmul ── add ── activation ── add ──
//   weight ─ (cast) ─ transpose ┘       b ┘                  r ┘
//
//                                       linear(x, w) bias(b) activation(silu) residual(r)
//
// One pattern per step: the product, then the bias, the activation, the residual. Activations wait
// for a phase of their own: a gate takes its activation first (glu.cpp).
#include "lathe/ir/ops.h"
#include "lathe/ir/types.h"
#include "passes/patterns/forms.h"
#include "passes/patterns/library.h"
#include "passes/rewrite/weight_only.h"

using namespace mlir;

namespace lathe {
namespace {

constexpr const char* kUnrounded = "'unrounded' of lathe.linear: its result is left as it is";

bool isWeightMatrix(Value v) { return isWeight(v) && tensorType(v).getRank() == 2; }
Tensor weightMatrix(DagPattern& p) { return p.where(p.any(), "a weight matrix", isWeightMatrix); }
// A product of two weights is weight-only arithmetic, not a layer.
Tensor input(DagPattern& p) {
  return p.where(p.any(), "an input that is no weight", [](Value v) { return !isWeight(v); });
}

// A linear op without residual, with or without a bias.
struct Product {
  Tensor x, w, bias, with, without, value;
};
Product anyProduct(DagPattern& p) {
  auto bare = [](Value v) {
    auto op = v.getDefiningOp<LinearOp>();
    return op.getActivation() == Activation::none && !op.getUnrounded();
  };
  Product r{.x = p.any(), .w = p.any(), .bias = p.any()};
  auto linear = [&](const Tensor& bias) {
    return p.where(p.emit("lathe.linear", {r.x, r.w, bias, Tensor()}, {}, std::source_location()),
                   "a linear op without activation that is rounded", bare);
  };
  r.with = linear(r.bias);
  r.without = linear(Tensor());
  r.value = p.anyOf({r.without, r.with});
  return r;
}

NamedAttr layout(WeightLayout value) { return {"layout", value}; }
NamedAttr layoutOf(LinearOp op) { return {"layout", op.getLayout()}; }
NamedAttr activationOf(LinearOp op) { return {"activation", op.getActivation()}; }

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
    return m.make("lathe.linear", {m[x], weight, {}, {}}, {layout(WeightLayout::out_in)});
  });
}

void plain(DagPattern& p) {
  Tensor x = input(p), w = weightMatrix(p);
  p.root(matmul(x, w));
  p.replaceWith([=](Match& m) -> Value {
    return m.make("lathe.linear", {m[x], m[w], {}, {}}, {layout(WeightLayout::in_out)});
  });
}

void linearWithBias(DagPattern& p) {
  Product product = anyProduct(p);
  Tensor bias = p.any();
  p.root(add(product.without, bias));
  p.replaceWith([=](Match& m) -> Value {
    Value b = perLastDim(m, m[bias], tensorType(m[product.without]));
    if (!b) return m.decline("the bias is not one element per last dim");
    auto op = m[product.without].getDefiningOp<LinearOp>();
    return m.make("lathe.linear", {op.getX(), op.getW(), b, {}}, {layoutOf(op)});
  });
}

// x w - b: the negative of a weight is taken at load time.
void withoutBias(DagPattern& p) {
  Product product = anyProduct(p);
  Tensor bias = p.where(p.any(), "a bias of weights alone", isLoadedWeight);
  p.root(sub(product.without, bias));
  p.replaceWith([=](Match& m) -> Value {
    Value b = perLastDim(m, m[bias], tensorType(m[product.without]));
    if (!b) return m.decline("the bias is not one element per last dim");
    b = m.make("lathe.neg", {b});
    auto op = m[product.without].getDefiningOp<LinearOp>();
    return m.make("lathe.linear", {op.getX(), op.getW(), b, {}}, {layoutOf(op)});
  });
}

// (r + x w) + b.
void biasAfterResidual(DagPattern& p) {
  Tensor x = p.any(), w = p.any(), residual = p.any();
  Tensor bias = p.where(p.any(), "a bias of weights alone", isLoadedWeight);
  Tensor sum =
      p.emit("lathe.linear", {x, w, Tensor(), residual}, {}, std::source_location::current());
  p.root(add(sum, bias));
  p.replaceWith([=](Match& m) -> Value {
    auto op = m[sum].getDefiningOp<LinearOp>();
    if (op.getActivation() != Activation::none)
      return m.decline("'activation' of lathe.linear: it comes behind the bias");
    if (op.getUnrounded()) return m.decline(kUnrounded);
    Value b = perLastDim(m, m[bias], tensorType(m[sum]));
    if (!b) return m.decline("the bias is not one element per last dim");
    return m.make("lathe.linear", {op.getX(), op.getW(), b, op.getResidual()}, {layoutOf(op)});
  });
}

// The bias has the axes that the columns are taken apart into: heads and their elements.
void biasOfParts(DagPattern& p) {
  Product product = anyProduct(p);
  Tensor bias = p.where(p.any(), "a bias of weights alone", isLoadedWeight);
  Tensor parts = anyReshape(p, product.without);
  p.root(add(parts, bias));
  p.replaceWith([=](Match& m) -> Value {
    auto whole = dimsOf(tensorType(m[product.without])), apart = dimsOf(tensorType(m[parts]));
    auto own = dimsOf(tensorType(m[bias]));
    const size_t rows = whole.size() - 1;
    bool splitsColumns = m[parts].getType() == m.root()->getResult(0).getType() &&
                         apart.size() == rows + own.size() &&
                         ArrayRef(apart).take_front(rows) == ArrayRef(whole).take_front(rows) &&
                         ArrayRef(apart).drop_front(rows) == ArrayRef(own) &&
                         llvm::all_of(apart, [](StringAttr d) { return bool(d); });
    if (!splitsColumns)
      return m.decline("the bias has not the axes that the columns are split into");
    auto op = m[product.without].getDefiningOp<LinearOp>();
    Value b = reshaped(m, m[bias], {whole.back()});
    Value y = b ? m.make("lathe.linear", {op.getX(), op.getW(), b, {}}, {layoutOf(op)}) : Value();
    return y ? reshaped(m, y, apart) : Value();
  });
}

// `widened`: the activation is computed in f32 between casts, as linear computes it. Rows that were
// merged for the product may be taken apart before it: it does not care where an element lies.
void withActivation(DagPattern& p, const ActivationForm& form, bool widened) {
  p.phase(kEpilogues);
  Product product = anyProduct(p);
  Tensor apart = anyReshape(p, product.value);
  Tensor x = p.optional(apart, product.value);
  Tensor active = form.record(p, widened ? roundingCast(p, x) : x);
  p.root(widened ? roundingCast(p, active) : active);
  p.replaceWith([=, kind = form.kind](Match& m) -> Value {
    auto op = m[product.value].getDefiningOp<LinearOp>();
    Value y = m.make("lathe.linear", {op.getX(), op.getW(), op.getBias(), {}},
                     {layoutOf(op), {"activation", kind}});
    if (!y || !m.has(apart)) return y;
    auto dims = dimsOf(tensorType(m[apart]));
    if (!llvm::all_of(dims, [](StringAttr d) { return bool(d); }))
      return m.decline("a size has no name: " + shortType(m[apart].getType()));
    return reshaped(m, y, dims);
  });
}

void withResidual(DagPattern& p) {
  Tensor x = p.any(), w = p.any(), bias = p.any(), residual = p.any();
  auto linear = [&](const Tensor& b) {
    return p.emit("lathe.linear", {x, w, b, Tensor()}, {}, std::source_location::current());
  };
  Tensor product = p.anyOf({linear(Tensor()), linear(bias)});
  p.root(add(product, residual));
  p.replaceWith([=](Match& m) -> Value {
    if (m[residual].getType() != m[product].getType())
      return m.decline("the residual is " + shortType(m[residual].getType()) + ", the product " +
                       shortType(m[product].getType()));
    auto op = m[product].getDefiningOp<LinearOp>();
    if (op.getUnrounded()) return m.decline(kUnrounded);
    return m.make("lathe.linear", {op.getX(), op.getW(), op.getBias(), m[residual]},
                  {layoutOf(op), activationOf(op)});
  });
}

}  // namespace

void addLinearPatterns(PatternLibrary& library, MLIRContext* context) {
  addPattern(library, context, "linear", transposed);
  addPattern(library, context, "linear-in-out", plain);
  addPattern(library, context, "linear-bias", linearWithBias);
  addPattern(library, context, "linear-bias-subtracted", withoutBias);
  addPattern(library, context, "linear-bias-of-parts", biasOfParts);
  addPattern(library, context, "linear-residual", withResidual);
  addPattern(library, context, "linear-residual-bias", biasAfterResidual);
  for (const ActivationForm& form : activationForms())
    for (bool widened : {false, true})
      addPattern(library, context,
                 "linear-" + std::string(nameOf(form.kind)) + (widened ? "-widened" : ""),
                 [&](DagPattern& p) { withActivation(p, form, widened); });
}

}  // namespace lathe
