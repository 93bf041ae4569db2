// SPDX-License-Identifier: Apache-2.0
// Reshapes and transposes as axis maps (axis_map.h): head split and merge, views of merged
// projections and their transposes have one spelling. All rewrites are exact.
#include "lathe/passes/region_ops.h"
#include "passes/canonical/axis_map.h"
#include "passes/canonical/canonical.h"
#include "passes/canonical/values.h"
#include "passes/rewrite/weight_only.h"

using namespace mlir;

namespace lathe {
namespace {

bool isRearrangement(Operation* op) { return isa_and_nonnull<TransposeOp, ReshapeOp>(op); }

Value spell(OpMaker& m, Value x, const AxisMap::Spelling& s) {
  if (s.first) x = m.reshape(x, *s.first);
  if (s.permutation) x = m.transpose(x, *s.permutation);
  if (s.last) x = m.reshape(x, *s.last);
  return x;
}

// The spelling that a chain has now; nothing if it is of another form.
std::optional<AxisMap::Spelling> currentSpelling(ArrayRef<Operation*> chain) {
  AxisMap::Spelling s;
  for (Operation* op : chain) {
    if (auto t = dyn_cast<TransposeOp>(op)) {
      if (s.permutation || s.last) return std::nullopt;
      s.permutation = SmallVector<int64_t>(t.getPermutation());
      continue;
    }
    SmallVector<StringAttr> dims(cast<ReshapeOp>(op).getShape().getDims());
    auto& slot = s.permutation ? s.last : s.first;
    if (slot) return std::nullopt;
    slot = dims;
  }
  return s;
}

Value normalizeChain(Operation* root, OpMaker& m) {
  SmallVector<Operation*> chain{root};  // from the root up
  while (isRearrangement(chain.back()->getOperand(0).getDefiningOp()))
    chain.push_back(chain.back()->getOperand(0).getDefiningOp());
  for (; chain.size() > 1; chain.pop_back()) {
    if (llvm::none_of(chain, [](Operation* op) { return isa<TransposeOp>(op); })) continue;
    Value source = chain.back()->getOperand(0);
    AxisMap map(tensorType(source));
    bool known = true;
    for (Operation* op : llvm::reverse(chain)) {
      if (!known) break;
      if (auto t = dyn_cast<TransposeOp>(op))
        map.transpose(t.getPermutation());
      else
        known = map.reshape(cast<ReshapeOp>(op).getShape().getDims());
    }
    if (!known) continue;
    AxisMap::Spelling wanted = map.spelling();
    SmallVector<Operation*> down(llvm::reverse(chain));
    if (currentSpelling(down) == wanted) return {};
    // Values with other users stay, and what is spelled anew comes on top of them.
    size_t dies = 1;
    while (dies < chain.size() && chain[dies]->hasOneUse()) ++dies;
    if (wanted.count() <= std::max<size_t>(dies, 1)) return spell(m, source, wanted);
  }
  return {};
}

// transpose(f(transpose(x))) is f(x) where the permutations undo each other.
Value cancelAcross(TransposeOp op, OpMaker& m) {
  Operation* f = op.getX().getDefiningOp();
  if (!f || !isElementwise(f) || !f->hasOneUse()) return {};
  SmallVector<Value> operands;
  bool any = false;
  for (Value v : f->getOperands()) {
    if (tensorType(v).getRank() == 0) {
      operands.push_back(v);
      continue;
    }
    auto inner = v.getDefiningOp<TransposeOp>();
    if (!inner || v.getType() != f->getResult(0).getType()) return {};
    for (auto [i, p] : llvm::enumerate(op.getPermutation()))
      if (inner.getPermutation()[size_t(p)] != int64_t(i)) return {};
    operands.push_back(inner.getX());
    any = true;
  }
  if (!any) return {};
  return m.b
      .create(m.loc, f->getName().getIdentifier(), operands, op->getResultTypes(), f->getAttrs())
      ->getResult(0);
}

// A reduced axis that a reshape puts back was better kept.
template <class Op>
Value keepDims(ReshapeOp op, OpMaker& m) {
  auto reduce = op.getX().getDefiningOp<Op>();
  if (!reduce || reduce.getKeepDims() || !reduce->hasOneUse()) return {};
  auto dims = dimsOf(tensorType(reduce.getX()));
  for (int64_t axis : reduce.getAxes()) dims[size_t(axis)] = m.dim(1);
  if (tensorOf(dims, elementOf(op)) != op.getType()) return {};
  return m.make<Op>(reduce.getX(), reduce.getAxes(), true);
}

// The same with elementwise ops between the reduction and the reshape: it moves in front of them.
Value keepDimsBehind(ReshapeOp op, OpMaker& m) {
  Operation* f = op.getX().getDefiningOp();
  if (isKeepingReduction(f) || !movesToReduction(op)) return {};
  auto dims = dimsOf(op.getType());
  SmallVector<Value> operands(f->getOperands());
  for (Value& operand : operands)
    if (tensorType(operand).getRank()) operand = m.reshape(operand, dims);
  return m.b
      .create(m.loc, f->getName().getIdentifier(), operands, op->getResultTypes(), f->getAttrs())
      ->getResult(0);
}

bool swapsLastTwo(TransposeOp op) {
  auto p = op.getPermutation();
  size_t rank = p.size();
  for (size_t i = 0; i + 2 < rank; ++i)
    if (p[i] != int64_t(i)) return false;
  return rank >= 2 && p[rank - 1] == int64_t(rank - 2);
}
// (a b)^T is b^T a^T, sum by sum; only where a transpose in front of the product goes. A product
// with a weight on the right is a linear op, and keys that come out of one are turned behind it.
Value transposeOfProduct(TransposeOp op, OpMaker& m) {
  auto product = op.getX().getDefiningOp<MatmulOp>();
  if (!product || !product->hasOneUse() || !swapsLastTwo(op) || isLoadedWeight(product.getB()))
    return {};
  auto a = product.getA().getDefiningOp<TransposeOp>();
  auto b = product.getB().getDefiningOp<TransposeOp>();
  if (!(a && swapsLastTwo(a)) && !(b && swapsLastTwo(b))) return {};
  return m.make<MatmulOp>(m.swapLastTwo(product.getB()), m.swapLastTwo(product.getA()));
}

// A weight [1, k, n] is a matrix.
Value weightMatrix(MatmulOp op, OpMaker& m) {
  auto dims = dimsOf(tensorType(op.getB()));
  if (dims.size() < 3 || int64_t(dims.size()) > tensorType(op.getA()).getRank() ||
      !llvm::all_of(ArrayRef(dims).drop_back(2), isOne) || !isLoadedWeight(op.getB()))
    return {};
  return m.make<MatmulOp>(op.getA(), m.reshape(op.getB(), ArrayRef(dims).take_back(2)));
}

// Every product with the same matrix is the product with that matrix.
Value stretchedMatrix(MatmulOp op, OpMaker& m) {
  auto stretched = op.getB().getDefiningOp<BroadcastOp>();
  if (!stretched || tensorType(stretched.getX()).getRank() < 2) return {};
  auto from = ArrayRef(dimsOf(tensorType(stretched.getX()))).take_back(2).vec();
  if (from != ArrayRef(dimsOf(tensorType(stretched))).take_back(2).vec()) return {};
  Value matrices = stretched.getX();
  auto dims = dimsOf(tensorType(matrices));
  if (!llvm::all_of(ArrayRef(dims).drop_back(2), isOne)) return {};
  // The leading axes are those of the left side alone.
  auto left = dimsOf(tensorType(op.getA())), result = dimsOf(op.getType());
  if (left.size() != result.size() || ArrayRef(left).drop_back(2) != ArrayRef(result).drop_back(2))
    return {};
  if (dims.size() > 2) matrices = m.reshape(matrices, ArrayRef(dims).take_back(2));
  return m.make<MatmulOp>(op.getA(), matrices);
}

}  // namespace

void addAxisMapPatterns(RewritePatternSet& patterns) {
  addRewrite<TransposeOp>(patterns, "axis-map",
                          [](TransposeOp op, OpMaker& m) { return normalizeChain(op, m); });
  addRewrite<ReshapeOp>(patterns, "axis-map",
                        [](ReshapeOp op, OpMaker& m) { return normalizeChain(op, m); });
  addRewrite<TransposeOp>(patterns, "cancel-transposes", cancelAcross);
  addRewrite<BroadcastOp>(patterns, "compose-broadcasts", [](BroadcastOp op, OpMaker& m) -> Value {
    auto inner = op.getX().getDefiningOp<BroadcastOp>();
    return inner ? m.make<BroadcastOp>(inner.getX(), op.getShape()) : Value();
  });
  addRewrite<TransposeOp>(patterns, "transpose-of-product", transposeOfProduct);
  addRewrite<MatmulOp>(patterns, "weight-matrix", weightMatrix);
  addRewrite<MatmulOp>(patterns, "stretched-matrix", stretchedMatrix);
  addRewrite<ReshapeOp>(patterns, "keep-dims", keepDimsBehind);
  addRewrite<ReshapeOp>(patterns, "keep-dims", keepDims<ReduceMeanOp>);
  addRewrite<ReshapeOp>(patterns, "keep-dims", keepDims<ReduceSumOp>);
  addRewrite<ReshapeOp>(patterns, "keep-dims", keepDims<ReduceMaxOp>);
  addRewrite<ReshapeOp>(patterns, "keep-dims", keepDims<ReduceMinOp>);
}

}  // namespace lathe
