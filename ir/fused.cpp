// SPDX-License-Identifier: Apache-2.0
// Result types and constraints of the fused ops; decompose.cpp gives their meaning.
#include "ir/types.h"

using namespace mlir;

namespace lathe {

LogicalResult SoftmaxOp::inferReturnTypes(MLIRContext*, std::optional<Location> loc, Adaptor a,
                                          SmallVectorImpl<Type>& r) {
  SmallVector<Type> ignored;
  if (failed(inferArgReduce(loc, getOperationName(), a.getX(), a.getAxis(), ignored)))
    return failure();
  r.push_back(a.getX().getType());
  return success();
}

LogicalResult RmsNormOp::inferReturnTypes(MLIRContext*, std::optional<Location> loc, Adaptor a,
                                          SmallVectorImpl<Type>& r) {
  auto x = tensorType(a.getX()), gain = tensorType(a.getGain());
  if (x.getRank() < 1 || gain.getRank() != 1 || gain.getElementType() != x.getElementType() ||
      !dimOf(gain, 0) || dimOf(gain, 0) != dimOf(x, x.getRank() - 1))
    return emitOptionalError(loc, "'lathe.rms_norm' [C1] gain ", shortType(gain),
                             " is not one element per last dim of ", shortType(x));
  if (!(a.getEpsilon().convertToDouble() >= 0))
    return emitOptionalError(loc, "'lathe.rms_norm' [C2] epsilon is negative");
  r.push_back(x);
  return success();
}

LogicalResult RopeOp::inferReturnTypes(MLIRContext* c, std::optional<Location> loc, Adaptor a,
                                       SmallVectorImpl<Type>& r) {
  auto x = tensorType(a.getX()), cos = tensorType(a.getCos()), sin = tensorType(a.getSin());
  int64_t last = x.getRank() ? x.getDimSize(x.getRank() - 1) : 1;
  if (ShapedType::isDynamic(last) || last % 2)
    return emitOptionalError(loc, "'lathe.rope' [C1] the last dim must be an even number in ",
                             shortType(x));
  auto half = dimsOf(x);
  half.back() = StringAttr::get(c, std::to_string(last / 2));
  if (cos != sin || !(cos.getElementType().isF32() || cos.getElementType().isF64()) ||
      !broadcastsTo(cos, half))
    return emitOptionalError(loc, "'lathe.rope' [C2] cos ", shortType(cos), " and sin ",
                             shortType(sin), " do not broadcast to half of ", shortType(x));
  r.push_back(x);
  return success();
}

LogicalResult SiluGateOp::inferReturnTypes(MLIRContext*, std::optional<Location> loc, Adaptor a,
                                           SmallVectorImpl<Type>& r) {
  return inferBroadcast(loc, getOperationName(), {a.getGate(), a.getUp()}, nullptr, r);
}

LogicalResult AttentionOp::inferReturnTypes(MLIRContext*, std::optional<Location> loc, Adaptor a,
                                            SmallVectorImpl<Type>& r) {
  auto q = tensorType(a.getQ()), k = tensorType(a.getK()), v = tensorType(a.getV());
  auto bad = [&](const char* text) {
    return emitOptionalError(loc, "'lathe.attention' ", text, ": q ", shortType(q), ", k ",
                             shortType(k), ", v ", shortType(v));
  };
  int64_t rank = q.getRank();
  Type element = q.getElementType();
  if ((rank != 3 && rank != 4) || k.getRank() != rank || v.getRank() != rank ||
      k.getElementType() != element || v.getElementType() != element)
    return bad("[C1] needs three operands of rank 3 or 4 and one element type");
  auto equal = [&](RankedTensorType s, int64_t i, RankedTensorType t, int64_t j) {
    return dimOf(s, i) && dimOf(s, i) == dimOf(t, j);
  };
  if (!equal(q, 0, k, 0) || !equal(q, 0, v, 0) || !equal(q, rank - 1, k, rank - 1) ||
      !equal(k, rank - 2, v, rank - 2))
    return bad("[C2] batch, depth or key length differ");
  if (rank == 4) {
    bool grouped = !q.isDynamicDim(1) && !k.isDynamicDim(1) && k.getDimSize(1) > 0 &&
                   q.getDimSize(1) % k.getDimSize(1) == 0;
    if (!equal(k, 1, v, 1) || !(grouped || equal(q, 1, k, 1)))
      return bad("[C3] the key heads do not divide the query heads");
  }
  auto result = dimsOf(q), scores = result;
  scores.back() = dimOf(k, rank - 2);
  if (a.getMask()) {
    auto mask = tensorType(a.getMask());
    Type e = mask.getElementType();
    if (!(e.isInteger(1) || isa<FloatType>(e)) || !broadcastsTo(mask, scores))
      return emitOptionalError(loc, "'lathe.attention' [C4] mask ", shortType(mask),
                               " is not a boolean or float that broadcasts to the scores of q ",
                               shortType(q), " and k ", shortType(k));
  }
  bool wants = a.getCausalAttr() && a.getCausal() == Causal::positions;
  if (wants != bool(a.getPositions()) || (wants && (tensorType(a.getPositions()).getRank() != 1 ||
                                                    !equal(tensorType(a.getPositions()), 0, q, 0))))
    return bad("[C5] `positions` is one per batch and goes with `causal = positions`");
  result.back() = dimOf(v, rank - 1);
  r.push_back(tensorOf(result, element));
  return success();
}

LogicalResult LinearOp::inferReturnTypes(MLIRContext*, std::optional<Location> loc, Adaptor a,
                                         SmallVectorImpl<Type>& r) {
  auto x = tensorType(a.getX()), w = tensorType(a.getW());
  if (x.getRank() < 1 || w.getRank() != 2 || !w.hasStaticShape() ||
      w.getElementType() != x.getElementType())
    return emitOptionalError(loc, "'lathe.linear' [C1] x ", shortType(x), " and w ", shortType(w),
                             ": w must be a static matrix of x's element type");
  bool inOut = a.getLayoutAttr() && a.getLayout() == WeightLayout::in_out;
  StringAttr k = dimOf(w, inOut ? 0 : 1), n = dimOf(w, inOut ? 1 : 0);
  if (dimOf(x, x.getRank() - 1) != k)
    return emitOptionalError(loc, "'lathe.linear' [C2] inner dims differ: x ", shortType(x), ", w ",
                             shortType(w), inOut ? " (in, out)" : " (out, in)");
  if (a.getBias()) {
    auto bias = tensorType(a.getBias());
    if (bias.getRank() != 1 || dimOf(bias, 0) != n || bias.getElementType() != x.getElementType())
      return emitOptionalError(loc, "'lathe.linear' [C3] bias ", shortType(bias),
                               " does not fit w ", shortType(w));
  }
  auto dims = dimsOf(x);
  dims.back() = n;
  auto result = tensorOf(dims, x.getElementType());
  if (a.getResidual() && a.getResidual().getType() != result)
    return emitOptionalError(loc, "'lathe.linear' [C4] residual ",
                             shortType(a.getResidual().getType()), " is not ", shortType(result));
  r.push_back(result);
  return success();
}

LogicalResult EmbeddingOp::inferReturnTypes(MLIRContext*, std::optional<Location> loc, Adaptor a,
                                            SmallVectorImpl<Type>& r) {
  auto ids = tensorType(a.getIds()), table = tensorType(a.getTable());
  if (table.getRank() != 2)
    return emitOptionalError(loc, "'lathe.embedding' [C1] the table must be a matrix, got ",
                             shortType(table));
  auto dims = dimsOf(ids);
  dims.push_back(dimOf(table, 1));
  r.push_back(tensorOf(dims, table.getElementType()));
  return success();
}

}  // namespace lathe

#define GET_OP_CLASSES
#include "ir/fused.cpp.inc"
