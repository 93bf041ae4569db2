// SPDX-License-Identifier: Apache-2.0
#pragma once
// Tests of random graphs try other ones on request: `random_graphs_test SEED COUNT`.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <string>

namespace lathe::conformance {

struct Seeds {
  uint64_t first;
  int count;
  uint64_t end() const { return first + uint64_t(count); }
};

/// The main function of such a test; arguments change `seeds`.
inline int runWithSeeds(int argc, char** argv, Seeds& seeds) {
  ::testing::InitGoogleTest(&argc, argv);
  if (argc == 3) seeds = {std::stoull(argv[1]), std::stoi(argv[2])};
  std::printf("seeds %llu to %llu\n", static_cast<unsigned long long>(seeds.first),
              static_cast<unsigned long long>(seeds.end() - 1));
  return RUN_ALL_TESTS();
}

}  // namespace lathe::conformance
