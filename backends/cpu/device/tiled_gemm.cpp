// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/device/tiled_gemm.h"

#include <algorithm>
#include <cstring>

#include "backends/cpu/device/gated.h"
#include "backends/cpu/device/isa_region.h"

namespace lathe::cpu {
namespace {

// Rows of one product, those that are widened at a time, and those that stay in the L2 cache beside
// a piece of weights.
constexpr int64_t kTileRows = 6, kRows = 512, kCachedRows = 48;
// Fewer rows do not repay a piece of weights that two threads widen.
constexpr int64_t kLeastTaskRows = 48;
// Tasks for each of several threads: what one has not begun another takes.
constexpr int64_t kThreadTasks = 4;

// What a product fetches beside its own operands: the rows behind, and on AVX-512 the weights of
// the next piece, `pace` bytes of them for each element of K.
struct Ahead {
  const char* rows;
  const char* weights;
  int64_t pace;
};

LATHE_ISA_BEGIN(LATHE_TARGET_AVX2)

// c[rows][16] += a[rows][depth] x b[depth][16]
template <int rows>
void tileAvx2(const float* a, const float* b, int64_t depth, float* c, Ahead ahead) {
  __m256 sum[rows][2];
  for (int r = 0; r < rows; ++r)
    for (int j = 0; j < 2; ++j) sum[r][j] = _mm256_loadu_ps(c + r * kPanelColumns + j * 8);
#pragma clang loop unroll_count(4)
  for (int64_t k = 0; k < depth; ++k, b += 16) {
    if (k % 4 == 0) {  // at the pace at which they will be read
      _mm_prefetch(ahead.rows + k * rows * 4, _MM_HINT_T0);
      if (rows > 4) _mm_prefetch(ahead.rows + k * rows * 4 + 64, _MM_HINT_T0);
    }
    const __m256 b0 = _mm256_loadu_ps(b), b1 = _mm256_loadu_ps(b + 8);
    for (int r = 0; r < rows; ++r) {
      const __m256 x = _mm256_broadcast_ss(a + r * kTilesAvx2.depth + k);
      sum[r][0] = _mm256_fmadd_ps(x, b0, sum[r][0]);
      sum[r][1] = _mm256_fmadd_ps(x, b1, sum[r][1]);
    }
  }
  for (int r = 0; r < rows; ++r)
    for (int j = 0; j < 2; ++j) _mm256_storeu_ps(c + r * kPanelColumns + j * 8, sum[r][j]);
}

void widenBf16Avx2(const char* lines, int64_t depth, float* to) {
  const __m256i high = _mm256_set1_epi32(int(0xffff0000u));
  for (int64_t k = 0; k < depth; k += 2, lines += 256)
    for (int column = 0; column < 64; column += 8) {
      const __m256i pair = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(lines + column * 4));
      float* at = kTilesAvx2.element(to, k, column);
      _mm256_storeu_ps(at, _mm256_castsi256_ps(_mm256_slli_epi32(pair, 16)));
      _mm256_storeu_ps(at + kTilesAvx2.columns, _mm256_castsi256_ps(_mm256_and_si256(pair, high)));
    }
}

void copyF32Avx2(const char* lines, int64_t depth, float* to) {
  for (int64_t k = 0; k < depth; ++k, lines += 256)
    for (int column = 0; column < 64; column += 8)
      _mm256_storeu_ps(kTilesAvx2.element(to, k, column),
                       _mm256_loadu_ps(reinterpret_cast<const float*>(lines) + column));
}

LATHE_ISA_END

LATHE_ISA_BEGIN(LATHE_TARGET_AVX512)

// c[rows][64] += a[rows][depth] x b[depth][64], of which `vectors` x 16 columns.
template <int rows, int vectors>
void tileAvx512(const float* a, const float* b, int64_t depth, float* c, Ahead ahead) {
  __m512 sum[rows][vectors];
  for (int r = 0; r < rows; ++r)
    for (int v = 0; v < vectors; ++v) sum[r][v] = _mm512_loadu_ps(c + r * 64 + v * 16);
  for (int64_t k = 0; k < depth; ++k, b += 64, ahead.weights += ahead.pace) {
    _mm_prefetch(ahead.weights, _MM_HINT_T1);
    _mm_prefetch(ahead.rows + k * rows * 4, _MM_HINT_T0);
    __m512 w[vectors];
    for (int v = 0; v < vectors; ++v) w[v] = _mm512_loadu_ps(b + v * 16);
    for (int r = 0; r < rows; ++r) {
      const __m512 x = _mm512_set1_ps(a[r * kTilesAvx512.depth + k]);
      for (int v = 0; v < vectors; ++v) sum[r][v] = _mm512_fmadd_ps(x, w[v], sum[r][v]);
    }
  }
  for (int r = 0; r < rows; ++r)
    for (int v = 0; v < vectors; ++v) _mm512_storeu_ps(c + r * 64 + v * 16, sum[r][v]);
}

// bf16 in pairs along K: the even element by a shift, the odd one by a mask.
void widenBf16Avx512(const char* lines, int64_t depth, float* to) {
  const __m512i high = _mm512_set1_epi32(int(0xffff0000u));
  for (int64_t k = 0; k < depth; k += 2, lines += 256, to += 128)
    for (int v = 0; v < 4; ++v) {
      const __m512i pair = _mm512_loadu_si512(lines + v * 64);
      _mm512_storeu_si512(to + v * 16, _mm512_slli_epi32(pair, 16));
      _mm512_storeu_si512(to + 64 + v * 16, _mm512_and_si512(pair, high));
    }
}

LATHE_ISA_END

using TileFn = void (*)(const float*, const float*, int64_t, float*, Ahead);
template <int vectors>
constexpr TileFn kRowsAvx512[kTileRows] = {tileAvx512<1, vectors>, tileAvx512<2, vectors>,
                                           tileAvx512<3, vectors>, tileAvx512<4, vectors>,
                                           tileAvx512<5, vectors>, tileAvx512<6, vectors>};
constexpr TileFn kRowsAvx2[kTileRows] = {tileAvx2<1>, tileAvx2<2>, tileAvx2<3>,
                                         tileAvx2<4>, tileAvx2<5>, tileAvx2<6>};

struct Tiles : TileShape {
  const TileFn* products[4];  // of 16, 32, 48 and 64 columns, as far as one product goes

