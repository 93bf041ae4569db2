// SPDX-License-Identifier: Apache-2.0
#pragma once
// Scaled dot-product attention as one tiled kernel with online softmax; no S x S buffer.
#include <array>

#include "backends/cpu/device/cpu_features.h"
#include "backends/cpu/device/scratch.h"
#include "lathe/runtime/dtype.h"
#include "lathe/runtime/enums.h"
#include "lathe/runtime/thread_pool.h"

namespace lathe::cpu {

/// Bool: one byte per key, nonzero = visible. Additive: added to the scaled score.
enum class MaskKind { None, Bool, AdditiveF32, AdditiveBf16 };

/// Strides in elements of [batch, head, token]; the last dim is contiguous, so that
/// [B, H, S, D] and [B, S, H, D] are both read in place.
struct AttentionStrides {
  int64_t batch = 0, head = 0, token = 0;
};

/// out[b, h, i, :] = sum_j softmax_j(softcap(scale * q[b, h, i] . k[b, h', j]) + mask) v[b, h', j]
/// with h' = h / (qHeads / kvHeads) and softcap(x) = softcap * tanh(x / softcap).
struct AttentionArgs {
  const void* q = nullptr;
  const void* k = nullptr;
  const void* v = nullptr;
  void* out = nullptr;
  DType dtype = DType::F32;  ///< of q, k, v and out: F32 or BF16
  int64_t batch = 0, qHeads = 0, kvHeads = 0, qLen = 0, kLen = 0, headDim = 0, valueDim = 0;
  AttentionStrides qStrides, kStrides, vStrides, outStrides;
  /// Above 0: keys and values lie in blocks of so many. Key j of sequence b is key j % blockKeys of
  /// block table[b * tableEntries + j / blockKeys], kLen is tableEntries * blockKeys, and the
  /// strides of keys and values have those of a block for `batch`.
  int64_t blockKeys = 0, tableEntries = 0;
  const int64_t* table = nullptr;
  float scale = 1.0f;
  float softcap = 0.0f;  ///< 0 = none

  /// Causal: key j is visible to query i iff j <= i + offset, where offset is positions[b] if
  /// `positions` is given, else causalOffset (kLen - qLen aligns the ends, 0 the starts).
  bool causal = false;
  int64_t causalOffset = 0;
  const int64_t* positions = nullptr;
  /// Keys with j <= i + offset - window are hidden as well, causal or not; 0 = no window.
  int64_t window = 0;

  const void* mask = nullptr;
  MaskKind maskKind = MaskKind::None;
  std::array<int64_t, 4> maskStrides{};  ///< [batch, head, query, key]; 0 = broadcast
  MaskedRow maskedRow = MaskedRow::zero;
};

/// Scratch bytes for these shapes on `threads`: O(kLen * headDim), never O(qLen * kLen).
size_t attentionScratchBytes(const AttentionArgs& args, int threads,
                             KernelIsa isa = KernelIsa::current());

/// Max, sum and accumulation in f32; bf16 probabilities are rounded to bf16 before the product
/// with V on CPUs with bf16 dot products. NaN inputs give NaN; -inf scores weigh nothing; large
/// finite negative masks are plain numbers. Rows whose keys are all hidden follow `maskedRow`.
/// Results do not depend on the number of threads as long as the split over keys is the same
/// (qLen * group > 32 is never split). Throws Error(InvalidArgument) for shapes that do not fit.
void attention(const AttentionArgs& args, ThreadPool& pool, Scratch scratch,
               KernelIsa isa = KernelIsa::current());

}  // namespace lathe::cpu
