// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/device/amx_tiles.h"
#include "backends/cpu/device/attention_kernels.h"
#include "backends/cpu/device/packed_weights.h"
#include "backends/cpu/device/word_transpose.h"

namespace lathe::cpu {
namespace {

constexpr int64_t kTile = kTileByTile.column;
// What the next tile of keys has at the same place, of heads of 64; of others it lies near.
constexpr int64_t kAhead = 32 * 1024;

LATHE_ISA_BEGIN(LATHE_TARGET_AMX)

// A tile of keys or values, and that of the next keys on its way to L2.
template <int tile>
inline void loadPacked(const char* at) {
  tileStream<tile>(at, 64);
  for (int64_t i = 0; i < kTile; i += 64) _mm_prefetch(at + kAhead + i, _MM_HINT_T1);
}

// 2 x 2 tiles per block of 32 columns, or one tile row where there are at most 16 rows. Keys and
// values come from L2, for these rows once.
void product(const void* a, int64_t lda, const void* b, int64_t inner, int64_t columns,
             int64_t used, int rows, bool accumulate, float* c) {
  const char* left = static_cast<const char*>(a);
  const int64_t aStride = lda * 2, cStride = columns * 4, column = lda / 32 * kTile;
  const char* lower = left + 16 * aStride;
  float* cLower = c + 16 * columns;
  for (int64_t j = 0; j < used; j += 32) {
    const char* right = static_cast<const char*>(b) + j / 16 * column;
    if (accumulate) {
      tileLoad<0>(c + j, cStride);
      tileLoad<1>(c + j + 16, cStride);
    } else {
      tileZero<0>();
      tileZero<1>();
    }
    if (rows <= 16) {
      for (int64_t k = 0; k < inner; k += 32) {
        tileLoad<4>(left + k * 2, aStride);
        loadPacked<6>(right + k / 32 * kTile);
        tileDotBf16<0, 4, 6>();
        loadPacked<7>(right + column + k / 32 * kTile);
        tileDotBf16<1, 4, 7>();
      }
      tileStore<0>(c + j, cStride);
      tileStore<1>(c + j + 16, cStride);
      continue;
    }
    if (accumulate) {
      tileLoad<2>(cLower + j, cStride);
      tileLoad<3>(cLower + j + 16, cStride);
    } else {
      tileZero<2>();
      tileZero<3>();
    }
    for (int64_t k = 0; k < inner; k += 32) {
      tileLoad<4>(left + k * 2, aStride);
      loadPacked<6>(right + k / 32 * kTile);
      tileDotBf16<0, 4, 6>();
      loadPacked<7>(right + column + k / 32 * kTile);
      tileDotBf16<1, 4, 7>();
      tileLoad<5>(lower + k * 2, aStride);
      tileDotBf16<2, 5, 6>();
      tileDotBf16<3, 5, 7>();
    }
    tileStore<0>(c + j, cStride);
    tileStore<1>(c + j + 16, cStride);
    tileStore<2>(cLower + j, cStride);
    tileStore<3>(cLower + j + 16, cStride);
  }
}

#include "backends/cpu/device/attention_in_place_amx.inc"

void loadConfig() { tileConfigure(kAmxTiles); }
void release() { tileRelease(); }

LATHE_ISA_END

}  // namespace

void amxBegin() { loadConfig(); }
void amxEnd() { release(); }
void amxMatmul(const void* a, int64_t lda, const void* b, int64_t inner, int64_t columns,
               int64_t used, int rows, bool accumulate, float* c) {
  product(a, lda, b, inner, columns, used, rows, accumulate, c);
}
void amxScoresInPlace(const void* query, int64_t headDim, const void* keys, int64_t stride,
                      bool bf16, int count, int rows, float* scores) {
  scoresOnTiles(query, headDim, keys, stride, bf16, count, rows, scores);
}
void amxSumInPlace(const void* weights, const void* values, int64_t stride, bool bf16, int first,
                   int count, int rows, int64_t columns, int64_t sumStride, float* sums) {
  sumOnTiles(weights, values, stride, bf16, first, count, rows, columns, sumStride, sums);
}

}  // namespace lathe::cpu
