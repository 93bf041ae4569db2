// SPDX-License-Identifier: Apache-2.0
#pragma once
// Products of many rows whose weights are kept in fewer bits than f32: each block of panels is
// widened once for many rows, which costs little, and f32 multiply-adds do the rest (f32_gemm.h,
// tiled_gemm.h).
#include "backends/cpu/device/packed_weights.h"
#include "backends/cpu/device/panel_kernels.h"

namespace lathe::cpu {

class WidenedMatmul {
 public:
  /// `rowLength` floats, at least k, lie between rows of A.
  WidenedMatmul(int64_t k, int64_t n, int64_t rowLength) : k(k), n(n), rowLength(rowLength) {}
  virtual ~WidenedMatmul() = default;
  /// Writes rows [row0, row1) of A as f32.
  virtual void widenRows(int64_t row0, int64_t row1, float* to) const = 0;
  /// Writes a panel of weights as f32 (packed_weights.h). Needs AVX-512.
  virtual void widenPanel(int64_t panel, float* to) const = 0;
  /// Writes elements [k0, k0 + depth) of a panel of weights as f32 (tiled_gemm.h).
  virtual void widenTile(int64_t panel, int64_t k0, int64_t depth, float* to) const = 0;

  const int64_t k, n, rowLength;
};

size_t widenedGemmScratchBytes(const WidenedMatmul& matmul, int threads, KernelIsa isa);
void widenedGemm(const WidenedMatmul& matmul, int64_t m, const Epilogue& epilogue, KernelIsa isa,
                 ThreadPool& pool, Scratch scratch);

}  // namespace lathe::cpu
