// SPDX-License-Identifier: Apache-2.0
#pragma once
// Graphs of `LlamaForCausalLM` checkpoints.
#include <cstdint>

#include "lathe/frontend/graph.h"
#include "lathe/runtime/model_config.h"

namespace lathe {

struct LlamaGraphOptions {
  DType dtype = DType::F32;        ///< of the arithmetic and the caches
  DType weightDType = DType::F32;  ///< what the checkpoint holds; converted once when loading
  int64_t maxBatch = 64;
  int64_t maxSeq = 0;         ///< tokens of one call; 0: the config's maxPositions
  int64_t cacheCapacity = 0;  ///< largest value of the symbol `cache`; 0: the config's maxPositions
};

/// Records three entry points that share weights and caches. Symbols: `batch` (1 to maxBatch),
/// `seq` (1 to maxSeq), `cache` (1 to cacheCapacity).
///   forward: input_ids i64 [batch, seq] -> logits f32 [batch, seq, vocab]
///   prefill: input_ids i64 [batch, seq], positions i64 [batch] -> logits f32 [batch, vocab] of the
///            last token
///   decode:  input_ids i64 [batch, 1], positions i64 [batch] -> logits f32 [batch, vocab]
/// `positions` says where in the cache the first id goes; states k_cache.<layer> and
/// v_cache.<layer> are [batch, kvHeads, cache, headDim]. Weights have the names of Hugging Face.
/// Ops have the lines of frontend/families/llama.cpp, errors that of the call.
/// Throws Error(InvalidArgument) for sizes that make no model or options beyond the config's
/// maxPositions.
Graph buildLlama(const LlamaConfig& config, const LlamaGraphOptions& options = {}, LATHE_AT);

}  // namespace lathe
