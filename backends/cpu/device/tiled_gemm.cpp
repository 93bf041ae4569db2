// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/device/tiled_gemm.h"

#include <algorithm>

#include "backends/cpu/device/isa_region.h"

namespace lathe::cpu {
namespace {

// Rows of A that are in the kernel's order at a time, and those that stay in the L2 cache beside a
// piece of weights.
constexpr int64_t kRows = 512, kCachedRows = 48;

LATHE_ISA_BEGIN(LATHE_TARGET_AVX2)

// c[rows][16] += a[depth][6] x b[depth][16]
template <int rows>
void tile(const float* a, const float* b, int64_t depth, float* c, int64_t ldc) {
  __m256 sum[rows][2];
  for (int r = 0; r < rows; ++r)
    for (int j = 0; j < 2; ++j) sum[r][j] = _mm256_loadu_ps(c + r * ldc + j * 8);
  const float* ahead = a + kTileRows * depth;
#pragma clang loop unroll_count(4)
  for (int64_t k = 0; k < depth; ++k, a += kTileRows, b += kTileColumns) {
    if (k % 4 == 0) {  // the rows behind, at the pace at which they will be read
      _mm_prefetch(reinterpret_cast<const char*>(ahead + k * kTileRows), _MM_HINT_T0);
      _mm_prefetch(reinterpret_cast<const char*>(ahead + k * kTileRows + 16), _MM_HINT_T0);
    }
    const __m256 b0 = _mm256_loadu_ps(b), b1 = _mm256_loadu_ps(b + 8);
    for (int r = 0; r < rows; ++r) {
      const __m256 x = _mm256_broadcast_ss(a + r);
      sum[r][0] = _mm256_fmadd_ps(x, b0, sum[r][0]);
      sum[r][1] = _mm256_fmadd_ps(x, b1, sum[r][1]);
    }
  }
  for (int r = 0; r < rows; ++r)
    for (int j = 0; j < 2; ++j) _mm256_storeu_ps(c + r * ldc + j * 8, sum[r][j]);
}

void widenBf16(const char* lines, int64_t depth, float* to) {
  const __m256i high = _mm256_set1_epi32(int(0xffff0000u));
  for (int64_t k = 0; k < depth; k += 2, lines += 256)
    for (int column = 0; column < 64; column += 8) {
      const __m256i pair = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(lines + column * 4));
      float* at = tileElement(to, k, column);
      _mm256_storeu_ps(at, _mm256_castsi256_ps(_mm256_slli_epi32(pair, 16)));
      _mm256_storeu_ps(at + kTileColumns, _mm256_castsi256_ps(_mm256_and_si256(pair, high)));
    }
}

void copyF32(const char* lines, int64_t depth, float* to) {
  for (int64_t k = 0; k < depth; ++k, lines += 256)
    for (int column = 0; column < 64; column += 8)
      _mm256_storeu_ps(tileElement(to, k, column),
                       _mm256_loadu_ps(reinterpret_cast<const float*>(lines) + column));
}

LATHE_ISA_END

using TileFn = void (*)(const float*, const float*, int64_t, float*, int64_t);
constexpr TileFn kTiles[kTileRows] = {tile<1>, tile<2>, tile<3>, tile<4>, tile<5>, tile<6>};

// A as [pieces of K][groups of rows][depth][kTileRows] for all; each worker's rows on their way
// there, sums and piece of weights.
struct Sizes {
  explicit Sizes(const WidenedMatmul& p)
      : a(alignUp64(size_t(roundUp(kRows, kTileRows) * p.k + kTileRows * 8) * 4)),
        rows(alignUp64(size_t(kTileRows * p.rowLength) * 4)),
        sums(size_t(kRows * kPanelColumns) * 4) {}
  size_t slice() const { return std::max(rows, sums + kTileBytes); }
  size_t a, rows, sums;
};

// Groups of rows [begin, end) of A, of `rows` from row0 on, in the kernel's order.
void orderRows(const WidenedMatmul& p, int64_t row0, int64_t rows, int64_t begin, int64_t end,
               float* buffer, float* a) {
  const int64_t groups = ceilDiv(rows, kTileRows);
  for (int64_t group = begin; group < end; ++group) {
    const int64_t first = group * kTileRows, count = std::min(kTileRows, rows - first);
    p.widenRows(row0 + first, row0 + first + count, buffer);
    for (int64_t k0 = 0; k0 < p.k; k0 += kTileDepth) {
      const int64_t depth = std::min(kTileDepth, p.k - k0);
      float* to = a + (k0 * groups + group * depth) * kTileRows;
      for (int64_t r = 0; r < count; ++r) {
        const float* from = buffer + r * p.rowLength + k0;
        for (int64_t k = 0; k < depth; ++k) to[k * kTileRows + r] = from[k];
      }
    }
  }
}

// One panel times all ordered rows.
void panelTimesRows(const WidenedMatmul& p, int64_t panel, const float* a, int64_t rows,
                    float* sums, float* piece) {
  const int64_t groups = ceilDiv(rows, kTileRows);
  const int64_t columns = std::min(kPanelColumns, p.n - panel * kPanelColumns);
  std::fill(sums, sums + rows * kPanelColumns, 0.0f);
  for (int64_t k0 = 0; k0 < p.k; k0 += kTileDepth) {
    const int64_t depth = std::min(kTileDepth, p.k - k0);
    p.widenTile(panel, k0, depth, piece);
    for (int64_t cached = 0; cached < rows; cached += kCachedRows) {
      const int64_t last = std::min(rows, cached + kCachedRows);
      for (int64_t column = 0; column < columns; column += kTileColumns)
        for (int64_t row = cached; row < last; row += kTileRows)
          kTiles[std::min(kTileRows, rows - row) - 1](
              a + k0 * groups * kTileRows + row * depth, tileElement(piece, 0, column), depth,
              sums + row * kPanelColumns + column, kPanelColumns);
    }
  }
}

}  // namespace

