// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/hostexec/executor.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "backends/cuda/hostexec/faults.h"
#include "backends/cuda/hostexec/sanitizer.h"

namespace lathe::cuda::host {

Executor::Executor() { signalStack_ = new char[64 << 10]; }

Executor::~Executor() {
  for (char* slab : slabs_) munmap(slab, kStack * kSlab);
  for (Block& b : blocks) munmap(b.arena, kArena);
  delete[] signalStack_;
}

void Executor::begin(LaunchState& state) {
  launch = &state;
  options = state.request->options;
  const LaunchRequest& r = *state.request;
  checked = state.module->checked();
  perBlock = int(r.threads);
  inCluster = int(r.cluster);
  threads = perBlock * inCluster;
  warpsPerBlock = u32(perBlock) / 32;
  warps = warpsPerBlock * u32(inCluster);
  fibers.resize(size_t(threads));
  if (copies.size() < size_t(threads)) copies.resize(size_t(threads));
  group.assign(size_t(threads), 0);
  u32 ring = 64;
  while (ring < 2 * u32(threads)) ring *= 2;
  if (ring_.size() < ring) ring_.resize(ring);
  mask_ = u32(ring_.size()) - 1;
  while (freeStacks_.size() < size_t(threads)) growStacks();
  while (blocks.size() < size_t(inCluster)) {
    void* arena = mmap(nullptr, kArena, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (arena == MAP_FAILED) throw std::bad_alloc();
    blocks.emplace_back().arena = static_cast<char*>(arena);
  }
  clock.assign(warps, 1);
  synced.assign(warps, 0);
  others.assign(warps, nullptr);
  if (checked) {
    known.assign(size_t(warps) * warps, 0);
    for (int i = 0; i < inCluster; ++i) blocks[size_t(i)].cells.resize(kArena / 2);
  }
  arrays.clear();
  seen.clear();
  staticTop = 1024;
  dynamicBytes = u32(r.sharedBytes);
  dynamicAt = u32(kArena - kZone - ((r.sharedBytes + 1023) & ~size_t(1023))) & ~1023u;
  budget = options.preemptEvery;
  rng_ = options.seed * 7919 + 1;
  traffic = {};
  switches = barriers = warpOps = bankConflicts = 0;
  mainStack_ = nullptr;
  current = this;
  useSignalStack(signalStack_, 64 << 10);
}

void Executor::end() {
  std::lock_guard lock(launch->mutex);
  Result& r = launch->result;
  r.switches += switches;
  r.barriers += barriers;
  r.warpOps += warpOps;
  r.bankConflicts += bankConflicts;
  r.traffic.read += traffic.read;
  r.traffic.written += traffic.written;
  r.traffic.distinctRead += traffic.distinctRead;
  r.traffic.distinctWritten += traffic.distinctWritten;
  current = nullptr;
}

void Executor::resetBlock(Block& b, u32 index, int rank) {
  b.index = index;
  b.first = rank * perBlock;
  b.live = perBlock;
  b.barrier = {};
  for (Rendezvous& n : b.named) n = {};
  for (u32 w = 0; w < warpsPerBlock; ++w) b.warps[w].arrived = 0;
  b.mbars.clear();
  b.bulks.clear();
  unpoison(b.arena, kArena);
  // NaN in every float format and a huge index; up to the static arrays met so far, and dynamic.
  std::memset(b.arena, 0xff, staticTop + kZone);
  std::memset(b.arena + dynamicAt, 0xff, kArena - dynamicAt);
  if (checked) {
    std::fill_n(b.cells.begin(), (staticTop + kZone) / 2, SharedCell{});
    std::fill(b.cells.begin() + dynamicAt / 2, b.cells.end(), SharedCell{});
  }
  if (haveAsan()) {
    poison(b.arena, kArena);
    for (const Array& a : arrays) unpoison(b.arena + a.offset, a.bytes);
    unpoison(b.arena + dynamicAt, dynamicBytes);
  }
}

void Executor::runCluster(u32 firstBlock) {
  const Shape3& grid = *launch->grid;
  live = threads;
  head_ = tail_ = 0;
  clusterArrived = 0;
  std::fill(clock.begin(), clock.end(), 1);
  std::fill(synced.begin(), synced.end(), 0);
  std::fill(others.begin(), others.end(), nullptr);
  if (checked) std::fill(known.begin(), known.end(), 0);
  for (int rank = 0; rank < inCluster; ++rank) {
    const u32 index = firstBlock + u32(rank);
    resetBlock(blocks[size_t(rank)], index, rank);
    const uint3 bid{index % grid.x, index / grid.x % grid.y, index / grid.x / grid.y};
    for (int i = 0; i < perBlock; ++i) {
      LtFiber& f = fibers[size_t(rank * perBlock + i)];
      f = LtFiber{};
      f.tid = uint3{u32(i), 0, 0};
      f.bid = bid;
      f.bdim = dim3(u32(perBlock));
      f.gdim = dim3(grid.x, grid.y, grid.z);
      f.clusterRank = u32(rank);
      f.clusterSize = u32(inCluster);
      f.linear = u16(rank * perBlock + i);
      f.inBlock = u16(i);
      f.warp = u16(i / 32);
      f.lane = u16(i % 32);
      f.state = Fresh;
    }
  }
  for (int i = 0; i < threads; ++i) {
    pushBack(u16(options.order == Order::Reverse ? threads - 1 - i : i));
    copies[size_t(i)].clear();
    group[size_t(i)] = 0;
  }
  start();
  if (std::any_of(fibers.begin(), fibers.begin() + threads,
                  [](const LtFiber& f) { return f.depWaited; }))
    launch->waited = true;
  if (!launch->stop) return;
  // Given up: take the stacks of unfinished fibers back.
  for (int i = 0; i < threads; ++i) {
    LtFiber& left = fibers[size_t(i)];
    if (left.state == Done || left.state == Fresh) continue;
    freeStacks_.push_back(left.stack);
    left.state = Done;
  }
}

}  // namespace lathe::cuda::host
