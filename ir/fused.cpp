// SPDX-License-Identifier: Apache-2.0
// Result types and constraints of the fused ops, but for the norms (fused_norms.cpp);
// decompose.cpp gives their meaning.
#include <cmath>

#include "lathe/ir/types.h"

using namespace mlir;

namespace lathe {

// An i1 or float operand that broadcasts to `dims`.
static bool isMaskOf(Value mask, ArrayRef<StringAttr> dims) {
  auto type = tensorType(mask);
  Type e = type.getElementType();
  return (e.isInteger(1) || isa<FloatType>(e)) && broadcastsTo(type, dims);
}
// What turns a mask of whole numbers into one that is taken.
static const char* wholeMaskFix(Value mask) {
  Type e = tensorType(mask).getElementType();
  return isa<IntegerType>(e) && !e.isInteger(1)
             ? "; compare it with 0 for a mask of ones and zeros (mask != 0)"
             : "";
}
static double numberOr(FloatAttr a, double otherwise) {
  return a ? a.getValueAsDouble() : otherwise;
}

LogicalResult SoftmaxOp::inferReturnTypes(MLIRContext*, std::optional<Location> loc, Adaptor a,
                                          SmallVectorImpl<Type>& r) {
  SmallVector<Type> ignored;
  if (failed(inferReduce(loc, getOperationName(), a.getX(), int64_t(a.getAxis()), true, ignored)))
    return failure();
  auto x = tensorType(a.getX());
  if (a.getMask() && !isMaskOf(a.getMask(), dimsOf(x)))
    return emitOptionalError(loc, "'lathe.softmax' [C2] mask ", shortType(a.getMask().getType()),
                             " is not a boolean or float that broadcasts to ", shortType(x),
                             wholeMaskFix(a.getMask()));
  double scale = numberOr(a.getScaleAttr(), 1), softcap = numberOr(a.getSoftcapAttr(), 0);
  if (!(scale > 0) || std::isinf(scale) || !(softcap >= 0) || std::isinf(softcap))
    return emitOptionalError(loc, "'lathe.softmax' [C3] scale ", scale, " or softcap ", softcap,
                             " is out of range");
  r.push_back(x);
  return success();
}

LogicalResult GluOp::inferReturnTypes(MLIRContext*, std::optional<Location> loc, Adaptor a,
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
  if (a.getMask() && !isMaskOf(a.getMask(), scores))
    return emitOptionalError(loc, "'lathe.attention' [C4] mask ", shortType(a.getMask().getType()),
                             " is not a boolean or float that broadcasts to the scores of q ",
                             shortType(q), " and k ", shortType(k), wholeMaskFix(a.getMask()));
  bool wants = a.getCausalAttr() && a.getCausal() == Causal::positions;
  if (wants != bool(a.getPositions()) || (wants && (tensorType(a.getPositions()).getRank() != 1 ||
                                                    !equal(tensorType(a.getPositions()), 0, q, 0))))
    return bad("[C5] `positions` is one per batch and goes with `causal = positions`");
  int64_t window = a.getWindowAttr() ? a.getWindowAttr().getInt() : 0;
  bool isCausal = a.getCausalAttr() && a.getCausal() != Causal::none;
  double softcap = numberOr(a.getSoftcapAttr(), 0);
  if (window < 0 || (window && !isCausal) || !(softcap >= 0) || std::isinf(softcap))
    return bad("[C6] a window needs a causal mask, window and softcap are not negative");
  result.back() = dimOf(v, rank - 1);
  r.push_back(tensorOf(result, element));
  return success();
}

LogicalResult PagedAttentionOp::inferReturnTypes(MLIRContext*, std::optional<Location> loc,
                                                 Adaptor a, SmallVectorImpl<Type>& r) {
  auto q = tensorType(a.getQ()), k = tensorType(a.getK()), v = tensorType(a.getV()),
       table = tensorType(a.getTable()), positions = tensorType(a.getPositions());
  auto bad = [&](const char* text) {
    return emitOptionalError(loc, "'lathe.paged_attention' ", text, ": q ", shortType(q), ", k ",
                             shortType(k), ", v ", shortType(v), ", table ", shortType(table),
                             ", positions ", shortType(positions));
  };
  Type element = q.getElementType();
  if (q.getRank() != 4 || k.getRank() != 4 || v.getRank() != 4 || k.getElementType() != element ||
      v.getElementType() != element)
    return bad("[C1] needs three operands of rank 4 and one element type");
  auto equal = [&](RankedTensorType s, int64_t i, RankedTensorType t, int64_t j) {
    return dimOf(s, i) && dimOf(s, i) == dimOf(t, j);
  };
  if (!equal(k, 0, v, 0) || !equal(k, 1, v, 1) || !equal(k, 2, v, 2) || !equal(q, 3, k, 3))
    return bad("[C2] blocks, heads, keys in a block or depth differ");
  bool grouped = !q.isDynamicDim(1) && !k.isDynamicDim(1) && k.getDimSize(1) > 0 &&
                 q.getDimSize(1) % k.getDimSize(1) == 0;
  if (!grouped && !equal(q, 1, k, 1))
    return bad("[C3] the key heads do not divide the query heads");
  if (table.getRank() != 2 || positions.getRank() != 1 || !equal(table, 0, q, 0) ||
      !equal(positions, 0, q, 0))
    return bad("[C5] table and positions are not a row and a number for each sequence");
  // How many keys a sequence has is their product. [C2] has seen that of k.
  if (!dimOf(table, 1)) return bad("[C5] the table's second size has no name");
  if (a.getMask()) {
    auto scores = dimsOf(q);
    scores.back() = dimAttr(q.getContext(), exprOf(dimOf(table, 1)) * exprOf(dimOf(k, 2)));
    if (!isMaskOf(a.getMask(), scores))
      return emitOptionalError(
          loc, "'lathe.paged_attention' [C4] mask ", shortType(a.getMask().getType()),
          " is not a boolean or float that broadcasts to the scores of q ", shortType(q), ", k ",
          shortType(k), " and table ", shortType(table), wholeMaskFix(a.getMask()));
  }
  int64_t window = a.getWindowAttr() ? a.getWindowAttr().getInt() : 0;
  double softcap = numberOr(a.getSoftcapAttr(), 0);
  if (window < 0 || !(softcap >= 0) || std::isinf(softcap))
    return bad("[C6] window and softcap are not negative");
  auto result = dimsOf(q);
  result.back() = dimOf(v, 3);
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
  const bool isUnrounded = a.getUnroundedAttr() && a.getUnrounded();
  auto result = tensorOf(dims, isUnrounded ? computeType(x.getElementType()) : x.getElementType());
  if (a.getResidual() && a.getResidual().getType() != result)
    return emitOptionalError(loc, "'lathe.linear' [C4] residual ",
                             shortType(a.getResidual().getType()), " is not ", shortType(result));
  r.push_back(result);
  return success();
}

LogicalResult GroupedLinearOp::inferReturnTypes(MLIRContext*, std::optional<Location> loc,
                                                Adaptor a, SmallVectorImpl<Type>& r) {
  auto x = tensorType(a.getX()), w = tensorType(a.getW()), indices = tensorType(a.getIndices());
  auto bad = [&](const char* text) {
    return emitOptionalError(loc, "'lathe.grouped_linear' ", text, ": x ", shortType(x), ", w ",
                             shortType(w), ", indices ", shortType(indices));
  };
  if (w.getRank() != 3 || !w.hasStaticShape() || w.getElementType() != x.getElementType())
    return bad("[C1] w must be static, of rank 3 and of x's element type");
  if (x.getRank() != indices.getRank() + 1)
    return bad("[C3] x needs one axis more than the indices");
  const bool inOut = a.getLayoutAttr() && a.getLayout() == WeightLayout::in_out;
  auto dims = dimsOf(indices), rows = dimsOf(x);
  if (rows.pop_back_val() != dimOf(w, inOut ? 1 : 2))
    return bad(inOut ? "[C2] the inner dims differ (w: groups, in, out)"
                     : "[C2] the inner dims differ (w: groups, out, in)");
  for (auto [own, index] : llvm::zip_equal(rows, dims))
    if (!index || (own != index && (!own || own.getValue() != "1")))
      return bad("[C3] the axes of x in front of the last are not as long as those of the indices");
  dims.push_back(dimOf(w, inOut ? 2 : 1));
  const bool isUnrounded = a.getUnroundedAttr() && a.getUnrounded();
  r.push_back(tensorOf(dims, isUnrounded ? computeType(x.getElementType()) : x.getElementType()));
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
  Type element = table.getElementType();
  if (a.getPositions() && (tensorType(a.getPositions()).getElementType() != element ||
                           !broadcastsTo(tensorType(a.getPositions()), dims)))
    return emitOptionalError(loc, "'lathe.embedding' [C2] positions ",
                             shortType(a.getPositions().getType()), " do not broadcast to ",
                             shortType(tensorOf(dims, element)));
  if (!isa<FloatType>(element) && (a.getPositions() || numberOr(a.getScaleAttr(), 1) != 1))
    return emitOptionalError(loc, "'lathe.embedding' [C3] a table of ", element,
                             " has neither scale nor positions");
  r.push_back(tensorOf(dims, element));
  return success();
}

}  // namespace lathe

#define GET_OP_CLASSES
#include "ir/fused.cpp.inc"
