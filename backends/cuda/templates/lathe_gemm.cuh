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
// kConstantB (b is not written by an earlier kernel of the program); kNormed (the hooks norm the
// rows of a on their way: a few rows, whose scales each block computes for itself); kVectors (the
// hooks have store8 or storePair8); kSumPairs (0, or of how many adjacent pairs the sum of
// Hooks::term goes along with each: those of a head whose norm the hooks apply; without kVectors).
#pragma once
#include "lathe_matmul.cuh"
#include "lathe_matmul_plan.cuh"

/// Rows of tiles that neighbouring blocks work on together: their tiles of b stay in L2.
constexpr int kGemmRasterRows = 8;

enum GemmAlignment { kUnalignedRows, kAlignedRows, kCheckedRows };

/// A matrix whose neighbours along `length` are adjacent in memory. kAlignment: whether every row
/// begins at 16 bytes and `length` is a multiple of 8 (kCheckedRows: decided when it runs).
template <class T, int kAlignment>
struct DenseOperand {
  const T* data;
  long long rows, length, stride;

  typedef T Element;
  static constexpr bool kWalks = kAlignment == kAlignedRows, kHasStride = true;

  LT_MEMBER const T* beginOf(long long row) const { return data + row * stride; }
  LT_MEMBER long long rowLength() const { return length; }
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
  typedef T Element;
  static constexpr bool kWalks = false, kHasStride = false;
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

/// The same row of an operand as of a tile's.
struct GemmOwnRow {
  static constexpr bool kIsLinear = true;
  LT_FN long long of(long long row, long long) { return row; }
};
/// Rows of b that are columns of pairs; those past the end repeat the last pair: their results are
/// not stored.
template <class Hooks, bool kSecond>
struct GemmPairRow {
  static constexpr bool kIsLinear = false;
  LT_FN long long of(long long pair, long long n) {
    const long long own = pair < n ? pair : n - 1;
    return kSecond ? Hooks::secondColumn(own) : Hooks::firstColumn(own);
  }
};

/// A thread's chunks of one operand's tiles, which are copied one tile behind the other along k:
/// kRows rows of kChunks chunks, from row `row0` and element `at0` on. With kDown, tiles follow
/// each other down the rows ([k, n]), else along them. `RowOf` says which row of the operand each
/// is, of `n` that there are.
///
/// All chunks of a thread lie in one column of a tile, kApart rows apart. Where rows are aligned,
/// and theirs is the tile's order, one pointer goes along, and what it is added to is known when
/// compiling if the stride is: the loop over k has better to do than arithmetic of 64 bits.
template <class Operand, class RowOf, int kRows, int kChunks, int kThreads, bool kDown>
struct GemmTiles {
  static constexpr int kCopies = kRows * kChunks / kThreads, kApart = kThreads / kChunks;
  static constexpr bool kOnePointer = Operand::kWalks && Operand::kHasStride && RowOf::kIsLinear,
                        kPointers = Operand::kWalks && !kOnePointer;
  static_assert(kRows * kChunks % kThreads == 0, "every thread copies the same number of chunks");
  static_assert(kThreads % kChunks == 0 && kApart % 8 == 0,
                "chunks of a thread lie below each other");
  static_assert(!kDown || !kPointers, "rows that follow one another lie a stride apart");

  const Operand& operand;
  long long row0, at0, n;  // of the next tile
  // Of the thread's first chunk in a tile, and in that of the ring.
  int row, chunk;
  u32 place;
  const typename Operand::Element* from[kPointers ? kCopies : 1];
  int inside;  // rows from its own on that exist, of which the tile has kRows at most

