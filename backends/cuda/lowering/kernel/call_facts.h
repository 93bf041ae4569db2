// SPDX-License-Identifier: Apache-2.0
#pragma once
// Sizes, strides and dtypes of the values of a call.
#include "lathe/backends/region_plan.h"

namespace lathe::cuda {

DType elementOf(mlir::Value v);
/// Strides of a dense tensor in elements.
llvm::SmallVector<DimExpr> denseStrides(llvm::ArrayRef<DimExpr> sizes);
/// Dense strides in elements, 0 along an axis of literal size 1.
llvm::SmallVector<DimExpr> broadcastStrides(llvm::ArrayRef<DimExpr> sizes);

}  // namespace lathe::cuda
