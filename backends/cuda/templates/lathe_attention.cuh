// SPDX-License-Identifier: Apache-2.0
// Attention of many queries, bf16 and f16, with the online softmax of Dao, "FlashAttention-2",
// 2023: every warp owns 16 * kRowTiles rows of queries, their scores and results stay in registers,
// and tiles of kKeys keys and values pass through shared memory, the next one being copied while
// this one is worked on. Rows in shared memory are 16 bytes longer than their elements, an odd
// number of 16-byte chunks, so that the eight rows of an ldmatrix tile lie in different banks.
//
// Grid: query heads x row tiles x batch, all along x, heads running fastest; with kPacksHeads the
// rows of a block are the heads of a group times queries, and heads are key heads. Blocks with many
// keys come first. Depths are multiples of 8.
// Config, beside lathe_attention_parts.cuh: kWarps, kRowTiles, kKeys, kPacksHeads.
#pragma once
#include "lathe_attention_parts.cuh"

template <class C>
struct AttentionTiles {
  static constexpr int kThreads = C::kWarps * 32, kRows = C::kWarps * C::kRowTiles * 16;
  static constexpr int kPack = C::kPacksHeads ? C::kGroup : 1;
  static constexpr u32 kHeads = C::kPacksHeads ? C::kKeyHeads : C::kKeyHeads * C::kGroup;
  static constexpr int kSteps = (C::kDepth + 15) / 16;            // of 16 dims of a key
  static constexpr int kValueSteps = (C::kValueDepth + 15) / 16;  // of 16 dims of a value
  static constexpr int kPitch = kSteps * 32 + 16, kValuePitch = kValueSteps * 32 + 16;  // bytes
  // The results go out through the place of the queries.
  static constexpr int kQueryBytes = kRows * (kPitch > kValuePitch ? kPitch : kValuePitch);
  static constexpr int kKeyBytes = C::kKeys * kPitch, kValueBytes = C::kKeys * kValuePitch;
  static constexpr int kSharedBytes = kQueryBytes + 2 * (kKeyBytes + kValueBytes);
  static constexpr bool kQueryInRegisters = C::kRowTiles * kSteps <= 8;
};

// Copies kRows rows of kDepth elements, which begin at beginOf(row), to shared memory, `pitch`
// bytes apart; rows from `count` on and the dims up to a multiple of 16 are zero, and `any` is an
// address that may be read.
template <int kThreads, int kRows, int kDepth, class Element, class BeginOf>
LT_FN void copyRows(u32 to, const Element* any, long long count, BeginOf beginOf) {
  constexpr int kChunks = (kDepth + 15) / 16 * 2, kPitch = kChunks * 16 + 16;
#pragma unroll
  for (int i = 0; i < (kRows * kChunks + kThreads - 1) / kThreads; ++i) {
    const int at = (int)threadIdx.x + i * kThreads, row = at / kChunks, chunk = at % kChunks;
    if (kRows * kChunks % kThreads != 0 && at >= kRows * kChunks) break;
    const bool exists = row < count && (kDepth % 16 == 0 || chunk * 8 < kDepth);
    cp_async_16(to + row * kPitch + chunk * 16, exists ? beginOf(row) + chunk * 8 : any,
                exists ? 16 : 0);
  }
}

