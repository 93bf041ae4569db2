// SPDX-License-Identifier: Apache-2.0
#pragma once
// Products of many rows whose weights are kept in fewer bits than f32: each block of panels is
// widened once for many rows, which costs little, and f32 multiply-adds of oneDNN do the rest.
// Needs AVX-512.
#include "backends/cpu/device/packed_weights.h"
#include "backends/cpu/device/panel_kernels.h"

namespace lathe::cpu {

class WidenedProduct {
 public:
  /// `rowLength` floats, at least k, lie between rows of A.
  WidenedProduct(int64_t k, int64_t n, int64_t rowLength) : k(k), n(n), rowLength(rowLength) {}
  virtual ~WidenedProduct() = default;
  /// Writes rows [row0, row1) of A as f32.
  virtual void widenRows(int64_t row0, int64_t row1, float* to) const = 0;
  /// Writes a panel of weights as f32 (packed_weights.h).
  virtual void widenPanel(int64_t panel, float* to) const = 0;

  const int64_t k, n, rowLength;
};

/// m is taken in multiples of this.
inline constexpr int64_t kWidenedStep = 8;
/// Creates the primitives of any m, and returns the bytes of scratch that they need.
size_t widenedGemmScratchBytes(const WidenedProduct& product, int threads);
/// Rows [0, m) of C, m a multiple of kWidenedStep.
void widenedGemm(const WidenedProduct& product, int64_t m, const Epilogue& epilogue, KernelIsa isa,
                 ThreadPool& pool, Scratch scratch);

}  // namespace lathe::cpu
