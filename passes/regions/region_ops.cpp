// SPDX-License-Identifier: Apache-2.0
#include "lathe/passes/region_ops.h"

using namespace mlir;

namespace lathe {

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
