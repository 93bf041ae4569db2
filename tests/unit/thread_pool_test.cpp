// SPDX-License-Identifier: Apache-2.0
#include "lathe/runtime/thread_pool.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <numeric>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "lathe/runtime/error.h"

namespace lathe {
namespace {

TEST(ThreadPool, RunCallsEveryIndexOnce) {
  ThreadPool pool(3);
  for (int64_t count : {0, 1, 2, 3, 31, 257}) {
    std::vector<std::atomic<int>> calls(static_cast<size_t>(count));
    pool.run(count, [&](int64_t index, int) { ++calls[size_t(index)]; });
    for (auto& n : calls) EXPECT_EQ(n.load(), 1) << "of " << count;
  }
}

TEST(ThreadPool, SplitIsTheSameEveryTime) {
  ThreadPool pool(4);
  std::vector<int> first(257), again(257);
  pool.run(257, [&](int64_t index, int worker) { first[size_t(index)] = worker; });
  for (int i = 0; i < 50; ++i) {
    pool.run(257, [&](int64_t index, int worker) { again[size_t(index)] = worker; });
    ASSERT_EQ(first, again);
  }
}

TEST(ThreadPool, WorkersStayInRangeAndAllTakePart) {
  ThreadPool pool(4);
  std::vector<std::atomic<int>> calls(4);
  pool.run(400, [&](int64_t, int worker) { ++calls.at(size_t(worker)); });
  for (auto& n : calls) EXPECT_EQ(n.load(), 100);
}

TEST(ThreadPool, RunDynamicCallsEveryIndexOnce) {
  ThreadPool pool(3);
  for (int64_t count : {0, 1, 2, 3, 31, 257}) {
    std::vector<std::atomic<int>> calls(static_cast<size_t>(count));
    pool.runDynamic(count, [&](int64_t index, int worker) {
      EXPECT_LT(worker, 3);
      ++calls.at(size_t(index));
    });
    for (auto& n : calls) EXPECT_EQ(n.load(), 1) << "of " << count;
  }
}

TEST(ThreadPool, RunClaimsGivesEveryIndexOnce) {
  for (int threads : {1, 2, 3}) {
    ThreadPool pool(threads);
    for (int64_t count : {0, 1, 2, 3, 31, 257}) {
      std::vector<std::atomic<int>> calls(static_cast<size_t>(count));
      pool.runClaims(count, [&](ThreadPool::Claims& claims) {
        EXPECT_LT(claims.worker(), threads);
        for (int64_t index; (index = claims.next()) >= 0;) ++calls.at(size_t(index));
        EXPECT_EQ(claims.next(), -1);
      });
      for (auto& n : calls) EXPECT_EQ(n.load(), 1) << "of " << count << " by " << threads;
    }
  }
}

TEST(ThreadPool, RunClaimsLeavesNothingToAWorkerThatIsHeldUp) {
  ThreadPool pool(2);
  std::atomic<bool> heldUp{false}, finished{false};
  std::vector<int64_t> others;
  pool.runClaims(100, [&](ThreadPool::Claims& claims) {
    if (claims.worker() == 1) {
      EXPECT_EQ(claims.next(), 50);
      heldUp = true;
      while (!finished) std::this_thread::yield();
      EXPECT_EQ(claims.next(), -1);
      return;
    }
    while (!heldUp) std::this_thread::yield();
    for (int64_t index; (index = claims.next()) >= 0;) others.push_back(index);
    finished = true;
  });
  std::vector<int64_t> expected(50);
  std::iota(expected.begin(), expected.end(), 0);
  for (int64_t i = 99; i > 50; --i) expected.push_back(i);  // the other's share from its end
  EXPECT_EQ(others, expected);
}

TEST(ThreadPool, RunClaimsInsideOfARegionStaysOnItsThread) {
  ThreadPool pool(2);
  std::atomic<int> calls{0};
  pool.run(2, [&](int64_t, int) {
    pool.runClaims(5, [&](ThreadPool::Claims& claims) {
      EXPECT_EQ(claims.worker(), 0);
      while (claims.next() >= 0) ++calls;
    });
  });
  EXPECT_EQ(calls.load(), 10);
}

TEST(ThreadPool, RunClaimsRefusesTooManyItems) {
  ThreadPool pool(1);
  EXPECT_THROW(pool.runClaims(int64_t(1) << 32, [](ThreadPool::Claims&) {}), Error);
}

TEST(ThreadPool, ParallelForRangesStartAtGrains) {
  ThreadPool pool(3);
  std::atomic<int64_t> covered{0};
  std::atomic<bool> aligned{true};
  pool.parallelFor(5, 262, 16, [&](int64_t begin, int64_t end, int) {
    if ((begin - 5) % 16 != 0 || (end != 262 && (end - 5) % 16 != 0)) aligned = false;
    covered += end - begin;
  });
  EXPECT_TRUE(aligned);
  EXPECT_EQ(covered.load(), 257);
}

TEST(ThreadPool, ParallelForOfNothingCallsNothing) {
  ThreadPool pool(2);
  bool called = false;
  pool.parallelFor(7, 7, 1, [&](int64_t, int64_t, int) { called = true; });
  EXPECT_FALSE(called);
}

TEST(ThreadPool, ExceptionReachesTheCallerAndThePoolLivesOn) {
  ThreadPool pool(4);
  for (int64_t bad : {0, 3}) {
    try {
      pool.run(4, [&](int64_t index, int) {
        if (index == bad) throw Error(ErrorCode::Numeric, "bad index");
      });
      FAIL() << "nothing thrown";
    } catch (const Error& e) {
      EXPECT_STREQ(e.what(), "bad index");
    }
  }
  std::atomic<int> calls{0};
  pool.run(8, [&](int64_t, int) { ++calls; });
  EXPECT_EQ(calls.load(), 8);
}

TEST(ThreadPool, NestedCallRunsInPlace) {
  ThreadPool pool(3);
  std::atomic<int> calls{0};
  pool.run(6, [&](int64_t, int) {
    auto self = std::this_thread::get_id();
    pool.run(5, [&](int64_t, int worker) {
      EXPECT_EQ(std::this_thread::get_id(), self);
      EXPECT_EQ(worker, 0);
      ++calls;
    });
  });
  EXPECT_EQ(calls.load(), 30);
}

TEST(ThreadPool, CallersQueue) {
  ThreadPool pool(2);
  std::atomic<int> inside{0}, worst{0};
  std::atomic<int64_t> sum{0};
  auto caller = [&] {
    for (int i = 0; i < 200; ++i)
      pool.run(2, [&](int64_t index, int) {
        int now = ++inside;
        int seen = worst.load();
        while (now > seen && !worst.compare_exchange_weak(seen, now)) {
        }
        sum += index;
        --inside;
      });
  };
  std::thread a(caller), b(caller), c(caller);
  a.join();
  b.join();
  c.join();
  EXPECT_LE(worst.load(), 2) << "regions of two callers overlapped";
  EXPECT_EQ(sum.load(), 600);
}

TEST(ThreadPool, SleepingWorkersWake) {
  ThreadPool pool(2);
  std::atomic<int> calls{0};
  for (int i = 0; i < 3; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    pool.run(2, [&](int64_t, int) { ++calls; });
  }
  EXPECT_EQ(calls.load(), 6);
}

TEST(ThreadPool, ZeroThreadsIsAnError) {
  try {
    ThreadPool pool(0);
    FAIL() << "nothing thrown";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::InvalidArgument);
    EXPECT_STREQ(e.what(), "expected a thread pool of at least 1 thread, got 0");
  }
}

TEST(ThreadPool, GlobalPoolCanBeResized) {
  ThreadPool::setGlobalThreads(3);
  EXPECT_EQ(ThreadPool::global().threads(), 3);
  ThreadPool::setGlobalThreads(2);
  EXPECT_EQ(ThreadPool::global().threads(), 2);
}

// A forked child has no workers: it takes their shares in turn, split as with them.
TEST(ThreadPool, AForkedChildTakesEveryShare) {
  ThreadPool pool(3);
  auto shares = [&] {
    std::vector<int> worker(30, -1);
    pool.parallelFor(0, 30, 1, [&](int64_t begin, int64_t end, int w) {
      for (int64_t i = begin; i < end; ++i) worker[size_t(i)] = w;
    });
    return worker;
  };
  const std::vector<int> want = shares();
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::alarm(20);  // a hang ends
    ::_exit(shares() == want ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(shares(), want);
}

}  // namespace
}  // namespace lathe
