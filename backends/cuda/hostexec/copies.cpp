// SPDX-License-Identifier: Apache-2.0
// Asynchronous copies into shared memory and the mbarriers that count them.
#include <algorithm>
#include <cstring>

#include "backends/cuda/hostexec/checks.h"

namespace lathe::cuda::host {

void Executor::land(Block& b, u32 to, const char* from, u32 bytes, u32 copied) {
  std::memcpy(b.arena + to, from, copied);
  std::memset(b.arena + to + copied, 0, bytes - copied);
}

namespace {

void completePhase(Executor& x, Mbar& m) {
  if (m.pending != 0 || m.bytes != 0) return;
  m.phase ^= 1;
  m.pending = m.count;
  for (LtFiber& f : x.fibers)
    if (f.state == Waiting && f.op == LT_MBAR && f.waitOn == m.at) x.wake(f);
}

Mbar& mbarAt(Executor& x, const u64* bar, const char* what, const Place& place) {
  for (Mbar& m : x.blockOf(*lt_self).mbars)
    if (m.at == bar) return m;
  x.fatal(text("%s on an mbarrier that was not initialised: %s at %s", what, whoIs(*lt_self).chars,
               place.text(x).chars));
}

// What the running warp did before becomes known to whoever waits on the mbarrier.
void release(Executor& x, Mbar& m) {
  if (!x.checked) return;
  const u32 warp = x.warpOf(*lt_self);
  m.clocks.resize(x.warps);
  for (u32 v = 0; v < x.warps; ++v) m.clocks[v] = std::max(m.clocks[v], x.knows(warp)[v]);
  m.clocks[warp] = x.clock[warp];
  x.orderLanes(warp);
}

void markLanded(Executor& x, Block& b, u32 to, u32 bytes, bool ownWrite) {
  if (!x.checked) return;
  for (u32 i = to / 2; i < (to + bytes) / 2; ++i) {
    b.cells[i].state = Written;
    if (ownWrite) b.cells[i].writeClock = x.clock[x.warpOf(*lt_self)];
  }
}

}  // namespace

void Executor::finishBulk(Block& b, size_t i) {
  const Bulk bulk = b.bulks[i];
  b.bulks.erase(b.bulks.begin() + long(i));
  land(b, bulk.to, bulk.from, bulk.bytes, bulk.bytes);
  markLanded(*this, b, bulk.to, bulk.bytes, false);
  for (Mbar& m : b.mbars)
    if (m.at == bulk.bar) {
      m.bytes -= bulk.bytes;
      completePhase(*this, m);
    }
}

bool Executor::progress() {
  for (int r = 0; r < inCluster; ++r) {
    Block& b = blocks[size_t(r)];
    if (b.bulks.empty()) continue;
    finishBulk(b, options.async == Async::Random ? random() % b.bulks.size() : 0);
    return true;
  }
  return false;
}

void Executor::maybeLand() {
  if (options.async != Async::Random) return;
  Block& b = blockOf(*lt_self);
  auto& mine = copies[lt_self->linear];
  if (!mine.empty() && random() % 4 == 0) {
    Copy& c = mine[random() % mine.size()];
    if (!c.landed) land(b, c.to, c.from, c.bytes, c.copied);
    c.landed = true;
  }
  if (!b.bulks.empty() && random() % 8 == 0) finishBulk(b, random() % b.bulks.size());
}

}  // namespace lathe::cuda::host

using namespace lathe::cuda::host;

