// SPDX-License-Identifier: Apache-2.0
#pragma once
// From a kernel call of the IR to the plain description that its kernels are printed from.
#include "backends/cuda/lowering/attention_kernels.h"
#include "ir/types.h"

namespace lathe::cuda {

DType elementOf(mlir::Value v);
/// The product of the sizes in [begin, end).
DimExpr productOf(llvm::ArrayRef<DimExpr> sizes);
/// Strides of a dense tensor in elements.
llvm::SmallVector<DimExpr> denseStrides(llvm::ArrayRef<DimExpr> sizes);
/// Dense strides in elements, 0 along an axis of literal size 1.
llvm::SmallVector<DimExpr> broadcastStrides(llvm::ArrayRef<DimExpr> sizes);

/// What an attention call computes; its config is that of foldTransposes (backends/to_kernels.h).
AttentionKernel attentionOf(KernelOp call, llvm::StringRef name);

/// Empty if there are kernels for the op, else what stands against them.
std::string whyNotAttention(AttentionOp op);

}  // namespace lathe::cuda
