// SPDX-License-Identifier: Apache-2.0
#pragma once
// Sizes, strides and dtypes of the values of a call.
#include "lathe/ir/types.h"

namespace lathe::cuda {

DType elementOf(mlir::Value v);
/// The product of the sizes in [begin, end).
DimExpr productOf(llvm::ArrayRef<DimExpr> sizes);
/// Strides of a dense tensor in elements.
llvm::SmallVector<DimExpr> denseStrides(llvm::ArrayRef<DimExpr> sizes);
/// Dense strides in elements, 0 along an axis of literal size 1.
llvm::SmallVector<DimExpr> broadcastStrides(llvm::ArrayRef<DimExpr> sizes);

}  // namespace lathe::cuda
