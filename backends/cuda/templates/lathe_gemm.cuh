// SPDX-License-Identifier: Apache-2.0
// c[m, n] = sum over k of a[m, k] b[n, k] (or b[k, n]) on tensor cores, for bf16 and f16.
//
// A block computes a tile of kTileM x kTileN; a ring of kStages tiles of kTileK = 64 flows through
// shared memory by cp.async. A row of a tile is 8 (or kTileN / 8) chunks of 16 bytes; chunk c of row
// r lies at c ^ (r % 8), so that the 8 rows which ldmatrix reads together fall into different banks.
// Edges are zeros in shared memory and masked stores.
//
// Config: Input; kTileM, kTileN, kStages, kWarpsM, kWarpsN; kTransposedB (b is [k, n]); kPairs (two
// tiles of b: rows Hooks::firstColumn and secondColumn of each pair; n counts pairs); kConstantB (b
// is not written by an earlier kernel of the program).
#pragma once
#include "lathe_product.cuh"
#include "lathe_product_plan.cuh"

/// Rows of tiles that neighbouring blocks work on together: their tiles of b stay in L2.
constexpr int kGemmRasterRows = 8;

enum GemmAlignment { kUnalignedRows, kAlignedRows, kCheckedRows };

/// A matrix whose neighbours along `length` are adjacent in memory. kAlignment: whether every row
/// begins at 16 bytes and `length` is a multiple of 8 (kCheckedRows: decided when it runs).
template <class T, int kAlignment>
struct DenseOperand {
  const T* data;
  long long rows, length, stride;

  LT_MEMBER bool aligned() const {
    return ((u64)data & 15) == 0 && (length & 7) == 0 && (stride & 7) == 0;
  }
  /// Elements `at`..`at + 7` of a row, zeros outside, to shared address `to`.
  LT_MEMBER void copy(u32 to, long long row, long long at) const {
    const T* from = data + row * stride + at;
    if (kAlignment == kAlignedRows || (kAlignment == kCheckedRows && aligned())) {
      const bool inside = row < rows && at < length;
      cp_async_16(to, inside ? from : data, inside ? 16 : 0);
    } else {
      vec<T, 8> v;
#pragma unroll
      for (int i = 0; i < 8; ++i) v[i] = row < rows && at + i < length ? from[i] : T{};
      st_shared_16(to, bit_cast<uint4>(v));
    }
  }
};

/// A matrix given element by element: Gather::at(row, k).
template <class T, class Gather>
struct GatheredOperand {
  Gather gather;
  long long rows, length;

  LT_MEMBER void copy(u32 to, long long row, long long at) const {
    vec<T, 8> v;
#pragma unroll
    for (int i = 0; i < 8; ++i) v[i] = row < rows && at + i < length ? gather.at(row, at + i) : T{};
    st_shared_16(to, bit_cast<uint4>(v));
  }
};

template <int kChunks>
LT_FN u32 gemmAt(u32 tile, int row, int chunk) {
  return tile + (u32)((row * kChunks + (chunk ^ (row & 7))) * 16);
}

template <class C>
struct GemmShape {
  static constexpr int kThreads = 32 * C::kWarpsM * C::kWarpsN;
  static constexpr int kHalves = C::kPairs ? 2 : 1;
  static constexpr int kRowsB = C::kTransposedB ? kGemmTileK : C::kTileN;
  static constexpr int kChunksB = C::kTransposedB ? C::kTileN / 8 : kGemmTileK / 8;
  static constexpr int kBytesA = C::kTileM * kGemmTileK * 2, kBytesB = C::kTileN * kGemmTileK * 2;
  static constexpr int kStageBytes = kBytesA + kHalves * kBytesB;
  /// Tiles of 16 x 8 that a warp holds.
  static constexpr int kM = C::kTileM / C::kWarpsM / 16, kN = C::kTileN / C::kWarpsN / 8;
  static_assert(kN % 2 == 0, "ldmatrix reads 16 columns at a time");
  static_assert(!(C::kPairs && C::kTransposedB), "the columns of a pair are rows of b");
};

template <int kRows, int kChunks, int kThreads, class Operand, class RowOf>
LT_FN void gemmCopy(u32 tile, const Operand& operand, long long row0, long long at0,
                    const RowOf& rowOf) {
#pragma unroll
  for (int i = 0; i < kRows * kChunks / kThreads; ++i) {
    const int c = (int)threadIdx.x + i * kThreads;
    operand.copy(gemmAt<kChunks>(tile, c / kChunks, c % kChunks), rowOf(row0 + c / kChunks),
                 at0 + c % kChunks * 8);
  }
  static_assert(kRows * kChunks % kThreads == 0, "every thread copies the same number of chunks");
}

