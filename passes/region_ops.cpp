// SPDX-License-Identifier: Apache-2.0
#include "passes/region_ops.h"

using namespace mlir;

namespace lathe {

bool isElementwise(Operation* op) {
  return isa<NegOp, AbsOp, SignOp, ExpOp, LogOp, SqrtOp, RsqrtOp, ReciprocalOp, SinOp, CosOp,
             TanhOp, ErfOp, SigmoidOp, FloorOp, CeilOp, RoundOp, LogicalNotOp, IsNanOp, AddOp,
             SubOp, MulOp, DivOp, MaxOp, MinOp, PowOp, ModOp, LogicalAndOp, LogicalOrOp,
             BitwiseAndOp, BitwiseOrOp, BitwiseXorOp, ShiftLeftOp, ShiftRightOp, CompareOp,
             SelectOp, CastOp, BitcastOp>(op);
}
bool isMovement(Operation* op) {
  return isa<TransposeOp, ReshapeOp, BroadcastOp, SliceOp, ConcatOp, PadOp, ReverseOp, IotaOp,
             GatherOp>(op);
}
bool isReduction(Operation* op) {
  return isa<ReduceSumOp, ReduceMeanOp, ReduceMaxOp, ReduceMinOp, ReduceProdOp, ReduceAnyOp,
             ReduceAllOp, ArgMaxOp, ArgMinOp>(op);
}
bool isFusedRowOp(Operation* op) {
  return isa<SoftmaxOp, RmsNormOp, LayerNormOp, AddNormOp, AdalnModulateOp, GatedResidualOp, RopeOp,
             NormRopeOp, SiluGateOp, EmbeddingOp>(op);
}

SmallVector<int64_t> reducedAxes(Operation* op) {
  if (auto axis = op->getAttrOfType<IntegerAttr>("axis")) return {axis.getInt()};
  return llvm::to_vector(op->getAttrOfType<DenseI64ArrayAttr>("axes").asArrayRef());
}

bool keepsDims(Operation* op) {
  auto keep = op->getAttrOfType<BoolAttr>("keep_dims");
  return keep && keep.getValue();
}

SmallVector<DimExpr> dimExprs(Value v) {
  auto type = tensorType(v);
  SmallVector<DimExpr> all;
  for (int64_t i = 0; i < type.getRank(); ++i) all.push_back(*dimExprOf(type, i));
  return all;
}

}  // namespace lathe
