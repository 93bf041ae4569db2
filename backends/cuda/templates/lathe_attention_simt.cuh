// SPDX-License-Identifier: Apache-2.0
// Attention of every float dtype and any depth, without tensor cores. All query heads of one key
// head, times all queries, are rows; a block has kRows of them, four per warp. Of a tile of 32 keys
// every lane computes the scores of one key, then the results of every 32nd dim. Keys are shared
// out over blockIdx.z; the last block of a row tile to end adds up what the others left.
//
// Grid: (ceil(group * queries / kRows), batch * key heads, splits at most). Config, beside
// lathe_attention_parts.cuh: kWarps, kLeastKeys (keys per split at least, a multiple of 32).
#pragma once
#include "lathe_attention_parts.cuh"

template <class C>
struct AttentionSimt {
  typedef typename element<typename C::Element>::compute Real;
  static constexpr int kThreads = C::kWarps * 32, kRowsPerWarp = 4,
                       kRows = C::kWarps * kRowsPerWarp;
  static constexpr int kWords = (C::kValueDepth + 31) / 32;  // results per lane and row
  // Lanes read 32 rows of the keys at one dim: an odd distance takes them to different banks.
  static constexpr int kKeyPitch = C::kDepth | 1;
  static constexpr int kKeysAt = kRows * C::kDepth;
  static constexpr int kValuesAt = kKeysAt + 32 * kKeyPitch;
  static constexpr int kWeightsAt = kValuesAt + 32 * C::kValueDepth;
  static constexpr int kSharedBytes = (int)sizeof(Real) * (kWeightsAt + kRows * 32);
  // One row of what a split leaves: sums, then maximum and sum of weights.
  static constexpr int kPartial = C::kValueDepth + 2;
};

template <class C, class Real>
LT_FN void simtStore(const AttentionArguments<C>& a, long long batch, long long keyHead,
                     long long row, int dim, Real acc, Real sum) {
  const long long query = row / C::kGroup, head = keyHead * C::kGroup + row % C::kGroup;
  if (sum == (Real)0)
    acc = attentionWithoutKeys(a, attentionRows(a, a.v, a.vs, batch, keyHead), dim);
  else
    acc = acc / sum;
  a.y[batch * a.ys.batch + head * a.ys.head + query * a.ys.token + dim] =
      convert<typename C::Element>(acc);
}