extern "C" {

void lt_cp_async(u32 to, const void* from, u32 bytes, u32 copied, const char* file, int line) {
  Executor& x = *current;
  const Place place{0, file, line};
  if (to % bytes || uintptr_t(from) % bytes)
    x.fatal(text("cp.async of %u bytes: misaligned %s address, %s at %s", bytes,
                 to % bytes ? "shared" : "global", whoIs(*lt_self).chars, place.text(x).chars));
  if (copied > bytes)
    x.fatal(text("cp.async: at most %u bytes can be copied, got %u, %s at %s", bytes, copied,
                 whoIs(*lt_self).chars, place.text(x).chars));
  Block& b = x.blockOf(*lt_self);
  const auto* source = static_cast<const char*>(from);
  if (copied) checkGlobal(x, source, {copied, false, place});
  checkShared(x, b, to, {bytes, true, place, true});
  const bool now =
      x.options.async == Async::Eager || (x.options.async == Async::Random && x.random() % 4 == 0);
  if (now)
    x.land(b, to, source, bytes, copied);
  else
    std::memset(b.arena + to, 0xff, bytes);
  const u16 me = lt_self->linear;
  x.copies[me].push_back({to, source, bytes, copied, x.group[me], now});
}

void lt_cp_commit() { current->group[lt_self->linear]++; }

void lt_cp_wait(int groups) {
  Executor& x = *current;
  const u16 me = lt_self->linear;
  Block& b = x.blockOf(*lt_self);
  std::erase_if(x.copies[me], [&](const Copy& c) {
    if (c.group >= x.group[me] - groups) return false;
    if (!c.landed) x.land(b, c.to, c.from, c.bytes, c.copied);
    markLanded(x, b, c.to, c.bytes, true);
    return true;
  });
}

void lt_mbar_init(u64* bar, u32 count, const char* file, int line) {
  Executor& x = *current;
  Block& b = x.blockOf(*lt_self);
  checkShared(x, b, lt_smem_addr(bar, file, line), {8, true, {0, file, line}});
  std::erase_if(b.mbars, [&](const Mbar& m) { return m.at == bar; });
  b.mbars.push_back({bar, count, count, 0, 0, {}});
}

void lt_mbar_arrive(u64* bar, u32 bytes, const char* file, int line) {
  Executor& x = *current;
  const Place place{0, file, line};
  Mbar& m = mbarAt(x, bar, "arrive", place);
  release(x, m);
  m.bytes += bytes;
  if (m.pending == 0)
    x.fatal(text("mbarrier: more arrivals than its count of %u: %s at %s", m.count,
                 whoIs(*lt_self).chars, place.text(x).chars));
  --m.pending;
  completePhase(x, m);
}

void lt_mbar_wait(u64* bar, u32 parity, const char* file, int line) {
  Executor& x = *current;
  const Place place{0, file, line};
  x.maybeLand();
  while (mbarAt(x, bar, "wait", place).phase == parity) {
    LtFiber* me = lt_self;
    me->op = LT_MBAR;
    me->file = file;
    me->line = line;
    me->waitOn = bar;
    me->state = Waiting;
    x.yield();
  }
  if (!x.checked) return;
  const Mbar& m = mbarAt(x, bar, "wait", place);
  const u32 warp = x.warpOf(*lt_self);
  for (u32 v = 0; v < m.clocks.size(); ++v)
    if (v != warp) x.knows(warp)[v] = std::max(x.knows(warp)[v], m.clocks[v]);
}

void lt_bulk(void* to, const void* from, u32 bytes, u64* bar, const char* file, int line) {
  Executor& x = *current;
  const Place place{0, file, line};
  if (bytes % 16 || uintptr_t(to) % 16 || uintptr_t(from) % 16)
    x.fatal(text("bulk copy: size and addresses must be multiples of 16, %s at %s",
                 whoIs(*lt_self).chars, place.text(x).chars));
  Block& b = x.blockOf(*lt_self);
  const u32 offset = lt_smem_addr(to, file, line);
  checkGlobal(x, static_cast<const char*>(from), {bytes, false, place});
  checkShared(x, b, offset, {bytes, true, place, true});
  release(x, mbarAt(x, bar, "bulk copy", place));
  std::memset(b.arena + offset, 0xff, bytes);
  b.bulks.push_back({offset, static_cast<const char*>(from), bytes, bar});
  if (x.options.async == Async::Eager) x.finishBulk(b, b.bulks.size() - 1);
}

}  // extern "C"
