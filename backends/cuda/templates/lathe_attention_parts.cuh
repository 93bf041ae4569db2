// SPDX-License-Identifier: Apache-2.0
// What the attention kernels share: operands, which keys a query sees, scores, rows without keys.
//
// A kernel's Config says statically:
//   Element, Mask, Position         types in memory; Mask and Position also where there is none
//   kDepth, kValueDepth             of keys and of values
//   kKeyHeads, kGroup               key heads; query heads per key head
//   kCausal, kWindow                causal_none .. causal_positions; 0: no window
//   kMask, kMaskedRow               kMaskNone .. kMaskAdded; masked_row_nan .. masked_row_uniform
//   kScale, kSoftcap                float, or double for f64; no softcap: 0
//   kOverlaps                       starts before the previous kernel has ended
//   Entry, kBlock                   entries of the table; keys of a block, 0: keys lie in a row
#pragma once
#include "lathe_device.cuh"

enum { causal_none, causal_top_left, causal_bottom_right, causal_positions };
enum { kMaskNone, kMaskBool, kMaskAdded };
enum { masked_row_nan, masked_row_zero, masked_row_uniform };

struct AttentionStrides {  // in elements; the last dim is dense
  long long batch, head, token;
};

template <class C>
struct AttentionArguments {
  const typename C::Element *q, *k, *v;
  typename C::Element* y;
  const typename C::Mask* mask;
  const typename C::Position* positions;
  long long batches, queries, keys;
  AttentionStrides qs, ks, vs, ys;  // of keys and values in blocks, `batch` is that of a block
  long long maskBatch, maskHead, maskQuery, maskKey;
  // With kBlock: the blocks of each batch, of which the status hears where there is none such.
  const typename C::Entry* table;
  i64* status;
  long long entries, blocks;
};

// The keys or values of one head.
template <class C>
struct AttentionRows {
  const typename C::Element* head;
  long long token, block, blocks;
  const typename C::Entry* table;

  LT_MEMBER const typename C::Element* at(long long key) const {
    if constexpr (C::kBlock == 0) {
      return head + key * token;
    } else {
      const long long entry = (long long)table[key / C::kBlock];
      // What there is not is told elsewhere.
      const long long found = entry >= 0 && entry < blocks ? entry : 0;
      return head + found * block + key % C::kBlock * token;
    }
  }
};
template <class C>
LT_FN AttentionRows<C> attentionRows(const AttentionArguments<C>& a,
                                     const typename C::Element* from, const AttentionStrides& s,
                                     long long batch, long long keyHead) {
  if constexpr (C::kBlock == 0)
    return {from + batch * s.batch + keyHead * s.head, s.token, 0, 0, nullptr};
  else
    return {from + keyHead * s.head, s.token, s.batch, a.blocks, a.table + batch * a.entries};
}

// Tells the status of entries of the table that name no block.
template <class C>
LT_FN void attentionCheckTable(const AttentionArguments<C>& a, long long batch) {
  if constexpr (C::kBlock != 0) {
    for (long long i = threadIdx.x; i < a.entries; i += blockDim.x) {
      const long long entry = (long long)a.table[batch * a.entries + i];
      if (entry < 0 || entry >= a.blocks) lt_report_index(a.status, entry);
    }
  }
}

// What is left of `count` pieces of work for this block, one of `blocks` along an axis of the grid:
// the axis may be shorter than the work, as no second or third one has more than 65,535 blocks.
template <class Work>
LT_FN void forEachPiece(u32 block, u32 blocks, long long count, Work work) {
  for (long long i = block; i < count; i += blocks) {
    work(i);
    if (i + blocks < count) block_sync();  // shared memory is free again
  }
}

LT_FN long long minOf(long long a, long long b) { return a < b ? a : b; }
LT_FN long long maxOf(long long a, long long b) { return a > b ? a : b; }
LT_FN float minusInfinity() { return lowest_of<float>(); }

// Query i sees the keys j <= i + offset. Positions may be anything: what lies beyond the keys is
// as good as just beyond them.
template <class C>
LT_FN long long attentionOffset(const AttentionArguments<C>& a, long long batch) {
  if (C::kCausal == causal_bottom_right) return a.keys - a.queries;
  if (C::kCausal != causal_positions) return 0;
  const long long position = (long long)a.positions[batch];
  return maxOf(minOf(position, a.keys + C::kWindow), -a.queries);
}

