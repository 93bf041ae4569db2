// SPDX-License-Identifier: Apache-2.0
// lathe.top_k: the k largest of each row, descending; equal values keep the order of their indices,
// a NaN counts as the largest. Values are compared as unsigned keys of the same order.
#pragma once
#include "lathe_device.cuh"

template <class T>
struct TopKKey {
  typedef typename lt_if<(element<T>::bits > 32), u64, u32>::type Key;
  static constexpr int kBits = element<T>::bits;

  LT_FN Key of(T x) {
    constexpr Key sign = (Key)1 << (kBits - 1);
    if constexpr (element<T>::is_integer) {
      const Key bits = (Key)x & (Key)(~0ull >> (64 - kBits));
      return element<T>::is_signed ? bits ^ sign : bits;
    } else {
      const Key all = (Key)(~0ull >> (64 - kBits));
      if (is_nan(x)) return all;
      Key bits;
      if constexpr (element<T>::is_small_float)
        bits = x.bits;
      else
        bits = bit_cast<Key>(x);
      if (bits == sign) bits = 0;  // -0 equals 0
      return bits & sign ? all & ~bits : bits | sign;
    }
  }
};

// Rows of up to 1024 and k up to 32: a warp holds a row and takes its best k times.
template <class T, int kColumns, int kTaken>
LT_FN void topKByWarp(T* values, i64* indices, const T* x, i64 rows) {
  typedef typename TopKKey<T>::Key Key;
  constexpr int kPerLane = (kColumns + 31) / 32;
  const int lane = threadIdx.x & 31;
  const i64 row = (i64)blockIdx.x * (blockDim.x >> 5) + (threadIdx.x >> 5);
  if (row >= rows) return;  // the whole warp
  Key key[kPerLane];
  u32 open = 0;  // bit i: element i * 32 + lane is there, and not yet taken
#pragma unroll
  for (int i = 0; i < kPerLane; ++i) {
    const int column = i * 32 + lane;
    key[i] = 0;
    if (column < kColumns) {
      key[i] = TopKKey<T>::of(x[row * kColumns + column]);
      open |= 1u << i;
    }
  }
  for (int n = 0; n < kTaken; ++n) {
    Key best = 0;
    int at = kColumns;  // none
#pragma unroll
    for (int i = 0; i < kPerLane; ++i)
      if ((open >> i & 1) && (at == kColumns || key[i] > best)) {
        best = key[i];
        at = i * 32 + lane;
      }
    int first = at;
#pragma unroll
    for (int m = 16; m; m >>= 1) {
      const Key other = shfl_xor(best, m);
      const int otherAt = shfl_xor(first, m);
      const bool isBetter = otherAt != kColumns && (first == kColumns || other > best ||
                                                    (other == best && otherAt < first));
      best = isBetter ? other : best;
      first = isBetter ? otherAt : first;
    }
    if (first == at) open &= ~(1u << (at >> 5));
    if (lane == 0) {
      values[row * kTaken + n] = x[row * kColumns + first];
      indices[row * kTaken + n] = first;
    }
  }
}

// Any row and k: a block finds the k-th largest key digit by digit (four bits a pass, every thread
// counting for itself), gathers what is larger and the first of what is equal, and sorts those.
struct TopKEntry {
  u64 key;
  i64 index;  // -1: none, after all others
};

LT_FN bool comesBefore(const TopKEntry& a, const TopKEntry& b) {
  if (a.index < 0 || b.index < 0) return a.index >= 0 && b.index < 0;
  return a.key > b.key || (a.key == b.key && a.index < b.index);
}

// `entries`: of this row, a power of two not below k, in shared or global memory.
template <int kThreads, class T>
LT_FN void topKOfRow(T* values, i64* indices, const T* x, i64 columns, i64 k, i64 places,
                     TopKEntry* entries) {
  typedef TopKKey<T> K;
  typedef typename K::Key Key;
  LATHE_SHARED(u32, counts, 16 * kThreads);
  LATHE_SHARED(u32, totals, 16);
  LATHE_SHARED(u32, warpCounts, kThreads / 32);
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;

  // Keys whose bits above `shift` are those of `prefix` still contend for `wanted` places.
  Key prefix = 0;
  i64 wanted = k;
  constexpr int kTop = (K::kBits + 3) / 4 * 4 - 4;
  for (int shift = kTop; shift >= 0; shift -= 4) {
#pragma unroll
    for (int d = 0; d < 16; ++d) counts[d * kThreads + threadIdx.x] = 0;
    for (i64 i = threadIdx.x; i < columns; i += kThreads) {
      const Key key = K::of(x[i]);
      if (shift == kTop || key >> shift >> 4 == prefix >> shift >> 4)
        ++counts[((int)(key >> shift) & 15) * kThreads + threadIdx.x];
    }
    block_sync();
    for (int d = warp; d < 16; d += kThreads / 32) {
      u32 sum = 0;
      for (int i = lane; i < kThreads; i += 32) sum += counts[d * kThreads + i];
      sum = warp_sum(sum);
      if (lane == 0) totals[d] = sum;
    }
    block_sync();
    int digit = 15;
    while (digit > 0 && (i64)totals[digit] < wanted) wanted -= totals[digit--];
    prefix |= (Key)digit << shift;
  }

  // `prefix` is the k-th largest key, of which the first `wanted` are taken. In index order: the
  // larger ones from the front, the equal ones behind the last of those.
  i64 larger = 0, equal = 0;
  const i64 allLarger = k - wanted;
  for (i64 i = threadIdx.x; i < places; i += kThreads)
    if (i >= k) entries[i] = TopKEntry{0, -1};
  for (i64 first = 0; first < columns; first += kThreads) {
    const i64 i = first + threadIdx.x;
    const Key key = i < columns ? K::of(x[i]) : 0;
    const bool isLarger = i < columns && key > prefix, isEqual = i < columns && key == prefix;
    const u32 below = (1u << lane) - 1;
    const u32 largerLanes = warp_ballot(isLarger), equalLanes = warp_ballot(isEqual);
    // Both counts in one word: neither exceeds the block's threads.
    if (lane == 0) warpCounts[warp] = (u32)(bitCount(largerLanes) | bitCount(equalLanes) << 16);
    block_sync();
    u32 before = 0, all = 0;
#pragma unroll
    for (int w = 0; w < kThreads / 32; ++w) {
      if (w < warp) before += warpCounts[w];
      all += warpCounts[w];
    }
    block_sync();
    i64 place = -1;
    if (isLarger) place = larger + (before & 0xffff) + bitCount(largerLanes & below);
    if (isEqual) {
      const i64 nth = equal + (before >> 16) + bitCount(equalLanes & below);
      if (nth < wanted) place = allLarger + nth;
    }
    if (place >= 0) entries[place] = TopKEntry{key, i};
    larger += all & 0xffff;
    equal += all >> 16;
  }
  block_sync();
  for (i64 size = 2; size <= places; size *= 2)
    for (i64 distance = size / 2; distance > 0; distance /= 2) {
      for (i64 n = threadIdx.x; n < places / 2; n += kThreads) {
        const i64 low = n / distance * distance * 2 + n % distance, high = low + distance;
        const TopKEntry a = entries[low], b = entries[high];
        const bool ascends = (low & size) == 0;
        if (ascends ? comesBefore(b, a) : comesBefore(a, b)) {
          entries[low] = b;
          entries[high] = a;
        }
      }
      block_sync();
    }
  for (i64 i = threadIdx.x; i < k; i += kThreads) {
    const i64 index = entries[i].index;
    values[i] = x[index];
    indices[i] = index;
  }
  block_sync();
}
