// SPDX-License-Identifier: Apache-2.0
// How large the last cache is, by which buffers are chosen that reach memory.
#include "backends/cpu/device/read_memory.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace lathe::cpu {
namespace {

class LastCache : public testing::Test {
 protected:
  LastCache() { std::filesystem::create_directories(folder_); }
  ~LastCache() override { std::filesystem::remove_all(folder_); }

  // One cache of a processor as Linux lists it.
  void list(int cpu, int index, int level, const std::string& size, const std::string& sharers) {
    const auto cache =
        folder_ / ("cpu" + std::to_string(cpu)) / "cache" / ("index" + std::to_string(index));
    std::filesystem::create_directories(cache);
    std::ofstream(cache / "level") << level << "\n";
    std::ofstream(cache / "size") << size << "\n";
    std::ofstream(cache / "shared_cpu_list") << sharers << "\n";
  }
  int64_t bytes(const std::vector<int>& cpus) const {
    return lastCacheBytes(cpus, folder_.string());
  }

  const std::filesystem::path folder_ =
      std::filesystem::path(testing::TempDir()) / ("cpus" + std::to_string(getpid()));
};

constexpr int64_t kMiB = int64_t(1) << 20;

TEST_F(LastCache, ProcessorsThatShareItCountItOnce) {
  for (int cpu : {0, 1}) {
    list(cpu, 0, 1, "32K", std::to_string(cpu));
    list(cpu, 1, 2, "512K", std::to_string(cpu));
    list(cpu, 2, 3, "32768K", "0-1");
  }
  EXPECT_EQ(bytes({0, 1}), 32 * kMiB);
}

TEST_F(LastCache, PiecesOfSeveralGroupsAreAddedUp) {
  list(0, 0, 3, "32768K", "0-7");
  list(8, 0, 3, "32768K", "8-15");
  list(9, 0, 3, "32768K", "8-15");
  EXPECT_EQ(bytes({0, 8, 9}), 64 * kMiB);
  EXPECT_EQ(bytes({8, 9}), 32 * kMiB) << "of processors that are not this process's";
}

TEST_F(LastCache, AFourthLevelIsTheLast) {
  list(0, 0, 3, "4M", "0");
  list(0, 1, 4, "128M", "0-1");
  list(1, 0, 3, "4M", "1");
  list(1, 1, 4, "128M", "0-1");
  EXPECT_EQ(bytes({0, 1}), 128 * kMiB);
}

// The second level is small, and no word of what lies behind it.
TEST_F(LastCache, WithoutAThirdLevelItIsThatOfACommonProcessor) {
  const int64_t unknown = lastCacheBytes({0}, (folder_ / "nothing").string());
  EXPECT_GE(unknown, kMiB);
  list(0, 0, 1, "32K", "0");
  list(0, 1, 2, "1024K", "0");
  EXPECT_EQ(bytes({0}), unknown);
  for (const char* strange : {"plenty", "12x", "-4M", "1G", "99999999999999999999K"}) {
    list(0, 2, 3, strange, "0");
    EXPECT_EQ(bytes({0}), unknown) << strange;
  }
  EXPECT_EQ(bytes({}), unknown);
}

TEST_F(LastCache, BuffersExceedThatOfThisMachineTwice) {
  EXPECT_EQ(twiceLastCache(), 2 * lastCacheBytes());
  EXPECT_GT(lastCacheBytes(), 0);
}

}  // namespace
}  // namespace lathe::cpu
