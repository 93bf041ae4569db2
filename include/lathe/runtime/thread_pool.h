// SPDX-License-Identifier: Apache-2.0
#pragma once
// The process's one team of threads. Which indices a region has does not depend on who runs them,
// so that equal thread counts give equal bits; workers spin briefly between regions because a
// decode step has over a hundred of them.
#include <atomic>
#include <cstdint>
#include <memory>
#include <type_traits>

namespace lathe {

/// A reference to a callable, without allocation; valid only while the callable lives.
template <class Signature>
class FunctionRef;
template <class R, class... Args>
class FunctionRef<R(Args...)> {
 public:
  template <class F>
    requires(!std::is_same_v<std::remove_cvref_t<F>, FunctionRef>)
  FunctionRef(F&& f)  // NOLINT: implicit by design, as a lambda is passed where it is expected
      : object_(const_cast<void*>(static_cast<const void*>(std::addressof(f)))),
        call_([](void* object, Args... args) -> R {
          return (*static_cast<std::remove_reference_t<F>*>(object))(args...);
        }) {}
  R operator()(Args... args) const { return call_(object_, args...); }

 private:
  void* object_;
  R (*call_)(void*, Args...);
};

/// A fixed team: the caller plus `threads - 1` workers. Calls from several threads queue for the
/// team; a call from inside a region runs on the calling thread alone, as worker 0 of 1 would.
/// The first exception thrown in a region is rethrown to its caller once the region has ended.
class ThreadPool {
 public:
  /// `threads` >= 1, the caller included; throws Error otherwise.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  /// The process's pool. Its size is LATHE_NUM_THREADS, else the CPUs this process may run on.
  static ThreadPool& global();
  /// The process's pool of `threads`, which global() is from now on. Pools of other sizes stay, as
  /// sessions use them; their threads sleep.
  static ThreadPool& setGlobalThreads(int threads);

  int threads() const { return threads_; }

  /// Calls `fn(index, worker)` for every index in [0, count). Worker w of W gets the contiguous
  /// share [count * w / W, count * (w + 1) / W). `worker` is in [0, threads()) and no two calls
  /// that run at the same time share it, so it can index scratch memory.
  void run(int64_t count, FunctionRef<void(int64_t index, int worker)> fn);
  /// A worker's way through the indices of a dynamic region.
  class Claims {
   public:
    /// In [0, threads()), as `run` numbers them.
    int worker() const { return worker_; }
    /// The next index of the worker's own share; then, from its end, one of a share that others
    /// have not begun; -1 when all are taken.
    int64_t next();

   private:
    friend class ThreadPool;
    /// The indices of a share that nobody has taken: the first in the lower half, the end above it.
    struct alignas(64) Left {
      std::atomic<uint64_t> range{0};
    };
    Claims(Left* shares, int workers, int worker)
        : shares_(shares), workers_(workers), worker_(worker) {}

    Left* const shares_;
    const int workers_, worker_;
  };
  /// As `run`, but a worker that has finished its share helps the others, so that a processor that
  /// is slow or has other work holds up none. For items of some microseconds and more; no result
  /// may depend on the worker. Throws Error for counts from 2^32 on.
  void runDynamic(int64_t count, FunctionRef<void(int64_t index, int worker)> fn);
  /// The same for workers that keep something from item to item: calls `fn` once for each worker,
  /// which takes all that it can from its claims.
  void runClaims(int64_t count, FunctionRef<void(Claims&)> fn);
  /// Splits [begin, end) into at most threads() ranges that start at multiples of `grain`
  /// (counted from `begin`) and calls `fn(begin, end, worker)` for each that is not empty.
  void parallelFor(int64_t begin, int64_t end, int64_t grain,
                   FunctionRef<void(int64_t begin, int64_t end, int worker)> fn);

 private:
  struct Team;
  /// Calls `prepare` first, while no other region runs.
  void dispatch(FunctionRef<void(int worker)> fn, FunctionRef<void()> prepare = [] {});

  int threads_;
  std::unique_ptr<Team> team_;
};

}  // namespace lathe
