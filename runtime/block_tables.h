// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which blocks of a cache each text has: blocks are counted by the texts that have them, so that
// texts with one beginning have it once. A text writes behind its own end alone, into a block that
// nobody else has; whole blocks are never written again.
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "lathe/runtime/kv_slots.h"

namespace lathe {

class BlockTables {
 public:
  /// `blocks` of so many `tokens` each.
  BlockTables(int64_t slots, int64_t blocks, int64_t tokens);

  int64_t slots() const { return int64_t(slots_.size()); }
  /// The tokens of a slot, and its blocks in their order, of which there may be more than they
  /// fill.
  std::span<const int> ids(int64_t slot) const { return slots_.at(size_t(slot)).ids; }
  std::span<const int64_t> blocks(int64_t slot) const { return slots_.at(size_t(slot)).blocks; }
  /// Tokens that fit into what a slot has and what is set aside for it.
  int64_t room(int64_t slot) const;

  /// A block whose contents become those of another, or of itself.
  struct Copy {
    int64_t from, to;
  };
  struct Begun {
    bool hasRoom = false;
    std::optional<Copy> copy = {};  ///< before anything is written
  };
  /// KvSlots::begin. Throws Error(InvalidArgument) for a slot where a text runs, and for more
  /// tokens than there are; where it throws, nothing has changed.
  Begun begin(int64_t slot, int64_t from, int64_t count, int64_t tokens);
  void end(int64_t slot);
  void clear(int64_t slot);
  /// The slot gets the blocks for `tokens` more tokens, for which it has room.
  void grow(int64_t slot, int64_t tokens);
  /// They were written.
  void append(int64_t slot, std::span<const int> ids);

  KvBlocks counts() const;

 private:
  struct Slot {
    std::vector<int> ids;
    std::vector<int64_t> blocks;
    int64_t set = 0;  ///< blocks that it may still take
    bool runs = false;
    uint64_t ended = 0;  ///< when its text ended, of those that rest
  };

  int64_t entriesFor(int64_t tokens) const { return (tokens + tokens_ - 1) / tokens_; }
  /// Blocks that no running text has or may take, but for those of `kept`.
  int64_t available(std::span<const int64_t> kept) const;
  int64_t take();
  void leave(int64_t block);

  int64_t tokens_;
  std::vector<Slot> slots_;
  std::vector<int> users_;     // by block
  std::vector<int64_t> free_;  // without users, the next one last
  uint64_t ends_ = 0;
};

}  // namespace lathe