void widenTile(const PackedShape& shape, const char* panel, int64_t k0, int64_t depth, float* to) {
  // A line of 256 bytes is an element of K, or two of them.
  shape.dtype == DType::BF16 ? widenBf16(panel + k0 * 128, depth, to)
                             : copyF32(panel + k0 * 256, depth, to);
}

size_t tiledGemmScratchBytes(const WidenedMatmul& matmul, int threads) {
  const Sizes sizes(matmul);
  return sizes.a + sizes.slice() * size_t(threads);
}

void tiledGemm(const WidenedMatmul& p, int64_t m, const Epilogue& epilogue, KernelIsa isa,
               ThreadPool& pool, Scratch scratch) {
  const Sizes sizes(p);
  const PanelKernels& kernels = panelKernels(isa);
  char* base = static_cast<char*>(scratch.data);
  float* a = reinterpret_cast<float*>(base);
  auto slice = [&](int worker) {
    return reinterpret_cast<float*>(base + sizes.a + size_t(worker) * sizes.slice());
  };
  for (int64_t row0 = 0; row0 < m; row0 += kRows) {
    const int64_t rows = std::min(kRows, m - row0);
    pool.parallelFor(0, ceilDiv(rows, kTileRows), 1, [&](int64_t begin, int64_t end, int worker) {
      orderRows(p, row0, rows, begin, end, slice(worker), a);
    });
    pool.runDynamic(ceilDiv(p.n, kPanelColumns), [&](int64_t panel, int worker) {
      float* sums = slice(worker);
      panelTimesRows(p, panel, a, rows, sums, sums + kRows * kPanelColumns);
      const int64_t column = panel * kPanelColumns;
      kernels.store(sums, kPanelColumns, rows, std::min(kPanelColumns, p.n - column), row0, column,
                    epilogue);
    });
  }
}

}  // namespace lathe::cpu
