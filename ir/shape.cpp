// SPDX-License-Identifier: Apache-2.0
#include "lathe/ir/types.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"

using namespace mlir;

namespace lathe {

LogicalResult TransposeOp::inferReturnTypes(MLIRContext*, std::optional<Location> loc, Adaptor a,
                                            SmallVectorImpl<Type>& r) {
  auto type = tensorType(a.getX());
  if (int64_t(a.getPermutation().size()) != type.getRank() ||
      !isPermutationVector(a.getPermutation()))
    return emitOptionalError(loc, "'lathe.transpose' [C1] not a permutation of the ",
                             type.getRank(), " axes of ", shortType(type));
  SmallVector<StringAttr> dims;
  for (int64_t p : a.getPermutation()) dims.push_back(dimOf(type, p));
  r.push_back(tensorOf(dims, type.getElementType()));
  return success();
}
OpFoldResult TransposeOp::fold(FoldAdaptor) {
  if (llvm::equal(getPermutation(), llvm::seq<int64_t>(0, tensorType(getX()).getRank())))
    return getX();
  auto inner = getX().getDefiningOp<TransposeOp>();
  if (!inner) return {};
  for (auto [i, p] : llvm::enumerate(getPermutation()))
    if (inner.getPermutation()[p] != int64_t(i)) return {};
  return inner.getX();
}

LogicalResult ReshapeOp::inferReturnTypes(MLIRContext*, std::optional<Location> loc, Adaptor a,
                                          SmallVectorImpl<Type>& r) {
  auto from = tensorType(a.getX());
  auto to = tensorOf(a.getShape(), from.getElementType());
  auto had = elementCountOf(from), wants = elementCountOf(to);
  if (!had || !wants || !(*had == *wants))
    return emitOptionalError(loc, "'lathe.reshape' [C1] element counts cannot be proved equal: ",
                             shortType(from), " has ", had ? had->text() : "?", ", ", shortType(to),
                             " has ", wants ? wants->text() : "?");
  r.push_back(to);
  return success();
}
OpFoldResult ReshapeOp::fold(FoldAdaptor) {
  if (getX().getType() == getType()) return getX();
  if (auto inner = getX().getDefiningOp<ReshapeOp>()) {
    if (inner.getX().getType() == getType()) return inner.getX();
    getXMutable().assign(inner.getX());
    return getResult();
  }
  return {};
}

LogicalResult BroadcastOp::inferReturnTypes(MLIRContext*, std::optional<Location> loc, Adaptor a,
                                            SmallVectorImpl<Type>& r) {
  auto from = tensorType(a.getX());
  auto to = tensorOf(a.getShape(), from.getElementType());
  if (to.getRank() < from.getRank())
    return emitOptionalError(loc, "'lathe.broadcast' [C1] ", shortType(to),
                             " has a smaller rank than ", shortType(from));
  if (!broadcastsTo(from, a.getShape().getDims()))
    return emitOptionalError(loc, "'lathe.broadcast' [C2] ", shortType(from),
                             " does not stretch to ", shortType(to));
  r.push_back(to);
  return success();
}
OpFoldResult BroadcastOp::fold(FoldAdaptor) {
  return getX().getType() == getType() ? OpFoldResult(getX()) : OpFoldResult();
}

LogicalResult SliceOp::inferReturnTypes(MLIRContext*, std::optional<Location> loc, Adaptor a,
                                        SmallVectorImpl<Type>& r) {
  auto type = tensorType(a.getX());
  auto starts = a.getStarts().getDims(), sizes = a.getSizes().getDims();
  auto strides = a.getStrides();
  size_t rank = size_t(type.getRank());
  if (starts.size() != rank || sizes.size() != rank || strides.size() != rank)
    return emitOptionalError(loc, "'lathe.slice' [C1] needs ", rank,
                             " starts, sizes and strides for ", shortType(type));
  for (size_t i = 0; i < rank; ++i) {
    if (strides[i] < 1)
      return emitOptionalError(loc, "'lathe.slice' [C2] stride ", strides[i], " of axis ", i,
                               " is below 1");
    DimExpr start = exprOf(starts[i]), size = exprOf(sizes[i]);
    auto dim = dimExprOf(type, int64_t(i));
    if (start == DimExpr(0) && dim && size == *dim && strides[i] == 1) continue;
    DimExpr end = start + (size - DimExpr(1)) * DimExpr(strides[i]) + DimExpr(1);
    if (!dim || !start.provablyNonNegative() || !size.provablyNonNegative() ||
        !(*dim - end).provablyNonNegative())
      return emitOptionalError(loc, "'lathe.slice' [C3] start ", start.text(), ", size ",
                               size.text(), ", stride ", strides[i],
                               " is not provably inside axis ", i, " of ", shortType(type));
  }
  r.push_back(tensorOf(sizes, type.getElementType()));
  return success();
}
OpFoldResult SliceOp::fold(FoldAdaptor) {
  bool whole =
      getX().getType() == getType() &&
      llvm::all_of(getStarts().getDims(), [](StringAttr d) { return d.getValue() == "0"; });
  return whole ? OpFoldResult(getX()) : OpFoldResult();
}

LogicalResult ConcatOp::inferReturnTypes(MLIRContext* c, std::optional<Location> loc, Adaptor a,
                                         SmallVectorImpl<Type>& r) {
  if (a.getInputs().empty())
    return emitOptionalError(loc, "'lathe.concat' [C1] needs at least one operand");
  auto first = tensorType(a.getInputs()[0]);
  int64_t axis = a.getAxis();
  if (axis < 0 || axis >= first.getRank())
    return emitOptionalError(loc, "'lathe.concat' [C2] axis ", axis, " is outside rank ",
                             first.getRank());
  std::optional<DimExpr> sum = DimExpr(0);
  for (Value v : a.getInputs()) {
    auto type = tensorType(v);
    if (type.getElementType() != first.getElementType() || type.getRank() != first.getRank())
      return emitOptionalError(loc, "'lathe.concat' [C1] ", shortType(type), " and ",
                               shortType(first), " differ in element type or rank");
    for (int64_t i = 0; i < type.getRank(); ++i) {
      StringAttr d = dimOf(type, i);
      if (i != axis && (!d || d != dimOf(first, i)))
        return emitOptionalError(loc, "'lathe.concat' [C3] dim ", i, " cannot be proved equal in ",
                                 shortType(type), " and ", shortType(first));
    }
    auto dim = dimExprOf(type, axis);
    if (!dim)
      sum.reset();
    else if (sum)
      sum = *sum + *dim;
  }
  auto dims = dimsOf(first);
  dims[axis] = sum ? dimAttr(c, *sum) : StringAttr();
  r.push_back(tensorOf(dims, first.getElementType()));
  return success();
}

LogicalResult PadOp::inferReturnTypes(MLIRContext* c, std::optional<Location> loc, Adaptor a,
                                      SmallVectorImpl<Type>& r) {
  auto type = tensorType(a.getX()), value = tensorType(a.getValue());
  if (value.getRank() != 0 || value.getElementType() != type.getElementType())
    return emitOptionalError(loc, "'lathe.pad' [C1] the value must be a scalar like ",
                             shortType(type), ", got ", shortType(value));
  auto low = a.getLow(), high = a.getHigh();
  bool fits = int64_t(low.size()) == type.getRank() && int64_t(high.size()) == type.getRank();
  auto negative = [](int64_t v) { return v < 0; };
  if (!fits || llvm::any_of(low, negative) || llvm::any_of(high, negative))
    return emitOptionalError(loc, "'lathe.pad' [C2] needs a non-negative low and high for each of ",
                             type.getRank(), " axes");
  auto dims = dimsOf(type);
  for (auto [i, d] : llvm::enumerate(dims))
    if (d) d = dimAttr(c, exprOf(d) + DimExpr(low[i]) + DimExpr(high[i]));
  r.push_back(tensorOf(dims, type.getElementType()));
  return success();
}

LogicalResult ReverseOp::inferReturnTypes(MLIRContext*, std::optional<Location> loc, Adaptor a,
                                          SmallVectorImpl<Type>& r) {
  SmallVector<Type> ignored;
  if (failed(inferReduce(loc, getOperationName(), a.getX(), a.getAxes(), true, ignored)))
    return failure();
  r.push_back(a.getX().getType());
  return success();
}

}  // namespace lathe

#define GET_OP_CLASSES
#include "ir/shape.cpp.inc"