template <class C>
LT_FN void attentionTiled(const AttentionArguments<C>& a) {
  typedef AttentionTiles<C> T;
  typedef AttentionUnits<C> Units;
  typedef typename C::Element Element;
  LATHE_DYN_SHARED(shared);
  const u32 queryAt = smem_addr(shared), keyAt = queryAt + T::kQueryBytes,
            valueAt = keyAt + 2 * T::kKeyBytes;
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, g = lane >> 2, t = lane & 3;
  const long long rows = a.queries * T::kPack;
  const u32 tiles = (u32)((rows + T::kRows - 1) / T::kRows), ofHeads = blockIdx.x % T::kHeads,
            ofRows = blockIdx.x / T::kHeads % tiles;
  const long long batch = blockIdx.x / T::kHeads / tiles;
  const long long keyHead = C::kPacksHeads ? ofHeads : ofHeads / C::kGroup;
  const long long firstHead = C::kPacksHeads ? keyHead * C::kGroup : ofHeads;
  const long long rowTile = C::kCausal == causal_none ? ofRows : tiles - 1 - ofRows;
  const long long firstRow = rowTile * T::kRows, lastRow = minOf(firstRow + T::kRows, rows) - 1;
  grid_dep_launch();
  if (C::kOverlaps) grid_dep_wait();

  const Element* q = a.q + batch * a.qs.batch + firstHead * a.qs.head;
  const AttentionRows<C> k = attentionRows(a, a.k, a.ks, batch, keyHead),
                         v = attentionRows(a, a.v, a.vs, batch, keyHead);
  const long long offset = attentionOffset(a, batch);
  const AttentionRange range = attentionRange(a, offset, firstRow / T::kPack, lastRow / T::kPack);
  if (T::kPack == 1) {
    const Element* from = q + firstRow * a.qs.token;
    copyRows<T::kThreads, T::kRows, C::kDepth>(queryAt, from, rows - firstRow,
                                               [&](int row) { return from + row * a.qs.token; });
  } else {
    constexpr int kChunks = T::kSteps * 2;
    for (int at = threadIdx.x; at < T::kRows * kChunks; at += T::kThreads) {
      const int r = at / kChunks, chunk = at % kChunks;
      const long long row = firstRow + r;
      const bool exists = row < rows && chunk * 8 < C::kDepth;
      const Element* from =
          q + row % T::kPack * a.qs.head + row / T::kPack * a.qs.token + chunk * 8;
      cp_async_16(queryAt + r * T::kPitch + chunk * 16, exists ? from : q, exists ? 16 : 0);
    }
  }
  auto loadTile = [&](long long first, int stage) {
    copyRows<T::kThreads, C::kKeys, C::kDepth>(keyAt + stage * T::kKeyBytes, k.head,
                                               range.end - first,
                                               [&](int row) { return k.at(first + row); });
    copyRows<T::kThreads, C::kKeys, C::kValueDepth>(valueAt + stage * T::kValueBytes, v.head,
                                                    range.end - first,
                                                    [&](int row) { return v.at(first + row); });
  };
  if (ofHeads == 0 && ofRows == 0) attentionCheckTable(a, batch);
  if (range.first < range.end) loadTile(range.first, 0);
  cp_async_commit();

  frag_a qa[T::kQueryInRegisters ? C::kRowTiles : 1][T::kQueryInRegisters ? T::kSteps : 1];
  frag_c acc[C::kRowTiles][T::kValueSteps * 2];
  float top[C::kRowTiles][2], sum[C::kRowTiles][2];
  const int warpRow = warp * C::kRowTiles * 16;
#pragma unroll
  for (int r = 0; r < C::kRowTiles; ++r) {
#pragma unroll
    for (int d = 0; d < T::kValueSteps * 2; ++d) acc[r][d] = frag_c{{0.0f, 0.0f, 0.0f, 0.0f}};
    top[r][0] = top[r][1] = minusInfinity();
    sum[r][0] = sum[r][1] = 0.0f;
  }
  // Lane l gives row l % 16 of the two 8-dim halves of a 16 x 16 tile.
  const u32 queryRow = queryAt + (warpRow + (lane & 15)) * T::kPitch + (lane >> 4) * 16;
  const u32 keyRow = keyAt + ((lane & 7) + (lane >> 4) * 8) * T::kPitch + ((lane >> 3) & 1) * 16;
  const u32 valueRow = valueAt + (lane & 15) * T::kValuePitch + (lane >> 4) * 16;
  // What the rows of this warp see at most.
  const long long warpFirst = minOf(firstRow + warpRow, lastRow),
                  warpLast = minOf(warpFirst + C::kRowTiles * 16 - 1, lastRow);
  const AttentionRange seen = attentionRange(a, offset, warpFirst / T::kPack, warpLast / T::kPack);
  // Keys in [everyFirst, everyEnd) are seen by all of them.
  const AttentionRange byFirst =
      attentionRange(a, offset, warpFirst / T::kPack, warpFirst / T::kPack);
  const AttentionRange byLast = attentionRange(a, offset, warpLast / T::kPack, warpLast / T::kPack);

  int stage = 0;
  for (long long tile = range.first; tile < range.end; tile += C::kKeys, stage ^= 1) {
    cp_async_wait<0>();
    block_sync();  // this tile is there; nobody reads the previous one any more
    if (tile + C::kKeys < range.end) loadTile(tile + C::kKeys, stage ^ 1);
    cp_async_commit();
    if (T::kQueryInRegisters && tile == range.first) {
#pragma unroll
      for (int r = 0; r < C::kRowTiles; ++r)
#pragma unroll
        for (int i = 0; i < T::kSteps; ++i)
          ldmatrix_x4(qa[r][i].r, queryRow + r * 16 * T::kPitch + i * 32);
    }
    if (tile >= seen.end || tile + C::kKeys <= seen.first) continue;

    frag_c s[C::kRowTiles][C::kKeys / 8];
#pragma unroll
    for (int r = 0; r < C::kRowTiles; ++r)
#pragma unroll
      for (int n = 0; n < C::kKeys / 8; ++n) s[r][n] = frag_c{{0.0f, 0.0f, 0.0f, 0.0f}};
#pragma unroll
    for (int i = 0; i < T::kSteps; ++i) {
      frag_a now[C::kRowTiles];
#pragma unroll
      for (int r = 0; r < C::kRowTiles; ++r) {
        if (T::kQueryInRegisters)
          now[r] = qa[T::kQueryInRegisters ? r : 0][T::kQueryInRegisters ? i : 0];
        else
          ldmatrix_x4(now[r].r, queryRow + r * 16 * T::kPitch + i * 32);
      }
#pragma unroll
      for (int n = 0; n < C::kKeys / 16; ++n) {
        u32 b[4];
        ldmatrix_x4(b, keyRow + stage * T::kKeyBytes + n * 16 * T::kPitch + i * 32);
#pragma unroll
        for (int r = 0; r < C::kRowTiles; ++r) {
          mma(Element(), s[r][2 * n], now[r], b[0], b[1]);
          mma(Element(), s[r][2 * n + 1], now[r], b[2], b[3]);
        }
      }
    }

    const bool someHidden =
        C::kMask != kMaskNone || tile + C::kKeys > byFirst.end || tile < byLast.first;
#pragma unroll
    for (int r = 0; r < C::kRowTiles; ++r) {
      if (!Units::kRaw) {
#pragma unroll
        for (int n = 0; n < C::kKeys / 8; ++n)
#pragma unroll
          for (int e = 0; e < 4; ++e) s[r][n].r[e] = Units::ofDot(s[r][n].r[e]);
      }
      if (someHidden) {
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          const long long row = minOf(firstRow + warpRow + r * 16 + g + 8 * h, lastRow);
          const long long i = row / T::kPack, head = firstHead + row % T::kPack;
          const typename C::Mask* maskRow =
              a.mask + batch * a.maskBatch + head * a.maskHead + i * a.maskQuery;
#pragma unroll
          for (int n = 0; n < C::kKeys / 8; ++n)
#pragma unroll
            for (int e = 2 * h; e < 2 * h + 2; ++e) {
              const long long key = tile + n * 8 + 2 * t + (e & 1);
              float& x = s[r][n].r[e];
              if (key >= a.keys || !attentionSees<C>(offset, i, key))
                x = minusInfinity();
              else
                x = attentionMasked<C>(a, maskRow, x, key);
            }
        }
      }
      float shift[2], rescale[2];
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        float highest = top[r][h];
#pragma unroll
        for (int n = 0; n < C::kKeys / 8; ++n)
          highest = fmaxf(highest, fmaxf(s[r][n].r[2 * h], s[r][n].r[2 * h + 1]));
        highest = fmaxf(highest, shfl_xor(highest, 1));
        highest = fmaxf(highest, shfl_xor(highest, 2));
        shift[h] = shiftOf(highest);
        rescale[h] = Units::exponential(top[r][h], shift[h]);
        top[r][h] = highest;
      }
      // Maxima settle soon.
      if (warp_any(rescale[0] != 1.0f || rescale[1] != 1.0f)) {
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          sum[r][h] *= rescale[h];
#pragma unroll
          for (int d = 0; d < T::kValueSteps * 2; ++d) {
            acc[r][d].r[2 * h] *= rescale[h];
            acc[r][d].r[2 * h + 1] *= rescale[h];
          }
        }
      }
