// SPDX-License-Identifier: Apache-2.0
// y[m, n] = sum over k of x[m, k] w[n, k] for few rows m: bound by reading w once.
//
// A warp works on a group of columns and a slice of k. It holds two batches of weights in
// registers: while one is multiplied, the other is on its way, across the borders of groups, so
// that a warp always has kBatch to 2 * kBatch loads of 16 bytes per lane under way. Blocks stride
// over the groups (gridDim.x may be smaller than their number), gridDim.y blocks share k. The first
// two batches are requested before the input exists (griddepcontrol.wait).
//
// Two ways to multiply: `GemvDot` (a lane per 16 bytes of a column, f32 fused multiply-adds) and
// `GemvMma` (weights as the 16-row operand of mma.sync, rows of x as its 8 columns: one pass over
// the weights serves 8 rows at the price of one). Both read whole lines of 128 bytes: requests for
// half of one reach two thirds of the memory's bandwidth (measured on an H200).
//
// Config: Input; kN (columns, or pairs of columns if kPairs), kK, kRows (largest m), kColumns (of a
// group, even if kPairs; GemvMma takes groups of 16 and 4 loads a step), kWarpsN, kWarpsK, kSplits
// (= gridDim.y), kBatch (steps of k in a batch), kSource (GemvSource), kPairs, kConstantWeights (w
// is not written by an earlier kernel of the program), kSumPairs (0, or of how many adjacent pairs
// the sum goes along with each: those of a head whose norm the hooks apply).
#pragma once
#include "lathe_matmul.cuh"
#include "lathe_matmul_plan.cuh"

/// Where the rows of x come from.
enum GemvSource {
  kStagedInput,  // Hooks::stage computes them into shared memory; Hooks::prefetch, before the wait
  kCopiedInput,  // hooks.x, copied to shared memory
  kGlobalInput,  // hooks.x, read where it lies
  // The blocks of a cluster compute a part each, in Hooks::compute, which waits for the previous
  // kernel on its way; Hooks::stage then gathers the parts.
  kClusterInput,
};

template <class T>
struct SharedRows {
  const T* x;
  long long stride;
  LT_FN T one(const SharedRows& r, long long m, int k) { return r.x[m * r.stride + k]; }
  LT_FN uint4 chunk(const SharedRows& r, long long m, int k) {
    return *(const uint4*)(r.x + m * r.stride + k);
  }
};
template <class T, int kK>
struct GlobalRows {
  const T* x;
  LT_FN T one(const GlobalRows& r, long long m, int k) { return k < kK ? r.x[m * kK + k] : T{}; }
  LT_FN uint4 chunk(const GlobalRows& r, long long m, int k) {
    return k < kK ? ld_global_16(r.x + m * kK + k) : make_uint4(0, 0, 0, 0);
  }
};

/// Column number `c` of a group; those past the end repeat the last one.
template <class Config, class Hooks, int kColumns>
LT_FN long long gemvColumn(long long group, int c) {
  constexpr int kHere = Config::kPairs ? kColumns / 2 : kColumns;
  long long index = group * kHere + c % kHere;
  if (index >= Config::kN) index = Config::kN - 1;
  if constexpr (Config::kPairs)
    return c < kHere ? Hooks::firstColumn(index) : Hooks::secondColumn(index);
  else
    return index;
}

// 16 bytes of weights. The read-only path is for those that no kernel before this one makes.
template <class C>
LT_FN uint4 gemvWeights(const typename C::Input* at) {
  if constexpr (C::kConstantWeights)
    return ld_global_nc_16(at);
  else
    return ld_global_16(at);
}

