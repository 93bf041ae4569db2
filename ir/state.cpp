// SPDX-License-Identifier: Apache-2.0
#include "lathe/ir/types.h"

using namespace mlir;

namespace lathe {

LogicalResult ConstantOp::inferReturnTypes(MLIRContext*, std::optional<Location>, Adaptor a,
                                           SmallVectorImpl<Type>& r) {
  r.push_back(a.getValue().getType());
  return success();
}
OpFoldResult ConstantOp::fold(FoldAdaptor) { return getValue(); }

LogicalResult WeightOp::verify() {
  if (!tensorType(getY()).hasStaticShape())
    return emitOpError() << "[C1] a weight's shape is static, got " << shortType(getType());
  return success();
}

LogicalResult DimOp::verify() {
  if (int64_t(getLo()) < 0 || getHi() < getLo() || int64_t(getMultiple()) < 1)
    return emitOpError() << "[C1] empty range " << int64_t(getLo()) << " to " << int64_t(getHi())
                         << " multiple " << int64_t(getMultiple());
  return success();
}

}  // namespace lathe

#define GET_OP_CLASSES
#include "ir/state.cpp.inc"
