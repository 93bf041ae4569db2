// SPDX-License-Identifier: Apache-2.0
// Fibers: stacks, the ready queue, direct switches from fiber to fiber, the deadlock report.
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "backends/cuda/hostexec/executor.h"
#include "backends/cuda/hostexec/sanitizer.h"

extern "C" void lt_switch(void** save, void* to);

// Exported: kernel modules read it.
extern "C" {
__thread LtFiber* lt_self = nullptr;
}

namespace lathe::cuda::host {

__thread Executor* current = nullptr;

namespace {

struct SwitchTo {
  void* sp;
  const void* bottom;
  size_t bytes;
};

void switchFiber(void** save, void** fakeSave, SwitchTo to, void** fakeMine) {
  if (__sanitizer_start_switch_fiber) __sanitizer_start_switch_fiber(fakeSave, to.bottom, to.bytes);
  lt_switch(save, to.sp);
  if (__sanitizer_finish_switch_fiber) __sanitizer_finish_switch_fiber(*fakeMine, nullptr, nullptr);
}

const char* const kWaits[] = {
    "",    "a warp shuffle", "warp_ballot",       "a warp reduction", "warp_sync", "ldmatrix",
    "mma", "block_sync",     "a block reduction", "named_sync",       "mbar_wait", "cluster_sync"};

}  // namespace

u32 Executor::random() {
  rng_ = rng_ * 6364136223846793005ull + 1442695040888963407ull;
  return u32(rng_ >> 33);
}

bool Executor::contains(const void* p) const {
  for (const char* slab : slabs_)
    if (uintptr_t(p) - uintptr_t(slab) < kStack * kSlab) return true;
  return false;
}

void Executor::growStacks() {
  void* p = mmap(nullptr, kStack * kSlab, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) throw std::bad_alloc();
  slabs_.push_back(static_cast<char*>(p));
  for (int i = kSlab; i-- > 0;) {
    char* stack = slabs_.back() + size_t(i) * kStack;
    mprotect(stack, kGuard, PROT_NONE);
    freeStacks_.push_back(stack + kGuard);
  }
}

void* Executor::freshStack(LtFiber& f) {
  f.stack = freeStacks_.back();
  freeStacks_.pop_back();
  unpoisonStack(f.stack, kStack - kGuard);
  // Equal offsets of all stacks would fight for the same cache sets.
  const size_t colour = (uintptr_t(f.stack) / kStack % 31) * 192;
  auto** sp = reinterpret_cast<void**>(f.stack + kStack - kGuard - 64 - (colour & ~size_t(63)));
  *--sp = nullptr;  // ends backtraces; at a function's entry rsp % 16 is 8
  *--sp = reinterpret_cast<void*>(&Executor::fiberMain);
  sp -= 6;
  std::memset(sp, 0, 6 * sizeof(void*));
  return sp;
}

u16 Executor::pop() {
  if (options.order == Order::Random)
    std::swap(ring_[head_ & mask_], ring_[(head_ + random() % (tail_ - head_)) & mask_]);
  return ring_[head_++ & mask_];
}

void Executor::wake(LtFiber& f) {
  f.state = Ready;
  options.order == Order::Forward ? pushFront(f.linear) : pushBack(f.linear);
}

void Executor::preempt() {
  lt_self->state = Ready;
  pushBack(lt_self->linear);
  yield();
}

void Executor::report(const char* message) {
  std::lock_guard lock(launch->mutex);
  Result& r = launch->result;
  if (++r.errors <= 16) r.report.append(message).append("\n");
}

void Executor::reportDeadlock() {
  Text t = text("deadlock, no thread can run:");
  size_t length = std::strlen(t);
  for (int i = 0; i < threads && length < sizeof t.chars - 100;) {
    const LtFiber& f = fibers[size_t(i)];
    int j = i;
    while (j + 1 < threads && fibers[size_t(j + 1)].clusterRank == f.clusterRank &&
           fibers[size_t(j + 1)].state == f.state &&
           (f.state == Done ||
            (fibers[size_t(j + 1)].op == f.op && fibers[size_t(j + 1)].line == f.line)))
      ++j;
    const Text where = f.state == Done
                           ? text("have returned")
                           : text("wait at %s %s", kWaits[f.op], placeOf(f.file, f.line).chars);
    length += size_t(snprintf(t.chars + length, sizeof t.chars - length,
                              "\n    block (%u,%u,%u) threads %d-%d: %s", f.bid.x, f.bid.y, f.bid.z,
                              f.inBlock, fibers[size_t(j)].inBlock, where.chars));
    i = j + 1;
  }
  report(t);
}

// The next fiber to run, or null when the cluster is finished or given up.
LtFiber* Executor::next() {
  while (head_ == tail_) {
    if (live == 0) return nullptr;
    if (progress()) continue;
    reportDeadlock();
    launch->stop = true;
    return nullptr;
  }
  return &fibers[pop()];
}

void Executor::toMain(bool dead) {
  LtFiber* me = lt_self;
  lt_self = nullptr;
  switchFiber(dead ? &trash_ : &me->sp, dead ? nullptr : &me->fakeStack,
              {mainSp_, mainStack_, mainStackSize_}, &me->fakeStack);
}

void Executor::abandon() {
  launch->stop = true;
  toMain(false);
  __builtin_unreachable();
}

void Executor::yield() {
  LtFiber *me = lt_self, *to = next();
  if (!to) {
    toMain(false);
    __builtin_unreachable();
  }
  if (to == me) {
    me->state = Running;
    return;
  }
  ++switches;
  void* sp = to->state == Fresh ? freshStack(*to) : to->sp;
  to->state = Running;
  lt_self = to;
  switchFiber(&me->sp, &me->fakeStack, {sp, to->stack, kStack - kGuard}, &me->fakeStack);
}

void Executor::fiberMain() {
  Executor& x = *current;
  if (__sanitizer_finish_switch_fiber)
    __sanitizer_finish_switch_fiber(nullptr, x.mainStack_ ? nullptr : &x.mainStack_,
                                    &x.mainStackSize_);
  for (;;) {
    x.launch->kernel->entry(x.launch->request->arguments);
    LtFiber* me = lt_self;
    me->state = Done;
    --x.blockOf(*me).live;
    --x.live;
    LtFiber* to = x.next();
    if (to && to->state == Fresh) {
      // No barrier was met: the next thread starts on the same stack, without a switch.
      to->stack = me->stack;
      to->state = Running;
      lt_self = to;
      continue;
    }
    x.freeStacks_.push_back(me->stack);
    if (!to) x.toMain(true);
    ++x.switches;
    to->state = Running;
    lt_self = to;
    switchFiber(&x.trash_, nullptr, {to->sp, to->stack, kStack - kGuard}, &me->fakeStack);
  }
}

void Executor::joinClocks(u32 from, u32 to) {
  if (!checked) return;
  taking.clear();
  for (u32 w = from; w < to; ++w) taking.push_back(w);
  joinClocks(taking);
}

void Executor::joinClocks(const std::vector<u32>& those) {
  if (!checked) return;
  for (u32 v = 0; v < warps; ++v) {
    u32 most = 0;
    for (u32 w : those) most = std::max(most, w == v ? clock[v] : knows(w)[v]);
    for (u32 w : those) knows(w)[v] = most;
  }
  for (u32 w : those) orderLanes(w);
  if (std::ranges::all_of(those, [&](u32 w) { return others[w] == others[those[0]]; })) return;
  auto all = std::make_shared<KnownBlocks>();
  for (u32 w : those)
    if (others[w]) all->add(*others[w]);
  for (u32 w : those) others[w] = all;
}

void Executor::start() {
  LtFiber* f = next();
  void* sp = freshStack(*f);
  f->state = Running;
  lt_self = f;
  switchFiber(&mainSp_, &mainFake_, {sp, f->stack, kStack - kGuard}, &mainFake_);
  lt_self = nullptr;
}

}  // namespace lathe::cuda::host
