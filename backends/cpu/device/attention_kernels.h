// SPDX-License-Identifier: Apache-2.0
#pragma once
// Micro-kernels of the attention driver, one table per tier.
#include <cstdint>

#include "backends/cpu/device/cpu_features.h"

namespace lathe::cpu {

/// A tile of scores: rows (queries x heads of a group) by keys.
inline constexpr int kTileRows = 32;
inline constexpr int kTileKeys = 128;
/// Products take so many keys of a tile at a time.
inline constexpr int64_t kKeyStep = 32;

/// What a score row goes through before the exponential. Keys outside [lo, hi) are hidden.
struct ScoreRow {
  float* scores = nullptr;   ///< kTileKeys sums q . k; becomes the probabilities in the f32 form
  uint16_t* bf16 = nullptr;  ///< where probabilities go rounded to bf16, if the tier wants that
  int lo = 0, hi = kTileKeys;
  int keys = kTileKeys;  ///< how many probabilities are read, a multiple of kKeyStep, at least hi
  float scale = 1, softcap = 0;
  const float* bias = nullptr;  ///< kTileKeys addends, or null
  bool hideInfinite = false;    ///< a bias of -inf hides its key whatever the score is
};

/// Running maximum and sum of one row of online softmax.
struct RowState {
  float max;
  float sum;
};

struct AttentionKernels {
  /// Operands of the products are bf16 with neighbours along the inner dim in pairs
  /// [inner / 2][columns][2]; otherwise f32 [inner][columns].
  bool bf16Operands;
  /// Tasks run between amxBegin and amxEnd, and pairs lie in the order of tiles: of each 16 columns
  /// all pairs, [columns / 16][lda / 2][16][2].
  bool tiles;
  /// c[rows][columns] (+)= a[rows][inner] x b, the first `used` columns of it. rows <= kTileRows
  /// (buffers hold all kTileRows), columns and used multiples of 32, inner a multiple of 32 if
  /// bf16; ldb and ldc are `columns`, lda is what b has of the inner dim.
  void (*product)(const void* a, int64_t lda, const void* b, int64_t inner, int64_t columns,
                  int64_t used, int rows, bool accumulate, float* c);
  /// One step of online softmax for `count` rows; shrink[r] is the factor by which earlier sums of
  /// a row shrink.
  void (*softmaxRows)(const ScoreRow* rows, int count, RowState* states, float* shrink);
  /// row[0..count) *= factor, count a multiple of 16.
  void (*scaleRow)(float* row, int64_t count, float factor);
  /// to[0..count) = row[j] * factor, rounded to bf16 if `bf16`; the row is readable up to the next
  /// multiple of 16.
  void (*storeRow)(const float* row, float factor, int64_t count, bool bf16, void* to);
  /// scores[r][0..count) = query[r] . keys[j], where keys lie `stride` elements apart; `query` is
  /// [rows][headDim], headDim a multiple of inPlaceLanes, in bf16 where the operands of products
  /// are, else in f32. Rows of scores are kTileKeys apart; what is behind `count` in them is
  /// undefined.
  void (*scoresInPlace)(const void* query, int64_t headDim, const void* keys, int64_t stride,
                        bool bf16, int count, int rows, float* scores);
  /// sums[r][0..columns) += weights[r][j] x values[j] for the keys [first, count); `columns` is a
  /// multiple of inPlaceLanes. Weights are [rows][kTileKeys] of the queries' dtype.
  void (*sumInPlace)(const void* weights, const void* values, int64_t stride, bool bf16, int first,
                     int count, int rows, int64_t columns, int64_t sumStride, float* sums);
  int64_t inPlaceLanes;
  /// So many rows read keys and values where they lie; more are faster on packed copies.
  int inPlaceRows;
  /// Whose transpose packs the keys.
  Isa tier;
};

/// The table for data of `bf16` or f32 on a tier.
const AttentionKernels& attentionKernels(bool bf16, KernelIsa isa);
// One per translation unit of a tier.
extern const AttentionKernels kAttentionAvx2;
extern const AttentionKernels kAttentionAvx512;
extern const AttentionKernels kAttentionAvx512Bf16;

/// `product` on tiles; the calling thread's tile registers are set up by amxBegin.
void amxMatmul(const void* a, int64_t lda, const void* b, int64_t inner, int64_t columns,
               int64_t used, int rows, bool accumulate, float* c);
/// `scoresInPlace` and `sumInPlace` on tiles, of up to 16 rows.
void amxScoresInPlace(const void* query, int64_t headDim, const void* keys, int64_t stride,
                      bool bf16, int count, int rows, float* scores);
void amxSumInPlace(const void* weights, const void* values, int64_t stride, bool bf16, int first,
                   int count, int rows, int64_t columns, int64_t sumStride, float* sums);
void amxBegin();
void amxEnd();

}  // namespace lathe::cpu