  TileFn product(int64_t rows, int64_t columns) const {
    return products[ceilDiv(std::min(columns, this->columns), 16) - 1][rows - 1];
  }
};
constexpr Tiles kAvx2{kTilesAvx2, {kRowsAvx2}};
constexpr Tiles kAvx512{kTilesAvx512,
                        {kRowsAvx512<1>, kRowsAvx512<2>, kRowsAvx512<3>, kRowsAvx512<4>}};
const Tiles& tilesOf(KernelIsa isa) { return isa.tier == Isa::Avx2 ? kAvx2 : kAvx512; }

// A as [pieces of K][rows][depth] for all; each worker's row on its way there, or its sums and
// piece of weights.
struct Sizes {
  Sizes(const WidenedMatmul& p, const Tiles& tiles)
      : a(alignUp64(size_t(kRows * roundUp(p.k, tiles.depth)) * 4)),
        row(alignUp64(size_t(p.rowLength) * 4)),
        sums(size_t(kRows * kPanelColumns) * 4),
        piece(tiles.bytes()) {}
  size_t slice() const { return std::max(row, 2 * sums + piece); }
  size_t a, row, sums, piece;
};

// Some of the rows in the kernel's order, and a panel's columns.
struct Task {
  int64_t row0, rows, panel, nextPanel;  // the panel again where none follows
};

class TiledGemm {
 public:
  TiledGemm(const WidenedMatmul& p, const Tiles& tiles, float* a, int64_t allRows)
      : p_(p), tiles_(tiles), a_(a), allRows_(allRows) {}

  // Row `row` of those in the kernel's order.
  void orderRow(int64_t row, const float* from) const {
    for (int64_t k0 = 0; k0 < p_.k; k0 += tiles_.depth)
      std::memcpy(rowAt(row, k0), from + k0, size_t(std::min(tiles_.depth, p_.k - k0)) * 4);
  }

  void multiply(const Task& task, float* sums, float* buffer) const {
    std::fill(sums, sums + task.rows * kPanelColumns, 0.0f);
    for (int64_t k0 = 0; k0 < p_.k; k0 += tiles_.depth) {
      const int64_t depth = std::min(tiles_.depth, p_.k - k0);
      const float* piece = p_.widenPiece(task.panel, k0, depth, buffer);
      const bool last = k0 + depth == p_.k;
      const int64_t next = last ? 0 : k0 + depth;
      multiplyPiece(
          task, k0, depth, piece,
          p_.stored(last ? task.nextPanel : task.panel, next, std::min(tiles_.depth, p_.k - next)),
          sums);
    }
  }

 private:
  float* rowAt(int64_t row, int64_t k0) const { return a_ + k0 * allRows_ + row * tiles_.depth; }

