// SPDX-License-Identifier: Apache-2.0
// What orders blocks and launches: counters, griddepcontrol.wait, the ends of launches. Faults in
// it are told for any schedule.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lathe/runtime/error.h"
#include "tests/unit/cuda/host_cases.h"

namespace lathe::cuda {
namespace {

using testing::AllOf;
using testing::HasSubstr;

KernelCode kernel(const std::string& name, const std::string& body) {
  return {name,
          "#include \"lathe_device.cuh\"\nextern \"C\" __global__ void __launch_bounds__(64)\n" +
              name + "(int* to, const int* from, u32* counters) {\nconst int t = threadIdx.x;\n" +
              body + "\n}\n",
          "", ""};
}

class LaunchOrder : public testing::Test {
 protected:
  LaunchOrder() {
    for (int i = 0; i < 4; ++i) {
      buffers_.push_back(static_cast<int*>(driver_->allocate(256 * 4, "b" + std::to_string(i))));
      driver_->zero(buffers_.back(), 256 * 4);
    }
  }
  ~LaunchOrder() override {
    for (int* b : buffers_) driver_->release(b);
  }
  Driver::Function load(const std::string& name, const std::string& body) {
    return driver_->load({kernel(name, body)})[0];
  }
  void launch(Driver::Function f, int to, int from, bool overlaps = false, uint32_t blocks = 1) {
    LaunchConfig config = configOf(blocks, 1, 64);
    config.overlaps = overlaps;
    config.extents = {1024, 1024, 1024};
    config.counters = 2;
    void* arguments[] = {&buffers_[size_t(to)], &buffers_[size_t(from)], &buffers_[3]};
    driver_->launch(f, config, arguments);
  }
  std::string report() {
    try {
      driver_->synchronize();
    } catch (const Error& e) {
      return e.what();
    }
    return "clean";
  }

