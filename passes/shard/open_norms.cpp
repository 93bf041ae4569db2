// SPDX-License-Identifier: Apache-2.0
#include "passes/shard/open_norms.h"

#include "ir/op_builder.h"

using namespace mlir;

namespace lathe {

// Whether a value is what one layer gives, and nothing else reads it.
static bool isOfOneLayer(Value v) {
  for (; v.hasOneUse(); v = v.getDefiningOp()->getOperand(0)) {
    Operation* op = v.getDefiningOp();
    if (auto linear = dyn_cast_or_null<LinearOp>(op)) return !linear.getResidual();
    if (!isa_and_nonnull<CastOp, ReshapeOp>(op)) return false;
  }
  return false;
}

std::optional<OpCuts> cutsOfNorm(Operation* op, const Cut& cut) {
  // Gain and bias are of the axis.
  if (!op->hasTrait<fact::IsRowNorm>() || op->getNumResults() != 1 ||
      llvm::any_of(op->getOperands().drop_front(),
                   [](Value v) { return tensorType(v).getRank() != 1; }))
    return std::nullopt;
  // Of a sum of layers, which others read, too, every rank has all.
  if (!isOfOneLayer(op->getOperand(0))) return std::nullopt;
  auto type = tensorType(op->getResult(0));
  if (cut.axis != type.getRank() - 1 || partsOf(type, cut.axis, cut.parts, cut.groups) != cut.parts)
    return std::nullopt;
  OpCuts cuts{{cut}, {cut}};
  for (size_t i = 1; i < op->getNumOperands(); ++i)
    cuts.operands.push_back({0, cut.parts, cut.groups});
  return cuts;
}

void openNorm(Operation* norm) {
  OpBuilder b(norm);
  Operation* before = norm->getPrevNode();
  const SmallVector<Value> values = *cast<DecomposableOp>(norm).decompose(b);
  for (auto [from, to] : llvm::zip_equal(norm->getResults(), values)) from.replaceAllUsesWith(to);
  SmallVector<ReduceMeanOp> means;
  for (Operation* op = before ? before->getNextNode() : &norm->getBlock()->front(); op != norm;
       op = op->getNextNode())
    if (auto mean = dyn_cast<ReduceMeanOp>(op)) means.push_back(mean);
  for (ReduceMeanOp mean : means) {
    b.setInsertionPoint(mean);
    OpMaker m(b, mean.getLoc());
    auto type = tensorType(mean.getX());
    Value sum = m.make<ReduceSumOp>(mean.getX(), mean.getAxes(), mean.getKeepDims());
    const double count = double(type.getDimSize(type.getRank() - 1));
    mean.replaceAllUsesWith(m.make<DivOp>(sum, m.scalar(type.getElementType(), count)));
    mean.erase();
  }
  norm->erase();
}

}  // namespace lathe
