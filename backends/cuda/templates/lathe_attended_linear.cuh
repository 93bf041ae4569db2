// SPDX-License-Identifier: Apache-2.0
// The output projection of attention with one query and few keys, as one kernel with the attention:
// y[1, n] = sum over k of attention[1, k] w[n, k]. The blocks of a cluster compute a key head each,
// all clusters the same ones, and read the other heads' results in each other's shared memory. A
// launch and its border are saved for keys that are read again by every cluster, out of the L2
// cache.
//
// The weights of a block, and what is old of its head's keys and values, are requested before the
// previous kernel has ended.
//
// Config as for lathe_gemv.cuh, with kSource = kClusterInput, one row, and blocks in clusters of
// Attention::kKeyHeads; Attention as for lathe_attention_decode.cuh with kToShared.
#pragma once
#include "lathe_attention_decode.cuh"
#include "lathe_gemv.cuh"

template <class Linear, class Attention>
struct AttendedHooks : Linear {
  typedef typename Attention::Element Input;
  AttentionArguments<Attention> attention;
  // Of this block's key head, behind all that the attention itself keeps in shared memory.
  static constexpr int kPart = Attention::kGroup * Attention::kValueDepth;
  static constexpr int kChunk = 16 / (int)sizeof(Input);

  LT_FN Input* part(unsigned char* shared) {
    return (Input*)(shared + AttentionDecode<Attention>::kSharedBytes);
  }
  // Of the only row; ends with the previous kernel.
  __device__ __forceinline__ void compute() const {
    LATHE_DYN_SHARED(shared);
    AttentionArguments<Attention> a = attention;
    a.y = part(shared);
    if constexpr (!Attention::kOldKeys) grid_dep_wait();
    attentionDecodeTile<Attention>(a, nullptr, nullptr, {(long long)cluster_rank(), 0, 1, 0, 1});
  }
  __device__ __forceinline__ void stage(long long, Input* to) const {
    LATHE_DYN_SHARED(shared);
    const Input* own = part(shared);
    cluster_sync();
    for (int i = (int)threadIdx.x; i < Attention::kKeyHeads * kPart / kChunk;
         i += Attention::kWarps * 32)
      *(uint4*)(to + i * kChunk) =
          cluster_read((const uint4*)(own + i * kChunk % kPart), (u32)(i * kChunk / kPart));
  }
};
