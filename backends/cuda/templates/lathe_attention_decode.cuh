// SPDX-License-Identifier: Apache-2.0
// Attention of few queries over many keys ("flash decoding"), bf16 and f16. All query heads of one
// key head, times all queries, are the rows of an mma tile, so that keys and values are read once;
// they go from memory straight into mma operands. The keys are shared out over blockIdx.z and over
// the warps of a block; the last block of a row tile to end adds up what the others left.
//
// A dot product may take its terms in any order: lane (g, t) loads dims 8t .. 8t+7 of key g as one
// 16-byte word, which then are the k indices {2t, 2t+1, 2t+8, 2t+9} of two mma steps. Of the values
// it loads dims 8g .. 8g+7 of four keys; column g of the n-th product is then dim 8g + n.
//
// Grid: (ceil(group * queries / 16), batch * key heads, splits at most). Depths are multiples of 8.
// Config, beside lathe_attention_parts.cuh: kWarps, kLeastKeys (keys per split at least, a multiple
// of kWarps * 16), kMostSplits, kOldKeys (no kernel of this run has written the positions, nor keys
// and values in front of them: those are requested before the previous kernel has ended), kToShared
// (results go to shared memory: `y` of the arguments is there, row after row of one key head).
#pragma once
#include "lathe_attention_parts.cuh"

template <class C>
struct AttentionDecode {
  using Element = typename C::Element;
  using Score = AttentionUnits<C>;
  static constexpr int kChunks = (C::kDepth + 31) / 32;            // of 32 dims of a key
  static constexpr int kValueChunks = (C::kValueDepth + 63) / 64;  // of 64 dims of a value
  static constexpr int kThreads = C::kWarps * 32;
  static constexpr int kSlots = kValueChunks * 16;  // words of 4 results per row
  // Shared, in floats: sums of every warp, rows 16 words apart modulo 32 so that the eight lanes
  // of a store meet different banks; maxima and sums of every warp; weights of the splits; sums of
  // the rows; the queries where registers do not hold them.
  static constexpr int kPitch = kSlots * 4 + 16;
  static constexpr int kTopAt = C::kWarps * 16 * kPitch;
  static constexpr int kSumAt = kTopAt + C::kWarps * 16;
  static constexpr int kWeightAt = kSumAt + C::kWarps * 16;
  static constexpr int kRowSumAt = kWeightAt + 16 * C::kMostSplits;
  static constexpr int kQueryAt = kRowSumAt + 16;
  static constexpr bool kQueryInShared = C::kDepth > 128;
  static constexpr int kSharedBytes = 4 * (kQueryAt + (kQueryInShared ? kChunks * 256 : 0));
  // Registers hold a tile's values, and the next tile's keys, unless they are too deep.
  static constexpr bool kLoadsAhead = C::kDepth + C::kValueDepth <= 320;
  static constexpr bool kOldFirst = C::kOldKeys && kLoadsAhead;
  // One row of what a split leaves: sums, then maximum and sum of weights.
  static constexpr int kPartial = kSlots * 4 + 4;

  // Result words lie in the order in which lanes hold them: word (chunk, j, t) is dims
  // 64 * chunk + 16 * t + 4 * j .. + 3.
  LT_FN int dimOfSlot(int slot) {
    return (slot >> 4) * 64 + (slot & 3) * 16 + ((slot >> 2) & 3) * 4;
  }
};

LT_FN u32 lowHalves(u32 a, u32 b) { return (a & 0xffffu) | b << 16; }
LT_FN u32 highHalves(u32 a, u32 b) { return a >> 16 | (b & 0xffff0000u); }
LT_FN float4 addScaled(float4 sum, float4 x, float w) {
  return make_float4(fmaf(x.x, w, sum.x), fmaf(x.y, w, sum.y), fmaf(x.z, w, sum.z),
                     fmaf(x.w, w, sum.w));
}

// Which rows of which key head a block computes, and its share of the keys.
struct AttentionPlace {
  long long pair;  // of a batch and a key head
  u32 tile, tiles, split, splits;
};

// Writes 4 results of one row: acc / sum.
template <class C>
LT_FN void decodeStore(const AttentionArguments<C>& a, long long batch, long long keyHead,
                       long long row, int dim, float4 acc, float sum) {
  float r[4] = {acc.x, acc.y, acc.z, acc.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if (sum == 0.0f)
      r[i] = attentionWithoutKeys(a, attentionRows(a, a.v, a.vs, batch, keyHead), dim + i);
    else
      r[i] = r[i] / sum;
  }
  const vec<float, 4> result{{r[0], r[1], r[2], r[3]}};
  if constexpr (C::kToShared) {
    store_f32_shared(a.y + row * C::kValueDepth + dim, result);
  } else {
    const long long query = row / C::kGroup, head = keyHead * C::kGroup + row % C::kGroup;
    store_f32(a.y + batch * a.ys.batch + head * a.ys.head + query * a.ys.token + dim, result);
  }
}