#pragma unroll
      for (int h = 0; h < 2; ++h) {
// The maximum is subtracted before the scale: one multiply-add of both would leave an error
// in the exponent that grows with the scores.
#pragma unroll
        for (int n = 0; n < C::kKeys / 8; ++n)
#pragma unroll
          for (int e = 2 * h; e < 2 * h + 2; ++e) {
            float& x = s[r][n].r[e];
            x = Units::exponential(x, shift[h]);
            sum[r][h] += x;
          }
      }
    }

#pragma unroll
    for (int i = 0; i < C::kKeys / 16; ++i) {
      frag_a p[C::kRowTiles];
#pragma unroll
      for (int r = 0; r < C::kRowTiles; ++r) {
        const frag_c &low = s[r][2 * i], &high = s[r][2 * i + 1];
        p[r].r[0] = pack2(Element(), low.r[0], low.r[1]);
        p[r].r[1] = pack2(Element(), low.r[2], low.r[3]);
        p[r].r[2] = pack2(Element(), high.r[0], high.r[1]);
        p[r].r[3] = pack2(Element(), high.r[2], high.r[3]);
      }
#pragma unroll
      for (int d = 0; d < T::kValueSteps; ++d) {
        u32 b[4];
        ldmatrix_x4_trans(b, valueRow + stage * T::kValueBytes + i * 16 * T::kValuePitch + d * 32);
#pragma unroll
        for (int r = 0; r < C::kRowTiles; ++r) {
          mma(Element(), acc[r][2 * d], p[r], b[0], b[1]);
          mma(Element(), acc[r][2 * d + 1], p[r], b[2], b[3]);
        }
      }
    }
  }

  // Out through shared memory, for 16-byte stores. A warp writes over its own queries alone, but
  // their rows may be shorter than those of the results.
  cp_async_wait<0>();
  block_sync();