template <class C, class Hooks, class B>
LT_FN void gemmCopyB(u32 stage, const B& b, long long column0, long long k, long long n) {
  typedef GemmShape<C> S;
  const u32 tile = stage + S::kBytesA;
  if constexpr (C::kTransposedB) {
    gemmCopy<S::kRowsB, S::kChunksB, S::kThreads>(tile, b, k, column0,
                                                  [](long long row) { return row; });
  } else if constexpr (C::kPairs) {
    // Pairs past the end repeat the last one; their results are not stored.
    gemmCopy<S::kRowsB, S::kChunksB, S::kThreads>(tile, b, column0, k, [=](long long pair) {
      return Hooks::firstColumn(pair < n ? pair : n - 1);
    });
    gemmCopy<S::kRowsB, S::kChunksB, S::kThreads>(
        tile + S::kBytesB, b, column0, k,
        [=](long long pair) { return Hooks::secondColumn(pair < n ? pair : n - 1); });
  } else {
    gemmCopy<S::kRowsB, S::kChunksB, S::kThreads>(tile, b, column0, k,
                                                  [](long long row) { return row; });
  }
}

template <class C>
LT_FN void gemmMultiply(frag_c (&sums)[GemmShape<C>::kHalves][GemmShape<C>::kM][GemmShape<C>::kN],
                        u32 stage) {
  typedef GemmShape<C> S;
  const int lane = (int)lane_id(), warp = (int)warp_id();
  const int row0 = warp / C::kWarpsN * S::kM * 16, column0 = warp % C::kWarpsN * S::kN * 8;
#pragma unroll
  for (int kk = 0; kk < kGemmTileK / 16; ++kk) {
    frag_a a[S::kM];
#pragma unroll
    for (int i = 0; i < S::kM; ++i)
      ldmatrix_x4(a[i].r, gemmAt<8>(stage, row0 + i * 16 + (lane & 15), kk * 2 + (lane >> 4)));
#pragma unroll
    for (int h = 0; h < S::kHalves; ++h) {
      const u32 tile = stage + S::kBytesA + h * S::kBytesB;
#pragma unroll
      for (int j = 0; j < S::kN / 2; ++j) {
        u32 b[4];
        if constexpr (C::kTransposedB)
          ldmatrix_x4_trans(b, gemmAt<S::kChunksB>(tile, kk * 16 + (lane & 15),
                                                   column0 / 8 + j * 2 + (lane >> 4)));
        else
          ldmatrix_x4(b, gemmAt<8>(tile, column0 + j * 16 + (lane & 7) + (lane >> 4) * 8,
                                   kk * 2 + ((lane >> 3) & 1)));
#pragma unroll
        for (int i = 0; i < S::kM; ++i) {
          ProductElement<typename C::Input>::mma(sums[h][i][2 * j], a[i], b[0], b[1]);
          ProductElement<typename C::Input>::mma(sums[h][i][2 * j + 1], a[i], b[2], b[3]);
        }
      }
    }
  }
}

