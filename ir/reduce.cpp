// SPDX-License-Identifier: Apache-2.0
#include "ir/scalar_builder.h"
#include "lathe/ir/types.h"

using namespace mlir;

namespace lathe {

LogicalResult CumSumOp::inferReturnTypes(MLIRContext*, std::optional<Location> loc, Adaptor a,
                                         SmallVectorImpl<Type>& r) {
  SmallVector<Type> ignored;
  if (failed(inferReduce(loc, getOperationName(), a.getX(), int64_t(a.getAxis()), true, ignored)))
    return failure();
  r.push_back(a.getX().getType());
  return success();
}

LogicalResult TopKOp::inferReturnTypes(MLIRContext* c, std::optional<Location> loc, Adaptor a,
                                       SmallVectorImpl<Type>& r) {
  auto type = tensorType(a.getX());
  if (type.getRank() < 1)
    return emitOptionalError(loc, "'lathe.top_k' [C1] needs an axis, got ", shortType(type));
  int64_t k = a.getK(), last = type.getDimSize(type.getRank() - 1);
  if (k < 1 || (!ShapedType::isDynamic(last) && k > last))
    return emitOptionalError(loc, "'lathe.top_k' [C2] k = ", k, " is outside [1, last dim] of ",
                             shortType(type));
  auto dims = dimsOf(type);
  dims.back() = StringAttr::get(c, std::to_string(k));
  r.push_back(tensorOf(dims, type.getElementType()));
  r.push_back(tensorOf(dims, IntegerType::get(c, 64)));
  return success();
}

}  // namespace lathe

#define GET_OP_CLASSES
#include "ir/reduce.cpp.inc"
