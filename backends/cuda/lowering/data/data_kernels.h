// SPDX-License-Identifier: Apache-2.0
#pragma once
// The kernels of ops that move or order data: copies, lathe.update, lathe.paged_update,
// lathe.top_k, lathe.cumsum, lathe.random_bits, lathe.cast of 4-bit integers.
#include "backends/cuda/lowering/kernel/kernel_text.h"

namespace lathe::cuda {

/// A dense result from a view. Buffers: source, result.
struct CopyKernel {
  std::string name;
  DType dtype = DType::F32;
  DimExpr offset = 0;
  std::vector<DimExpr> sizes, strides;  ///< of the source, in elements; none of size 0
};
KernelSet copyKernels(const CopyKernel& kernel);

/// lathe.update. Buffers: x, value, positions, result; where x and the result are one buffer, only
/// the new rows are written. A position that is out of range is told through the status word.
struct UpdateKernel {
  std::string name;
  DType dtype = DType::F32, positions = DType::I64;
  std::vector<DimExpr> sizes;  ///< of x
  size_t axis = 1;
  DimExpr count = 1;                  ///< of the value along the axis
  DimExpr offset = 0;                 ///< of the value in its buffer, in elements
  std::vector<DimExpr> valueStrides;  ///< none: dense; else dense behind the axis
  int check = -1;                     ///< of what an error tells (IndexCheck::op)
};
KernelSet updateKernels(const UpdateKernel& kernel);

/// lathe.paged_update. Buffers: x, value, table, positions, result; otherwise as an update.
struct PagedUpdateKernel : UpdateKernel {
  DType table = DType::I64;
  DimExpr batch = 1, entries = 1;  ///< of the table
};
KernelSet pagedUpdateKernels(const PagedUpdateKernel& kernel);

/// lathe.top_k of [rows, columns]. Buffers: x, values, indices (i64).
struct TopKKernel {
  std::string name;
  DType dtype = DType::F32;
  DimExpr rows = 1, columns = 1;
  int64_t k = 1;
};
KernelSet topKKernels(const TopKKernel& kernel);

/// lathe.cumsum of [outer, length, inner] along the middle. Buffers: x, result.
struct CumSumKernel {
  std::string name;
  DType dtype = DType::F32;
  DimExpr outer = 1, length = 1, inner = 1;
};
KernelSet cumSumKernels(const CumSumKernel& kernel);

/// lathe.random_bits of `count` words. Buffers: seed (i64), result (i32).
struct RandomBitsKernel {
  std::string name;
  DimExpr count = 1;
};
KernelSet randomBitsKernels(const RandomBitsKernel& kernel);

/// lathe.cast of `count` elements between bytes and 4-bit integers. Buffers: x, result.
struct PackedCastKernel {
  std::string name;
  DType from = DType::I4, to = DType::I8;
  DimExpr count = 1;
};
KernelSet packedCastKernels(const PackedCastKernel& kernel);

}  // namespace lathe::cuda