template <class C>
struct GemvDot {
  typedef typename C::Input Input;
  // Rows whose length is no multiple of 16 bytes are read element by element.
  static constexpr int kWidth = gemvWidth(C::kK, (int)sizeof(Input));
  static constexpr int kColumns = C::kColumns, kRows = C::kRows, kStep = 32 * kWidth;
  static constexpr int kCovered = gemvCoveredK(C::kK, kStep, C::kWarpsK* C::kSplits, C::kBatch);
  static constexpr int kStride = gemvDotStride(kCovered, (int)sizeof(Input));
  static_assert(kColumns * kRows <= 32 || (C::kPairs && kColumns * kRows <= 64),
                "a lane for every result");
  struct Batch {
    uint4 chunks[C::kBatch][kColumns];
  };
  struct Sums {
    float v[kColumns][kRows];
  };

  LT_FN void clear(Sums& sums) {
#pragma unroll
    for (int c = 0; c < kColumns; ++c)
#pragma unroll
      for (int m = 0; m < kRows; ++m) sums.v[c][m] = 0.0f;
  }
  template <class Hooks>
  LT_FN void load(Batch& batch, const Input* w, long long group, int k) {
    const int first = k + (int)(threadIdx.x & 31) * kWidth;
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
      const Input* row = w + gemvColumn<C, Hooks, kColumns>(group, c) * C::kK;
#pragma unroll
      for (int u = 0; u < C::kBatch; ++u) {
        const int at = first + u * kStep;
        uint4 chunk = make_uint4(0, 0, 0, 0);
        if (kCovered == C::kK || at < C::kK) {
          if constexpr (kWidth > 1)
            chunk = gemvWeights<C>(row + at);
          else
            chunk.x = __float_as_uint(MatmulElement<Input>::wide(row[at]));
        }
        batch.chunks[u][c] = chunk;
      }
    }
  }
  template <class Rows>
  LT_FN void add(Sums& sums, const Batch& batch, const Rows& x, int k, long long rows) {
    const int first = k + (int)(threadIdx.x & 31) * kWidth;
#pragma unroll
    for (int u = 0; u < C::kBatch; ++u) {
      vec<float, kWidth> weights[kColumns];
#pragma unroll
      for (int c = 0; c < kColumns; ++c) widen(weights[c], batch.chunks[u][c]);
#pragma unroll
      for (int m = 0; m < kRows; ++m) {
        const long long row = m < rows ? m : rows - 1;
        vec<float, kWidth> values;
        if constexpr (kWidth > 1)
          values = widenChunk<Input>(Rows::chunk(x, row, first + u * kStep));
        else
          values[0] = MatmulElement<Input>::wide(Rows::one(x, row, first + u * kStep));
#pragma unroll
        for (int c = 0; c < kColumns; ++c)
#pragma unroll
          for (int i = 0; i < kWidth; ++i)
            sums.v[c][m] = fmaf(weights[c][i], values[i], sums.v[c][m]);
      }
    }
  }
  /// Calls `each(column, row, value, second)` for the results of this lane; `second` belongs to the
  /// column half a group further on.
  template <class Each>
  LT_FN void results(Sums& sums, const Each& each) {
    constexpr int kHere = C::kPairs ? kColumns / 2 : kColumns;
    const int lane = (int)(threadIdx.x & 31);
    float value = 0.0f, second = 0.0f;
#pragma unroll
    for (int c = 0; c < kColumns; ++c)
#pragma unroll
      for (int m = 0; m < kRows; ++m) {
        const float sum = warp_sum(sums.v[c][m]);
        if (lane != c % kHere * kRows + m) continue;
        if (c < kHere)
          value = sum;
        else
          second = sum;
      }
    if (lane < kHere * kRows) each(lane / kRows, lane % kRows, value, second);
  }

 private:
  LT_FN void widen(vec<float, kWidth>& to, uint4 chunk) {
    if constexpr (kWidth > 1)
      to = widenChunk<Input>(chunk);
    else
      to[0] = __uint_as_float(chunk.x);
  }
};

