// SPDX-License-Identifier: Apache-2.0
#pragma once
// Token by token: the entry points `prefill` and `decode` of a language model over one KV cache.
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lathe/runtime/session.h"

namespace lathe {

/// What a model allows, from its config.json.
struct GeneratorLimits {
  int64_t vocab = 0;         ///< ids are in [0, vocab)
  int64_t maxPositions = 0;  ///< tokens of prompt and continuation together
};

/// What the entry point `greedy` keeps from one run to the next.
struct GreedyStates {
  static constexpr const char* kIds = "next_ids";              ///< i64 [batch, 1]
  static constexpr const char* kPositions = "next_positions";  ///< i64 [batch]
  /// i64 [kSteps, batch]: what the run at position p chose stands at p modulo kSteps; -1 where the
  /// largest logit is NaN or an infinity.
  static constexpr const char* kChosen = "chosen_ids";
  static constexpr int64_t kSteps = 16;
};

/// One sequence at a time, batch 1. A decode step allocates nothing. The session must outlive it.
///
/// The program's entry points are `prefill` (input_ids i64 [batch, seq], positions i64 [batch])
/// and `decode` (input_ids i64 [batch, 1], positions i64 [batch]); each gives logits f32
/// [batch, vocab] of the last token. `positions` says where in the cache the first id goes. A
/// program may have `verify` too, as `prefill` with the logits of every token, f32
/// [batch, seq, vocab]; and `greedy`, as `decode` on the states above and without logits: it puts
/// the likeliest token and the position behind it into those states.
class Generator {
 public:
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
  void restart() { rewind(0); }
  /// Tokens in the cache.
  int64_t position() const { return position_; }

  /// Appends `ids` (at least one) and gives the logits after the last one, f32 [vocab], valid
  /// until the next call. Ids outside [0, vocab) and positions past what was reserved are
  /// Error(InvalidArgument) with the numbers, before anything runs.
  std::span<const float> prefill(std::span<const int> ids);
  /// The same for one token, through `decode`.
  std::span<const float> next(int id);
  /// Whether the program has `greedy`, and one rank runs it.
  bool canChoose() const { return greedyEntry_.has_value(); }
  /// Appends `id` and then, each time, the likeliest token that follows (of equal ones the first),
  /// all but the last of which are in the cache at the end: at most `count` tokens, and at most
  /// GreedyStates::kSteps. The device chooses them; the host hears of them, and of errors, at the
  /// end. They are fewer where the logits behind one have no finite maximum; then next() says more.
  std::span<const int> choose(int id, int64_t count);
  /// Whether the program has `verify`.
  bool canVerify() const { return verifyEntry_.has_value(); }
  /// Throws Error(InvalidArgument) for a program without `verify`.
  void requireVerify() const;
  /// The most tokens of one verify call.
  int64_t maxVerified() const { return chunk_; }
  /// Appends 1 to maxVerified() ids and gives the logits after each, f32 [ids, vocab], row by row.
  std::span<const float> verify(std::span<const int> ids);
  /// Drops the tokens from `position` on, which is at most position().
  void rewind(int64_t position);
  /// The tokens in the cache.
  std::span<const int> ids() const { return ids_; }
  /// As reserve(), but keeps what the cache holds of `prompt` where there is room: the tokens of
  /// `prompt` that are left to append begin at position(), and there is at least one.
  void resume(std::span<const int> prompt, int64_t positions);

  /// Writes the tokens in the cache and the states that they left. Throws Error(InvalidArgument)
  /// for an empty one.
  void saveCache(const std::string& path);
  /// Makes room for `positions` tokens and reads such a file: position() and ids() are as when it
  /// was written. The last token is computed again, and must get the logits that are in the file
  /// within 2 % of the largest, as on another machine: Error(InvalidFile) for a cache of another
  /// model, of another dtype, or of weights that give others. Rounded ones, as int8, may not.
  void loadCache(const std::string& path, int64_t positions = 1);

 private:
  void check(std::span<const int> ids) const;
  std::span<const float> logits(const std::vector<Array>& outputs) const;
  static void put(Array& input, std::span<const int> ids);

  Session& session_;
  GeneratorLimits limits_;
  size_t prefillEntry_ = 0, decodeEntry_ = 0;
  int64_t maxPositions_ = 0, cacheStep_ = 1, capacity_ = 0, position_ = 0, chunk_ = 0;
  // Inputs by position; an entry point may name them in either order.
  size_t prefillIds_ = 0, decodeIds_ = 0;
  std::vector<int> ids_;
  std::optional<size_t> verifyEntry_, greedyEntry_;
  size_t verifyIds_ = 0;
  std::vector<Array> prefillInputs_, decodeInputs_, prefillOutputs_, decodeOutputs_;
  std::vector<Array> verifyInputs_, verifyOutputs_, greedyOutputs_;
  Array greedyIds_ = Array(DType::I64, {1, 1}), greedyPositions_ = Array(DType::I64, {1});
  std::vector<int> chosen_;
};

}  // namespace lathe
