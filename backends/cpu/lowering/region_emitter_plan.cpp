// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/lowering/region_emitter_plan.h"

using namespace mlir;

namespace lathe::cpu {

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

SmallVector<DimExpr> dimExprs(Value v) {
  auto type = tensorType(v);
  SmallVector<DimExpr> all;
  for (int64_t i = 0; i < type.getRank(); ++i) all.push_back(*dimExprOf(type, i));
  return all;
}

namespace {

// Every value has as many elements as the results or one, and none changes its place.
bool isFlat(ValueRange results, Block& block) {
  auto count = elementCountOf(tensorType(results[0]));
  if (*count == DimExpr(1) || *count == DimExpr(0)) return false;
  auto fits = [&](Value v) {
    auto n = elementCountOf(tensorType(v));
    return n && (*n == *count || *n == DimExpr(1));
  };
  for (Value v : results)
    if (!(*elementCountOf(tensorType(v)) == *count)) return false;
  for (Value v : block.getArguments())
    if (!fits(v)) return false;
  for (Operation& op : block.without_terminator()) {
    auto constant = dyn_cast<ConstantOp>(op);
    bool splat = constant && cast<DenseElementsAttr>(constant.getValue()).isSplat();
    if (!splat && !isElementwise(&op) && !isa<ReshapeOp, BroadcastOp>(op)) return false;
    if (!llvm::all_of(op.getResults(), fits)) return false;
  }
  return true;
}

// The value is made elementwise from a reduction of a last axis that leaves exactly its dims: a
// lane per element would read memory in strides.
bool reducesLastAxis(Value v, DenseSet<Value>& seen) {
  Operation* op = v.getDefiningOp();
  if (!op || !seen.insert(v).second) return false;
  if (isReduction(op)) {
    auto from = dimExprs(op->getOperand(0));
    return !from.empty() && !(from.back() == DimExpr(1)) &&
           llvm::is_contained(reducedAxes(op), int64_t(from.size()) - 1);
  }
  if (!isElementwise(op) && !isa<ReshapeOp>(op)) return false;
  auto shape = dimExprs(v);
  return llvm::any_of(op->getOperands(), [&](Value x) {
    auto inner = dimExprs(x);
    while (!inner.empty() && inner.back() == DimExpr(1)) inner.pop_back();
    auto outer = shape;
    while (!outer.empty() && outer.back() == DimExpr(1)) outer.pop_back();
    return inner == outer && reducesLastAxis(x, seen);
  });
}

}  // namespace

FailureOr<RowPlan> rowPlanOf(func::FuncOp f) {
  Block& block = f.getBody().front();
  ValueRange results = block.getTerminator()->getOperands();
  RowPlan plan;
  if (isFlat(results, block)) {
    plan.flat = true;
    return plan;
  }
  size_t rank = 0;
  for (Value v : results) rank = std::max(rank, dimExprs(v).size());
  bool equalRanks = llvm::all_of(results, [&](Value v) { return dimExprs(v).size() == rank; });
  plan.scalar =
      rank == 0 || (equalRanks && llvm::any_of(results, [&](Value v) {
                      DenseSet<Value> seen;
                      return !(dimExprs(v).back() == DimExpr(1)) && reducesLastAxis(v, seen);
                    }));
  for (Value v : results) {
    auto shape = dimExprs(v);
    if (shape.size() == rank && !plan.scalar) shape.pop_back();
    if (v == results[0] || plan.rowDims.empty()) plan.rowDims = shape;
    if (shape != plan.rowDims)
      return f.emitError("results of one region share their rows: ")
             << shortType(results[0].getType()) << " and " << shortType(v.getType()) << " do not";
  }
  return plan;
}

}  // namespace lathe::cpu
