// SPDX-License-Identifier: Apache-2.0
#pragma once
// Products of many rows on AVX2: oneDNN 3.2 reads no packed weights there. A piece of a panel is
// widened to f32 in the L2 cache, in the order in which the kernel reads it, and meets all rows.
#include "backends/cpu/device/packed_weights.h"
#include "backends/cpu/device/widened_gemm.h"

namespace lathe::cpu {

/// The kernel's sums: twelve registers of 8. Elements along K of a piece of a panel.
inline constexpr int64_t kTileRows = 6, kTileColumns = 16, kTileDepth = 256;
/// A piece of a panel: 4 x [kTileDepth][kTileColumns].
inline constexpr size_t kTileBytes = size_t(kTileDepth * kPanelColumns) * 4;
inline float* tileElement(float* piece, int64_t k, int64_t column) {
  return piece + (column / kTileColumns * kTileDepth + k) * kTileColumns + column % kTileColumns;
}
/// Elements [k0, k0 + depth) of a panel of f32 or bf16 weights; k0 is a multiple of kTileDepth.
void widenTile(const PackedShape& shape, const char* panel, int64_t k0, int64_t depth, float* to);

/// As widenedGemm (widened_gemm.h), which calls these on AVX2. Takes any m; every element is a sum
/// over K from its first to its last, as the panel kernels make it.
size_t tiledGemmScratchBytes(const WidenedMatmul& matmul, int threads);
void tiledGemm(const WidenedMatmul& matmul, int64_t m, const Epilogue& epilogue, KernelIsa isa,
               ThreadPool& pool, Scratch scratch);

}  // namespace lathe::cpu
