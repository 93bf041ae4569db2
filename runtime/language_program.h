// SPDX-License-Identifier: Apache-2.0
#pragma once
// What generators ask of a program: its entry points and how long a text may be.
#include "lathe/runtime/generator.h"

namespace lathe {

inline constexpr const char* kCacheSymbol = "cache";

/// An entry point with the inputs input_ids and positions, in either order.
struct LanguageEntry {
  size_t index = 0;  ///< in the program
  size_t ids = 0;    ///< of input_ids among the inputs, 0 or 1
  size_t positions() const { return 1 - ids; }
};
/// Throws Error(InvalidArgument) for an entry point that is missing, has other inputs or outputs,
/// or logits of another vocabulary; `ofEveryToken` asks for [batch, seq, vocab].
LanguageEntry languageEntry(const Session& session, std::string_view name, int64_t vocab,
                            bool ofEveryToken = false);

/// An entry point whose cache is in blocks: the inputs input_ids, positions and block_table, in any
/// order.
struct PagedEntry {
  size_t index = 0;                          ///< in the program
  size_t ids = 0, positions = 0, table = 0;  ///< among the inputs
};
/// Throws Error(InvalidArgument) as languageEntry().
PagedEntry pagedEntry(const Session& session, std::string_view name, int64_t vocab);

/// Throws Error(InvalidArgument) unless the entry point `greedy` works on GreedyStates alone.
void checkGreedy(const Program& program, const EntryPoint& entry);
/// Whether a state is one of GreedyStates: no part of a text's cache.
bool isOfGreedy(const TensorInfo& state);

/// Sizes of the calls and of the cache.
struct LanguageSizes {
  int64_t maxPositions = 0;
  int64_t cacheStep = 1;  ///< the cache's capacity is a multiple of it
  int64_t chunk = 0;      ///< tokens of one `prefill` call at most
  int64_t maxRows = 1;    ///< texts at once
};
LanguageSizes languageSizes(const Program& program, const LanguageEntry& prefill,
                            const GeneratorLimits& limits);

inline constexpr const char* kBlocksSymbol = "blocks";

/// Sizes of the calls and of a cache in blocks.
struct PagedSizes {
  int64_t maxPositions = 0;  ///< of a text, as the table and the model allow
  int64_t block = 0;         ///< tokens
  int64_t maxBlocks = 0;
  int64_t chunk = 0;    ///< tokens of one `prefill` call at most
  int64_t maxRows = 1;  ///< texts at once
};
/// Throws Error(InvalidArgument) for a program without a cache of blocks.
PagedSizes pagedSizes(const Program& program, const PagedEntry& prefill,
                      const GeneratorLimits& limits);

/// Tokens of each of `rows` prompts that one call takes, so that all of them together stay near
/// `chunk`: intermediate results grow with both.
int64_t chunkOfRows(int64_t chunk, int64_t rows);

/// Of a cache for `positions` tokens. Throws Error(InvalidArgument) unless it is from 1 to the most
/// that there may be.
int64_t capacityFor(int64_t positions, int64_t maxPositions, int64_t cacheStep);

/// `value`, where it is from 1 to `most`. Throws Error(InvalidArgument) elsewhere, which says of
/// what.
int64_t expectedIn(const char* what, int64_t value, int64_t most);
/// Throws Error(InvalidArgument) unless there is an id for each of some slots.
void checkOneEach(std::span<const int64_t> slots, std::span<const int> ids);
/// Throws Error(InvalidArgument) where `tokens` more do not fit behind those that a slot holds.
void checkRoom(int64_t slot, int64_t held, int64_t tokens, int64_t positions);

/// Throws Error(InvalidArgument) for an id outside [0, vocab).
void checkIds(std::span<const int> ids, int64_t vocab);

}  // namespace lathe
