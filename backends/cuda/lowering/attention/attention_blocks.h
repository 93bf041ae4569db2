// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a block of a choice takes, as the templates lay it out.
#include "backends/cuda/lowering/attention/attention_kernels.h"

namespace lathe::cuda {

/// Shared memory of a block on sm_90, less what templates declare themselves.
constexpr int64_t kSharedLimit = 227 * 1024 - 1024;
constexpr int64_t kMostSplits = 64;  ///< that one kernel can add up

/// Heads of queries that share a head of keys.
inline int64_t groupOf(const AttentionKernel& a) { return a.queryHeads / a.keyHeads; }
int64_t sharedBytes(const AttentionKernel& a, const AttentionChoice& choice);
/// Of queries.
int64_t rowsPerBlock(const AttentionChoice& choice);
/// Blocks that a processor's registers are to hold: two of more than four warps would leave 128 to
/// a thread, with which some tiles spill.
inline int residentBlocks(const AttentionChoice& choice) { return choice.warps <= 4 ? 2 : 1; }

}  // namespace lathe::cuda