// Adds up the splits of one row tile.
template <class C>
LT_FN void decodeCombine(const AttentionArguments<C>& a, const float* partial, float* shared,
                         long long batch, long long keyHead, long long firstRow, int count,
                         int splits, u32 mostSplits) {
  using D = AttentionDecode<C>;
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  const long long pitch = (long long)mostSplits * D::kPartial;
  float *weights = shared + D::kWeightAt, *sums = shared + D::kRowSumAt;
  for (int r = warp; r < count; r += C::kWarps) {
    const float* tails = partial + r * pitch + D::kSlots * 4;
    float top = minusInfinity(), sum = 0.0f;
    for (int s = lane; s < splits; s += 32) top = fmaxf(top, tails[(long long)s * D::kPartial]);
    top = shiftOf(warp_max(top));
    for (int s = lane; s < splits; s += 32) {
      const float* tail = tails + (long long)s * D::kPartial;
      const float w = D::Score::exponential(tail[0], top);
      weights[r * C::kMostSplits + s] = w;
      sum = fmaf(w, tail[1], sum);
    }
    sum = warp_sum(sum);
    if (lane == 0) sums[r] = sum;
  }
  block_sync();
  for (int i = threadIdx.x; i < count * D::kSlots; i += D::kThreads) {
    const int r = i / D::kSlots, slot = i % D::kSlots, dim = D::dimOfSlot(slot);
    if (dim >= C::kValueDepth) continue;
    const float* words = partial + r * pitch + slot * 4;
    float4 acc = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll 4
    for (int s = 0; s < splits; ++s)
      acc = addScaled(acc, *(const float4*)(words + (long long)s * D::kPartial),
                      weights[r * C::kMostSplits + s]);
    decodeStore(a, batch, keyHead, firstRow + r, dim, acc, sums[r]);
  }
}

template <class C>
LT_FN void attentionDecodeTile(const AttentionArguments<C>& a, float* partials, u32* counters,
                               const AttentionPlace& at) {
  using D = AttentionDecode<C>;
  using Element = typename C::Element;
  LATHE_DYN_SHARED(bytes);
  float* shared = (float*)bytes;
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, g = lane >> 2, t = lane & 3;
  const long long rows = a.queries * C::kGroup, firstRow = (long long)at.tile * 16;
  const long long batch = at.pair / C::kKeyHeads, keyHead = at.pair % C::kKeyHeads;
  const int count = (int)minOf(16, rows - firstRow);

  // This block's share of the keys. What does not exist ends here, all threads of it.
  const long long offset = attentionOffset(a, batch);
  const AttentionRange range =
      attentionRange(a, offset, firstRow / C::kGroup, (firstRow + count - 1) / C::kGroup);
  const AttentionShare share =
      attentionShare(range, C::kWarps * 16, C::kLeastKeys, at.split, at.splits);
  if (at.tile == 0 && at.split == 0 && keyHead == 0) attentionCheckTable(a, batch);
  if ((int)at.split >= share.splits) return;
  const int splits = share.splits;
  const long long end = share.end;

  const AttentionRows<C> keys = attentionRows(a, a.k + t * 8, a.ks, batch, keyHead),
                         values = attentionRows(a, a.v + g * 8, a.vs, batch, keyHead);
  const uint4 zero = make_uint4(0, 0, 0, 0);
  uint4 k[2][D::kChunks], v[4][D::kLoadsAhead ? D::kValueChunks : 1];
  // Keys n * 8 + g of a tile of 16; the last one again where there are no more.
  auto loadKeys = [&](long long tile, long long end) {
#pragma unroll
    for (int n = 0; n < 2; ++n) {
      const Element* from = keys.at(minOf(tile + n * 8 + g, end - 1));
#pragma unroll
      for (int c = 0; c < D::kChunks; ++c)
        k[n][c] = c * 32 + t * 8 < C::kDepth ? ld_global_16(from + c * 32) : zero;
    }
  };
  // Chunk c of the values of the keys 2t, 2t + 1, 2t + 8, 2t + 9.
  auto loadValues = [&](long long tile, long long end, int c, int to) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const long long key = tile + 2 * t + (i & 1) + (i >> 1) * 8;
      v[i][to] = key < end && c * 64 + g * 8 < C::kValueDepth
                     ? ld_global_16(values.at(key) + c * 64)
                     : zero;
    }
  };
  auto loadTile = [&](long long tile, long long end) {
    loadKeys(tile, end);
#pragma unroll
    for (int c = 0; c < D::kValueChunks; ++c) loadValues(tile, end, c, c);
  };
  long long tile = share.begin + warp * 16;
  if constexpr (D::kOldFirst) {
    // A tile is old as a whole or waits.
    const bool old = tile < end && tile + 16 <= offset;
    if (old) loadTile(tile, end);
    grid_dep_wait();
    if (!old && tile < end) loadTile(tile, end);
  } else {
    if (C::kOldKeys) grid_dep_wait();
    if (D::kLoadsAhead && tile < end) loadTile(tile, end);
  }

  // Rows g and g + 8 of the tile: their query, and the row of the mask.
  const long long row0 = firstRow + minOf(g, count - 1), row1 = firstRow + minOf(g + 8, count - 1);
  const long long query[2] = {row0 / C::kGroup, row1 / C::kGroup};
  const long long head[2] = {keyHead * C::kGroup + row0 % C::kGroup,
                             keyHead * C::kGroup + row1 % C::kGroup};
  const typename C::Mask* maskRow[2];
  uint4 q[D::kQueryInShared ? 1 : D::kChunks][2];
  uint4* sharedQuery = (uint4*)(shared + D::kQueryAt);
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    maskRow[h] = a.mask + batch * a.maskBatch + head[h] * a.maskHead + query[h] * a.maskQuery;
    const Element* from = a.q + batch * a.qs.batch + head[h] * a.qs.head + query[h] * a.qs.token;
