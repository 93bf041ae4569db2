// SPDX-License-Identifier: Apache-2.0
// What kernel modules call: shared memory, barriers, clusters, accesses.
#include <algorithm>
#include <cstring>
#include <fstream>
#include <string>

#include "backends/cuda/hostexec/checks.h"
#include "backends/cuda/hostexec/sanitizer.h"

namespace lathe::cuda::host {

Text placeOf(const char* file, int line) {
  const char* slash = file ? std::strrchr(file, '/') : nullptr;
  return text("%s:%d", slash ? slash + 1 : file ? file : "?", line);
}

Text whoIs(const LtFiber& f) {
  return text("block (%u,%u,%u) thread (%u,%u,%u) [warp %u lane %u]", f.bid.x, f.bid.y, f.bid.z,
              f.tid.x, f.tid.y, f.tid.z, f.warp, f.lane);
}

Text sharedName(const Executor& x, u32 offset) {
  const Array* best = nullptr;
  for (const Array& a : x.arrays)
    if (offset + kZone >= a.offset && offset < a.offset + a.bytes + kZone &&
        (!best || offset >= a.offset))
      best = &a;
  if (best)
    return text("%s + %d (array of %u bytes)", best->name, int(offset) - int(best->offset),
                best->bytes);
  if (x.dynamicBytes)
    return text("dynamic shared memory + %d (%u bytes)", int(offset) - int(x.dynamicAt),
                x.dynamicBytes);
  return text("shared address 0x%x", offset);
}

namespace {

void mark(LtFiber* me, int op, const char* file, int line) {
  me->op = u8(op);
  me->file = file;
  me->line = line;
}

void wakeAll(Executor& x, int from, int to) {
  for (int i = to; i-- > from;)
    if (i != lt_self->linear) x.wake(x.fibers[size_t(i)]);
}

void suspend(Executor& x) {
  lt_self->state = Waiting;
  x.yield();
}

// What a kernel text says there: its names.
Text lineOf(const char* file, int line) {
  std::ifstream source(file);
  std::string words;
  for (int i = 0; i < line && std::getline(source, words);) ++i;
  const size_t first = words.find_first_not_of(' ');
  return text("%.120s", source && first != words.npos ? words.c_str() + first : "");
}

}  // namespace
}  // namespace lathe::cuda::host

using namespace lathe::cuda::host;