  void multiplyPiece(const Task& task, int64_t k0, int64_t depth, const float* piece,
                     std::span<const char> next, float* sums) const {
    const int64_t columns = std::min(kPanelColumns, p_.n - task.panel * kPanelColumns);
    const int64_t groups = ceilDiv(task.rows, kTileRows);
    const int64_t cachedGroups = tiles_.columns == kPanelColumns ? groups : kCachedRows / kTileRows;
    const int64_t pace = ceilDiv(int64_t(next.size()), groups * depth);
    for (int64_t cached = 0; cached < groups; cached += cachedGroups)
      for (int64_t column = 0; column < columns; column += tiles_.columns)
        for (int64_t group = cached; group < std::min(groups, cached + cachedGroups); ++group) {
          const int64_t first = task.rows * group / groups;
          const int64_t count = task.rows * (group + 1) / groups - first;
          const float* a = rowAt(task.row0 + first, k0);
          tiles_.product(count, columns - column)(
              a, piece + column * tiles_.depth, depth, sums + first * kPanelColumns + column,
              {reinterpret_cast<const char*>(a + count * tiles_.depth),
               next.data() + group * pace * depth, pace});
        }
  }

  const WidenedMatmul& p_;
  const Tiles& tiles_;
  float* const a_;
  const int64_t allRows_;
};

}  // namespace

const float* widenPiece(const PackedShape& shape, const char* panel, int64_t k0, int64_t depth,
                        KernelIsa isa, float* to) {
  const char* lines = storedPiece(shape, panel, k0, depth).data();
  const bool avx2 = isa.tier == Isa::Avx2;
  if (shape.dtype == DType::F32 && !avx2) return reinterpret_cast<const float*>(lines);
  if (shape.dtype == DType::F32)
    copyF32Avx2(lines, depth, to);
  else
    (avx2 ? widenBf16Avx2 : widenBf16Avx512)(lines, depth, to);
  return to;
}

std::span<const char> storedPiece(const PackedShape& shape, const char* panel, int64_t k0,
                                  int64_t depth) {
  // A line of 256 bytes is an element of K, or two of them.
  const int64_t bytes = shape.dtype == DType::BF16 ? 128 : 256;
  return {panel + k0 * bytes, size_t(depth * bytes)};
}

size_t tiledGemmScratchBytes(const WidenedMatmul& matmul, int threads, KernelIsa isa) {
  const Sizes sizes(matmul, tilesOf(isa));
  return sizes.a + sizes.slice() * size_t(threads);
}

void tiledGemm(const WidenedMatmul& p, int64_t m, const Epilogue& epilogue, KernelIsa isa,
               ThreadPool& pool, Scratch scratch) {
  const Tiles& tiles = tilesOf(isa);
  const Sizes sizes(p, tiles);
  const PanelKernels& kernels = panelKernels(isa);
  char* base = static_cast<char*>(scratch.data);
  auto slice = [&](int worker) {
    return reinterpret_cast<float*>(base + sizes.a + size_t(worker) * sizes.slice());
  };
  const int64_t panels = ceilDiv(p.n, kPanelColumns), threads = pool.threads();
  for (int64_t row0 = 0; row0 < m; row0 += kRows) {
    const int64_t rows = std::min(kRows, m - row0);
    const TiledGemm gemm(p, tiles, reinterpret_cast<float*>(base), rows);
    pool.parallelFor(0, rows, 1, [&](int64_t begin, int64_t end, int worker) {
      for (int64_t row = begin; row < end; ++row) {
        p.widenRow(row0 + row, slice(worker));
        gemm.orderRow(row, slice(worker));
      }
    });
    // Tasks are panels, of a gate and of what it gates; where there are too few, rows too.
    const int64_t columns = epilogue.gate ? panels / 2 : panels;
    const int64_t wanted = threads == 1 ? 1 : ceilDiv(threads * kThreadTasks, columns);
    const int64_t parts =
        std::clamp<int64_t>(wanted, 1, std::max<int64_t>(1, rows / kLeastTaskRows));
    pool.runDynamic(columns * parts, [&](int64_t index, int worker) {
      const int64_t panel = index / parts, part = index % parts;
      const int64_t first = rows * part / parts, count = rows * (part + 1) / parts - first;
      const int64_t next = std::min(panel + 1, columns - 1), column = panel * kPanelColumns;
      float *sums = slice(worker), *gated = sums + kRows * kPanelColumns;
      float* piece = gated + kRows * kPanelColumns;
      if (epilogue.gate) {
        gemm.multiply({first, count, panel, panel + columns}, sums, piece);
        gemm.multiply({first, count, panel + columns, next}, gated, piece);
        storeGated(sums, gated, count, row0 + first, column, epilogue, kernels);
      } else {
        gemm.multiply({first, count, panel, next}, sums, piece);
        kernels.store(sums, kPanelColumns, count, std::min(kPanelColumns, p.n - column),
                      row0 + first, column, epilogue);
      }
    });
  }
}

}  // namespace lathe::cpu