#pragma unroll
  for (int r = 0; r < C::kRowTiles; ++r) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      float total = sum[r][h];
      total += shfl_xor(total, 1);
      total += shfl_xor(total, 2);
      u32* to = (u32*)(shared + (warpRow + r * 16 + g + 8 * h) * T::kValuePitch) + t;
      if (total == 0.0f) {
#pragma unroll 1
        for (int d = 2 * t; d < C::kValueDepth; d += 8)
          to[d / 8 * 4] =
              pack2(Element(), attentionWithoutKeys(a, v, d), attentionWithoutKeys(a, v, d + 1));
      } else {
        const float inverse = 1.0f / total;
#pragma unroll
        for (int d = 0; d < T::kValueSteps * 2; ++d)
          to[d * 4] =
              pack2(Element(), acc[r][d].r[2 * h] * inverse, acc[r][d].r[2 * h + 1] * inverse);
      }
    }
  }
  block_sync();
  constexpr int kChunks = C::kValueDepth / 8;
  for (int at = threadIdx.x; at < T::kRows * kChunks; at += T::kThreads) {
    const int r = at / kChunks, chunk = at % kChunks;
    const long long row = firstRow + r;
    if (row > lastRow) break;
    const long long head = firstHead + row % T::kPack;
    const long long to = batch * a.ys.batch + head * a.ys.head + row / T::kPack * a.ys.token;
    st_global_16(a.y + to + chunk * 8, ld_shared_16(shared + r * T::kValuePitch + chunk * 16));
  }
}
