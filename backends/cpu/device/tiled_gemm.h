// SPDX-License-Identifier: Apache-2.0
#pragma once
// Products of many rows by multiply-adds of f32 numbers, whatever the weights are kept in. A piece
// of a panel that fits into the L1 cache (on AVX2 the L2 cache) is widened to f32 once, and meets
// all rows. Every element is a sum over K from its first to its last, whatever the number of rows,
// as the panel kernels make it.
#include <span>

#include "backends/cpu/device/packed_weights.h"
#include "backends/cpu/device/panel_kernels.h"

namespace lathe::cpu {

/// Elements along K of a piece of a panel, and columns of one product, whose sums stay in
/// registers: for each of up to six rows two registers on AVX2, four on AVX-512.
struct TileShape {
  int64_t depth, columns;

  size_t bytes() const { return size_t(depth * kPanelColumns) * 4; }
  /// A piece is [kPanelColumns / columns][depth][columns].
  float* element(float* piece, int64_t k, int64_t column) const {
    return piece + (column / columns * depth + k) * columns + column % columns;
  }
};
inline constexpr TileShape kTilesAvx2{256, 16}, kTilesAvx512{128, 64};

class WidenedMatmul {
 public:
  /// `rowLength` floats, at least k, are what widenRow writes.
  WidenedMatmul(int64_t k, int64_t n, int64_t rowLength) : k(k), n(n), rowLength(rowLength) {}
  virtual ~WidenedMatmul() = default;
  /// Writes a row of A as f32.
  virtual void widenRow(int64_t row, float* to) const = 0;
  /// Elements [k0, k0 + depth) of a panel of weights as a piece of f32, written to `to` or where
  /// they lie; k0 is a multiple of a piece's depth.
  virtual const float* widenPiece(int64_t panel, int64_t k0, int64_t depth, float* to) const = 0;
  /// Where these are stored.
  virtual std::span<const char> stored(int64_t panel, int64_t k0, int64_t depth) const = 0;

  const int64_t k, n, rowLength;
};

/// The same of packed weights of f32 or bf16.
const float* widenPiece(const PackedShape& shape, const char* panel, int64_t k0, int64_t depth,
                        KernelIsa isa, float* to);
std::span<const char> storedPiece(const PackedShape& shape, const char* panel, int64_t k0,
                                  int64_t depth);

/// Takes any m.
size_t tiledGemmScratchBytes(const WidenedMatmul& matmul, int threads, KernelIsa isa);
void tiledGemm(const WidenedMatmul& matmul, int64_t m, const Epilogue& epilogue, KernelIsa isa,
               ThreadPool& pool, Scratch scratch);

}  // namespace lathe::cpu