// The operand of an mma has 16 rows, of each of which four lanes read 64 bytes. Here two of them
// are the halves of a line of one column: rows 2r and 2r + 1 of the operand are elements 0 to 31
// and 32 to 63 of column r. Each is multiplied with both halves of a line of x, and of the two
// products the one that belongs together counts.
template <class C>
struct GemvMma {
  typedef typename C::Input Input;
  static constexpr int kColumns = 16, kTiles = ceilDiv(C::kRows, 8), kRows = 8 * kTiles, kStep = 64;
  static constexpr int kCovered = gemvCoveredK(C::kK, kStep, C::kWarpsK* C::kSplits, C::kBatch);
  static constexpr int kStride = gemvMmaStride(kCovered);
  struct Batch {
    uint4 chunks[C::kBatch][4];  // of columns lane / 8 + 0, 4, 8 and 12
  };
  struct Sums {
    frag_c v[kTiles][2][2];  // by the half of the group's columns, by the half of a line of x
  };

  LT_FN void clear(Sums& sums) {
#pragma unroll
    for (int i = 0; i < kTiles; ++i)
#pragma unroll
      for (int s = 0; s < 2; ++s)
#pragma unroll
        for (int h = 0; h < 2; ++h) sums.v[i][s][h] = frag_c{{0.0f, 0.0f, 0.0f, 0.0f}};
  }
  // Eight lanes read a line, 8 neighbours of k each. The fragments want other k, but a sum over k
  // may be taken in any order: the two operands are permuted alike.
  template <class Hooks>
  LT_FN void load(Batch& batch, const Input* w, long long group, int k) {
    const int lane = (int)(threadIdx.x & 31), first = k + (lane & 7) * 8;
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      const Input* row = w + gemvColumn<C, Hooks, 16>(group, (lane >> 3) + 4 * c) * C::kK;
#pragma unroll
      for (int u = 0; u < C::kBatch; ++u) {
        const int at = first + u * kStep;
        const bool inside = kCovered == C::kK || at < C::kK;
        batch.chunks[u][c] = inside ? gemvWeights<C>(row + at) : make_uint4(0, 0, 0, 0);
      }
    }
  }
  template <class Rows>
  LT_FN void add(Sums& sums, const Batch& batch, const Rows& x, int k, long long rows) {
    const int lane = (int)(threadIdx.x & 31), first = k + (lane & 3) * 8;
#pragma unroll
    for (int u = 0; u < C::kBatch; ++u) {
#pragma unroll
      for (int i = 0; i < kTiles; ++i) {
        const long long m = 8 * i + (lane >> 2), row = m < rows ? m : rows - 1;
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          const uint4 b = Rows::chunk(x, row, first + u * kStep + h * 32);
#pragma unroll
          for (int s = 0; s < 2; ++s) {
            const uint4 low = batch.chunks[u][2 * s], high = batch.chunks[u][2 * s + 1];
            const frag_a even{{low.x, high.x, low.y, high.y}}, odd{{low.z, high.z, low.w, high.w}};
            MatmulElement<Input>::mma(sums.v[i][s][h], even, b.x, b.y);
            MatmulElement<Input>::mma(sums.v[i][s][h], odd, b.z, b.w);
          }
        }
      }
    }
  }
  template <class Each>
  LT_FN void results(Sums& sums, const Each& each) {
    const int lane = (int)(threadIdx.x & 31), g = lane >> 2, half = g & 1;
#pragma unroll
    for (int i = 0; i < kTiles; ++i)
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        float value[2];  // of columns g / 2 + 4 * half and 8 behind it
#pragma unroll
        for (int s = 0; s < 2; ++s) {
          const frag_c &first = sums.v[i][s][0], &second = sums.v[i][s][1];
          float low = half ? second.r[e] : first.r[e];
          float high = half ? second.r[2 + e] : first.r[2 + e];
          low += shfl_xor(low, 4);
          high += shfl_xor(high, 4);
          value[s] = half ? high : low;
        }
        const int column = (g >> 1) + 4 * half, row = 8 * i + 2 * (lane & 3) + e;
        each(column, row, value[0], value[1]);
        if constexpr (!C::kPairs) each(column + 8, row, value[1], 0.0f);
      }
  }
};

