// SPDX-License-Identifier: Apache-2.0
#pragma once
// Places in a batch for texts that come and go: what an engine of many texts asks of a KV cache.
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "lathe/runtime/generator.h"

namespace lathe {

/// Slots are independent: what one holds does not depend on what the others do. One thread at a
/// time.
class KvSlots {
 public:
  virtual ~KvSlots() = default;

  virtual int64_t slots() const = 0;
  /// Tokens that each slot has room for.
  virtual int64_t positions() const = 0;
  /// The most tokens of one prefill call.
  virtual int64_t maxChunk() const = 0;
  /// The tokens in the cache of a slot.
  virtual std::span<const int> ids(int64_t slot) const = 0;
  /// Drops the tokens of a slot from `position` on, which is at most their number.
  virtual void rewind(int64_t slot, int64_t position) = 0;
  /// The cache of `to` becomes the first `count` tokens of that of `from`.
  virtual void copy(int64_t from, int64_t to, int64_t count) = 0;

  /// Appends 1 to maxChunk() ids to one slot and gives the logits after the last, f32 [vocab],
  /// valid until the next call. Ids outside the vocabulary and tokens past positions() are
  /// Error(InvalidArgument) before anything runs.
  virtual std::span<const float> prefill(int64_t slot, std::span<const int> ids) = 0;
  /// Appends one token to each of some slots and gives the logits after each, f32 [slots, vocab],
  /// in the order of `slots`, valid until the next call.
  virtual std::span<const float> next(std::span<const int64_t> slots, std::span<const int> ids) = 0;
};

/// A row of one contiguous cache for each slot: the entry points `prefill` and `decode` of a
/// Generator's program. A decode call runs the rows from the first to the last that is asked for;
/// those between rest. The session must outlive it and is used by nobody else. Throws
/// Error(InvalidArgument) as Generator does, and for more slots or positions than the program has.
std::unique_ptr<KvSlots> contiguousSlots(Session& session, const GeneratorLimits& limits,
                                         int64_t slots, int64_t positions);

}  // namespace lathe
