// SPDX-License-Identifier: Apache-2.0
#pragma once
// In which slot a text begins, and what of its prompt the caches hold already.
#include <cstdint>
#include <span>
#include <tuple>
#include <vector>

#include "lathe/runtime/kv_slots.h"

namespace lathe {

class SlotChoice {
 public:
  explicit SlotChoice(const KvSlots& slots);

  /// The best slot for a prompt, -1: none is free. `running` are the slots of texts that decode,
  /// `reading` the one whose prompt is read, or -1.
  int64_t choose(std::span<const int> prompt, std::span<const int64_t> running,
                 int64_t reading) const;

  /// A slot that holds the first `length` tokens of a prompt.
  struct Beginning {
    int64_t slot, length;
  };
  /// Of what the prompt of a text in `slot` may take over: as much as any slot holds, of its own
  /// unless another holds so much more that a copy is worth it.
  Beginning beginning(std::span<const int> prompt, int64_t slot) const;

  /// The slot was written to.
  void noteUse(int64_t slot) { lastUse_[size_t(slot)] = ++uses_; }

 private:
  /// Less is better.
  using Key = std::tuple<int64_t, int64_t, uint64_t>;
  Key keyOfRow(int64_t slot, std::span<const int> prompt, std::span<const int64_t> running) const;
  Key keyOfBlocks(int64_t slot, std::span<const int> prompt) const;

  const KvSlots& slots_;
  std::vector<uint64_t> lastUse_;  // by slot
  uint64_t uses_ = 0;
};

}  // namespace lathe
