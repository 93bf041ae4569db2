// SPDX-License-Identifier: Apache-2.0
// lathe.grouped_linear: y[r, n] = sum over k of x[row of r, k] w[index of r][n, k] (or [k, n]).
//
// A block computes some columns of one weight's rows, a tile of them after the other: it finds the
// rows among the indices itself, in their order, so that a call is one launch and its result does
// not depend on who comes first. Blocks along z share the tiles of a weight. A block whose weight
// nobody chooses ends after one look at the indices.
//
// Config: that of the tiles (lathe_gemm.cuh, or lathe_simt_gemm.cuh); kThreads; kOnTensorCores;
// kTransposedB (w is [groups, k, n]).
#pragma once
#include "lathe_gemm.cuh"
#include "lathe_simt_gemm.cuh"

/// The rows of one weight. Every warp looks at a stretch of the indices of its own.
template <int kThreads, class Index>
struct GroupedRows {
  static constexpr int kWarps = kThreads / 32;
  const Index* indices;
  long long begin, end;  // of this warp's stretch, but for the last a multiple of 32
  long long group;
  u32 before;  // rows of the weight in front of them
  u32 total;

  LT_MEMBER bool chooses(long long i) const { return i < end && (long long)indices[i] == group; }

  /// Tells of indices outside of [0, groups).
  LT_MEMBER void find(const Index* all, long long count, long long of, long long groups,
                      i64* status) {
    LATHE_SHARED(u32, counts, kWarps);
    const int lane = (int)lane_id(), warp = (int)warp_id();
    const long long stretch = (ceilDiv(count, (long long)kWarps) + 31) / 32 * 32;
    indices = all;
    group = of;
    begin = warp * stretch < count ? warp * stretch : count;
    end = begin + stretch < count ? begin + stretch : count;
    u32 mine = 0;
    for (long long i = begin; i < end; i += 32) {
      mine += (u32)bitCount(warp_ballot(chooses(i + lane)));
      if (of == 0 && i + lane < end) {
        const long long index = (long long)indices[i + lane];
        if (index < 0 || index >= groups) lt_report_index(status, index);
      }
    }
    if (lane == 0) counts[warp] = mine;
    block_sync();
    before = total = 0;
#pragma unroll
    for (int w = 0; w < kWarps; ++w) {
      if (w < warp) before += counts[w];
      total += counts[w];
    }
  }
  /// The rows numbered `first` to `first + room - 1` among those of the weight.
  LT_MEMBER void list(u32 first, u32 room, long long* rows) const {
    const int lane = (int)lane_id();
    u32 number = before;
    for (long long i = begin; i < end && number < first + room; i += 32) {
      const u32 chosen = warp_ballot(chooses(i + lane));
      const u32 at = number + (u32)bitCount(chosen & ((1u << lane) - 1));
      if ((chosen >> lane & 1) && at >= first && at < first + room) rows[at - first] = i + lane;
      number += (u32)bitCount(chosen);
    }
  }
};

/// Rows of x that a tile brought together, as gemmCopy reads them.
template <class T, int kAlignment>
struct GroupedOperand {
  typedef T Element;
  static constexpr bool kWalks = kAlignment == kAlignedRows, kHasStride = false;
  DenseOperand<T, kAlignment> x;
  const long long* from;  // in shared memory: which row each is
  long long count;        // at least 1
  // Those past the end repeat the first one; their results are not stored.
  LT_MEMBER const T* beginOf(long long row) const { return x.beginOf(from[row < count ? row : 0]); }
  LT_MEMBER long long rowLength() const { return x.length; }
  LT_MEMBER void copy(u32 to, long long row, long long at) const {
    x.copy(to, row < count ? from[row] : x.rows, at);
  }
  LT_MEMBER T at(long long row, long long column) const {
    return x.data[from[row] * x.stride + column];
  }
};

/// The epilogue: a row goes where it was. Out is T, or float for the sum as it is.
template <class T, class Out>
struct GroupedHooks {
  typedef MatmulElement<T> Element;
  Out* y;
  const long long* rows;  // in shared memory
  long long n;
  __device__ void store(long long row, long long column, typename Element::Sum value) const {
    if constexpr (lt_same<T, Out>::value)
      y[rows[row] * n + column] = Element::narrow(value);
    else
      y[rows[row] * n + column] = value;
  }
  /// Only where n is a multiple of 8.
  __device__ void store8(long long row, long long column, const float (&value)[8]) const {
    vec<float, 8> out;
#pragma unroll
    for (int i = 0; i < 8; ++i) out[i] = value[i];
    store_f32(y + rows[row] * n + column, out);
  }
};

/// grid: x covers the tiles of n and, behind one another, the groups; z strides over tiles of rows.
/// `rowOf(r)` is the row of x that row r meets.
template <class C, int kAlignX, int kAlignW, class Out, class Index, class RowOf>
LT_FN void groupedLinear(Out* y, const typename C::Input* x, const typename C::Input* w,
                         const Index* indices, i64* status, long long rowsOfX, long long count,
                         long long groups, long long n, long long k, const RowOf& rowOf) {
  typedef typename C::Input T;
  LATHE_SHARED(long long, rows, C::kTileM);
  LATHE_SHARED(long long, from, C::kTileM);
  const long long across = ceilDiv(n, (long long)C::kTileN);
  const long long group = blockIdx.x / across, column0 = blockIdx.x % across * C::kTileN;
  grid_dep_launch();
  grid_dep_wait();
  GroupedRows<C::kThreads, Index> chosen;
  chosen.find(indices, count, group, groups, status);
  const T* weight = w + group * n * k;
  for (long long first = (long long)blockIdx.z * C::kTileM; first < chosen.total;
       first += (long long)gridDim.z * C::kTileM) {
    block_sync();  // nobody reads the rows of the tile before
    chosen.list((u32)first, C::kTileM, rows);
    block_sync();
    const long long left = chosen.total - first, m = left < C::kTileM ? left : C::kTileM;
    for (int r = (int)threadIdx.x; r < m; r += C::kThreads) from[r] = rowOf(rows[r]);
    block_sync();
    const GroupedHooks<T, Out> hooks{y, rows, n};
    const GroupedOperand<T, kAlignX> ofX{{x, rowsOfX, k, k}, from, m};
    if constexpr (C::kOnTensorCores) {
      const DenseOperand<T, kAlignW> right{weight, C::kTransposedB ? k : n, C::kTransposedB ? n : k,
                                           C::kTransposedB ? n : k};
      gemmTile<C>(hooks, ofX, right, 0, column0, m, n, k);
    } else {
      const StridedOperand<T> right{weight, C::kTransposedB ? n : 1, C::kTransposedB ? 1 : k};
      simtTile<C>(hooks, ofX, right, 0, column0, m, n, k);
    }
  }
}