/// The sums of a group meet in shared memory: those of all lanes of a warp, of the warps that share
/// k, and through `partial` of the blocks that do. From there the hooks take them, in one copy of
/// their code.
template <class C, class Way, class Hooks>
struct GemvJoin {
  static constexpr int kHere = C::kPairs ? Way::kColumns / 2 : Way::kColumns;
  static constexpr int kHalves = C::kPairs ? 2 : 1, kSlots = kHere * Way::kRows;
  static constexpr int kWarps = C::kWarpsN * C::kWarpsK, kThreads = 32 * kWarps;
  static constexpr int kFloats = kWarps * kHalves * kSlots;
  // Sums over kSumPairs adjacent pairs: several in a block, or one in a cluster of blocks.
  static constexpr int kSumPairs = C::kSumPairs, kBlockPairs = kHere * C::kWarpsN;
  static constexpr int kTermsHere = gemvTermsHere(kBlockPairs, kSumPairs);
  static constexpr int kCluster = gemvCluster(kBlockPairs, kSumPairs);
  static constexpr int kTotals = kSumPairs ? kBlockPairs / kTermsHere * Way::kRows : 0;
  static constexpr int kShared = kFloats + kTotals;  // floats that `join` takes
  static_assert(!kSumPairs || (C::kPairs && C::kSplits == 1 && kCluster > 0), "no whole sums");
  static constexpr long long kGroups = ceilDiv((long long)C::kN, (long long)kHere);
  // A warp that shares its columns with nobody needs no barrier of the block.
  static constexpr bool kAlone = C::kWarpsK == 1 && C::kSplits == 1 && !kSumPairs;
  typedef MatmulEarly<Hooks> Early;
  typedef typename Early::Values Values;
  // Where a thread finishes one result of a block at most, what belongs to it comes early.
  static constexpr bool kRequests =
      Early::kAny && C::kSplits == 1 && (kAlone ? kSlots <= 32 : C::kWarpsN * kSlots <= kThreads);

  LT_FN int firstSlot() {
    return kAlone ? (int)warp_id() * kSlots + (int)lane_id() : (int)threadIdx.x;
  }
  LT_FN int endOfSlots() { return (kAlone ? (int)warp_id() + 1 : C::kWarpsN) * kSlots; }
  // Of the result of block number `block` that this thread finishes.
  LT_FN Values request(const Hooks& hooks, long long block, long long rows) {
    if constexpr (kRequests) {
      const int i = firstSlot(), slot = i % kSlots;
      const long long index = (block * C::kWarpsN + i / kSlots) * kHere + slot / Way::kRows;
      const long long row = slot % Way::kRows;
      if (i < endOfSlots() && row < rows && index < C::kN) return Early::request(hooks, row, index);
    }
    return Values{};
  }

  // Called by all threads of the block for the groups of block number `block`. Two calls in a row
  // use different `parts` of kShared: the second may write while the first is still read.
  LT_FN void join(const Hooks& hooks, typename Way::Sums& sums, const Values& values, float* parts,
                  long long block, long long rows, float* partial, u32* counters) {
    const int warp = (int)warp_id();
    float* own = parts + warp * kHalves * kSlots;
    Way::results(sums, [&](int column, int row, float first, float second) {
      own[column * Way::kRows + row] = first;
      if constexpr (C::kPairs) own[kSlots + column * Way::kRows + row] = second;
    });
    if constexpr (kAlone)
      warp_sync();
    else
      block_sync();
    const int begin = firstSlot(), end = endOfSlots();
    if constexpr (kSumPairs > 0)
      finishWithSums(hooks, values, parts, begin, end, block, rows);
    else
      finishSlots<kAlone ? 32 : kThreads>(hooks, values, parts, begin, end, block, rows, partial);
    if constexpr (C::kSplits > 1)
      if (grid_last_block(counters + block, C::kSplits)) finish(hooks, block, rows, partial);
  }

