// SPDX-License-Identifier: Apache-2.0
// c[m, n] = sum over k of a[m, k] b[n, k] (or b[k, n]) on tensor cores, for bf16 and f16.
//
// A block computes a tile of kTileM x kTileN; a ring of kStages tiles of kTileK = 64 flows through
// shared memory by cp.async. A row of a tile is 8 (or kTileN / 8) chunks of 16 bytes; chunk c of
// row r lies at c ^ (r % 8), so that the 8 rows which ldmatrix reads together fall into different
// banks. Edges are zeros in shared memory and masked stores.
//
// With kSplits > 1, blocks that share k hand their sums to the last of them.
//
// Config: Input; kTileM, kTileN, kStages, kWarpsM, kWarpsN; kSplits; kTransposedB (b is [k, n]);
// kPairs (two tiles of b: rows Hooks::firstColumn and secondColumn of each pair; n counts pairs);
// kConstantB (b is not written by an earlier kernel of the program).
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
      // Without bytes to read, the address is not used: no choice between two costs registers.
      cp_async_16(to, from, row < rows && at < length ? 16 : 0);
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
  static constexpr int kStride = gemmSumStride(C::kTileN);
  /// Tiles of 16 x 8 that a warp holds.
  static constexpr int kM = C::kTileM / C::kWarpsM / 16, kN = C::kTileN / C::kWarpsN / 8;
  static_assert(kN % 2 == 0, "ldmatrix reads 16 columns at a time");
  static_assert(!(C::kPairs && C::kTransposedB), "the columns of a pair are rows of b");
};

