// SPDX-License-Identifier: Apache-2.0
// Counters in global memory: what they order between blocks, and that they are left at 0.
#include <cstring>

#include "backends/cuda/hostexec/checks.h"

namespace lathe::cuda::host {
namespace {

// Where the counter lies, whatever view of its buffer it is reached through.
const u32* counterAt(Executor& x, const u32* p, const char* file, int line) {
  const auto [b, offset, view] = x.launch->memory->locate(reinterpret_cast<const char*>(p));
  if (!b || offset < 0 || offset + sizeof *p > b->bytes)
    x.fatal(text("counter outside every buffer: %s at %s", whoIs(*lt_self).chars,
                 placeOf(file, line).chars));
  return reinterpret_cast<const u32*>(b->base + offset);
}

void acquire(Executor& x, const Counter& counter) {
  std::shared_ptr<const KnownBlocks>& mine = x.others[x.warpOf(*lt_self)];
  auto all = std::make_shared<KnownBlocks>(counter.released);
  if (mine) all->add(*mine);
  mine = std::move(all);
}

// The running thread makes known what it did itself, and what its warp knew at its last barrier or
// warp_sync. What follows carries a later clock.
void release(Executor& x, Counter& counter) {
  const u32 mine = x.warpOf(*lt_self);
  KnownBlocks known;
  for (int r = 0; r < x.inCluster; ++r) {
    const Block& b = x.blocks[size_t(r)];
    KnownBlock& of = known[b.index];
    for (u32 w = 0; w < x.warpsPerBlock; ++w) {
      const u32 warp = u32(b.first) / 32 + w;
      of.warps.push_back(warp == mine ? x.synced[warp] : x.knows(mine)[warp]);
    }
  }
  known[x.blockOf(*lt_self).index].threads[lt_self->inBlock] = x.clock[mine];
  if (x.others[mine]) known.add(*x.others[mine]);
  counter.released.add(known);
  ++x.clock[mine];
}

}  // namespace

void reportCountersLeft(LaunchState& state) {
  const auto [from, bytes, name] = state.request->counters;
  for (size_t at = 0; at + sizeof(u32) <= bytes; at += sizeof(u32)) {
    u32 value;
    std::memcpy(&value, from + at, sizeof value);
    if (value == 0) continue;
    const Location l = state.memory->locate(from + at);
    const auto changed =
        state.counters.find(reinterpret_cast<const u32*>(l.buffer ? l.buffer->base + l.offset : 0));
    std::string where;
    if (changed != state.counters.end())
      where =
          text(", changed at %s", placeOf(changed->second.file, changed->second.line).chars).chars;
    state.result.errors++;
    state.result.report += "counter " + std::to_string(at / sizeof(u32)) + " of " +
                           std::string(name) + " is left at " + std::to_string(value) +
                           ", expected 0" + where + "\n";
    return;  // the others are left by the same line
  }
}

}  // namespace lathe::cuda::host

using namespace lathe::cuda::host;

extern "C" {

u32 lt_counter_add(u32* p, u32 v, const char* file, int line) {
  Executor& x = *current;
  const u32* place = counterAt(x, p, file, line);
  if (x.checked) {
    Counter& counter = x.launch->counters[place];
    acquire(x, counter);
    release(x, counter);
    counter.file = file;
    counter.line = line;
  }
  return __atomic_fetch_add(p, v, __ATOMIC_ACQ_REL);
}

u32 lt_counter_load(const u32* p, const char* file, int line) {
  Executor& x = *current;
  const u32* place = counterAt(x, p, file, line);
  if (x.checked) acquire(x, x.launch->counters[place]);
  return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

void lt_counter_store(u32* p, u32 v, const char* file, int line) {
  Executor& x = *current;
  const u32* place = counterAt(x, p, file, line);
  if (x.checked) {
    Counter& counter = x.launch->counters[place];
    // Who reads what is stored here learns nothing of the adders before.
    counter.released.clear();
    release(x, counter);
    counter.file = file;
    counter.line = line;
  }
  __atomic_store_n(p, v, __ATOMIC_RELEASE);
}

void lt_store_status(i64* p, i64 v, const char* file, int line) {
  counterAt(*current, reinterpret_cast<const u32*>(p) + 1, file, line);
  __atomic_store_n(p, v, __ATOMIC_RELAXED);
}

}  // extern "C"
