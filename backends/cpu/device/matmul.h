// SPDX-License-Identifier: Apache-2.0
#pragma once
// Batched products of two activations, any strides, with broadcast batch dims.
#include <array>

#include "backends/cpu/device/cpu_features.h"
#include "backends/cpu/device/scratch.h"
#include "lathe/runtime/dtype.h"
#include "lathe/runtime/thread_pool.h"

namespace lathe::cpu {

inline constexpr int kMaxBatchDims = 6;

/// C[batch..., m, n] = A[batch..., m, k] x B[batch..., k, n]. Strides are in elements; a batch
/// stride of 0 broadcasts. C's last dim is contiguous and C must not overlap A or B.
struct MatmulArgs {
  const void* a = nullptr;
  const void* b = nullptr;
  void* c = nullptr;
  DType dtype = DType::F32;     ///< of A and B: F64, F32, BF16, F16, I64 or I32
  DType outDType = DType::F32;  ///< F32 or `dtype`; integers wrap and keep `dtype`
  int64_t m = 0, n = 0, k = 0;
  int64_t aRowStride = 0, aColStride = 1;
  int64_t bRowStride = 0, bColStride = 1;
  int64_t cRowStride = 0;
  int batchDims = 0;
  std::array<int64_t, kMaxBatchDims> batch{};
  std::array<int64_t, kMaxBatchDims> aBatchStrides{}, bBatchStrides{}, cBatchStrides{};
};

/// Scratch bytes for `matmul` with these shapes on `threads`; creates the primitive it will run.
size_t matmulScratchBytes(const MatmulArgs& args, int threads,
                          KernelIsa isa = KernelIsa::current());

/// Floats accumulate in f32 (f64 in f64) and are rounded once. Any of m, n, k may be 0; k = 0
/// writes zeros. Throws Error(Unsupported) for other dtypes.
void matmul(const MatmulArgs& args, ThreadPool& pool, Scratch scratch,
            KernelIsa isa = KernelIsa::current());

}  // namespace lathe::cpu