template <int kRows, int kChunks, int kThreads, class Operand, class RowOf>
LT_FN void gemmCopy(u32 tile, const Operand& operand, long long row0, long long at0,
                    const RowOf& rowOf) {
#pragma unroll 4
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

/// Where the blocks along k of one tile meet: room for kSplits * kHalves tiles of sums, and a
/// zeroed counter. Used only with kSplits > 1.
struct GemmMeeting {
  float* sums;
  u32* counter;
  int split;
};

/// Eight neighbouring sums of row `i / chunks`; half of the lanes begin with the upper four: other
/// banks.
LT_FN vec<float, 8> gemmSums(const float* from) {
  const bool upper = lane_id() & 4;
  const vec<float, 4> one = load_vec_shared<4>(from + (upper ? 4 : 0));
  const vec<float, 4> two = load_vec_shared<4>(from + (upper ? 0 : 4));
  vec<float, 8> all;
#pragma unroll
  for (int q = 0; q < 4; ++q) {
    all[q] = upper ? two[q] : one[q];
    all[4 + q] = upper ? one[q] : two[q];
  }
  return all;
}

template <class C>
LT_FN void gemmToShared(
    const frag_c (&sums)[GemmShape<C>::kHalves][GemmShape<C>::kM][GemmShape<C>::kN],
    float* shared) {
  typedef GemmShape<C> S;
  const int lane = (int)lane_id(), warp = (int)warp_id();
  float* own = shared + (warp / C::kWarpsN * S::kM * 16 + (lane >> 2)) * S::kStride +
               warp % C::kWarpsN * S::kN * 8 + (lane & 3) * 2;
#pragma unroll
  for (int h = 0; h < S::kHalves; ++h)
#pragma unroll
    for (int i = 0; i < S::kM; ++i)
#pragma unroll
      for (int j = 0; j < S::kN; ++j) {
        float* to = own + (h * C::kTileM + i * 16) * S::kStride + j * 8;
        const float (&r)[4] = sums[h][i][j].r;
        store_vec_shared(to, vec<float, 2>{{r[0], r[1]}});
        store_vec_shared(to + 8 * S::kStride, vec<float, 2>{{r[2], r[3]}});
      }
}

template <class C, class Hooks>
LT_FN void gemmEpilogue(const Hooks& hooks, const vec<float, 8> (&values)[GemmShape<C>::kHalves],
                        long long row, long long column, long long m, long long n) {
  if (row >= m || column >= n) return;
  if (n % 8 == 0) {
    if constexpr (C::kPairs)
      hooks.storePair8(row, column, values[0].v, values[1].v);
    else
      hooks.store8(row, column, values[0].v);
    return;
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

/// From shared memory 8 columns at a time through the hooks: one copy of the epilogue's code, and
/// whole lines written by neighbouring threads.
template <class C, class Hooks>
LT_FN void gemmStore(const Hooks& hooks, const float* shared, const GemmMeeting& meeting,
                     long long row0, long long column0, long long m, long long n) {
  typedef GemmShape<C> S;
  constexpr int kChunks = C::kTileN / 8, kAll = C::kTileM * kChunks;
  if constexpr (C::kSplits > 1) {
#pragma unroll 1
    for (int i = (int)threadIdx.x; i < S::kHalves * kAll; i += S::kThreads)
      store_vec(meeting.sums + ((long long)meeting.split * S::kHalves * kAll + i) * 8,
                gemmSums(shared + i / kChunks * S::kStride + i % kChunks * 8));
    if (!grid_last_block(meeting.counter, C::kSplits)) return;
  }
#pragma unroll 1
  for (int i = (int)threadIdx.x; i < kAll; i += S::kThreads) {
    vec<float, 8> values[S::kHalves];
#pragma unroll
    for (int h = 0; h < S::kHalves; ++h) {
      if constexpr (C::kSplits > 1) {
        // In the order of the splits: the result does not depend on who was last.
        values[h] = vec<float, 8>{};
        for (int split = 0; split < C::kSplits; ++split) {
          const vec<float, 8> part =
              load_vec<8>(meeting.sums + ((split * S::kHalves + h) * (long long)kAll + i) * 8);
#pragma unroll
          for (int q = 0; q < 8; ++q) values[h][q] += part[q];
        }
      } else {
        values[h] = gemmSums(shared + (h * C::kTileM + i / kChunks) * S::kStride + i % kChunks * 8);
      }
    }
    gemmEpilogue<C>(hooks, values, row0 + i / kChunks, column0 + i % kChunks * 8, m, n);
  }
}

/// One tile; grid: x covers the tiles of m and n. m, n (columns, or pairs) and k are the product's
/// sizes.
/// `partial` (room for kSplits tiles of every tile) and `counters` (one per tile, zeroed) are used
/// only with kSplits > 1, `split` is this block's.
template <class C, class Hooks, class A, class B>
LT_FN void gemm(const Hooks& hooks, const A& a, const B& b, long long m, long long n, long long k,
                int split = 0, float* partial = nullptr, u32* counters = nullptr) {
  typedef GemmShape<C> S;
  LATHE_DYN_SHARED(shared);
  const u32 ring = smem_addr(shared);

  // Blocks in the order of their launch take kGemmRasterRows tiles of rows, column by column.
  const u32 down = (u32)((m + C::kTileM - 1) / C::kTileM),
            across = (u32)((n + C::kTileN - 1) / C::kTileN);
  const u32 number = blockIdx.x, top = number / across / kGemmRasterRows * kGemmRasterRows;
  const u32 left = down - top, band = left < kGemmRasterRows ? left : kGemmRasterRows;
  const u32 inBand = number - top * across;
  const long long row0 = (long long)(top + inBand % band) * C::kTileM;
  const long long column0 = (long long)(inBand / band) * C::kTileN;

  const int allSteps = (int)((k + kGemmTileK - 1) / kGemmTileK);
  const int step0 = C::kSplits > 1 ? (int)((long long)allSteps * split / C::kSplits) : 0;
  const int steps =
      (C::kSplits > 1 ? (int)((long long)allSteps * (split + 1) / C::kSplits) : allSteps) - step0;
  auto copyA = [&](int step) {
    gemmCopy<C::kTileM, 8, S::kThreads>(ring + step % C::kStages * S::kStageBytes, a, row0,
                                        (long long)(step0 + step) * kGemmTileK,
                                        [](long long row) { return row; });
  };
  auto copyB = [&](int step) {
    gemmCopyB<C, Hooks>(ring + step % C::kStages * S::kStageBytes, b, column0,
                        (long long)(step0 + step) * kGemmTileK, n);
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
  gemmToShared<C>(sums, (float*)shared);
  block_sync();
  const long long place = (long long)C::kSplits * S::kHalves * C::kTileM * C::kTileN * number;
  gemmStore<C>(hooks, (const float*)shared, {partial + place, counters + number, split}, row0,
               column0, m, n);
}
