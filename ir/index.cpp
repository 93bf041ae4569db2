// SPDX-License-Identifier: Apache-2.0
#include "lathe/ir/types.h"

using namespace mlir;

namespace lathe {

LogicalResult IotaOp::inferReturnTypes(MLIRContext*, std::optional<Location> loc, Adaptor a,
                                       SmallVectorImpl<Type>& r) {
  int64_t axis = a.getAxis(), rank = int64_t(a.getShape().getDims().size());
  if (axis < 0 || axis >= rank)
    return emitOptionalError(loc, "'lathe.iota' [C1] axis ", axis, " is outside rank ", rank);
  auto dtype = dtypeOf(a.getDtype());
  if (!dtype || *dtype == DType::Bool || isPacked(*dtype))
    return emitOptionalError(loc, "'lathe.iota' [C2] needs a number type, got ", a.getDtype());
  r.push_back(tensorOf(a.getShape(), a.getDtype()));
  return success();
}

LogicalResult GatherOp::inferReturnTypes(MLIRContext*, std::optional<Location> loc, Adaptor a,
                                         SmallVectorImpl<Type>& r) {
  auto x = tensorType(a.getX()), indices = tensorType(a.getIndices());
  int64_t axis = a.getAxis();
  if (axis < 0 || axis >= x.getRank())
    return emitOptionalError(loc, "'lathe.gather' [C1] axis ", axis, " is outside rank ",
                             x.getRank(), " of ", shortType(x));
  auto dims = dimsOf(x), inner = dimsOf(indices);
  dims.erase(dims.begin() + axis);
  dims.insert(dims.begin() + axis, inner.begin(), inner.end());
  r.push_back(tensorOf(dims, x.getElementType()));
  return success();
}

LogicalResult UpdateOp::inferReturnTypes(MLIRContext*, std::optional<Location> loc, Adaptor a,
                                         SmallVectorImpl<Type>& r) {
  auto x = tensorType(a.getX()), value = tensorType(a.getValue()),
       positions = tensorType(a.getPositions());
  int64_t axis = a.getAxis();
  bool same = x.getRank() == value.getRank() && x.getElementType() == value.getElementType();
  for (int64_t i = 0; same && i < x.getRank(); ++i)
    same = i == axis || (dimOf(x, i) && dimOf(x, i) == dimOf(value, i));
  if (!same)
    return emitOptionalError(loc, "'lathe.update' [C1] ", shortType(value), " does not fit into ",
                             shortType(x), " along axis ", axis);
  if (axis < 1 || axis >= x.getRank())
    return emitOptionalError(loc, "'lathe.update' [C2] axis ", axis, " is outside [1, ",
                             x.getRank(), ")");
  if (positions.getRank() != 1 || !dimOf(positions, 0) || dimOf(positions, 0) != dimOf(x, 0))
    return emitOptionalError(loc, "'lathe.update' [C3] positions ", shortType(positions),
                             " are not one per batch of ", shortType(x));
  r.push_back(x);
  return success();
}

LogicalResult PagedUpdateOp::inferReturnTypes(MLIRContext*, std::optional<Location> loc, Adaptor a,
                                              SmallVectorImpl<Type>& r) {
  auto x = tensorType(a.getX()), value = tensorType(a.getValue()),
       positions = tensorType(a.getPositions()), table = tensorType(a.getTable());
  int64_t axis = a.getAxis();
  bool same = x.getRank() == value.getRank() && x.getElementType() == value.getElementType();
  for (int64_t i = 1; same && i < x.getRank(); ++i)
    same = i == axis || (dimOf(x, i) && dimOf(x, i) == dimOf(value, i));
  if (!same)
    return emitOptionalError(loc, "'lathe.paged_update' [C1] ", shortType(value),
                             " does not fit into blocks ", shortType(x), " along axis ", axis);
  if (axis < 1 || axis >= x.getRank())
    return emitOptionalError(loc, "'lathe.paged_update' [C2] axis ", axis, " is outside [1, ",
                             x.getRank(), ")");
  auto perSequence = [&](RankedTensorType t, int64_t rank) {
    return t.getRank() == rank && dimOf(t, 0) && dimOf(t, 0) == dimOf(value, 0);
  };
  if (!perSequence(table, 2) || !perSequence(positions, 1))
    return emitOptionalError(loc, "'lathe.paged_update' [C3] table ", shortType(table),
                             " and positions ", shortType(positions),
                             " are not a row and a number for each sequence of ", shortType(value));
  r.push_back(x);
  return success();
}

LogicalResult RandomBitsOp::inferReturnTypes(MLIRContext* c, std::optional<Location> loc, Adaptor a,
                                             SmallVectorImpl<Type>& r) {
  if (tensorType(a.getSeed()).getRank() != 0)
    return emitOptionalError(loc, "'lathe.random_bits' [C1] the seed must be a scalar, got ",
                             shortType(a.getSeed().getType()));
  r.push_back(tensorOf(a.getShape(), IntegerType::get(c, 32)));
  return success();
}

}  // namespace lathe

#define GET_OP_CLASSES
#include "ir/index.cpp.inc"
