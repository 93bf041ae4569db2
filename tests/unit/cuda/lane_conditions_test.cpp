// SPDX-License-Identifier: Apache-2.0
// Conditions that differ by lane: whatever lanes hold, the expression of the lane says so.
#include <gtest/gtest.h>

#include <cinttypes>
#include <cstdio>
#include <string>
#include <vector>

#include "backends/cuda/lowering/text/loop_printer.h"

namespace lathe::cuda {
namespace {

// Of the forms in which conditions are written: `j < 2`, `j % 4 >= 1`, `(0x5 >> j & 1) != 0`.
bool holds(const std::string& text, int64_t lane) {
  if (text == "true" || text == "false") return text == "true";
  uint64_t bits = 0;
  if (std::sscanf(text.c_str(), "(0x%" SCNx64, &bits) == 1) return bits >> lane & 1;
  int64_t size = 0, number = 0;
  char compare[3] = "";
  if (std::sscanf(text.c_str(), "j %% %" SCNd64 " %2[<>=!] %" SCNd64, &size, compare, &number) == 3)
    lane %= size;
  else if (std::sscanf(text.c_str(), "j %2[<>=!] %" SCNd64, compare, &number) != 2)
    ADD_FAILURE() << "another form: " << text;
  const std::string c = compare;
  if (c == "<") return lane < number;
  if (c == "<=") return lane <= number;
  if (c == ">") return lane > number;
  if (c == ">=") return lane >= number;
  if (c == "==") return lane == number;
  return lane != number;
}

TEST(LaneConditions, SayWhichLanesHold) {
  for (int64_t lanes : {1, 2, 4, 8})
    for (uint64_t chosen = 0; chosen < uint64_t(1) << lanes; ++chosen) {
      std::vector<int64_t> values;
      for (int64_t i = 0; i < lanes; ++i) values.push_back(int64_t(chosen >> i & 1));
      const std::string text = conditionOf(values, "j").text;
      for (int64_t i = 0; i < lanes; ++i)
        ASSERT_EQ(holds(text, i), values[size_t(i)] == 1)
            << "lane " << i << " of " << lanes << ", lanes 0x" << std::hex << chosen << ": "
            << text;
    }
}

// Wide ones repeat what a part of them holds.
TEST(LaneConditions, SayWhichLanesOfManyHold) {
  for (int64_t lanes : {16, 32, 64})
    for (int64_t period : {2, 4, 8, 16})
      for (uint64_t chosen = 0; chosen < 256; ++chosen) {
        std::vector<int64_t> values;
        for (int64_t i = 0; i < lanes; ++i)
          values.push_back(int64_t(chosen * 0x0101 >> (i % period) & 1));
        const std::string text = conditionOf(values, "j").text;
        for (int64_t i = 0; i < lanes; ++i)
          ASSERT_EQ(holds(text, i), values[size_t(i)] == 1) << "lane " << i << ": " << text;
      }
}

}  // namespace
}  // namespace lathe::cuda