// The keys [first, end) that the queries from .. to can see at most.
struct AttentionRange {
  long long first, end;
};
template <class C>
LT_FN AttentionRange attentionRange(const AttentionArguments<C>& a, long long offset,
                                    long long from, long long to) {
  AttentionRange r = {0, a.keys};
  if (C::kCausal != causal_none) {
    r.end = maxOf(minOf(a.keys, to + offset + 1), 0);
    if (C::kWindow) r.first = minOf(maxOf(0, from + offset - C::kWindow + 1), r.end);
  }
  return r;
}

// The part of the keys that block number `block` of `blocks` takes when they are shared out in
// multiples of `step`, at least `least` each. Blocks from `splits` on have nothing to do.
struct AttentionShare {
  long long begin, end;
  int splits;
};
LT_FN AttentionShare attentionShare(AttentionRange range, int step, long long least, u32 block,
                                    u32 blocks) {
  // In 32 bits, where a division is a few instructions: there are fewer keys than 2^31.
  const u32 span = (u32)(range.end - range.first), steps = (u32)step;
  const u32 even = (span + blocks - 1) / blocks;
  u32 share = (even + steps - 1) / steps * steps;
  if (share < (u32)least) share = (u32)least;
  AttentionShare s;
  s.splits = span > share ? (int)((span + share - 1) / share) : 1;
  s.begin = range.first + (long long)block * share;
  s.end = minOf(s.begin + share, range.end);
  return s;
}

template <class C>
LT_FN bool attentionSees(long long offset, long long query, long long key) {
  if (C::kCausal == causal_none) return true;
  const long long last = query + offset;
  return key <= last && (C::kWindow == 0 || key > last - C::kWindow);
}

// softcap(scale * dot), in natural units.
template <class C, class Real>
LT_FN Real attentionScore(Real dot) {
  const Real x = dot * (Real)C::kScale;
  if (C::kSoftcap == 0) return x;
  return (Real)C::kSoftcap * math_tanh(x / (Real)C::kSoftcap);
}

// With the mask, whose row starts at `row`.
template <class C, class Real>
LT_FN Real attentionMasked(const AttentionArguments<C>& a, const typename C::Mask* row, Real score,
                           long long key) {
  if (C::kMask == kMaskBool) return to_bool(row[key * a.maskKey]) ? score : lowest_of<Real>();
  if (C::kMask == kMaskAdded) return score + convert<Real>(row[key * a.maskKey]);
  return score;
}

// -inf - (-inf) is NaN: rows that have seen no key are shifted by 0.
template <class Real>
LT_FN Real shiftOf(Real top) {
  return top == lowest_of<Real>() ? (Real)0 : top;
}

// Element `dim` of the result of a row whose weights sum to 0: every key is hidden. `v` is its
// head's values.
template <class C>
LT_FN typename element<typename C::Element>::compute attentionWithoutKeys(
    const AttentionArguments<C>& a, const AttentionRows<C>& v, int dim) {
  typedef typename element<typename C::Element>::compute Real;
  if (C::kMaskedRow == masked_row_zero || a.keys == 0) return 0;
  if (C::kMaskedRow == masked_row_nan) return bit_cast<float>(0x7fffffffu);
  Real sum = 0;
  for (long long j = 0; j < a.keys; ++j) sum += convert<Real>(v.at(j)[dim]);
  return sum / (Real)a.keys;
}

// ---- kernels on tensor cores ------------------------------------------------------------------
// Scores are kept as dot products, and scaled inside the exponential, where nothing but hiding
// keys comes between; else in natural units.
template <class C>
struct AttentionUnits {
  static constexpr bool kRaw = C::kMask != kMaskAdded && C::kSoftcap == 0 && C::kScale > 0;
  static constexpr float kLog2e = 1.4426950408889634f;
  static constexpr float kFactor = kRaw ? (float)C::kScale * kLog2e : kLog2e;

  LT_FN float ofDot(float dot) { return kRaw ? dot : attentionScore<C>(dot); }
  // exp(score - top). The difference comes first: the finite score of a masked key may be so large
  // that it overflows when scaled.
  LT_FN float exponential(float score, float top) { return fast_ex2((score - top) * kFactor); }
};

LT_FN void mma(bf16, frag_c& c, const frag_a& a, u32 b0, u32 b1 LT_FROM) {
  mma_bf16(c, a, b0, b1 LT_PASS);
}
LT_FN void mma(f16, frag_c& c, const frag_a& a, u32 b0, u32 b1 LT_FROM) {
  mma_f16(c, a, b0, b1 LT_PASS);
}
LT_FN u32 pack2(bf16, float low, float high) { return pack_bf16x2(low, high); }
LT_FN u32 pack2(f16, float low, float high) { return pack_f16x2(low, high); }
