// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the warps of one block know of other blocks through counters in global memory. A thread that
// adds to a counter releases what its warp knows, which is not what its block has done: the barrier
// in front of the counter makes it that. Internal to host execution.
#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

namespace lathe::cuda::host {

/// What is known of one block: all that its warps did up to these clocks, and some threads beyond.
struct KnownBlock {
  std::vector<uint32_t> warps;
  std::map<uint16_t, uint32_t> threads;

  bool holds(uint16_t thread, uint32_t clock) const {
    if (thread / 32u < warps.size() && clock <= warps[thread / 32u]) return true;
    const auto own = threads.find(thread);
    return own != threads.end() && clock <= own->second;
  }
};

/// By the blocks' numbers in the grid.
struct KnownBlocks : std::map<uint32_t, KnownBlock> {
  bool holds(uint32_t block, uint16_t thread, uint32_t clock) const {
    const auto found = find(block);
    return found != end() && found->second.holds(thread, clock);
  }
  void add(const KnownBlocks& others) {
    for (const auto& [number, other] : others) {
      KnownBlock& mine = (*this)[number];
      mine.warps.resize(std::max(mine.warps.size(), other.warps.size()));
      for (size_t w = 0; w < other.warps.size(); ++w)
        mine.warps[w] = std::max(mine.warps[w], other.warps[w]);
      for (const auto& [thread, clock] : other.threads)
        mine.threads[thread] = std::max(mine.threads[thread], clock);
    }
  }
};

/// A counter during a launch.
struct Counter {
  KnownBlocks released;  ///< what its adders knew
  const char* file = nullptr;
  int line = 0;  ///< where it was changed last
};

}  // namespace lathe::cuda::host
