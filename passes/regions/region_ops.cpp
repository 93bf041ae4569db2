// SPDX-License-Identifier: Apache-2.0
#include "lathe/passes/region_ops.h"

#include <numeric>

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

DimExpr productOf(ArrayRef<DimExpr> sizes) {
  DimExpr product = 1;
  for (const DimExpr& d : sizes) product = product * d;
  return product;
}

int64_t divisorOf(const DimExpr& size) {
  int64_t divisor = 0;
  for (auto& [symbols, factor] : size.terms()) divisor = std::gcd(divisor, factor);
  return divisor;
}

}  // namespace lathe