/// The sums of all warps to shared memory, row by row, and from there 8 columns at a time through
/// the hooks: one copy of the epilogue's code, and whole lines written by neighbouring threads.
template <class C, class Hooks>
LT_FN void gemmStore(const Hooks& hooks,
                     const frag_c (&sums)[GemmShape<C>::kHalves][GemmShape<C>::kM][GemmShape<C>::kN],
                     float* shared, long long row0, long long column0, long long m, long long n) {
  typedef GemmShape<C> S;
  constexpr int kStride = gemmSumStride(C::kTileN), kHalf = C::kTileM * kStride;
  const int lane = (int)lane_id(), warp = (int)warp_id();
  float* own = shared + (warp / C::kWarpsN * S::kM * 16 + (lane >> 2)) * kStride +
               warp % C::kWarpsN * S::kN * 8 + (lane & 3) * 2;
#pragma unroll
  for (int h = 0; h < S::kHalves; ++h)
#pragma unroll
    for (int i = 0; i < S::kM; ++i)
#pragma unroll
      for (int j = 0; j < S::kN; ++j) {
        float* to = own + h * kHalf + i * 16 * kStride + j * 8;
        const float (&r)[4] = sums[h][i][j].r;
        store_vec_shared(to, vec<float, 2>{{r[0], r[1]}});
        store_vec_shared(to + 8 * kStride, vec<float, 2>{{r[2], r[3]}});
      }
  block_sync();
  constexpr int kChunks = C::kTileN / 8;
  const bool upper = lane & 4;  // half of the lanes begin with the upper four columns: other banks
#pragma unroll 1
  for (int i = (int)threadIdx.x; i < C::kTileM * kChunks; i += S::kThreads) {
    const long long row = row0 + i / kChunks, column = column0 + i % kChunks * 8;
    float values[S::kHalves][8];
#pragma unroll
    for (int h = 0; h < S::kHalves; ++h) {
      const float* from = shared + h * kHalf + i / kChunks * kStride + i % kChunks * 8;
      const vec<float, 4> one = load_vec_shared<4>(from + (upper ? 4 : 0));
      const vec<float, 4> two = load_vec_shared<4>(from + (upper ? 0 : 4));
#pragma unroll
      for (int q = 0; q < 4; ++q) {
        values[h][q] = upper ? two[q] : one[q];
        values[h][4 + q] = upper ? one[q] : two[q];
      }
    }
    if (row >= m || column >= n) continue;
    if (n % 8 == 0) {
      if constexpr (C::kPairs)
        hooks.storePair8(row, column, values[0], values[1]);
      else
        hooks.store8(row, column, values[0]);
      continue;
    }
#pragma unroll
    for (int q = 0; q < 8; ++q) {
      if (column + q >= n) continue;
      if constexpr (C::kPairs)
        hooks.storePair(row, column + q, values[0][q], values[1][q]);
      else
        hooks.store(row, column + q, values[0][q]);
    }
  }
}

/// One tile; grid: x covers m, y covers n. m, n (columns, or pairs) and k are the product's sizes.
template <class C, class Hooks, class A, class B>
LT_FN void gemm(const Hooks& hooks, const A& a, const B& b, long long m, long long n, long long k) {
  typedef GemmShape<C> S;
  LATHE_DYN_SHARED(shared);
  const u32 ring = smem_addr(shared);

  // Blocks in the order of their launch take kGemmRasterRows tiles of rows, column by column.
  const u32 number = blockIdx.x + blockIdx.y * gridDim.x, perBand = kGemmRasterRows * gridDim.y;
  const u32 top = number / perBand * kGemmRasterRows, left = gridDim.x - top;
  const u32 band = left < kGemmRasterRows ? left : kGemmRasterRows;
  const long long row0 = (long long)(top + number % perBand % band) * C::kTileM;
  const long long column0 = (long long)(number % perBand / band) * C::kTileN;

  const int steps = (int)((k + kGemmTileK - 1) / kGemmTileK);
  auto copyA = [&](int step) {
    gemmCopy<C::kTileM, 8, S::kThreads>(ring + step % C::kStages * S::kStageBytes, a, row0,
                                        (long long)step * kGemmTileK,
                                        [](long long row) { return row; });
  };
  auto copyB = [&](int step) {
    gemmCopyB<C, Hooks>(ring + step % C::kStages * S::kStageBytes, b, column0,
                        (long long)step * kGemmTileK, n);
  };
  grid_dep_launch();
  if constexpr (!C::kConstantB) grid_dep_wait();
#pragma unroll
  for (int i = 0; i < C::kStages - 1; ++i)
    if (i < steps) copyB(i);
  if constexpr (C::kConstantB) grid_dep_wait();
#pragma unroll
  for (int i = 0; i < C::kStages - 1; ++i) {
    if (i < steps) copyA(i);
    cp_async_commit();
  }

  frag_c sums[S::kHalves][S::kM][S::kN];
#pragma unroll
  for (int h = 0; h < S::kHalves; ++h)
#pragma unroll
    for (int i = 0; i < S::kM; ++i)
#pragma unroll
      for (int j = 0; j < S::kN; ++j) sums[h][i][j] = frag_c{{0.0f, 0.0f, 0.0f, 0.0f}};

  for (int step = 0; step < steps; ++step) {
    cp_async_wait<C::kStages - 2>();
    block_sync();  // the step's tiles are there, and those of the step before are read
    if (step + C::kStages - 1 < steps) {
      copyA(step + C::kStages - 1);
      copyB(step + C::kStages - 1);
    }
    cp_async_commit();
    gemmMultiply<C>(sums, ring + step % C::kStages * S::kStageBytes);
  }

  block_sync();  // nobody reads the ring any more
  gemmStore<C>(hooks, sums, (float*)shared, row0, column0, m, n);
}