#pragma unroll
    for (int c = 0; c < D::kChunks; ++c) {
      const int dim = c * 32 + t * 8;
      if (D::kQueryInShared) {
        if (c % C::kWarps == warp)
          sharedQuery[(c * 2 + h) * 32 + lane] = dim < C::kDepth ? ld_global_16(from + dim) : zero;
      } else {
        q[c][h] = dim < C::kDepth ? ld_global_16(from + dim) : zero;
      }
    }
  }
  if (D::kQueryInShared) block_sync();

  frag_c acc[D::kValueChunks * 8];
#pragma unroll
  for (int i = 0; i < D::kValueChunks * 8; ++i) acc[i] = frag_c{{0.0f, 0.0f, 0.0f, 0.0f}};
  float top[2] = {minusInfinity(), minusInfinity()}, sum[2] = {0.0f, 0.0f};

  for (; tile < end; tile += C::kWarps * 16) {
    const long long next = tile + C::kWarps * 16;
    if (!D::kLoadsAhead) loadKeys(tile, end);
    frag_c s[2] = {frag_c{{0.0f, 0.0f, 0.0f, 0.0f}}, frag_c{{0.0f, 0.0f, 0.0f, 0.0f}}};
#pragma unroll
    for (int c = 0; c < D::kChunks; ++c) {
      const uint4 q0 =
          D::kQueryInShared ? sharedQuery[c * 64 + lane] : q[D::kQueryInShared ? 0 : c][0];
      const uint4 q1 =
          D::kQueryInShared ? sharedQuery[c * 64 + 32 + lane] : q[D::kQueryInShared ? 0 : c][1];
      const frag_a low = {{q0.x, q1.x, q0.y, q1.y}}, high = {{q0.z, q1.z, q0.w, q1.w}};
#pragma unroll
      for (int n = 0; n < 2; ++n) {
        mma(Element(), s[n], low, k[n][c].x, k[n][c].y);
        mma(Element(), s[n], high, k[n][c].z, k[n][c].w);
      }
    }
    if (D::kLoadsAhead && next < end) loadKeys(next, end);

    u32 p[2][2];  // [row][keys 2t.. | 2t + 8..]
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      float highest = top[h];
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        float& x = s[e >> 1].r[2 * h + (e & 1)];
        const long long key = tile + (e >> 1) * 8 + 2 * t + (e & 1);
        x = D::Score::ofDot(x);
        if (key >= end || !attentionSees<C>(offset, query[h], key))
          x = minusInfinity();
        else
          x = attentionMasked<C>(a, maskRow[h], x, key);
        highest = fmaxf(highest, x);
      }
      highest = fmaxf(highest, shfl_xor(highest, 1));
      highest = fmaxf(highest, shfl_xor(highest, 2));
      const float shift = shiftOf(highest), rescale = D::Score::exponential(top[h], shift);
      top[h] = highest;
      sum[h] *= rescale;
#pragma unroll
      for (int n = 0; n < 2; ++n) {
        const float e0 = D::Score::exponential(s[n].r[2 * h], shift);
        const float e1 = D::Score::exponential(s[n].r[2 * h + 1], shift);
        sum[h] += e0 + e1;
        p[h][n] = pack2(Element(), e0, e1);
      }
