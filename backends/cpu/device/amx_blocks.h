// SPDX-License-Identifier: Apache-2.0
#pragma once
// Products of blocks of tiles, for the products of matrices that are made of them. The weights are
// a panel tile by tile (kTileByTile), from memory or unpacked from fewer bits.
#include "backends/cpu/device/amx_gemm.h"
#include "backends/cpu/device/amx_tiles.h"
#include "backends/cpu/device/packed_weights.h"

namespace lathe::cpu {
namespace {

constexpr int64_t kTileBytes = 1024;

LATHE_ISA_BEGIN(LATHE_TARGET_AMX)

// Rows [0, rows) of A into tiles [rows / height][blocks][height / 16][16][32], padded with zeros to
// `paddedRows`: what a step of the tiles reads lies side by side. `height` is 32 or 16.
inline void tileA(const uint16_t* a, int64_t lda, int64_t rows, int64_t paddedRows, int64_t k,
                  int64_t blocks, int64_t height, char* tiles) {
  for (int64_t r = 0; r < paddedRows; ++r) {
    char* to = tiles + (r / height * blocks * height + r % height) * 64;
    const uint16_t* from = a + r * lda;
    for (int64_t b = 0; b < blocks; ++b, to += height * 64) {
      int64_t left = r < rows ? k - b * 32 : 0;
      __mmask32 lanes = left >= 32 ? ~__mmask32(0)
                        : left > 0 ? __mmask32((uint32_t(1) << left) - 1)
                                   : __mmask32(0);
      _mm512_storeu_si512(to, _mm512_maskz_loadu_epi16(lanes, from + b * 32));
    }
  }
}

// Of bytes a block holds twice as many as of bf16. Those of A have a sign.
enum class Operands { bf16, bytes, signedBytes };
template <Operands operands, int sums, int a, int b>
inline void tileDot() {
  if constexpr (operands == Operands::bf16)
    tileDotBf16<sums, a, b>();
  else if constexpr (operands == Operands::bytes)
    tileDotBytes<sums, a, b>();
  else
    tileDotSignedBytes<sums, a, b>();
}

// sums[32][32] (+)= 2 row tiles of A x 2 column tiles of a panel over `blocks` K blocks. Each of
// them is a step of `beside`; the sums are written after the last one. Those of bytes are i32.
// Weights come from L2 and meet these rows alone: L1 would only copy them.
template <Operands operands, class Beside>
inline void tiles2x2(const char* a, const char* b, PairPlaces at, int64_t blocks, bool first,
                     float* sums, Beside& beside) {
  if (first) {
    tileZero<0>();
    tileZero<1>();
    tileZero<2>();
    tileZero<3>();
  } else {
    tileLoad<0>(sums, 128);
    tileLoad<1>(sums + 16, 128);
    tileLoad<2>(sums + 512, 128);
    tileLoad<3>(sums + 528, 128);
  }
  for (int64_t k = 0; k < blocks; ++k, a += 2 * kTileBytes, b += kPanelBlockBytes) {
    tileStream<6>(b, at.row);
    tileLoad<4>(a, 64);
    tileDot<operands, 0, 4, 6>();
    tileStream<7>(b + at.column, at.row);
    tileDot<operands, 1, 4, 7>();
    tileLoad<5>(a + kTileBytes, 64);
    tileDot<operands, 2, 5, 6>();
    tileDot<operands, 3, 5, 7>();
    beside.step();
  }
  tileStore<0>(sums, 128);
  tileStore<1>(sums + 16, 128);
  tileStore<2>(sums + 512, 128);
  tileStore<3>(sums + 528, 128);
}

// sums[16][64] of one row tile of A and the four column tiles of a panel, in tiles 0 to 3. Tiles of
// A and of sums may be configured to have fewer rows.
inline void begin1x4(bool first, const float* sums) {
  if (first) {
    tileZero<0>();
    tileZero<1>();
    tileZero<2>();
    tileZero<3>();
  } else {
    tileLoad<0>(sums, 256);
    tileLoad<1>(sums + 16, 256);
    tileLoad<2>(sums + 32, 256);
    tileLoad<3>(sums + 48, 256);
  }
}
inline void end1x4(float* sums) {
  tileStore<0>(sums, 256);
  tileStore<1>(sums + 16, 256);
  tileStore<2>(sums + 32, 256);
  tileStore<3>(sums + 48, 256);
}
// += a tile of A x a K block of the panel.
template <Operands operands>
inline void step1x4(const char* a, const char* b) {
  tileLoad<4>(a, 64);
  tileLoad<6>(b, 64);
  tileDot<operands, 0, 4, 6>();
  tileLoad<7>(b + kTileBytes, 64);
  tileDot<operands, 1, 4, 7>();
  tileLoad<6>(b + 2 * kTileBytes, 64);
  tileDot<operands, 2, 4, 6>();
  tileLoad<7>(b + 3 * kTileBytes, 64);
  tileDot<operands, 3, 4, 7>();
}

LATHE_ISA_END

}  // namespace
}  // namespace lathe::cpu
