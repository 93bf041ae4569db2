// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/hostexec/launch.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <numeric>

#include "backends/cuda/hostexec/executor.h"
#include "backends/cuda/hostexec/faults.h"
#include "lathe/runtime/error.h"
#include "lathe/runtime/thread_pool.h"

namespace lathe::cuda::host {
namespace {

// Executors own megabytes of stacks: they are used again.
class ExecutorPool {
 public:
  std::unique_ptr<Executor> take() {
    std::lock_guard lock(mutex_);
    if (free_.empty()) return std::make_unique<Executor>();
    auto x = std::move(free_.back());
    free_.pop_back();
    return x;
  }
  void giveBack(std::unique_ptr<Executor> x) {
    std::lock_guard lock(mutex_);
    free_.push_back(std::move(x));
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Executor>> free_;
};

ExecutorPool& pool() {
  // Not destroyed: fault handlers may still refer to its signal stacks.
  static auto& p = *new ExecutorPool();
  return p;
}

void expect(bool holds, const Kernel& kernel, const std::string& what) {
  if (!holds) throw Error(ErrorCode::InvalidArgument, "launch of " + kernel.name + ": " + what);
}

void validate(const Kernel& kernel, const LaunchRequest& r) {
  expect(
      r.threads > 0 && r.threads % 32 == 0 && r.threads <= u32(kMaxThreads), kernel,
      "expected whole warps and at most 1024 threads in a block, got " + std::to_string(r.threads));
  expect(r.sharedBytes <= kSharedMax, kernel,
         "expected at most 232448 bytes of dynamic shared memory, got " +
             std::to_string(r.sharedBytes));
  expect(r.grid.x > 0 && r.grid.y > 0 && r.grid.z > 0 && r.grid.x <= 0x7fffffff &&
             r.grid.y <= 65535 && r.grid.z <= 65535 &&
             uint64_t(r.grid.x) * r.grid.y * r.grid.z < (uint64_t(1) << 32),
         kernel,
         "expected a grid of at least 1 and at most 2147483647 x 65535 x 65535 blocks, got " +
             std::to_string(r.grid.x) + " x " + std::to_string(r.grid.y) + " x " +
             std::to_string(r.grid.z));
  expect(r.cluster > 0 && r.cluster <= u32(kMaxCluster) && r.grid.x % r.cluster == 0 &&
             (r.cluster & (r.cluster - 1)) == 0,
         kernel,
         "expected a cluster of 1, 2, 4, 8 or 16 blocks that divides the grid's x of " +
             std::to_string(r.grid.x) + ", got " + std::to_string(r.cluster));
}

std::vector<u32> blockOrder(const LaunchRequest& r) {
  std::vector<u32> order(size_t(r.grid.x) * r.grid.y * r.grid.z / r.cluster);
  std::iota(order.begin(), order.end(), 0u);
  if (r.options.order == Order::Reverse) std::reverse(order.begin(), order.end());
  u64 state = r.options.seed;
  for (size_t i = order.size(); r.options.order == Order::Random && i > 1; --i) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    std::swap(order[i - 1], order[(state >> 33) % i]);
  }
  return order;
}

}  // namespace

Result launch(const Kernel& kernel, const LaunchRequest& request, MemoryMap& memory,
              LaunchHistory& history) {
  validate(kernel, request);
  installFaultHandler();
  history.begin(kernel.name, request.overlaps);
  LaunchState state;
  state.module = kernel.module.get();
  state.kernel = &kernel;
  state.grid = &request.grid;
  state.request = &request;
  state.memory = &memory;
  state.history = &history;
  const std::vector<u32> order = blockOrder(request);
  std::atomic<size_t> at{0};
  // A cluster stays on one thread from its first to its last instruction.
  auto work = [&] {
    if (at >= order.size()) return;
    auto x = pool().take();
    x->begin(state);
    for (size_t i; !state.stop && (i = at++) < order.size();)
      x->runCluster(order[i] * request.cluster);
    x->end();
    pool().giveBack(std::move(x));
  };
  // The checks and gdb need one order of events.
  const bool alone = kernel.module->checked() || request.options.mode == Mode::Debug;
  ThreadPool& team = ThreadPool::global();
  const int workers = alone                     ? 1
                      : request.options.threads ? request.options.threads
                                                : team.threads();
  if (workers == 1)
    work();
  else
    team.run(int64_t(std::min<size_t>(size_t(workers), order.size())),
             [&](int64_t, int) { work(); });
  history.end(state.waited);
  if (!state.result.errors) reportCountersLeft(state);
  return std::move(state.result);
}

}  // namespace lathe::cuda::host