  LT_MEMBER GemmTiles(const Operand& operand, long long row0, long long at0, long long n)
      : operand(operand),
        row0(row0),
        at0(at0),
        n(n),
        row((int)threadIdx.x / kChunks),
        chunk((int)threadIdx.x % kChunks),
        place(gemmAt<kChunks>(0, row, chunk)) {
    const long long at = at0 + chunk * 8;
    if constexpr (kOnePointer) {
      from[0] = operand.beginOf(row0 + row) + at;
      inside = rowsFrom(operand.rows - row0);
    }
    if constexpr (kPointers) {
#pragma unroll
      for (int i = 0; i < kCopies; ++i)
        from[i] = operand.beginOf(RowOf::of(row0 + row + i * kApart, n)) + at;
    }
  }
  /// Copies the next tile to shared address `tile`.
  LT_MEMBER void copy(u32 tile) {
    if constexpr (kOnePointer) {
      const int most = kDown ? rowsFrom(operand.rows - row0) : inside;
      const bool some =
          (!kDown && operand.length % kGemmTileK == 0) || at0 + chunk * 8 < operand.length;
#pragma unroll
      for (int i = 0; i < kCopies; ++i)
        cp_async_16(tile + place + i * kThreads * 16, from[0] + i * kApart * operand.stride,
                    some && i * kApart < most ? 16 : 0);
      from[0] += kDown ? kGemmTileK * operand.stride : kGemmTileK;
    } else if constexpr (kPointers) {
      const bool some =
          operand.rowLength() % kGemmTileK == 0 || at0 + chunk * 8 < operand.rowLength();
#pragma unroll
      for (int i = 0; i < kCopies; ++i) {
        cp_async_16(tile + place + i * kThreads * 16, from[i], some ? 16 : 0);
        from[i] += kGemmTileK;
      }
    } else {
#pragma unroll 4
      for (int i = 0; i < kCopies; ++i)
        operand.copy(tile + place + i * kThreads * 16, RowOf::of(row0 + row + i * kApart, n),
                     at0 + chunk * 8);
    }
    (kDown ? row0 : at0) += kGemmTileK;
  }

 private:
  // Of those from row0 on, from the thread's first on.
  LT_MEMBER int rowsFrom(long long all) const {
    return (all < kRows ? all < 0 ? 0 : (int)all : kRows) - row;
  }
};

/// The tiles of b, or the two of pairs.
template <class C, class Hooks, class B>
struct GemmTilesOfB {
  typedef GemmShape<C> S;
  template <class RowOf>
  using Tiles = GemmTiles<B, RowOf, S::kRowsB, S::kChunksB, S::kThreads, C::kTransposedB>;
  Tiles<typename lt_if<C::kPairs, GemmPairRow<Hooks, false>, GemmOwnRow>::type> first;
  Tiles<typename lt_if<C::kPairs, GemmPairRow<Hooks, true>, GemmOwnRow>::type> second;

  LT_MEMBER GemmTilesOfB(const B& b, long long column0, long long k0, long long n)
      : first(b, C::kTransposedB ? k0 : column0, C::kTransposedB ? column0 : k0, n),
        second(b, C::kTransposedB ? k0 : column0, C::kTransposedB ? column0 : k0, n) {}
  LT_MEMBER void copy(u32 stage) {
    first.copy(stage + S::kBytesA);
    if constexpr (C::kPairs) second.copy(stage + S::kBytesA + S::kBytesB);
  }
};

/// Rows of a that are normed on their way (kNormed). Hooks: rows(), the rows as they lie in memory;
/// rowScale(sum of squares); gains(), or null if !kHasGains; normed(element, scale, gain).
template <class C, class Hooks>
struct GemmNorm {
  typedef GemmShape<C> S;
  typedef typename C::Input Input;
  // Rows of which a warp has loads under way, and chunks of a tile that are a thread's.
  static constexpr int kTogether = 4, kChunks = C::kTileM * 8 / S::kThreads;
  static_assert(S::kThreads % 8 == 0, "all chunks of a thread lie in the same columns");

