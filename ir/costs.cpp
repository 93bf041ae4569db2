// SPDX-License-Identifier: Apache-2.0
// What the ops cost whose arithmetic is more than one operation an element.
#include "lathe/ir/types.h"
#include "lathe/runtime/cost.h"

using namespace mlir;

namespace lathe {

DimExpr Sizes::dim(Value tensor, int64_t axis) const {
  auto d = dimExprOf(tensorType(tensor), axis);
  return d ? substitute(*d, symbols_) : DimExpr::symbol("?");
}
DimExpr Sizes::dimFromLast(Value tensor, int64_t axis) const {
  return dim(tensor, tensorType(tensor).getRank() - axis);
}
DimExpr Sizes::count(Value tensor) const {
  DimExpr n = 1;
  for (int64_t i = 0; i < tensorType(tensor).getRank(); ++i) n = n * dim(tensor, i);
  return n;
}
DimExpr Sizes::reals(Value tensor) const {
  return isa<FloatType>(tensorType(tensor).getElementType()) ? count(tensor) : DimExpr(0);
}
DimExpr Sizes::bytes(Value tensor) const {
  return bytesOf(*dtypeOf(tensorType(tensor).getElementType()), count(tensor));
}

std::optional<DimExpr> MatmulOp::flops(const Sizes& sizes) {
  return DimExpr(2) * sizes.count(getY()) * sizes.dimFromLast(getA(), 1);
}
std::optional<DimExpr> QuantizedLinearOp::flops(const Sizes& sizes) {
  return DimExpr(2) * sizes.count(getY()) * sizes.dimFromLast(getX(), 1);
}
std::optional<DimExpr> GroupedLinearOp::flops(const Sizes& sizes) {
  return DimExpr(2) * sizes.count(getY()) * sizes.dimFromLast(getX(), 1);
}
std::optional<DimExpr> GroupedLinearOp::elementsRead(unsigned operand, const Sizes& sizes) {
  if (operand != 1) return std::nullopt;
  const DimExpr rows = sizes.count(getIndices()), groups = sizes.dim(getW(), 0);
  const DimExpr one = sizes.dim(getW(), 1) * sizes.dim(getW(), 2);
  return ((groups - rows).provablyNonNegative() ? rows : groups) * one;
}
std::optional<DimExpr> ConvolutionOp::flops(const Sizes& sizes) {
  DimExpr products = sizes.count(getY());
  for (int64_t axis : {1, 2, 3}) products = products * sizes.dim(getW(), axis);
  return DimExpr(2) * products;
}

namespace {

bool atLeast(const DimExpr& a, const DimExpr& b) { return (a - b).provablyNonNegative(); }

// Twice the number of scores that are visible in one head, and the keys that any query sees.
struct Visible {
  DimExpr twicePairs, keys;
};

// Of s queries and t keys. Query i sees the keys before first + i.
Visible visibleOf(const DimExpr& s, const DimExpr& t, Causal causal, int64_t windowSize) {
  const Visible all{DimExpr(2) * s * t, t};
  if (causal == Causal::none) return all;
  const bool topLeft = causal == Causal::top_left;
  if (topLeft && !atLeast(t, s))
    return atLeast(s, t) ? Visible{DimExpr(2) * s * t - t * t + t, t} : all;
  if (!topLeft && !(t == s) && atLeast(s, t)) return {t * t + t, t};
  const DimExpr first = topLeft ? DimExpr(1) : t - s + 1, window = windowSize;
  const DimExpr seen = topLeft ? s : t;
  const Visible whole{s * (DimExpr(2) * first + s - 1), seen};
  if (windowSize == 0 || atLeast(window, first + s - 1)) return whole;
  if (atLeast(first, window)) return {DimExpr(2) * s * window, s + window - 1};
  if (!atLeast(window, first) || !atLeast(first + s - 1, window)) return whole;
  const DimExpr growing = window - first;  // queries that see less than a window
  return {growing * (first + window - 1) + DimExpr(2) * (s - growing) * window, seen};
}

Visible visibleOf(AttentionOp op, const Sizes& sizes) {
  return visibleOf(sizes.dimFromLast(op.getQ(), 2), sizes.dimFromLast(op.getK(), 2), op.getCausal(),
                   int64_t(op.getWindow()));
}
// The entries of a table name blocks of keys.
Visible visibleOf(PagedAttentionOp op, const Sizes& sizes) {
  return visibleOf(sizes.dim(op.getQ(), 2), sizes.dim(op.getTable(), 1) * sizes.dim(op.getK(), 2),
                   Causal::positions, int64_t(op.getWindow()));
}

// Of an op with operands q, v and a mask, and a softcap.
template <class Op>
DimExpr flopsOf(Op op, const Sizes& sizes) {
  const int64_t rank = tensorType(op.getQ()).getRank();
  DimExpr rows = 1;  // of heads
  for (int64_t i = 0; i + 2 < rank; ++i) rows = rows * sizes.dim(op.getQ(), i);
  // Two products, and per score the scale, the maximum, a difference, an exponential, the sum and
  // a quotient; a soft cap and a float mask on top. Halves stay whole in pairs.
  int64_t perScore = 6;
  if (!op.getSoftcap().isZero()) perScore += 3;
  if (op.getMask() && isa<FloatType>(tensorType(op.getMask()).getElementType())) perScore += 1;
  perScore += perScore % 2;
  const DimExpr half =
      sizes.dimFromLast(op.getQ(), 1) + sizes.dimFromLast(op.getV(), 1) + perScore / 2;
  return rows * visibleOf(op, sizes).twicePairs * half;
}

}  // namespace

std::optional<DimExpr> AttentionOp::flops(const Sizes& sizes) { return flopsOf(*this, sizes); }
std::optional<DimExpr> AttentionOp::elementsRead(unsigned operand, const Sizes& sizes) {
  Value v = (*this)->getOperand(operand);
  if (operand == 0 || operand > 2) return std::nullopt;
  const DimExpr keys = sizes.dimFromLast(v, 2), all = sizes.count(v);
  auto perKey = all.dividedBy(keys);
  return perKey ? *perKey * visibleOf(*this, sizes).keys : all;
}

std::optional<DimExpr> PagedAttentionOp::flops(const Sizes& sizes) { return flopsOf(*this, sizes); }
std::optional<DimExpr> PagedAttentionOp::elementsRead(unsigned operand, const Sizes& sizes) {
  Value v = (*this)->getOperand(operand);
  if (operand == 0 || operand > 2) return std::nullopt;
  const DimExpr perKey = sizes.dim(getQ(), 0) * sizes.dim(v, 1) * sizes.dim(v, 3);
  return perKey * visibleOf(*this, sizes).keys;
}

}  // namespace lathe