  std::unique_ptr<HostDriver> driver_ = openHost(host::parseOptions("check"));
  std::vector<int*> buffers_;
};

// A kernel lets the next one start before it has waited itself: two launches back may still run.
TEST_F(LaunchOrder, WhatAnyLaunchSinceTheLastBoundaryTouchedHasToBeWaitedFor) {
  const auto writes = load("writes", "grid_dep_wait();\nto[t] = t;");
  const auto idle = load("idle", "grid_dep_launch();\ngrid_dep_wait();");
  const auto early = load("early", "const int x = from[t];\ngrid_dep_wait();\nto[t] = x;");
  const auto late = load("late", "grid_dep_wait();\nto[t] = from[t];");
  for (int between = 0; between < 3; ++between) {
    launch(writes, 0, 1);
    for (int i = 0; i < between; ++i) launch(idle, 1, 1, true);
    launch(early, 2, 0, true);
    EXPECT_THAT(report(),
                AllOf(HasSubstr("read of b0 + 0 (written by kernel writes, " +
                                std::to_string(between + 1) + " launch"),
                      HasSubstr(") before griddepcontrol.wait: "), HasSubstr("at early.cu:5")));
    launch(writes, 0, 1);
    for (int i = 0; i < between; ++i) launch(idle, 1, 1, true);
    launch(late, 2, 0, true);
    EXPECT_EQ(report(), "clean") << between;
  }
  // Since then a launch has begun when all before it had ended.
  launch(writes, 0, 1);
  launch(idle, 1, 1);
  launch(early, 2, 0, true);
  EXPECT_EQ(report(), "clean");
  // So it is with a copy in between.
  launch(writes, 0, 1);
  driver_->zero(buffers_[1], 4);
  launch(early, 2, 0, true);
  EXPECT_EQ(report(), "clean");
}

// What an earlier launch reads must not be overwritten either.
TEST_F(LaunchOrder, WhatIsStillReadTwoLaunchesOnIsNotOverwritten) {
  const auto reads = load("reads", "grid_dep_wait();\nto[t] = from[t];");
  const auto idle = load("idle", "grid_dep_wait();");
  const auto early = load("early", "to[t] = 1;\ngrid_dep_wait();");
  launch(reads, 0, 1);
  launch(idle, 2, 2, true);
  launch(early, 1, 2, true);
  EXPECT_THAT(report(), HasSubstr("write of b1 + 0 (read by kernel reads, 2 launches before)"));
}

// A wait ends with the previous launch alone: if that did not wait, its own predecessors may run.
TEST_F(LaunchOrder, AKernelWithoutAWaitBreaksTheChain) {
  const auto writes = load("writes", "to[t] = t;");
  const auto idle = load("idle", "grid_dep_wait();");
  const auto hasty = load("hasty", "grid_dep_launch();");
  const auto late = load("late", "grid_dep_wait();\nto[t] = from[t];");
  launch(writes, 0, 1);
  launch(hasty, 1, 1, true);
  launch(late, 2, 0, true);
  EXPECT_THAT(report(), AllOf(HasSubstr("read of b0 + 0 (written by kernel writes, 2 launches "
                                        "before) that may still run: a kernel in between"),
                              HasSubstr("at late.cu:6")));
  launch(writes, 0, 1);
  launch(hasty, 1, 1, true);
  launch(idle, 1, 1, true);
  launch(late, 2, 0, true);
  EXPECT_THAT(report(), HasSubstr("read of b0 + 0 (written by kernel writes, 3 launches"));
  launch(writes, 0, 1);
  launch(hasty, 1, 1);
  launch(late, 2, 0, true);
  EXPECT_EQ(report(), "clean");
  // It ends with its last thread: one that waits is enough.
  const auto one = load("one", "if (t == 63) grid_dep_wait();");
  launch(writes, 0, 1);
  launch(one, 1, 1, true);
  launch(late, 2, 0, true);
  EXPECT_EQ(report(), "clean");
}

TEST_F(LaunchOrder, TheFirstLaunchOfARecordingOverlapsNothing) {
  const auto writes = load("writes", "grid_dep_wait();\nto[t] = t;");
  const auto early = load("early", "const int x = from[t];\ngrid_dep_wait();\nto[t] = x;");
  const auto first = driver_->record([&] {
    launch(early, 2, 0, true);
    launch(writes, 1, 1, true);
  });
  launch(writes, 0, 1);
  driver_->replay(*first);
  driver_->replay(*first);
  EXPECT_EQ(report(), "clean");
  const auto second = driver_->record([&] {
    launch(writes, 0, 1, true);
    launch(early, 2, 0, true);
  });
  driver_->replay(*second);
  EXPECT_THAT(report(), HasSubstr("written by kernel writes, 1 launch before"));
}

// PTX: ld.global.nc reads what does not change while the kernel runs, and that begins early.
TEST_F(LaunchOrder, ReadOnlyLoadsOfWhatChangesAreReported) {
  const auto writes = load("writes", "to[t] = t;");
  const auto idle = load("idle", "grid_dep_wait();");
  const auto constant = load(
      "constant", "grid_dep_wait();\nif (t < 16)\nto[t] = (int)ld_global_nc_16(from + 4 * t).x;");
  launch(writes, 0, 1);
  launch(constant, 2, 0);
  EXPECT_EQ(report(), "clean");
  for (bool far : {false, true}) {
    launch(writes, 0, 1);
    if (far) launch(idle, 1, 1, true);
    launch(constant, 2, 0, true);
    EXPECT_THAT(report(), AllOf(HasSubstr("ld.global.nc of b0 + 0, which changes while the kernel "
                                          "may run (written by kernel writes"),
                                HasSubstr("at constant.cu:7")));
  }
  launch(load("own",
              "to[t] = t;\nblock_sync();\nif (t < 16)\n"
              "to[64 + t] = (int)ld_global_nc_16(to + 4 * t).x;"),
         2, 1);
  EXPECT_THAT(report(), HasSubstr("(written by the kernel itself): block (0,0,0)"));
  launch(load("later",
              "const int x = (int)ld_global_nc_4(from + t);\nblock_sync();\n"
              "((int*)from)[t] = x;"),
         2, 1);
  EXPECT_THAT(report(), AllOf(HasSubstr(", which ld.global.nc reads in the same kernel: "),
                              HasSubstr("at later.cu:7")));
}

const std::string kAdd = "last[0] = counter_add_acq_rel(counters, 1) == gridDim.x - 1";
std::string combine(const std::string& before, const std::string& add, const std::string& after) {
  return "LATHE_SHARED(u32, last, 1);\nto[blockIdx.x * 64 + t] = t;\n" + before +
         "\nif (t == 0) {\n" + add + ";\n}\n" + after +
         "\nif (last[0]) {\nint sum = 0;\n"
         "for (u32 b = 0; b < gridDim.x; ++b) sum += to[b * 64 + (t + 33) % 64];\n"
         "((int*)from)[t] = sum;\n}";
}
const std::string kReset = ";\nif (last[0]) counter_store_release(counters, 0)";

// A thread that adds to a counter hands on what its warp knows: without the barrier in front, what
// the other warps of its block wrote is not among that.
TEST_F(LaunchOrder, CountersCarryWhatTheAddingWarpKnows) {
  struct Form {
    const char *name, *before, *after, *found;
  };
  for (const Form& form :
       {Form{"whole", "block_sync();", "block_sync();", "clean"},
        {"no_barrier", "", "block_sync();", "data race (read after write) on b0 + "},
        {"of_a_warp", "warp_sync();", "block_sync();", "data race (read after write) on b0 + "},
        {"not_behind", "block_sync();", "", "data race (read after write) on "}}) {
    launch(load(form.name, combine(form.before, kAdd + kReset, form.after)), 0, 1, false, 3);
    EXPECT_THAT(report(), HasSubstr(form.found)) << form.name;
    driver_->zero(buffers_[3], 1024);
  }
}

// Within a warp lanes are ordered by warp_sync: another lane's counter does not publish mine.
TEST_F(LaunchOrder, CountersCarryWhatTheAddingThreadKnowsOfItsWarp) {
  for (const char* sync : {"", "warp_sync();"}) {
    const std::string body =
        "if (t >= 32) return;\nto[blockIdx.x * 64 + t] = t;\n" + std::string(sync) +
        "\nu32 n = 0;\nif (t == 0) n = counter_add_acq_rel(counters, 1);\n"
        "n = shfl_idx(n, 0);\nif (n == 1) {\ncounter_store_release(counters, 0);\n"
        "((int*)from)[t] = to[(1 - blockIdx.x) * 64 + 31 - t];\n}";
    launch(load(*sync ? "ordered" : "unordered", body), 0, 1, false, 2);
    EXPECT_THAT(report(), HasSubstr(*sync ? "clean" : "data race (read after write) on b0 + "));
    driver_->zero(buffers_[3], 1024);
  }
}

// Neither does a counter publish what is written behind it.
TEST_F(LaunchOrder, WhatIsWrittenBehindACounterIsNotReleasedByIt) {
  const std::string body =
      "if (t == 0) {\nconst u32 n = counter_add_acq_rel(counters, 1);\nto[blockIdx.x] = 1;\n"
      "if (n == 1) {\n((int*)from)[0] = to[1 - blockIdx.x];\ncounter_store_release(counters, 0);\n}"
      "\n}";
  launch(load("behind", body), 0, 1, false, 2);
  EXPECT_THAT(report(), AllOf(HasSubstr("data race (read after write) on b0 + "),
                              HasSubstr("at behind.cu:9"), HasSubstr("at behind.cu:7")));
}

// A store is no link of the chain: who reads it learns nothing of the adders before.
TEST_F(LaunchOrder, AStoreReleasesWhatItsThreadKnowsAlone) {
  const std::string body =
      "if (t != 0) return;\nto[blockIdx.x] = 1;\n"
      "if (blockIdx.x == 0) counter_add_acq_rel(counters, 1);\n"
      "if (blockIdx.x == 1) counter_store_release(counters, 0);\n"
      "if (blockIdx.x == 2 && counter_load_acquire(counters) == 0)\n"
      "((int*)from)[0] = to[OTHER];";
  for (const char* other : {"0", "1"}) {
    std::string text = body;
    text.replace(text.find("OTHER"), 5, other);
    launch(load(std::string("reads_") + other, text), 0, 1, false, 3);
    EXPECT_THAT(report(), HasSubstr(*other == '1' ? "clean" : "data race (read after write)"));
  }
}

// Launches share the counters: the next one would be wrong.
TEST_F(LaunchOrder, ACounterThatIsNotLeftAtZeroIsReported) {
  for (const char* options : {"check", "fast"}) {
    driver_ = nullptr;
    buffers_.clear();
    driver_ = openHost(host::parseOptions(options));
    for (int i = 0; i < 4; ++i) {
      buffers_.push_back(static_cast<int*>(driver_->allocate(1024, "b")));
      driver_->zero(buffers_.back(), 1024);
    }
    launch(load("leaves", "if (t == 0) counter_add_acq_rel(counters + 5, 2);"), 0, 1, false, 3);
    EXPECT_THAT(report(), AllOf(HasSubstr("kernel leaves of 3x1x1 blocks"),
                                HasSubstr("counter 5 of counters is left at 6, expected 0")));
  }
}

}  // namespace
}  // namespace lathe::cuda
