// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/lowering/matmul/rotated_projection.h"

#include "backends/cuda/lowering/kernel/call_facts.h"
#include "lathe/backends/strided_view.h"
#include "lathe/passes/region_ops.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace lathe::cuda {
namespace {

// The value at the end of a chain of views, which are added to `ops`.
Value endOfViews(Value v, std::vector<Operation*>& ops) {
  while (v.hasOneUse()) {
    Operation* next = *v.getUsers().begin();
    if (!isa<ReshapeOp, TransposeOp>(next)) break;
    ops.push_back(next);
    v = next->getResult(0);
  }
  return v;
}

// The only op that reads `v`, if `v` is its first operand.
Operation* onlyUserOf(Value v) {
  if (!v.hasOneUse()) return nullptr;
  OpOperand& use = *v.use_begin();
  return use.getOperandNumber() == 0 ? use.getOwner() : nullptr;
}

// A gain is of the projection's type.
bool isGainFor(Value gain, Value y) {
  return !gain || tensorType(gain).getElementType() == tensorType(y).getElementType();
}

// [batch, heads, tokens, depth] out of rows batch * tokens + token and adjacent columns.
bool isHeads(const StridedView& view, const RotatedProjection& p, Value base) {
  if (view.base != base || view.sizes.size() != 4 || !view.offset.asConstant()) return false;
  const DimExpr columns = p.columns, depth = p.depth;
  const DimExpr strides[] = {p.tokens * columns, depth, columns, 1};
  for (size_t i = 0; i < 4; ++i)
    if (!(view.sizes[i] == DimExpr(1)) && !(view.strides[i] == strides[i])) return false;
  return view.sizes[0] == p.batch && view.sizes[2] == p.tokens && view.sizes[3] == depth;
}

// The last axis is a head's adjacent columns, wherever the others lie.
bool endsInHeads(const StridedView& view, const RotatedProjection& p, Value base) {
  return view.base == base && view.sizes.back() == DimExpr(p.depth) &&
         view.strides.back() == DimExpr(1);
}

}  // namespace

bool RotatedProjection::hasNorms() const {
  return llvm::any_of(groups, [](const HeadGroup& g) { return g.norm != nullptr; });
}

std::optional<RotatedProjection> rotatedProjectionOf(LinearOp linear) {
  RotatedProjection p;
  p.linear = linear;
  p.columns = tensorType(linear.getW()).getDimSize(0);
  for (Operation* user : linear->getUsers()) {
    auto slice = dyn_cast<SliceOp>(user);
    if (!slice) return std::nullopt;
    p.ops.push_back(slice);
    HeadGroup g;
    Value end = endOfViews(slice.getY(), p.ops);
    if (auto norm = dyn_cast_or_null<RmsNormOp>(onlyUserOf(end))) {
      g.norm = norm;
      g.gain = norm.getGain();
      p.ops.push_back(norm);
      end = endOfViews(norm.getY(), p.ops);
    }
    Operation* next = onlyUserOf(end);
    const StridedView view = viewOf(end, g.norm);
    if (view.sizes.size() != 4 || !end.hasOneUse()) return std::nullopt;
    if (p.groups.empty()) {
      p.batch = view.sizes[0];
      p.tokens = view.sizes[2];
      p.depth = view.sizes[3].asConstant().value_or(0);
    }
    auto heads = view.sizes[1].asConstant();
    if (p.depth <= 0 || p.depth % 2 || !heads || !isHeads(view, p, linear.getY()))
      return std::nullopt;
    g.firstColumn = *view.offset.asConstant();
    g.heads = *heads;
    g.result = end;
    // A norm before the last views runs over the same heads: other axes may be as long.
    if (g.norm && !endsInHeads(viewOf(g.norm->getOperand(0)), p, linear.getY()))
      return std::nullopt;
    if (auto both = dyn_cast_or_null<NormRopeOp>(next); both && !g.norm) {
      g.norm = g.rope = both;
      g.gain = both.getGain();
      g.cos = both.getCos();
      g.sin = both.getSin();
    } else if (auto rope = dyn_cast_or_null<RopeOp>(next)) {
      g.rope = rope;
      g.cos = rope.getCos();
      g.sin = rope.getSin();
    }
    if (!isGainFor(g.gain, linear.getY())) return std::nullopt;
    if (g.rope) {
      auto table = tensorType(g.cos);
      const int64_t rotated = 2 * table.getDimSize(table.getRank() - 1);
      const Pairing pairing = g.rope->getAttrOfType<PairingAttr>("pairing").getValue();
      const bool first = p.rotated == 0;
      if (!table.getElementType().isF32()) return std::nullopt;
      if (!first && (rotated != p.rotated || pairing != p.pairing)) return std::nullopt;
      p.rotated = rotated;
      p.pairing = pairing;
      p.ops.push_back(g.rope);
      g.result = g.rope->getResult(0);
    }
    if (g.result.hasOneUse())
      if (auto update = dyn_cast<UpdateOp>(*g.result.getUsers().begin());
          update && update.getValue() == g.result && update.getAxis() == 2 &&
          isa<BlockArgument>(update.getX())) {
        p.ops.push_back(update);
        g.update = update;
        g.result = update.getY();
      }
    if (g.firstColumn % p.depth || (!g.rope && !g.update)) return std::nullopt;
    p.groups.push_back(g);
  }
  if (p.rotated == 0) return std::nullopt;
  // Slices cut columns, not rows.
  if (!(productOf(ArrayRef(dimExprs(linear.getX())).drop_back()) == p.batch * p.tokens))
    return std::nullopt;
  // Tiles have powers of two of columns: no others add up to a head.
  if (p.hasNorms() && !llvm::isPowerOf2_64(uint64_t(p.depth))) return std::nullopt;
  llvm::sort(p.groups,
             [](const HeadGroup& a, const HeadGroup& b) { return a.firstColumn < b.firstColumn; });
  int64_t next = 0;
  for (const HeadGroup& g : p.groups) {
    if (g.firstColumn != next) return std::nullopt;
    next += g.heads * p.depth;
  }
  return next == p.columns ? std::optional(p) : std::nullopt;
}

}  // namespace lathe::cuda