 private:
  template <int kStep>
  LT_FN void finishSlots(const Hooks& hooks, const Values& values, const float* parts, int begin,
                         int end, long long block, long long rows, float* partial) {
#pragma unroll 1
    for (int i = begin; i < end; i += kStep) {
      const int n = i / kSlots, slot = i % kSlots;
      float v[kHalves];
      add(v, parts, n, slot);
      const long long group = block * C::kWarpsN + n;
      if constexpr (C::kSplits == 1) {
        store(hooks, values, group, slot, rows, v);
      } else {
#pragma unroll
        for (int h = 0; h < kHalves; ++h) *place(partial, (int)blockIdx.y, group, h, slot) = v[h];
      }
    }
  }
  // Of the warps that share k.
  LT_FN void add(float (&v)[kHalves], const float* parts, int n, int slot) {
#pragma unroll
    for (int h = 0; h < kHalves; ++h) {
      v[h] = parts[(n * kHalves + h) * kSlots + slot];
#pragma unroll
      for (int q = 1; q < C::kWarpsK; ++q)
        v[h] += parts[((q * C::kWarpsN + n) * kHalves + h) * kSlots + slot];
    }
  }
  // First the terms of all pairs, then the sums of those here, then the pairs with the whole sums.
  // Slot i of a block belongs to its pair i / kRows.
  LT_FN void finishWithSums(const Hooks& hooks, const Values& values, float* parts, int begin,
                            int end, long long block, long long rows) {
    constexpr int kRows = Way::kRows;
    LATHE_SHARED(float, terms, C::kWarpsN* kSlots);
    float* totals = parts + kFloats;
#pragma unroll 1
    for (int i = begin; i < end; i += kThreads) {
      const int n = i / kSlots, slot = i % kSlots;
      float v[kHalves];
      add(v, parts, n, slot);
      terms[i] = Hooks::term(v[0], v[1]);
#pragma unroll
      for (int h = 0; h < kHalves; ++h) parts[(n * kHalves + h) * kSlots + slot] = v[h];
    }
    block_sync();
#pragma unroll 1
    for (int t = (int)warp_id(); t < kTotals; t += kWarps) {
      float sum = 0.0f;
      for (int p = (int)lane_id(); p < kTermsHere; p += 32)
        sum += terms[(t / kRows * kTermsHere + p) * kRows + t % kRows];
      sum = warp_sum(sum);
      if (lane_id() == 0) totals[t] = sum;
    }
    if constexpr (kCluster > 1)
      cluster_sync();
    else
      block_sync();
#pragma unroll 1
    for (int i = begin; i < end; i += kThreads) {
      const int n = i / kSlots, slot = i % kSlots, t = i / kRows / kTermsHere * kRows + i % kRows;
      float sum = 0.0f;
      if constexpr (kCluster > 1) {
#pragma unroll
        for (int r = 0; r < kCluster; ++r) sum += cluster_read(totals + t, (u32)r);
      } else {
        sum = totals[t];
      }
      const float v[kHalves] = {parts[n * kHalves * kSlots + slot],
                                parts[(n * kHalves + 1) * kSlots + slot]};
      store(hooks, values, block * C::kWarpsN + n, slot, rows, v, sum);
    }
  }
  LT_FN void store(const Hooks& hooks, const Values& values, long long group, int slot,
                   long long rows, const float (&v)[kHalves], float sum = 0.0f) {
    const long long index = group * kHere + slot / Way::kRows, row = slot % Way::kRows;
    if (row >= rows || index >= C::kN) return;
    if constexpr (Early::kAny) {
      const Values own = kRequests ? values : Early::request(hooks, row, index);
      if constexpr (kSumPairs > 0)
        hooks.storePair(row, index, v[0], v[1], sum, own);
      else if constexpr (C::kPairs)
        hooks.storePair(row, index, v[0], v[1], own);
      else
        hooks.store(row, index, v[0], own);
    } else if constexpr (kSumPairs > 0) {
      hooks.storePair(row, index, v[0], v[1], sum);
    } else if constexpr (C::kPairs) {
      hooks.storePair(row, index, v[0], v[1]);
    } else {
      hooks.store(row, index, v[0]);
    }
  }
  LT_FN float* place(float* partial, int split, long long group, int half, int slot) {
    constexpr long long kPadded = ceilDiv(kGroups, (long long)C::kWarpsN) * C::kWarpsN;
    return partial + ((split * kPadded + group) * kHalves + half) * kSlots + slot;
  }
  // The block that comes last adds in the order of the splits: the result does not depend on which.
  LT_FN void finish(const Hooks& hooks, long long block, long long rows, float* partial) {
#pragma unroll 1
    for (int i = (int)threadIdx.x; i < C::kWarpsN * kSlots; i += kThreads) {
      const int slot = i % kSlots;
      const long long group = block * C::kWarpsN + i / kSlots;
      float v[kHalves] = {};
      for (int split = 0; split < C::kSplits; ++split)
#pragma unroll
        for (int h = 0; h < kHalves; ++h) v[h] += *place(partial, split, group, h, slot);
      store(hooks, Values{}, group, slot, rows, v);
    }
  }
};

