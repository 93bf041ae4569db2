// SPDX-License-Identifier: Apache-2.0
#include "runtime/slot_choice.h"

#include <algorithm>

namespace lathe {
namespace {

// A beginning that another slot holds is worth a copy from this length on: reading so few tokens
// takes no longer.
constexpr int64_t kWorthCopying = 16;

int64_t commonLength(std::span<const int> a, std::span<const int> b) {
  return int64_t(std::ranges::mismatch(a, b).in1 - a.begin());
}

// Rows of a decode call if this slot ran, too.
int64_t spanWith(int64_t slot, std::span<const int64_t> running) {
  int64_t first = slot, last = slot;
  for (int64_t other : running) {
    first = std::min(first, other);
    last = std::max(last, other);
  }
  return last - first;
}

}  // namespace

SlotChoice::SlotChoice(const KvSlots& slots) : slots_(slots), lastUse_(size_t(slots.slots())) {}

// Of rows: the slot that holds most of the prompt; among equals one near those that run, then the
// one that has rested longest.
SlotChoice::Key SlotChoice::keyOfRow(int64_t slot, std::span<const int> prompt,
                                     std::span<const int64_t> running) const {
  int64_t common = commonLength(slots_.ids(slot), prompt);
  if (common < kWorthCopying) common = 0;
  return {-common, spanWith(slot, running), lastUse_[size_t(slot)]};
}

// Of blocks, which a prompt shares with the text of any slot: the slot that loses least. It loses
// nothing where the prompt goes on from all that it holds, the longest first, or where it is empty;
// else the one that has rested longest gives up its text.
SlotChoice::Key SlotChoice::keyOfBlocks(int64_t slot, std::span<const int> prompt) const {
  const std::span<const int> held = slots_.ids(slot);
  const auto length = int64_t(held.size());
  if (length > 0 && commonLength(held, prompt) == length) return {0, -length, 0};
  return {length == 0 ? 1 : 2, 0, lastUse_[size_t(slot)]};
}

int64_t SlotChoice::choose(std::span<const int> prompt, std::span<const int64_t> running,
                           int64_t reading) const {
  const bool hasBlocks = slots_.blocks().tokens > 0;
  int64_t best = -1;
  Key bestKey;
  for (int64_t slot = 0; slot < slots_.slots(); ++slot) {
    if (slot == reading || std::ranges::find(running, slot) != running.end()) continue;
    const Key key = hasBlocks ? keyOfBlocks(slot, prompt) : keyOfRow(slot, prompt, running);
    if (best < 0 || key < bestKey) {
      best = slot;
      bestKey = key;
    }
  }
  return best;
}

SlotChoice::Beginning SlotChoice::beginning(std::span<const int> prompt, int64_t slot) const {
  const int64_t most = int64_t(prompt.size()) - 1;  // one is read for its logits
  Beginning best{slot, std::min(most, commonLength(slots_.ids(slot), prompt))};
  for (int64_t other = 0; other < slots_.slots(); ++other)
    if (const int64_t common = std::min(most, commonLength(slots_.ids(other), prompt));
        common >= best.length + kWorthCopying)
      best = {other, common};
  return best;
}

}  // namespace lathe
