// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/lowering/kernel/call_facts.h"

#include "lathe/backends/call_attributes.h"

using namespace mlir;

namespace lathe::cuda {
DType elementOf(Value v) { return *dtypeOf(tensorType(v).getElementType()); }

SmallVector<DimExpr> denseStrides(ArrayRef<DimExpr> sizes) {
  SmallVector<DimExpr> strides(sizes.size(), DimExpr(1));
  for (size_t i = sizes.size(); i-- > 1;) strides[i - 1] = strides[i] * sizes[i];
  return strides;
}

SmallVector<DimExpr> broadcastStrides(ArrayRef<DimExpr> sizes) {
  SmallVector<DimExpr> strides = denseStrides(sizes);
  for (size_t i = 0; i < sizes.size(); ++i)
    if (sizes[i] == DimExpr(1)) strides[i] = 0;
  return strides;
}

}  // namespace lathe::cuda