/// All rows of x into shared memory, zeros behind kK.
template <class C, class Way, class Hooks>
LT_FN void gemvStage(const Hooks& hooks, typename C::Input* to, long long rows) {
  constexpr int kThreads = 32 * C::kWarpsN * C::kWarpsK;
  typedef typename C::Input Input;
  if constexpr (C::kSource == kStagedInput || C::kSource == kClusterInput) {
    for (long long m = 0; m < rows; ++m) hooks.stage(m, to + m * Way::kStride);
  } else if constexpr (C::kK * sizeof(Input) % 16 == 0) {
    constexpr int kWidth = 16 / (int)sizeof(Input), kChunks = C::kK / kWidth;
    constexpr int kEach = ceilDiv(kChunks, kThreads);  // chunks of one row that a thread copies
    if constexpr (C::kRows == 1 && kEach <= 4) {
      // All are requested before the first one is there: one latency, not one for each. More would
      // not fit into the registers beside two batches of weights.
      uint4 chunks[kEach];
#pragma unroll
      for (int j = 0; j < kEach; ++j) {
        const int i = (int)threadIdx.x + j * kThreads;
        if (i < kChunks) chunks[j] = ld_global_16(hooks.x + i * kWidth);
      }
#pragma unroll
      for (int j = 0; j < kEach; ++j) {
        const int i = (int)threadIdx.x + j * kThreads;
        if (i < kChunks) *(uint4*)(to + i * kWidth) = chunks[j];
      }
    } else {
      for (int i = (int)threadIdx.x; i < (int)rows * kChunks; i += kThreads)
        *(uint4*)(to + i / kChunks * Way::kStride + i % kChunks * kWidth) =
            ld_global_16(hooks.x + (long long)i * kWidth);
    }
  } else {
    for (int i = (int)threadIdx.x; i < (int)rows * C::kK; i += kThreads)
      to[i / C::kK * Way::kStride + i % C::kK] = hooks.x[i];
  }
  if constexpr (Way::kStride > C::kK) {
    constexpr int kTail = Way::kStride - C::kK;
    for (int i = (int)threadIdx.x; i < (int)rows * kTail; i += kThreads)
      to[i / kTail * Way::kStride + C::kK + i % kTail] = Input{};
  }
}