template <class C, class Real>
LT_FN void attentionSimtTile(const AttentionArguments<C>& a, Real* partials, u32* counters,
                             long long pair) {
  using S = AttentionSimt<C>;
  LATHE_DYN_SHARED(bytes);
  Real* shared = (Real*)bytes;
  Real *keys = shared + S::kKeysAt, *values = shared + S::kValuesAt;
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  const long long rows = a.queries * C::kGroup, firstRow = (long long)blockIdx.x * S::kRows;
  const long long batch = pair / C::kKeyHeads, keyHead = pair % C::kKeyHeads;
  const int count = (int)minOf(S::kRows, rows - firstRow);

  const long long offset = attentionOffset(a, batch);
  const AttentionRange range =
      attentionRange(a, offset, firstRow / C::kGroup, (firstRow + count - 1) / C::kGroup);
  const AttentionShare share = attentionShare(range, 32, C::kLeastKeys, blockIdx.z, gridDim.z);
  if (blockIdx.x == 0 && blockIdx.z == 0 && keyHead == 0) attentionCheckTable(a, batch);
  if ((int)blockIdx.z >= share.splits) return;

  for (int i = threadIdx.x; i < S::kRows * C::kDepth; i += S::kThreads) {
    const long long row = firstRow + minOf(i / C::kDepth, count - 1);
    const long long head = keyHead * C::kGroup + row % C::kGroup;
    shared[i] = convert<Real>(
        a.q[batch * a.qs.batch + head * a.qs.head + row / C::kGroup * a.qs.token + i % C::kDepth]);
  }
  const Real* query = shared + warp * S::kRowsPerWarp * C::kDepth;
  Real* weights = shared + S::kWeightsAt + warp * S::kRowsPerWarp * 32;

  Real acc[S::kRowsPerWarp][S::kWords], top[S::kRowsPerWarp], sum[S::kRowsPerWarp];
#pragma unroll
  for (int r = 0; r < S::kRowsPerWarp; ++r) {
    top[r] = lowest_of<Real>();
    sum[r] = 0;
#pragma unroll
    for (int w = 0; w < S::kWords; ++w) acc[r][w] = 0;
  }

  for (long long tile = share.begin; tile < share.end; tile += 32) {
    block_sync();  // the queries are there, the previous tile is done with
    const int tileKeys = (int)minOf(32, share.end - tile);
    const AttentionRows<C> k = attentionRows(a, a.k, a.ks, batch, keyHead),
                           v = attentionRows(a, a.v, a.vs, batch, keyHead);
#pragma unroll 8
    for (int i = threadIdx.x; i < 32 * C::kDepth; i += S::kThreads) {
      const int key = i / C::kDepth, dim = i % C::kDepth;
      keys[key * S::kKeyPitch + dim] =
          key < tileKeys ? convert<Real>(k.at(tile + key)[dim]) : (Real)0;
    }
#pragma unroll 8
    for (int i = threadIdx.x; i < 32 * C::kValueDepth; i += S::kThreads) {
      const int key = i / C::kValueDepth, dim = i % C::kValueDepth;
      values[i] = key < tileKeys ? convert<Real>(v.at(tile + key)[dim]) : (Real)0;
    }
    block_sync();

    Real dot[S::kRowsPerWarp] = {};
#pragma unroll 4
    for (int d = 0; d < C::kDepth; ++d) {
      const Real x = keys[lane * S::kKeyPitch + d];
#pragma unroll
      for (int r = 0; r < S::kRowsPerWarp; ++r)
        dot[r] = math_fma(query[r * C::kDepth + d], x, dot[r]);
    }
#pragma unroll
    for (int r = 0; r < S::kRowsPerWarp; ++r) {
      const long long row = firstRow + minOf(warp * S::kRowsPerWarp + r, count - 1);
      const long long i = row / C::kGroup, head = keyHead * C::kGroup + row % C::kGroup;
      Real x = lowest_of<Real>();
      if (lane < tileKeys && attentionSees<C>(offset, i, tile + lane))
        x = attentionMasked<C>(a,
                               a.mask + batch * a.maskBatch + head * a.maskHead + i * a.maskQuery,
                               attentionScore<C>(dot[r]), tile + lane);
      const Real highest = max_nan(top[r], warp_max(x)), shift = shiftOf(highest);
      const Real rescale = math_exp(top[r] - shift), weight = math_exp(x - shift);
      top[r] = highest;
      sum[r] = sum[r] * rescale + weight;
      weights[r * 32 + lane] = weight;
#pragma unroll
      for (int w = 0; w < S::kWords; ++w) acc[r][w] *= rescale;
    }
    warp_sync();
#pragma unroll 4
    for (int j = 0; j < 32; ++j) {
#pragma unroll
      for (int w = 0; w < S::kWords; ++w) {
        const int dim = w * 32 + lane;
        const Real x = dim < C::kValueDepth ? values[j * C::kValueDepth + dim] : (Real)0;
#pragma unroll
        for (int r = 0; r < S::kRowsPerWarp; ++r)
          acc[r][w] = math_fma(weights[r * 32 + j], x, acc[r][w]);
      }
    }
  }

  Real* partial = partials + (pair * rows + firstRow) * gridDim.z * S::kPartial;
#pragma unroll
  for (int r = 0; r < S::kRowsPerWarp; ++r) {
    const int row = warp * S::kRowsPerWarp + r;
    const Real total = warp_sum(sum[r]);
    Real* to = partial + ((long long)row * gridDim.z + blockIdx.z) * S::kPartial;
#pragma unroll
    for (int w = 0; w < S::kWords; ++w) {
      const int dim = w * 32 + lane;
      if (row >= count || dim >= C::kValueDepth) continue;
      if (share.splits == 1)
        simtStore(a, batch, keyHead, firstRow + row, dim, acc[r][w], total);
      else
        to[dim] = acc[r][w];
    }
    if (share.splits > 1 && row < count && lane == 0) {
      to[C::kValueDepth] = top[r];
      to[C::kValueDepth + 1] = total;
    }
  }
  if (share.splits == 1) return;
  const long long tileIndex = pair * gridDim.x + blockIdx.x;
  if (!grid_last_block(counters + tileIndex, (u32)share.splits)) return;
  for (int i = threadIdx.x; i < count * C::kValueDepth; i += S::kThreads) {
    const int row = i / C::kValueDepth, dim = i % C::kValueDepth;
    const Real* from = partial + (long long)row * gridDim.z * S::kPartial;
    Real highest = lowest_of<Real>(), total = 0, result = 0;
    for (int s = 0; s < share.splits; ++s)
      highest = max_nan(highest, from[s * S::kPartial + C::kValueDepth]);
    for (int s = 0; s < share.splits; ++s) {
      const Real* x = from + s * S::kPartial;
      const Real w = math_exp(x[C::kValueDepth] - shiftOf(highest));
      total = math_fma(w, x[C::kValueDepth + 1], total);
      result = math_fma(w, x[dim], result);
    }
    simtStore(a, batch, keyHead, firstRow + row, dim, result, total);
  }
}

template <class C, class Real>
LT_FN void attentionSimt(const AttentionArguments<C>& a, Real* partials, u32* counters) {
  grid_dep_launch();
  if (C::kOverlaps) grid_dep_wait();
  forEachPiece(blockIdx.y, gridDim.y, a.batches * C::kKeyHeads,
               [&](long long pair) { attentionSimtTile(a, partials, counters, pair); });
}