extern "C" {

void lt_block(int op, void* argument, LtTree tree, const char* file, int line) {
  Executor& x = *current;
  LtFiber* me = lt_self;
  Block& b = x.blockOf(*me);
  Rendezvous& r = b.barrier;
  x.maybeLand();
  if (r.arrived == 0) {
    r.op = u8(op);
    r.file = file;
    r.line = line;
  } else if (r.op != op || r.line != line || r.file != file) {
    x.fatal(text("divergent barrier: %s is at %s, earlier threads at %s", whoIs(*me).chars,
                 placeOf(file, line).chars, placeOf(r.file, r.line).chars));
  }
  mark(me, op, file, line);
  me->waitOn = argument;
  if (++r.arrived < x.perBlock) return suspend(x);
  r.arrived = 0;
  ++x.barriers;
  if (tree) {
    void* values[kMaxThreads];
    for (int i = 0; i < x.perBlock; ++i)
      values[i] = const_cast<void*>(x.fibers[size_t(b.first + i)].waitOn);
    tree(values, x.perBlock);
  }
  x.joinClocks(x.warpOf(x.fibers[size_t(b.first)]),
               x.warpOf(x.fibers[size_t(b.first)]) + x.warpsPerBlock);
  wakeAll(x, b.first, b.first + x.perBlock);
}

void lt_named(int id, int threads, const char* file, int line) {
  Executor& x = *current;
  LtFiber* me = lt_self;
  Block& b = x.blockOf(*me);
  if (id < 1 || id >= kNamed || threads % 32 || threads < 32 || threads > x.perBlock)
    x.fatal(
        text("named_sync(%d, %d): expected an id in 1..15 and whole warps of the block, %s at %s",
             id, threads, whoIs(*me).chars, placeOf(file, line).chars));
  Rendezvous& r = b.named[id];
  x.maybeLand();
  if (r.arrived == 0) {
    r.threads = threads;
    r.file = file;
    r.line = line;
  } else if (r.threads != threads) {
    x.fatal(text("named_sync %d: %s at %s expects %d threads, earlier ones at %s expect %d", id,
                 whoIs(*me).chars, placeOf(file, line).chars, threads,
                 placeOf(r.file, r.line).chars, r.threads));
  }
  mark(me, LT_NAMED, file, line);
  me->waitOn = &r;
  if (++r.arrived < threads) return suspend(x);
  r.arrived = 0;
  ++x.barriers;
  me->state = Waiting;
  std::vector<u32>& taking = x.taking;
  taking.clear();
  for (int i = b.first + x.perBlock; i-- > b.first;) {
    LtFiber& f = x.fibers[size_t(i)];
    if (f.state != Waiting || f.op != LT_NAMED || f.waitOn != &r) continue;
    if (taking.empty() || taking.back() != x.warpOf(f)) taking.push_back(x.warpOf(f));
    if (&f != me) x.wake(f);
  }
  me->state = Running;
  x.joinClocks(taking);
}

void* lt_shared(const char* name, u64 bytes, u64 align, const void* key) {
  Executor& x = *current;
  Block& b = x.blockOf(*lt_self);
  for (const Array& a : x.arrays)
    if (a.key == key) return b.arena + a.offset;
  const u32 offset = u32((x.staticTop + kZone + align - 1) & ~(align - 1));
  u64 total = x.dynamicBytes + ((bytes + 127) & ~u64(127));
  for (const Array& a : x.arrays) total += (a.bytes + 127) & ~127u;
  const u64 end = offset + bytes, room = x.dynamicBytes ? x.dynamicAt : kArena;
  if (total > kSharedMax || end + kZone > room)
    x.fatal(text("shared memory exceeds 227 KiB at array %s: %llu bytes", name, total));
  x.arrays.push_back({key, name, offset, u32(bytes)});
  x.staticTop = u32(end);
  for (int r = 0; r < x.inCluster; ++r) {
    Block& each = x.blocks[size_t(r)];
    unpoison(each.arena + offset, bytes);
    std::memset(each.arena + offset, 0xff, bytes);
    if (x.checked)
      std::fill(each.cells.begin() + offset / 2, each.cells.begin() + long(end + 1) / 2,
                SharedCell{});
  }
  return b.arena + offset;
}

void* lt_dyn_shared() { return current->blockOf(*lt_self).arena + current->dynamicAt; }

u32 lt_smem_addr(const void* p, const char* file, int line) {
  Executor& x = *current;
  const char* arena = x.blockOf(*lt_self).arena;
  const auto offset = uintptr_t(p) - uintptr_t(arena);
  if (offset >= kArena)
    x.fatal(text("smem_addr of a pointer outside the block's shared memory: %s at %s",
                 whoIs(*lt_self).chars, placeOf(file, line).chars));
  return u32(offset);
}

void* lt_smem_at(u32 address, u32 bytes, const char* file, int line) {
  Executor& x = *current;
  if (address % bytes)
    x.fatal(text("misaligned %u-byte access to %s by %s at %s", bytes, sharedName(x, address).chars,
                 whoIs(*lt_self).chars, placeOf(file, line).chars));
  if (address > kArena - bytes)
    x.fatal(text("shared memory out of bounds: address 0x%x by %s at %s", address,
                 whoIs(*lt_self).chars, placeOf(file, line).chars));
  return x.blockOf(*lt_self).arena + address;
}

void lt_cluster_sync(const char* file, int line) {
  Executor& x = *current;
  x.maybeLand();
  mark(lt_self, LT_CLUSTER, file, line);
  if (++x.clusterArrived < x.threads) return suspend(x);
  x.clusterArrived = 0;
  ++x.barriers;
  x.joinClocks(0, x.warps);
  wakeAll(x, 0, x.threads);
}

void lt_cluster_read(void* to, const void* local, u32 bytes, u32 rank, const char* file, int line) {
  Executor& x = *current;
  const u32 offset = lt_smem_addr(local, file, line);
  if (rank >= u32(x.inCluster))
    x.fatal(text("cluster_read of rank %u in a cluster of %d: %s at %s", rank, x.inCluster,
                 whoIs(*lt_self).chars, placeOf(file, line).chars));
  Block& b = x.blocks[rank];
  if (b.live == 0)
    x.fatal(text("cluster_read of block %u, whose threads have returned: %s at %s", b.index,
                 whoIs(*lt_self).chars, placeOf(file, line).chars));
  checkShared(x, b, offset, {bytes, false, {0, file, line}});
  std::memcpy(to, b.arena + offset, bytes);
}

void lt_misaligned(const void* p, u32 bytes, const char* file, int line) {
  Executor& x = *current;
  x.fatal(text("misaligned %u-byte access to %s by %s at %s", bytes,
               globalName(x, static_cast<const char*>(p)).chars, whoIs(*lt_self).chars,
               placeOf(file, line).chars));
}

void lt_no_element(i64 at, int n, const char* file, int line) {
  Executor& x = *current;
  x.fatal(text("element %lld of a vector of %d: %s at %s: %s", at, n, whoIs(*lt_self).chars,
               placeOf(file, line).chars, lineOf(file, line).chars));
}

void lt_read_only(const void* p, u32 bytes, const char* file, int line) {
  checkReadOnly(*current, static_cast<const char*>(p), {bytes, false, {0, file, line}});
}

void lt_access(const void* p, u64 bytes, int isWrite, const void* pc) {
  Executor* x = current;
  LtFiber* me = lt_self;
  if (!x || !me) return;
  const auto a = uintptr_t(p);
  if (a - uintptr_t(me->stack) < kStack) return;
  const Module& module = *x->launch->module;
  const Access access{bytes, isWrite != 0, {u32(uintptr_t(pc) - module.base())}};
  Block& b = x->blockOf(*me);
  const auto* fibers = reinterpret_cast<const char*>(x->fibers.data());
  if (a - uintptr_t(b.arena) < kArena)
    checkShared(*x, b, u32(a - uintptr_t(b.arena)), access);
  else if (module.contains(a))  // its constants
    return;
  else if (a - uintptr_t(fibers) < x->fibers.size() * sizeof(LtFiber) || p == &lt_self)
    return;  // threadIdx and its like
  else
    checkGlobal(*x, static_cast<const char*>(p), access);
  if (x->budget && --x->budget == 0) {
    x->budget = 1 + x->random() % (2 * x->options.preemptEvery);
    x->preempt();
  }
}

}  // extern "C"
