// SPDX-License-Identifier: Apache-2.0
//
//   f ──── mul ── add ──        gated_residual(x, gate, f)
//   gate ──┘    x ┘
//
// The gate has one element per feature and is the same for all tokens. A phase in which rotations
// have been found: they have the same products and sums.
#include "lathe/ir/ops.h"
#include "passes/patterns/forms.h"
#include "passes/patterns/library.h"

using namespace mlir;

namespace lathe {
namespace {

// [.., 1, d] or [d] for [.., n, d].
bool isSharedByTokens(Value gate, RankedTensorType x) {
  auto type = tensorType(gate);
  int64_t rank = type.getRank();
  if (rank < 1 || x.getRank() < 1 || type == x || splatValue(gate)) return false;
  StringAttr d = dimOf(x, x.getRank() - 1);
  return d && dimOf(type, rank - 1) == d && (rank == 1 || isOne(dimOf(type, rank - 2)));
}

void recordGatedResidual(DagPattern& p) {
  p.phase(kComposites);
  Tensor x = p.any(), gate = p.any(), f = p.any();
  Tensor gated = p.where(mul(gate, f), "a product with a gate that all tokens share", [](Value v) {
    auto type = tensorType(v);
    Operation* op = v.getDefiningOp();
    return isSharedByTokens(op->getOperand(0), type) || isSharedByTokens(op->getOperand(1), type);
  });
  // If x is what stretches, it is a bias and the gate a gain.
  p.root(p.where(add(x, gated), "a sum of two values of one shape", [](Value v) {
    auto sum = v.getDefiningOp<AddOp>();
    return sum.getA().getType() == v.getType() && sum.getB().getType() == v.getType();
  }));
  p.replaceWith([=](Match& m) -> Value {
    Value g = m[gate], value = m[f];
    if (!isSharedByTokens(g, tensorType(m[gated]))) std::swap(g, value);
    return m.make("lathe.gated_residual", {m[x], g, value});
  });
}

}  // namespace

void addGatedResidualPatterns(PatternLibrary& library, MLIRContext* context) {
  addPattern(library, context, "gated_residual", recordGatedResidual);
}

}  // namespace lathe
