// SPDX-License-Identifier: Apache-2.0
#pragma once
// Copies of queries, keys and values in the form that the attention micro-kernels read.
#include "backends/cpu/device/attention.h"
#include "backends/cpu/device/attention_kernels.h"
#include "backends/cpu/device/word_transpose.h"

namespace lathe::cpu {

/// Padded sizes of the packed forms of one call.
struct AttentionPack {
  DType dtype = DType::F32;
  bool bf16 = false;                  ///< operands in bf16 pairs, else f32
  bool tiles = false;                 ///< pairs in the order of tiles (AttentionKernels)
  WordTranspose transpose = nullptr;  ///< of the tier
  int64_t headDim = 0, valueDim = 0;
  int64_t innerDim = 0;      ///< headDim, padded to 32 with bf16 operands
  int64_t valueColumns = 0;  ///< valueDim, padded to 32

  AttentionPack(const AttentionArgs& args, const AttentionKernels& kernels);
  size_t elementBytes() const { return bf16 ? 2 : 4; }
  size_t queryBytes() const { return size_t(kTileRows * innerDim) * elementBytes(); }
  size_t keyBytes() const { return size_t(kTileKeys * innerDim) * elementBytes(); }
  size_t valueBytes() const { return size_t(kTileKeys * valueColumns) * elementBytes(); }

  /// One query row into row `row` of a tile.
  void query(const void* from, int row, void* tile) const;
  /// `count` keys, `stride` elements apart, transposed; the other columns up to a multiple of
  /// kKeyStep become zeros.
  void keys(const void* from, int64_t stride, int64_t count, void* tile) const;
  /// `count` values, `stride` elements apart; the other rows up to a multiple of kKeyStep become
  /// zeros.
  void values(const void* from, int64_t stride, int64_t count, void* tile) const;

 private:
  void keysInTiles(const char* from, int64_t stride, int64_t count, uint32_t* tile) const;
  void valuesInTiles(const uint16_t* from, int64_t stride, int64_t count, uint32_t* tile) const;
};

}  // namespace lathe::cpu