#pragma unroll
      for (int i = 0; i < D::kValueChunks * 8; ++i) {
        acc[i].r[2 * h] *= rescale;
        acc[i].r[2 * h + 1] *= rescale;
      }
    }
    const frag_a weights = {{p[0][0], p[1][0], p[0][1], p[1][1]}};
#pragma unroll
    for (int c = 0; c < D::kValueChunks; ++c) {
      const int held = D::kLoadsAhead ? c : 0;
      if (!D::kLoadsAhead) loadValues(tile, end, c, 0);
      const u32* w[4] = {&v[0][held].x, &v[1][held].x, &v[2][held].x, &v[3][held].x};
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        // Dim i of two keys side by side.
        const int word = i >> 1;
        if (i & 1)
          mma(Element(), acc[c * 8 + i], weights, highHalves(w[0][word], w[1][word]),
              highHalves(w[2][word], w[3][word]));
        else
          mma(Element(), acc[c * 8 + i], weights, lowHalves(w[0][word], w[1][word]),
              lowHalves(w[2][word], w[3][word]));
      }
      if (D::kLoadsAhead && next < end) loadValues(next, end, c, c);
    }
  }

// Over the warps: everybody's maxima and sums first, then the scaled accumulators.
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    sum[h] += shfl_xor(sum[h], 1);
    sum[h] += shfl_xor(sum[h], 2);
    if (t == 0) {
      shared[D::kTopAt + warp * 16 + g + 8 * h] = top[h];
      shared[D::kSumAt + warp * 16 + g + 8 * h] = sum[h];
    }
  }
  block_sync();
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const int row = g + 8 * h;
    float highest = shared[D::kTopAt + row];
#pragma unroll
    for (int w = 1; w < C::kWarps; ++w) highest = fmaxf(highest, shared[D::kTopAt + w * 16 + row]);
    const float w = D::Score::exponential(top[h], shiftOf(highest));
#pragma unroll
    for (int c = 0; c < D::kValueChunks; ++c)
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        // Columns 2t (j = 0, 1) and 2t + 1 of the products are 8 neighbouring dims each.
        const int first = c * 8 + (j & 1) * 4, column = 2 * h + (j >> 1);
        *(float4*)(shared + (warp * 16 + row) * D::kPitch + ((c * 4 + j) * 4 + t) * 4) =
            make_float4(acc[first].r[column] * w, acc[first + 1].r[column] * w,
                        acc[first + 2].r[column] * w, acc[first + 3].r[column] * w);
      }
  }
  block_sync();
  const long long tileIndex = at.pair * at.tiles + at.tile;
  float* partial = partials + ((at.pair * rows + firstRow) * at.splits) * D::kPartial;
  for (int i = threadIdx.x; i < count * D::kSlots; i += D::kThreads) {
    const int row = i / D::kSlots, slot = i % D::kSlots, dim = D::dimOfSlot(slot);
    float highest = minusInfinity(), total = 0.0f;
#pragma unroll
    for (int w = 0; w < C::kWarps; ++w) highest = fmaxf(highest, shared[D::kTopAt + w * 16 + row]);
    float4 x = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll
    for (int w = 0; w < C::kWarps; ++w) {
      total =
          fmaf(shared[D::kSumAt + w * 16 + row],
               D::Score::exponential(shared[D::kTopAt + w * 16 + row], shiftOf(highest)), total);
      x = addScaled(x, *(const float4*)(shared + (w * 16 + row) * D::kPitch + slot * 4), 1.0f);
    }
    if (splits == 1) {
      if (dim < C::kValueDepth) decodeStore(a, batch, keyHead, firstRow + row, dim, x, total);
    } else {
      float* to = partial + ((long long)row * at.splits + at.split) * D::kPartial;
      *(float4*)(to + slot * 4) = x;
      if (slot == 0) {
        to[D::kSlots * 4] = highest;
        to[D::kSlots * 4 + 1] = total;
      }
    }
  }
  if (splits == 1) return;
  if (grid_last_block(counters + tileIndex, (u32)splits))
    decodeCombine(a, partial, shared, batch, keyHead, firstRow, count, splits, at.splits);
}

template <class C>
LT_FN void attentionDecode(const AttentionArguments<C>& a, float* partials, u32* counters) {
  grid_dep_launch();
  if (C::kOverlaps && !C::kOldKeys) grid_dep_wait();
  forEachPiece(blockIdx.y, gridDim.y, a.batches * C::kKeyHeads, [&](long long pair) {
    attentionDecodeTile(a, partials, counters,
                        {pair, blockIdx.x, gridDim.x, blockIdx.z, gridDim.z});
  });
}
