// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/hostexec/checks.h"

#include <algorithm>
#include <cstdlib>

namespace lathe::cuda::host {
namespace {

const char* verb(const Access& a) { return a.write ? "write" : "read"; }

Text placeOfMark(const Executor& x, u32 mark) {
  if (mark & 0x80000000u) return text("line %u", mark & 0x7fffffffu);
  return Place{mark}.text(x);
}

bool sharedValid(const Executor& x, u32 offset, u64 bytes) {
  if (x.dynamicBytes && offset >= x.dynamicAt &&
      offset + bytes <= x.dynamicAt + u64(x.dynamicBytes))
    return true;
  return std::any_of(x.arrays.begin(), x.arrays.end(), [&](const Array& a) {
    return offset >= a.offset && offset + bytes <= u64(a.offset) + a.bytes;
  });
}

// Calls check(cell, offset, bytes) for every cell of an access. Neighbouring bytes may belong to
// different threads: an access of one splits the cell, a write of both joins it again.
template <class Cell, class Check>
void eachCell(Cell* cells, Cell* odd, u64 offset, const Access& a, Check check) {
  const u64 end = offset + a.bytes;
  for (u64 i = offset / 2; i < (end + 1) / 2; ++i) {
    Cell& cell = cells[i];
    const bool low = i * 2 >= offset, high = i * 2 + 1 < end;
    if (!cell.split && low && high) {
      check(cell, i * 2, 2);
      continue;
    }
    if (!cell.split) {
      odd[i] = cell;
      cell.split = true;
    }
    if (low) check(cell, i * 2, 1);
    if (high) check(odd[i], i * 2 + 1, 1);
    if (low && high && a.write) cell.split = false;
  }
}

// What `thread` of the cluster did at `when` on its warp's clock happened before now on `me`.
// Lanes of one warp are ordered by warp_sync alone.
bool ordered(Executor& x, u32 thread, u32 when, const LtFiber& me) {
  if (thread == me.linear) return true;
  const u32 warp = thread / 32, mine = x.warpOf(me);
  return when <= (warp == mine ? x.synced[warp] : x.knows(mine)[warp]);
}

// Reports are deduplicated before their text is made: finding a line costs a process.
bool first(Executor& x, const Access& a, char kind) {
  return x.seen.insert({u64(a.place.mark()), kind}).second;
}

void race(Executor& x, const Access& a, bool otherWrites, const Text& what, u32 other,
          u32 otherPlace, u32 otherBlock) {
  x.report(
      text("data race (%s after %s) on %s: %s at %s, against thread %u of block %u at %s, no "
           "barrier between",
           verb(a), otherWrites ? "write" : "read", what.chars, whoIs(*lt_self).chars,
           a.place.text(x).chars, other, otherBlock, placeOfMark(x, otherPlace).chars));
}

void checkCell(Executor& x, SharedCell& cell, u32 offset, const Access& a) {
  const LtFiber& me = *lt_self;
  if (cell.state == InFlight) {
    if (first(x, a, 'p'))
      x.report(
          text("%s %s while an asynchronous copy into it is in flight (issued by thread %u; "
               "wait missing): %s at %s",
               a.write ? "write to" : "read of", sharedName(x, offset).chars,
               x.fibers[cell.writer].inBlock, whoIs(me).chars, a.place.text(x).chars));
    if (!a.write) cell.state = Written;
  }
  if (!a.write && cell.state == Uninitialised) {
    if (first(x, a, 'u'))
      x.report(text("read of uninitialised %s by %s at %s", sharedName(x, offset).chars,
                    whoIs(me).chars, a.place.text(x).chars));
    cell.state = Written;
  }
  auto racing = [&](u16 thread, u32 when, u32 place, bool writes) {
    if (ordered(x, thread, when, me)) return;
    if (first(x, a, writes ? 'w' : 'r'))
      race(x, a, writes, sharedName(x, offset), x.fibers[thread].inBlock, place,
           x.blockOf(x.fibers[thread]).index);
  };
  if (cell.has & HasWrite) racing(cell.writer, cell.writeClock, cell.writePlace, true);
  const u32 now = x.clock[x.warpOf(me)];
  if (a.write) {
    if (cell.has & HasRead) racing(cell.reader, cell.readClock, cell.readPlace, false);
    if (cell.has & HasRead2) racing(cell.reader2, cell.read2Clock, cell.readPlace, false);
    cell.writer = me.linear;
    cell.writeClock = now;
    cell.writePlace = a.place.mark();
    cell.state = a.asynchronous ? InFlight : Written;
    cell.has = HasWrite;
  } else {
    if ((cell.has & HasRead) && cell.reader / 32u != x.warpOf(me)) {
      cell.reader2 = cell.reader;
      cell.read2Clock = cell.readClock;
      cell.has |= HasRead2;
    }
    cell.reader = me.linear;
    cell.readClock = now;
    cell.readPlace = a.place.mark();
    cell.has |= HasRead;
  }
}

// Through a view a parameter reaches what is its own alone.
const Extent* extentOf(const Executor& x, const Location& at) {
  const std::vector<Extent>& extents = x.launch->request->extents;
  if (!at.view || size_t(at.view) > extents.size()) return nullptr;
  const Extent& e = extents[size_t(at.view - 1)];
  return e.bytes < 0 ? nullptr : &e;
}

// Memory that a launch has touched which may still run has to be waited for.
void checkDependence(Executor& x, const Buffer& b, u64 offset, const GlobalCell& cell,
                     const Access& a) {
  const LaunchHistory& history = *x.launch->history;
  const bool waited = lt_self->depWaited;
  const bool written = history.mayRun(cell.writeLaunch, waited);
  if (!written && !(a.write && history.mayRun(cell.readLaunch, waited))) return;
  if (!first(x, a, 'd')) return;
  x.report(text("%s of %s + %llu (%s by kernel %s) %s: %s at %s", verb(a), b.name.c_str(), offset,
                written ? "written" : "read",
                history.describe(written ? cell.writeLaunch : cell.readLaunch).c_str(),
                waited ? "that may still run: a kernel in between overlaps and has no "
                         "griddepcontrol.wait"
                       : "before griddepcontrol.wait",
                whoIs(*lt_self).chars, a.place.text(x).chars));
}

void checkCell(Executor& x, const Buffer& b, GlobalCell& cell, u64 offset, u64 bytes,
               const Access& a) {
  const LtFiber& me = *lt_self;
  const Block& block = x.blockOf(me);
  const u32 launch = x.launch->history->number();
  checkDependence(x, b, offset, cell, a);
  if (a.write && cell.constantLaunch == launch && first(x, a, 'n'))
    x.report(text("write to %s + %llu, which ld.global.nc reads in the same kernel: %s at %s",
                  b.name.c_str(), offset, whoIs(me).chars, a.place.text(x).chars));
  auto racing = [&](u32 inBlock, u16 thread, u32 when, u32 place, bool writes) {
    const Block* other = nullptr;  // of this cluster
    for (const Block& candidate : x.blocks)
      if (candidate.index == inBlock && &candidate - x.blocks.data() < x.inCluster)
        other = &candidate;
    if (other && ordered(x, u32(other->first) + thread, when, me)) return;
    const auto& told = x.others[x.warpOf(me)];
    if (told && told->holds(inBlock, thread, when)) return;
    if (first(x, a, writes ? 'W' : 'R'))
      race(x, a, writes, text("%s + %llu (global memory)", b.name.c_str(), offset), thread, place,
           inBlock);
  };
  const bool written = cell.writeLaunch == launch, read = cell.readLaunch == launch;
  if (written) racing(cell.writeBlock, cell.writeThread, cell.writeClock, cell.writePlace, true);
  if (a.write && read)
    racing(cell.readBlock, cell.readThread, cell.readClock, cell.readPlace, false);
  const u32 now = x.clock[x.warpOf(me)];
  if (a.write) {
    if (!written) x.traffic.distinctWritten += bytes;
    cell.writeLaunch = launch;
    cell.writeBlock = block.index;
    cell.writeThread = me.inBlock;
    cell.writeClock = now;
    cell.writePlace = a.place.mark();
  } else {
    // What this launch wrote itself came from the chip: not another byte to fetch.
    if (!read && !written) x.traffic.distinctRead += bytes;
    cell.readLaunch = launch;
    cell.readBlock = block.index;
    cell.readThread = me.inBlock;
    cell.readClock = now;
    cell.readPlace = a.place.mark();
  }
}

}  // namespace

Text globalName(const Executor& x, const char* p) {
  const MemoryMap& memory = *x.launch->memory;
  const Location at = memory.locate(p);
  if (const Extent* e = extentOf(x, at)) {
    const long from = at.offset - e->offset;
    return text("%s %c %ld (parameter of %ld bytes in %s)", std::string(e->name).c_str(),
                from < 0 ? '-' : '+', std::labs(from), long(e->bytes), at.buffer->name.c_str());
  }
  const Buffer* next = memory.above(p);
  if (next && p >= next->region)
    return text("%s - %ld (before the buffer)", next->name.c_str(), long(next->base - p));
  if (at.buffer && at.offset < ptrdiff_t(at.buffer->bytes) + (1 << 20))
    return text("%s + %ld (buffer of %zu bytes)", at.buffer->name.c_str(), long(at.offset),
                at.buffer->bytes);
  return text("address %p, which is no buffer's", static_cast<const void*>(p));
}

Text Place::text(const Executor& x) const {
  if (file) return placeOf(file, line);
  return host::text("%s", x.launch->module->lineOf(code).c_str());
}

void checkShared(Executor& x, Block& b, u32 offset, const Access& a) {
  if (!sharedValid(x, offset, a.bytes))
    x.fatal(text("shared memory out of bounds: %s of %llu bytes at %s by %s at %s", verb(a),
                 a.bytes, sharedName(x, offset).chars, whoIs(*lt_self).chars,
                 a.place.text(x).chars));
  if (!x.checked) return;
  if (b.oddCells.empty()) b.oddCells.resize(kArena / 2);
  eachCell(b.cells.data(), b.oddCells.data(), offset, a,
           [&](SharedCell& cell, u64 at, u64) { checkCell(x, cell, u32(at), a); });
}

void checkGlobal(Executor& x, const char* p, const Access& a) {
  const Location at = x.launch->memory->locate(p);
  const Extent* e = extentOf(x, at);
  const ptrdiff_t begin = e ? e->offset : 0;
  const ptrdiff_t end = e ? e->offset + e->bytes : at.buffer ? ptrdiff_t(at.buffer->bytes) : 0;
  if (at.offset < begin || at.offset + ptrdiff_t(a.bytes) > end) {
    // Another thread's stack: arguments of a warp operation.
    if (!a.place.file && x.contains(p)) return;
    x.fatal(text("global memory out of bounds: %s of %llu bytes at %s by %s at %s", verb(a),
                 a.bytes, globalName(x, p).chars, whoIs(*lt_self).chars, a.place.text(x).chars));
  }
  (a.write ? x.traffic.written : x.traffic.read) += a.bytes;
  const Buffer& b = *at.buffer;
  if (!x.checked || !b.cells) return;
  eachCell(b.cells, b.oddCells, u64(at.offset), a, [&](GlobalCell& cell, u64 offset, u64 bytes) {
    checkCell(x, b, cell, offset, bytes, a);
  });
}

void checkReadOnly(Executor& x, const char* p, const Access& a) {
  const Location at = x.launch->memory->locate(p);
  // What lies outside is told by the access itself.
  if (!at.buffer || !at.buffer->cells || at.offset < 0 ||
      at.offset + ptrdiff_t(a.bytes) > ptrdiff_t(at.buffer->bytes))
    return;
  const LaunchHistory& history = *x.launch->history;
  const Buffer& b = *at.buffer;
  eachCell(b.cells, b.oddCells, u64(at.offset), a, [&](GlobalCell& cell, u64 offset, u64) {
    if (history.runsBeside(cell.writeLaunch) && first(x, a, 'n'))
      x.report(
          text("ld.global.nc of %s + %llu, which changes while the kernel may run (written by "
               "%s): %s at %s",
               b.name.c_str(), offset,
               cell.writeLaunch == history.number()
                   ? "the kernel itself"
                   : ("kernel " + history.describe(cell.writeLaunch)).c_str(),
               whoIs(*lt_self).chars, a.place.text(x).chars));
    cell.constantLaunch = history.number();
  });
}

}  // namespace lathe::cuda::host