  /// The scales of the tile's rows; a barrier has to follow.
  LT_FN void scale(const Hooks& hooks, float* scales, long long row0, long long m, long long k) {
    const int lane = (int)lane_id();
#pragma unroll 1
    for (int r = (int)warp_id() * kTogether; r < C::kTileM; r += S::kThreads / 32 * kTogether) {
      float squares[kTogether] = {};
#pragma unroll 2
      for (long long at = lane * 8; at < k; at += 256) {
        uint4 chunks[kTogether];
#pragma unroll
        for (int j = 0; j < kTogether; ++j)
          chunks[j] = row0 + r + j < m ? ld_global_16(hooks.rows() + (row0 + r + j) * k + at)
                                       : make_uint4(0, 0, 0, 0);
#pragma unroll
        for (int j = 0; j < kTogether; ++j) {
          const vec<float, 8> x = widenChunk<Input>(chunks[j]);
#pragma unroll
          for (int i = 0; i < 8; ++i) squares[j] = fmaf(x[i], x[i], squares[j]);
        }
      }
#pragma unroll
      for (int j = 0; j < kTogether; ++j) {
        const float sum = warp_sum(squares[j]);
        if (lane == 0) scales[r + j] = hooks.rowScale(sum);
      }
    }
  }
  /// The gains of this thread's columns of the tile that begins at k = `at0`.
  LT_FN vec<Input, 8> gains(const Hooks& hooks, long long at0, long long k) {
    vec<Input, 8> g{};
    if constexpr (Hooks::kHasGains) {
      const long long at = at0 + threadIdx.x % 8 * 8;
      if (at < k) g = load_vec<8>(hooks.gains() + at);
    }
    return g;
  }
  /// The chunks that this thread has copied into `tile` itself, so no barrier is needed in front.
  LT_FN void apply(const Hooks& hooks, u32 tile, const float* scales, const vec<Input, 8>& g) {
#pragma unroll
    for (int i = 0; i < kChunks; ++i) {
      const int c = (int)threadIdx.x + i * S::kThreads;
      const u32 at = gemmAt<8>(tile, c / 8, c % 8);
      vec<Input, 8> x = bit_cast<vec<Input, 8>>(ld_shared_16(at));
#pragma unroll
      for (int q = 0; q < 8; ++q) x[q] = hooks.normed(x[q], scales[c / 8], g[q]);
      st_shared_16(at, bit_cast<uint4>(x));
    }
  }
};

template <class C>
LT_FN void gemmMultiply(frag_c (&sums)[GemmShape<C>::kHalves][GemmShape<C>::kM][GemmShape<C>::kN],
                        u32 stage) {
  typedef GemmShape<C> S;
  const int lane = (int)lane_id(), warp = (int)warp_id();
  const int row0 = warp / C::kWarpsN * S::kM * 16, column0 = warp % C::kWarpsN * S::kN * 8;
  // Of the first rows and of k = 0; a step of k later it is two chunks further, rows stay in
  // theirs.
  const u32 ofA = gemmAt<8>(0, row0 + (lane & 15), lane >> 4),
            ofB = gemmAt<8>(0, column0 + (lane & 7) + (lane >> 4) * 8, (lane >> 3) & 1);
#pragma unroll
  for (int kk = 0; kk < kGemmTileK / 16; ++kk) {
    frag_a a[S::kM];
    const u32 fromA = stage + (ofA ^ (u32)(kk * 32)), fromB = ofB ^ (u32)(kk * 32);
#pragma unroll
    for (int i = 0; i < S::kM; ++i) ldmatrix_x4(a[i].r, fromA + i * 16 * 128);
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
          ldmatrix_x4(b, tile + fromB + j * 16 * 128);
#pragma unroll
        for (int i = 0; i < S::kM; ++i) {
          MatmulElement<typename C::Input>::mma(sums[h][i][2 * j], a[i], b[0], b[1]);
          MatmulElement<typename C::Input>::mma(sums[h][i][2 * j + 1], a[i], b[2], b[3]);
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

/// One result, of both sums if kPairs; `all` is the sum of the terms of its head.
template <class C, class Hooks, class Values>
LT_FN void gemmStoreOne(const Hooks& hooks, const Values& values, long long row, long long index,
                        const float (&v)[2], float all) {
  if constexpr (MatmulEarly<Hooks>::kAny) {
    if constexpr (C::kSumPairs > 0)
      hooks.storePair(row, index, v[0], v[1], all, values);
    else if constexpr (C::kPairs)
      hooks.storePair(row, index, v[0], v[1], values);
    else
      hooks.store(row, index, v[0], values);
  } else if constexpr (C::kPairs) {
    hooks.storePair(row, index, v[0], v[1]);
  } else {
    hooks.store(row, index, v[0]);
  }
}

template <class C, class Hooks>
LT_FN void gemmEpilogue(const Hooks& hooks, const vec<float, 8> (&values)[GemmShape<C>::kHalves],
                        long long row, long long column, long long m, long long n) {
  typedef GemmShape<C> S;
  if (row >= m || column >= n) return;
  if (n % 8 == 0) {
    if constexpr (C::kPairs)
      hooks.storePair8(row, column, values[0].v, values[1].v);
    else
      hooks.store8(row, column, values[0].v);
    return;
  }
  typedef MatmulEarly<Hooks> Early;
#pragma unroll
  for (int q = 0; q < 8; ++q) {
    if (column + q >= n) continue;
    const float v[2] = {values[0][q], values[S::kHalves - 1][q]};
    gemmStoreOne<C>(hooks, Early::request(hooks, row, column + q), row, column + q, v, 0.0f);
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

/// From shared memory one by one, neighbours by neighbouring threads, for hooks that have no vector
/// form. What a result takes beside its sums is requested for several at a time.
template <class C, class Hooks>
LT_FN void gemmStoreSingles(const Hooks& hooks, float* shared, const GemmMeeting& meeting,
                            long long row0, long long column0, long long m, long long n) {
  typedef GemmShape<C> S;
  typedef MatmulEarly<Hooks> Early;
  constexpr int kAll = C::kTileM * C::kTileN, kTogether = 4;
  static_assert(kAll % (kTogether * S::kThreads) == 0, "whole rounds");
  auto place = [&](int h, int i) {
    return shared + (h * C::kTileM + i / C::kTileN) * S::kStride + i % C::kTileN;
  };
  if constexpr (C::kSplits > 1) {
    auto part = [&](int split, int h, int i) {
      return meeting.sums + (split * S::kHalves + h) * (long long)kAll + i;
    };
    for (int h = 0; h < S::kHalves; ++h)
#pragma unroll 4
      for (int i = (int)threadIdx.x; i < kAll; i += S::kThreads)
        *part(meeting.split, h, i) = *place(h, i);
    if (!grid_last_block(meeting.counter, C::kSplits)) return;
    // In the order of the splits: the result does not depend on who was last.
    for (int h = 0; h < S::kHalves; ++h)
#pragma unroll 4
      for (int i = (int)threadIdx.x; i < kAll; i += S::kThreads) {
        float sum = 0.0f;
#pragma unroll
        for (int split = 0; split < C::kSplits; ++split) sum += *part(split, h, i);
        *place(h, i) = sum;
      }
    block_sync();
  }
  constexpr int kHead = C::kSumPairs > 0 ? C::kSumPairs : C::kTileN, kHeads = C::kTileN / kHead;
  LATHE_SHARED(float, totals, C::kTileM* kHeads);
  if constexpr (C::kSumPairs > 0) {
    static_assert(C::kTileN % kHead == 0 && C::kPairs, "whole heads");
    const int lane = (int)lane_id();
    for (int t = (int)warp_id(); t < C::kTileM * kHeads; t += S::kThreads / 32) {
      float sum = 0.0f;
      for (int p = lane; p < kHead; p += 32) {
        const int i = t / kHeads * C::kTileN + t % kHeads * kHead + p;
        sum += Hooks::term(*place(0, i), *place(1, i));
      }
      sum = warp_sum(sum);
      if (lane == 0) totals[t] = sum;
    }
    block_sync();
  }
#pragma unroll 1
  for (int first = (int)threadIdx.x; first < kAll; first += kTogether * S::kThreads) {
    typename Early::Values values[kTogether];
#pragma unroll
    for (int j = 0; j < kTogether; ++j) {
      const int i = first + j * S::kThreads;
      const long long row = row0 + i / C::kTileN, index = column0 + i % C::kTileN;
      if (row < m && index < n) values[j] = Early::request(hooks, row, index);
    }
#pragma unroll
    for (int j = 0; j < kTogether; ++j) {
      const int i = first + j * S::kThreads;
      const long long row = row0 + i / C::kTileN, index = column0 + i % C::kTileN;
      if (row >= m || index >= n) continue;
      const float v[2] = {*place(0, i), *place(S::kHalves - 1, i)};
      gemmStoreOne<C>(
          hooks, values[j], row, index, v,
          totals[C::kSumPairs > 0 ? i / C::kTileN * kHeads + i % C::kTileN / kHead : 0]);
    }
  }
}

/// The tile that begins at (row0, column0). m, n (columns, or pairs) and k are the product's sizes.
/// `partial` (room for kSplits tiles of every tile) and `counters` (one per tile, zeroed) are used
/// only with kSplits > 1: of the tile's `number` and this block's `split`.
template <class C, class Hooks, class A, class B>
LT_FN void gemmTile(const Hooks& hooks, const A& a, const B& b, long long row0, long long column0,
                    long long m, long long n, long long k, u32 number = 0, int split = 0,
                    float* partial = nullptr, u32* counters = nullptr) {
  typedef GemmShape<C> S;
  LATHE_DYN_SHARED(shared);
  const u32 ring = smem_addr(shared);
  const int allSteps = (int)((k + kGemmTileK - 1) / kGemmTileK);
  const int step0 = C::kSplits > 1 ? (int)((long long)allSteps * split / C::kSplits) : 0;
  const int steps =
      (C::kSplits > 1 ? (int)((long long)allSteps * (split + 1) / C::kSplits) : allSteps) - step0;
  const long long k0 = (long long)step0 * kGemmTileK;
  GemmTiles<A, GemmOwnRow, C::kTileM, 8, S::kThreads, false> tilesOfA(a, row0, k0, m);
  GemmTilesOfB<C, Hooks, B> tilesOfB(b, column0, k0, n);
  grid_dep_launch();
  if constexpr (!C::kConstantB) grid_dep_wait();
#pragma unroll
  for (int i = 0; i < C::kStages - 1; ++i)
    if (i < steps) tilesOfB.copy(ring + i * S::kStageBytes);
  if constexpr (C::kConstantB) grid_dep_wait();
#pragma unroll
  for (int i = 0; i < C::kStages - 1; ++i) {
    if (i < steps) tilesOfA.copy(ring + i * S::kStageBytes);
    cp_async_commit();
  }
  typedef GemmNorm<C, Hooks> Norm;
  LATHE_SHARED(float, scales, C::kNormed ? C::kTileM : 1);
  if constexpr (C::kNormed) {
    Norm::scale(hooks, scales, row0, m, k);
    block_sync();
  }

  frag_c sums[S::kHalves][S::kM][S::kN];
#pragma unroll
  for (int h = 0; h < S::kHalves; ++h)
#pragma unroll
    for (int i = 0; i < S::kM; ++i)
#pragma unroll
      for (int j = 0; j < S::kN; ++j) sums[h][i][j] = frag_c{{0.0f, 0.0f, 0.0f, 0.0f}};

  // Stages of the ring: of the step, and the one that is free.
  const u32 end = ring + C::kStages * S::kStageBytes;
  auto behind = [&](u32 stage) {
    return stage + S::kStageBytes == end ? ring : stage + S::kStageBytes;
  };
  u32 stage = ring, unused = end - S::kStageBytes;
#pragma unroll 1
  for (int step = 0; step < steps; ++step) {
    vec<typename C::Input, 8> gains{};
    if constexpr (C::kNormed) gains = Norm::gains(hooks, (long long)(step0 + step) * kGemmTileK, k);
    cp_async_wait<C::kStages - 2>();
    if constexpr (C::kNormed) Norm::apply(hooks, stage, scales, gains);
    block_sync();  // the step's tiles are there, and those of the step before are read
    if (step + C::kStages - 1 < steps) {
      tilesOfA.copy(unused);
      tilesOfB.copy(unused);
    }
    cp_async_commit();
    gemmMultiply<C>(sums, stage);
    stage = behind(stage);
    unused = behind(unused);
  }

  block_sync();  // nobody reads the ring any more
  gemmToShared<C>(sums, (float*)shared);
  block_sync();
  const long long place = (long long)C::kSplits * S::kHalves * C::kTileM * C::kTileN * number;
  const GemmMeeting meeting{partial + place, counters + number, split};
  if constexpr (C::kVectors)
    gemmStore<C>(hooks, (const float*)shared, meeting, row0, column0, m, n);
  else
    gemmStoreSingles<C>(hooks, (float*)shared, meeting, row0, column0, m, n);
}

/// All of the product; grid: x covers the tiles of m and n.
template <class C, class Hooks, class A, class B>
LT_FN void gemm(const Hooks& hooks, const A& a, const B& b, long long m, long long n, long long k,
                int split = 0, float* partial = nullptr, u32* counters = nullptr) {
  // Blocks in the order of their launch take kGemmRasterRows tiles of rows, column by column.
  const u32 down = (u32)((m + C::kTileM - 1) / C::kTileM),
            across = (u32)((n + C::kTileN - 1) / C::kTileN);
  const u32 number = blockIdx.x, top = number / across / kGemmRasterRows * kGemmRasterRows;
  const u32 left = down - top, band = left < kGemmRasterRows ? left : kGemmRasterRows;
  const u32 inBand = number - top * across;
  const long long row0 = (long long)(top + inBand % band) * C::kTileM;
  const long long column0 = (long long)(inBand / band) * C::kTileN;
  gemmTile<C>(hooks, a, b, row0, column0, m, n, k, number, split, partial, counters);
}
