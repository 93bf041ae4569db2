// SPDX-License-Identifier: Apache-2.0
#include "lathe/runtime/thread_pool.h"

#include <immintrin.h>
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <map>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "lathe/runtime/error.h"

namespace lathe {
namespace {

// Waiting threads spin for about 40 microseconds at common clock rates, longer than the gap between
// two kernels of a decode step. For about 200 they stay awake but give way to others: what one
// thread does between two steps, such as choosing a token of a large vocabulary, takes less, and to
// be woken takes long.
constexpr uint64_t kSpinTicks = 100'000, kAwakeTicks = 500'000;

// The pool whose region this thread is inside of, to run nested calls in place.
thread_local const ThreadPool* currentPool = nullptr;
struct Inside {
  explicit Inside(const ThreadPool* pool) : outer(std::exchange(currentPool, pool)) {}
  ~Inside() { currentPool = outer; }
  const ThreadPool* outer;
};

int availableCpus() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1u, std::thread::hardware_concurrency());
}

int defaultThreads() {
  const char* text = std::getenv("LATHE_NUM_THREADS");
  if (!text || !*text) return availableCpus();
  int value = 0;
  auto [end, ec] = std::from_chars(text, text + std::strlen(text), value);
  if (ec != std::errc() || *end != 0 || value < 1 || value > 4096)
    throw Error(ErrorCode::InvalidArgument,
                "expected LATHE_NUM_THREADS to be a whole number from 1 to 4096, got \"" +
                    std::string(text) + "\"; unset it to use every CPU");
  return value;
}

std::mutex globalLock;

// A forked child has none of its parent's threads: teams of before count as gone there.
std::atomic<uint32_t> forks{0};
void watchForks() {
  static const int watched =
      ::pthread_atfork([] { globalLock.lock(); }, [] { globalLock.unlock(); },
                       [] {
                         globalLock.unlock();
                         forks.fetch_add(1, std::memory_order_relaxed);
                       });
  (void)watched;
}

// Waits until `condition()` holds: awake first, then asleep on `word` while it equals `seen`.
template <class T, class Condition>
void spinThenWait(const std::atomic<T>& word, bool spin, Condition condition) {
  uint64_t start = __rdtsc();
  while (!condition(word.load(std::memory_order_acquire))) {
    const uint64_t waited = __rdtsc() - start;
    if (spin && waited < kAwakeTicks) {
      if (waited < kSpinTicks)
        _mm_pause();
      else
        sched_yield();
      continue;
    }
    T now = word.load(std::memory_order_acquire);
    if (!condition(now)) word.wait(now, std::memory_order_acquire);
  }
}

}  // namespace

struct ThreadPool::Team {
  std::mutex callers;
  std::vector<std::thread> threads;
  bool spin = true;
  const uint32_t bornIn = forks.load(std::memory_order_relaxed);
  bool gone() const { return bornIn != forks.load(std::memory_order_relaxed); }

  alignas(64) std::atomic<uint32_t> generation{0};
  alignas(64) std::atomic<int> running{0};
  bool stop = false;
  const FunctionRef<void(int)>* task = nullptr;
  std::vector<Claims::Left> shares;  // of the region that runs, if it is a dynamic one

  std::mutex failureLock;
  std::exception_ptr failure;

  void runTask(const ThreadPool* pool, int worker) {
    const ThreadPool* outer = std::exchange(currentPool, pool);
    try {
      (*task)(worker);
    } catch (...) {
      std::lock_guard lock(failureLock);
      if (!failure) failure = std::current_exception();
    }
    currentPool = outer;
  }

  void work(const ThreadPool* pool, int worker) {
    uint32_t seen = 0;
    while (true) {
      spinThenWait(generation, spin, [&](uint32_t now) { return now != seen; });
      seen = generation.load(std::memory_order_acquire);
      if (stop) return;
      runTask(pool, worker);
      if (running.fetch_sub(1, std::memory_order_acq_rel) == 1) running.notify_one();
    }
  }

  void wake() {
    generation.fetch_add(1, std::memory_order_acq_rel);
    generation.notify_all();
  }

  void join() {
    stop = true;
    wake();
    for (std::thread& thread : threads) thread.join();
  }
};

ThreadPool::ThreadPool(int threads) : threads_(threads), team_(std::make_unique<Team>()) {
  if (threads < 1)
    throw Error(ErrorCode::InvalidArgument,
                "expected a thread pool of at least 1 thread, got " + std::to_string(threads));
  watchForks();
  team_->shares = std::vector<Claims::Left>(size_t(threads));
  // More threads than processors: a spinning waiter would take the place of one that has work.
  team_->spin = threads <= availableCpus();
  try {
    for (int worker = 1; worker < threads; ++worker)
      team_->threads.emplace_back([this, worker] { team_->work(this, worker); });
  } catch (const std::system_error& e) {
    team_->join();
    throw Error(ErrorCode::OutOfMemory, "could not start " + std::to_string(threads) +
                                            " threads: " + e.what() + "; use fewer threads");
  }
}

ThreadPool::~ThreadPool() {
  if (team_->gone())
    (void)team_.release();  // its threads can be neither joined nor let go
  else
    team_->join();
}

