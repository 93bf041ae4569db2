// SPDX-License-Identifier: Apache-2.0
#pragma once
// The layout of packed weights that every M reads.
//
// Weights B[k, n] are stored in panels of 64 columns; a panel runs over all of K in blocks of
// 16 (f32) or 16 pairs (bf16) rows: f32 [n/64][k/16][16][64], bf16 [n/64][k/32][16][64][2].
// oneDNN calls them BA16a64b and BA16a64b2a and picks them itself for every M on AVX-512.
// Where AMX tiles multiply, the four tiles of 16 columns of a bf16 block lie one behind the other,
// [n/64][k/32][4][16][16][2]: a tile whose rows are neighbours comes from the L2 cache in less
// time. K and N are padded with zeros.
#include <cstddef>
#include <cstdint>

#include "backends/cpu/device/cpu_features.h"
#include "backends/cpu/device/scratch.h"
#include "lathe/runtime/dtype.h"
#include "lathe/runtime/thread_pool.h"

namespace lathe::cpu {

/// Columns of one panel.
inline constexpr int64_t kPanelColumns = 64;
/// Bytes of one block of a panel, whatever the dtype: 16 x 64 x 4.
inline constexpr int64_t kPanelBlockBytes = 4096;

/// Where the pairs of rows of a bf16 panel lie: lines of 64 bytes, of 16 columns each.
struct PairPlaces {
  int64_t row = 256;    ///< bytes between two pairs of a block
  int64_t column = 64;  ///< between two lines of a pair

  /// Of the lines of 16 columns from 16 `column` on.
  int64_t at(int64_t pair, int64_t column16) const {
    return pair / 16 * kPanelBlockBytes + pair % 16 * row + column16 * column;
  }
  bool operator==(const PairPlaces&) const = default;
};
inline constexpr PairPlaces kTileByTile{64, 1024};
/// kTileByTile where `isa` multiplies tiles.
PairPlaces pairPlaces(KernelIsa isa);

/// Shape and dtype of packed weights: K inputs, N outputs, F32 or BF16.
struct PackedShape {
  DType dtype = DType::F32;
  int64_t k = 0;
  int64_t n = 0;

  /// K elements in one block: 16 (f32) or 32 (bf16).
  int64_t blockK() const { return dtype == DType::BF16 ? 32 : 16; }
  int64_t blocks() const { return ceilDiv(k, blockK()); }
  int64_t panels() const { return ceilDiv(n, kPanelColumns); }
  int64_t panelBytes() const { return blocks() * kPanelBlockBytes; }
  /// Bytes of the packed weights; they want 64-byte alignment.
  size_t bytes() const { return size_t(panels()) * size_t(panelBytes()); }
};

/// Packs `src` (dense, F32 or BF16, rounded to the packed dtype if that is narrower) into `dst`.
/// `srcIsOutIn`: src is row-major [n, k] (a checkpoint's Linear weight), else row-major [k, n].
/// Every tier gives the same bits, in the places of `isa`. Throws Error(Unsupported) for other
/// dtypes and Error(InvalidArgument) for negative sizes.
void packWeights(const PackedShape& shape, const void* src, DType srcDType, bool srcIsOutIn,
                 void* dst, ThreadPool& pool, KernelIsa isa);

}  // namespace lathe::cpu
