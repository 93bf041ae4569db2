// SPDX-License-Identifier: Apache-2.0
#include "runtime/memory_plan.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "lathe/runtime/error.h"

namespace lathe {

int ownerOf(const EntryPoint& entry, int slot) {
  while (entry.slots[size_t(slot)].alias >= 0) slot = entry.slots[size_t(slot)].alias;
  return slot;
}

std::vector<Lifetime> lifetimesOf(const EntryPoint& entry) {
  std::vector<Lifetime> lives(entry.slots.size());
  auto touch = [&](int slot, int call) {
    Lifetime& l = lives[size_t(ownerOf(entry, slot))];
    if (l.first < 0) l.first = call;
    l.last = std::max(l.last, call);
  };
  for (int i = 0; i < int(entry.calls.size()); ++i) {
    for (int s : entry.calls[size_t(i)].operands) touch(s, i);
    for (int s : entry.calls[size_t(i)].results) touch(s, i);
  }
  // What is copied out after the last call must live until then.
  for (auto* ports : {&entry.outputs, &entry.statesOut})
    for (const Port& p : *ports) touch(p.slot, int(entry.calls.size()));
  return lives;
}

MemoryPlan planArena(const EntryPoint& entry, const std::vector<int64_t>& bytes) {
  MemoryPlan plan;
  plan.offsets.assign(entry.slots.size(), -1);
  std::vector<Lifetime> lives = lifetimesOf(entry);
  std::vector<int> order(entry.slots.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int a, int b) {
    return bytes[size_t(a)] != bytes[size_t(b)] ? bytes[size_t(a)] > bytes[size_t(b)] : a < b;
  });
  auto aligned = [](int64_t n) { return (n + 63) / 64 * 64; };
  std::vector<int> placed;  // by offset
  for (int slot : order) {
    const Slot& s = entry.slots[size_t(slot)];
    const Lifetime& life = lives[size_t(slot)];
    if (s.kind != SlotKind::Arena || s.alias >= 0 || life.first < 0) continue;
    int64_t size = std::max<int64_t>(aligned(bytes[size_t(slot)]), 64), at = 0;
    for (int other : placed) {
      const Lifetime& l = lives[size_t(other)];
      if (l.last < life.first || life.last < l.first) continue;
      int64_t begin = plan.offsets[size_t(other)];
      if (at + size <= begin) break;
      at = std::max(at, begin + std::max<int64_t>(aligned(bytes[size_t(other)]), 64));
    }
    plan.offsets[size_t(slot)] = at;
    int64_t end;
    // A page is left for what rounds the whole up.
    if (__builtin_add_overflow(at, size, &end) || end > std::numeric_limits<int64_t>::max() - 4096)
      throw Error(ErrorCode::OutOfMemory, "entry point '" + entry.name +
                                              "': its buffers together are larger than any memory");
    plan.bytes = std::max(plan.bytes, end);
    placed.insert(std::upper_bound(placed.begin(), placed.end(), slot,
                                   [&](int a, int b) {
                                     return plan.offsets[size_t(a)] < plan.offsets[size_t(b)];
                                   }),
                  slot);
  }
  return plan;
}

}  // namespace lathe