void ThreadPool::dispatch(FunctionRef<void(int)> fn, FunctionRef<void()> prepare) {
  if (threads_ == 1 || currentPool == this) {
    const Inside inside(this);
    prepare();
    fn(0);
    return;
  }
  Team& team = *team_;
  if (team.gone()) {  // the shares in turn: the same split, and so the same bits
    prepare();
    for (int worker = 0; worker < threads_; ++worker) {
      const Inside inside(this);
      fn(worker);
    }
    return;
  }
  std::lock_guard lock(team.callers);
  prepare();
  team.failure = nullptr;
  team.task = &fn;
  team.running.store(threads_ - 1, std::memory_order_relaxed);
  team.wake();
  team.runTask(this, 0);
  spinThenWait(team.running, team.spin, [](int running) { return running == 0; });
  if (team.failure) std::rethrow_exception(std::exchange(team.failure, nullptr));
}

void ThreadPool::run(int64_t count, FunctionRef<void(int64_t, int)> fn) {
  if (count <= 0) return;
  // A nested call or a single item stays on this thread.
  int64_t parts = currentPool == this ? 1 : threads_;
  if (parts == 1 || count == 1) {
    for (int64_t i = 0; i < count; ++i) fn(i, 0);
    return;
  }
  dispatch([&](int worker) {
    int64_t end = count * (worker + 1) / parts;
    for (int64_t i = count * worker / parts; i < end; ++i) fn(i, worker);
  });
}

namespace {
uint64_t rangeOf(int64_t first, int64_t end) { return uint64_t(end) << 32 | uint64_t(first); }
}  // namespace

int64_t ThreadPool::Claims::next() {
  for (int i = 0; i < workers_; ++i) {
    std::atomic<uint64_t>& range = shares_[(worker_ + i) % workers_].range;
    uint64_t seen = range.load(std::memory_order_relaxed);
    while (true) {
      const int64_t first = int64_t(seen & 0xffffffff), end = int64_t(seen >> 32);
      if (first >= end) break;
      const bool own = i == 0;
      if (range.compare_exchange_weak(seen, own ? rangeOf(first + 1, end) : rangeOf(first, end - 1),
                                      std::memory_order_relaxed))
        return own ? first : end - 1;
    }
  }
  return -1;
}

void ThreadPool::runDynamic(int64_t count, FunctionRef<void(int64_t, int)> fn) {
  runClaims(count, [&](Claims& claims) {
    for (int64_t index; (index = claims.next()) >= 0;) fn(index, claims.worker());
  });
}

void ThreadPool::runClaims(int64_t count, FunctionRef<void(Claims&)> fn) {
  if (count <= 0) return;
  if (count > int64_t(UINT32_MAX))
    throw Error(ErrorCode::InvalidArgument,
                "expected fewer than 2^32 items of a dynamic region, got " + std::to_string(count));
  // A nested call or a single item stays on this thread.
  if (threads_ == 1 || currentPool == this || count == 1) {
    Claims::Left all;
    all.range.store(rangeOf(0, count), std::memory_order_relaxed);
    Claims claims(&all, 1, 0);
    fn(claims);
    return;
  }
  std::vector<Claims::Left>& shares = team_->shares;
  dispatch(
      [&](int worker) {
        Claims claims(shares.data(), threads_, worker);
        fn(claims);
      },
      [&] {
        const int64_t parts = threads_;
        for (int64_t part = 0; part < parts; ++part)
          shares[size_t(part)].range.store(
              rangeOf(count * part / parts, count * (part + 1) / parts), std::memory_order_relaxed);
      });
}

void ThreadPool::parallelFor(int64_t begin, int64_t end, int64_t grain,
                             FunctionRef<void(int64_t, int64_t, int)> fn) {
  if (end <= begin) return;
  grain = std::max<int64_t>(grain, 1);
  int64_t grains = (end - begin + grain - 1) / grain;
  int64_t parts = currentPool == this ? 1 : std::min<int64_t>(threads_, grains);
  if (parts == 1) {
    fn(begin, end, 0);
    return;
  }
  dispatch([&](int worker) {
    if (worker >= parts) return;
    int64_t from = begin + grains * worker / parts * grain;
    int64_t to = std::min(end, begin + grains * (worker + 1) / parts * grain);
    if (from < to) fn(from, to, worker);
  });
}

namespace {
struct GlobalPools {
  std::map<int, std::unique_ptr<ThreadPool>> bySize;
  ThreadPool* current = nullptr;

  ThreadPool& choose(int threads) {
    auto& pool = bySize[threads];
    if (!pool) pool = std::make_unique<ThreadPool>(threads);
    current = pool.get();
    return *current;
  }
};
GlobalPools& globalPools() {
  static GlobalPools pools;
  return pools;
}
}  // namespace

ThreadPool& ThreadPool::global() {
  std::lock_guard lock(globalLock);
  GlobalPools& pools = globalPools();
  return pools.current ? *pools.current : pools.choose(defaultThreads());
}

ThreadPool& ThreadPool::setGlobalThreads(int threads) {
  std::lock_guard lock(globalLock);
  return globalPools().choose(threads);
}

}  // namespace lathe
