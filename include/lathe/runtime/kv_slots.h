// SPDX-License-Identifier: Apache-2.0
#pragma once
// Places in a batch for texts that come and go: what an engine of many texts asks of a KV cache.
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "lathe/runtime/generator.h"

namespace lathe {

/// Blocks of a cache, of so many tokens each; none where texts have rows of their own.
struct KvBlocks {
  int64_t tokens = 0, all = 0;
  int64_t used = 0;  ///< hold tokens, of running texts or of those before them
  int64_t set = 0;   ///< not used yet, but set aside for running texts
};

/// Slots are independent: what one holds does not depend on what the others do. One thread at a
/// time.
class KvSlots {
 public:
  virtual ~KvSlots() = default;

  virtual int64_t slots() const = 0;
  /// Ids are from 0 to one less.
  virtual int64_t vocab() const = 0;
  /// Tokens that a text may have at most.
  virtual int64_t positions() const = 0;
  /// The most tokens of one prefill call.
  virtual int64_t maxChunk() const = 0;
  /// The tokens in the cache of a slot.
  virtual std::span<const int> ids(int64_t slot) const = 0;

  /// A text begins in a slot, where none runs: its cache becomes the first `count` tokens of that
  /// of `from`, which may be the slot itself, with room for `tokens` tokens in all. False where
  /// there is no such room before other texts end; nothing has changed then. A text of at most
  /// positions() tokens has room once no other runs.
  virtual bool begin(int64_t slot, int64_t from, int64_t count, int64_t tokens) = 0;
  /// The text of a slot has ended: what it left may be taken over until its room is needed.
  virtual void end(int64_t slot) = 0;
  /// Drops the tokens of a slot.
  virtual void clear(int64_t slot) = 0;

  /// Appends 1 to maxChunk() ids to one slot and gives the logits after the last, f32 [vocab],
  /// valid until the next call. Ids outside the vocabulary and tokens past the slot's room are
  /// Error(InvalidArgument) before anything runs.
  virtual std::span<const float> prefill(int64_t slot, std::span<const int> ids) = 0;
  /// Appends one token to each of some slots and gives the logits after each, f32 [slots, vocab],
  /// in the order of `slots`, valid until the next call.
  virtual std::span<const float> next(std::span<const int64_t> slots, std::span<const int> ids) = 0;

  virtual KvBlocks blocks() const { return {}; }
  /// Throws Error where no call can succeed any more: Session::throwIfEnded().
  virtual void throwIfEnded() const {}
};

/// The most that slots of a program may be: tokens of a text, and texts at once.
struct KvLimits {
  int64_t positions = 0, slots = 0;
};
/// Throws Error(InvalidArgument) as contiguousSlots() and pagedSlots() do.
KvLimits kvLimits(const Session& session, const GeneratorLimits& limits);

/// A row of one contiguous cache for each slot: the entry points `prefill` and `decode` of a
/// Generator's program. A decode call runs the rows from the first to the last that is asked for;
/// those between rest. The session must outlive it and is used by nobody else. Throws
/// Error(InvalidArgument) as Generator does, and for more slots or positions than the program has.
std::unique_ptr<KvSlots> contiguousSlots(Session& session, const GeneratorLimits& limits,
                                         int64_t slots, int64_t positions);

/// Tokens of a block at most.
inline constexpr int64_t kMostBlockTokens = int64_t(1) << 20;
/// Whether the cache of a program is in blocks: `prefill` and `decode` have the input block_table
/// too.
bool hasPagedCache(const Program& program);

/// Blocks of one cache, which slots have by tables: the entry points `prefill` and `decode` of a
/// program with hasPagedCache(). Texts with one beginning have its blocks in common, and the last
/// one of it, which each goes on in, as a copy. A slot's room is set aside in blocks; what texts
/// left is given up from its end, that of the one that ended first at first. `tokens`: how many all
/// blocks hold, in whole blocks; 0 for as many as all slots can fill. A text may have as many, and
/// at most `positions`. Otherwise as contiguousSlots().
std::unique_ptr<KvSlots> pagedSlots(Session& session, const GeneratorLimits& limits, int64_t slots,
                                    int64_t positions, int64_t tokens = 0);

}  // namespace lathe
