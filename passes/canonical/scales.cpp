// SPDX-License-Identifier: Apache-2.0
// A constant factor of a product of two activations stands behind the product, whether the graph
// applies it to the query, to the key or its root to both:
//
//   matmul(mul(q, c), k)        mul(matmul(q, k), c)         also behind transposes and reshapes
//   mul(transpose(x), c)        as it is; transpose(mul(x, c)) becomes it
//
// Factors in front of a product with a weight stay: they are part of a layer.
#include <cmath>

#include "passes/canonical/canonical.h"
#include "passes/canonical/values.h"
#include "passes/rewrite/weight_only.h"

using namespace mlir;

namespace lathe {
namespace {

struct Scaled {
  Value unscaled;
  double factor;
  bool divides;
};

// x * c or x / c with one user, of x's own type; a factor that is no number moves nothing.
std::optional<Scaled> readScaled(Value v) {
  if (!v.hasOneUse() || !isFloat(v)) return std::nullopt;
  std::optional<WithConstant> product = withConstant<MulOp>(v);
  bool divides = false;
  if (auto quotient = v.getDefiningOp<DivOp>()) {
    auto c = constantOf(quotient.getB());
    if (c) product = WithConstant{quotient.getA(), *c};
    divides = true;
  }
  if (!product || product->x.getType() != v.getType() || !(product->c > 0) ||
      std::isinf(product->c))
    return std::nullopt;
  return Scaled{product->x, product->c, divides};
}

Value applyScale(OpMaker& m, Value v, const Scaled& s) {
  Value c = scalarLike(m, v, s.factor);
  return s.divides ? m.make<DivOp>(v, c) : m.make<MulOp>(v, c);
}

Value scaleBehindProduct(MatmulOp op, OpMaker& m) {
  if (isLoadedWeight(op.getA()) || isLoadedWeight(op.getB())) return {};
  for (bool right : {false, true}) {
    auto scaled = readScaled(right ? op.getB() : op.getA());
    if (!scaled || !weaken(op->getContext(), Contract::ScalePlacement)) continue;
    Value product = right ? m.make<MatmulOp>(op.getA(), scaled->unscaled)
                          : m.make<MatmulOp>(scaled->unscaled, op.getB());
    return applyScale(m, product, *scaled);
  }
  return {};
}

}  // namespace

void addScalePatterns(RewritePatternSet& patterns) {
  addRewrite<MatmulOp>(patterns, "scale-behind-product", scaleBehindProduct);
  // Layout first: what moves elements commutes with a factor, bit by bit.
  addRewrite<TransposeOp>(patterns, "scale-behind-layout", [](TransposeOp op, OpMaker& m) -> Value {
    auto scaled = readScaled(op.getX());
    if (!scaled || isLoadedWeight(scaled->unscaled)) return {};
    return applyScale(m, m.transpose(scaled->unscaled, op.getPermutation()), *scaled);
  });
  addRewrite<ReshapeOp>(patterns, "scale-behind-layout", [](ReshapeOp op, OpMaker& m) -> Value {
    auto scaled = readScaled(op.getX());
    if (!scaled || isLoadedWeight(scaled->unscaled)) return {};
    return applyScale(m, m.make<ReshapeOp>(scaled->unscaled, op.getShape()), *scaled);
  });
}

}  // namespace lathe
