// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where the temporaries of an entry point live: one arena, reused as lifetimes end.
#include <vector>

#include "lathe/runtime/program.h"

namespace lathe {

struct MemoryPlan {
  /// Byte offset of every slot in the arena; -1 for slots that live elsewhere or share storage.
  std::vector<int64_t> offsets;
  int64_t bytes = 0;
};

/// The calls between which each slot's storage must persist. Views extend the slot they share.
struct Lifetime {
  int first = -1, last = -1;
};
std::vector<Lifetime> lifetimesOf(const EntryPoint& entry);
/// Follows aliases to the slot that owns the storage.
int ownerOf(const EntryPoint& entry, int slot);

/// Greedy by size (Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference",
/// 2020): the largest slot first, each at the lowest offset free over its lifetime. `bytes[i]` is
/// the size of slot i. Offsets are multiples of 64.
MemoryPlan planArena(const EntryPoint& entry, const std::vector<int64_t>& bytes);

}  // namespace lathe
