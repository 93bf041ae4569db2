// SPDX-License-Identifier: Apache-2.0
#pragma once
// Token by token: the entry points `prefill` and `decode` of a language model over one KV cache.
#include <cstdint>
#include <span>
#include <vector>

#include "lathe/runtime/session.h"

namespace lathe {

/// What a model allows, from its config.json.
struct GeneratorLimits {
  int64_t vocab = 0;         ///< ids are in [0, vocab)
  int64_t maxPositions = 0;  ///< tokens of prompt and continuation together
};

/// One sequence at a time, batch 1. A decode step allocates nothing. The session must outlive it.
///
/// The program's entry points are `prefill` (input_ids i64 [batch, seq], positions i64 [batch])
/// and `decode` (input_ids i64 [batch, 1], positions i64 [batch]); each gives logits f32
/// [batch, vocab] of the last token. `positions` says where in the cache the first id goes.
class Generator {
 public:
  /// Tokens of one `prefill` call at most: longer prompts run in chunks, so that the shapes that
  /// kernels meet are few.
  static constexpr int64_t kChunk = 512;
  /// The cache's capacity is a multiple of it where the model's length allows.
  static constexpr int64_t kCapacityStep = 64;

  /// Throws Error(InvalidArgument) for a program without such entry points, or whose vocabulary is
  /// another.
  Generator(Session& session, const GeneratorLimits& limits);

  /// The most positions that a sequence may have: the model's, or the program's where it was
  /// compiled for fewer.
  int64_t maxPositions() const { return maxPositions_; }
  /// Makes room for `positions` tokens in the cache and starts at position 0. Called once before
  /// the first token; a larger number later starts anew. Throws Error(InvalidArgument) beyond
  /// maxPositions().
  void reserve(int64_t positions);
  /// Back to position 0, keeping the cache's memory.
  void restart() { position_ = 0; }
  /// Tokens in the cache.
  int64_t position() const { return position_; }

  /// Appends `ids` (at least one) and gives the logits after the last one, f32 [vocab], valid
  /// until the next call. Ids outside [0, vocab) and positions past what was reserved are
  /// Error(InvalidArgument) with the numbers, before anything runs.
  std::span<const float> prefill(std::span<const int> ids);
  /// The same for one token, through `decode`.
  std::span<const float> next(int id);

 private:
  void check(std::span<const int> ids) const;
  std::span<const float> logits(const std::vector<Array>& outputs) const;

  Session& session_;
  GeneratorLimits limits_;
  size_t prefillEntry_ = 0, decodeEntry_ = 0;
  int64_t maxPositions_ = 0, cacheStep_ = 1, capacity_ = 0, position_ = 0, chunk_ = kChunk;
  // Inputs by position; an entry point may name them in either order.
  size_t prefillIds_ = 0, decodeIds_ = 0;
  std::vector<Array> prefillInputs_, decodeInputs_, prefillOutputs_, decodeOutputs_;
};

}  // namespace lathe