/// The kernel's body. Multiply: GemvDot or GemvMma. `partial` and `counters` are used only
/// with kSplits > 1 (sizes: lathe_matmul_plan.cuh); counters are zero before.
template <template <class> class Multiply, class C, class Hooks>
LT_FN void gemv(const Hooks& hooks, const typename C::Input* __restrict__ w, long long rows,
                float* partial, u32* counters) {
  typedef Multiply<C> Way;
  typedef typename C::Input Input;
  typedef GemvJoin<C, Way, Hooks> Join;
  constexpr int kBatchK = C::kBatch * Way::kStep, kSlices = C::kWarpsK * C::kSplits;
  constexpr int kBatches = Way::kCovered / (kSlices * kBatchK);
  constexpr long long kBlocks = ceilDiv(Join::kGroups, (long long)C::kWarpsN);
  LATHE_DYN_SHARED(shared);
  LATHE_SHARED(float, parts, 2 * Join::kShared);

  const int warp = (int)(threadIdx.x >> 5);
  const int k0 = ((int)blockIdx.y * C::kWarpsK + warp / C::kWarpsN) * kBatches * kBatchK;
  // In 32 bits wherever they are enough: the first request waits for this division.
  typedef typename lt_if<(kBlocks < 1ll << 31), u32, u64>::type Count;
  const int mine = (int)(((Count)kBlocks + (gridDim.x - 1 - blockIdx.x)) / gridDim.x);
  const int total = rows > 0 ? mine * kBatches : 0;
  auto blockOf = [&](int number) {
    return blockIdx.x + (long long)(number / kBatches) * gridDim.x;
  };
  auto fetch = [&](typename Way::Batch& batch, int number) {
    if (number < total)
      Way::template load<Hooks>(batch, w, blockOf(number) * C::kWarpsN + warp % C::kWarpsN,
                                k0 + number % kBatches * kBatchK);
  };
  typename Way::Sums sums;
  // What belongs to the results of a block comes as early as its weights: where a batch is all of a
  // block, two blocks ahead.
  constexpr int kAhead = kBatches == 1 ? 2 : 1;
  typename Join::Values own[kAhead] = {};
  auto use = [&](const typename Way::Batch& batch, typename Join::Values& values, int number,
                 const auto& x) {
    if (number % kBatches == 0) Way::clear(sums);
    Way::add(sums, batch, x, k0 + number % kBatches * kBatchK, rows);
    if (number % kBatches != kBatches - 1) return;
    Join::join(hooks, sums, values, parts + (number / kBatches & 1) * Join::kShared,
               blockOf(number), rows, partial, counters);
    if (number + kAhead < total) values = Join::request(hooks, blockOf(number + kAhead), rows);
  };
  // A batch is requested again right behind its use. Requested in front of the other one's use, its
  // loads would be moved behind it: the compiler takes the multiplications first.
  auto run = [&](typename Way::Batch& even, typename Way::Batch& odd, const auto& x) {
    for (int i = 0; i < total; i += 2) {
      use(even, own[0], i, x);
      fetch(even, i + 2);
      if (i + 1 < total) {
        use(odd, own[kAhead - 1], i + 1, x);
        fetch(odd, i + 3);
      }
    }
  };

  grid_dep_launch();
  if constexpr (!C::kConstantWeights) grid_dep_wait();
  typename Way::Batch first, second;
  // A branch each: loads that no branch ends are moved behind the wait by the compiler of machine
  // code, as it does with the few of a product with 16 columns.
  fetch(first, 0);
  fetch(second, 1);
  if constexpr (C::kSource == kStagedInput) hooks.prefetch();
  if constexpr (C::kSource == kClusterInput) {
    if (rows > 0) hooks.compute();
  }
  if constexpr (C::kConstantWeights) grid_dep_wait();
  if (rows <= 0) return;  // so that what follows need not ask
#pragma unroll
  for (int i = 0; i < kAhead; ++i)
    if (i < total) own[i] = Join::request(hooks, blockOf(i), rows);
  if constexpr (C::kSource == kGlobalInput) {
    run(first, second, GlobalRows<Input, C::kK>{hooks.x});
  } else {
    gemvStage<C, Way>(hooks, (Input*)shared, rows);
    block_sync();
    run(first, second, SharedRows<Input>{(const Input*)shared, Way::kStride});
  }
  // Nobody may leave before the others have read its totals, or its part of the input.
  if constexpr (Join::kCluster > 1 || C::kSource == kClusterInput) cluster_sync();
}
