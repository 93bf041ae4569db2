// SPDX-License-Identifier: Apache-2.0
#pragma once
// Products of blocks of tiles, for the products of matrices that are made of them. The weights are
// a panel of bf16 in its packed order (packed_weights.h), from memory or unpacked from fewer bits.
#include "backends/cpu/device/amx_tiles.h"
#include "backends/cpu/device/packed_weights.h"
#include "backends/cpu/device/panel_kernels.h"

namespace lathe::cpu {
namespace {

constexpr int64_t kTileBytes = 1024;
constexpr int64_t kChunkRows = 256;   // A's rows in tiles at a time
constexpr int64_t kGroupPanels = 8;   // panels whose sums are kept: 8 x 256 x 64 x 4 = 512 KiB
constexpr int64_t kOuterBlocks = 40;  // K blocks of A in L2: 256 x 1280 x 2 = 640 KiB
constexpr int64_t kFewRows = 16;      // one row of tiles

// One worker's share of C.
struct Share {
  int64_t row0, row1, panel0, panel1;
};

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

// Finished sums [rows][32] that wait for their way through the epilogue.
struct Finished {
  const float* sums = nullptr;
  int64_t rows = 0, cols = 0, row0 = 0, col0 = 0;
};
inline void storeRows(Finished& f, int64_t most, const PanelKernels& kernels,
                      const Epilogue& epilogue) {
  const int64_t rows = f.rows < most ? f.rows : most;
  if (rows <= 0) return;
  kernels.store(f.sums, 32, rows, f.cols, f.row0, f.col0, epilogue);
  f.sums += rows * 32;
  f.row0 += rows;
  f.rows -= rows;
}

// What the steps of a product do beside it, since the tiles leave the other units idle: fetch lines
// of weights that the worker will read next into the L2 cache, and rows of C that it will write;
// store what is finished.
struct Beside {
  const char* weights = nullptr;
  int64_t lines = 0;  // a step
  const char* c = nullptr;
  int64_t cStride = 0, cRows = 0;
  Finished finished;
  const PanelKernels* kernels = nullptr;
  const Epilogue* epilogue = nullptr;
};

// sums[32][32] (+)= 2 row tiles of A x 2 column tiles of a panel over `blocks` K blocks. All that
// is finished is stored when the sums are written.
inline void tiles2x2(const char* a, const char* b, int64_t blocks, bool first, float* sums,
                     Beside& beside) {
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
  const int64_t rowsAStep = (32 + blocks - 1) / blocks, stored = rowsAStep > 4 ? rowsAStep : 4;
  for (int64_t k = 0; k < blocks; ++k, a += 2 * kTileBytes, b += kPanelBlockBytes) {
    tileLoad<6>(b, 256);
    tileLoad<4>(a, 64);
    tileDotBf16<0, 4, 6>();
    tileLoad<7>(b + 64, 256);
    tileDotBf16<1, 4, 7>();
    tileLoad<5>(a + kTileBytes, 64);
    tileDotBf16<2, 5, 6>();
    tileDotBf16<3, 5, 7>();
    for (int64_t i = 0; i < beside.lines; ++i, beside.weights += 64)
      _mm_prefetch(beside.weights, _MM_HINT_T1);
    for (int64_t i = 0; i < rowsAStep && beside.cRows > 0; ++i, --beside.cRows) {
      __builtin_prefetch(beside.c, 1);  // to be written
      beside.c += beside.cStride;
    }
    if (beside.finished.rows > 0)
      storeRows(beside.finished, stored, *beside.kernels, *beside.epilogue);
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
inline void step1x4(const char* a, const char* b) {
  tileLoad<4>(a, 64);
  tileLoad<6>(b, 256);
  tileDotBf16<0, 4, 6>();
  tileLoad<7>(b + 64, 256);
  tileDotBf16<1, 4, 7>();
  tileLoad<6>(b + 128, 256);
  tileDotBf16<2, 4, 6>();
  tileLoad<7>(b + 192, 256);
  tileDotBf16<3, 4, 7>();
}

LATHE_ISA_END

}  // namespace
}  // namespace lathe::cpu
