// SPDX-License-Identifier: Apache-2.0
// What other programs took of the processors while something was measured.
#include "backends/cpu/device/machine_load.h"

#include <gtest/gtest.h>

namespace lathe::cpu {
namespace {

constexpr std::string_view kStat =
    "cpu  1000 200 300 4000 500 60 40 100 7 8\n"
    "cpu0 500 100 150 2000 250 30 20 50 7 8\n"
    "cpu1 500 100 150 2000 250 30 20 50 0 0\n"
    "intr 12 3 4\nctxt 99\n";

TEST(MachineLoad, ReadsTheSumOverAllProcessors) {
  const ProcessorTime t = ProcessorTime::parse(kStat, 100);
  EXPECT_EQ(t.processors, 2);
  EXPECT_DOUBLE_EQ(t.all, 62);
  EXPECT_DOUBLE_EQ(t.busy, 17);  // neither idle nor waiting for a disk
}

TEST(MachineLoad, TextOfAnotherFormIsNoTime) {
  for (std::string_view text : {"", "cpu", "cpu 1 2 3", "intr 1 2 3 4 5 6 7 8", "cpu a b c d e f"})
    EXPECT_EQ(ProcessorTime::parse(text, 100).processors, 0) << text;
}

// Four processors for ten seconds.
TEST(MachineLoad, OwnWorkTakesNothingAway) {
  const ProcessorTime before{100, 400, 4}, after{120, 440, 4};
  EXPECT_DOUBLE_EQ(processorsLeft(before, after, 20), 4);  // all of it is ours
  EXPECT_DOUBLE_EQ(processorsLeft(before, after, 5), 2.5);
  EXPECT_DOUBLE_EQ(processorsLeft(before, after, 0), 2);
  // Clocks that disagree by a little.
  EXPECT_DOUBLE_EQ(processorsLeft(before, after, 21), 4);
  EXPECT_DOUBLE_EQ(processorsLeft(before, before, 0), 4);
}

TEST(MachineLoad, TheMachinesOwnCountGrows) {
  const ProcessorTime now = ProcessorTime::now();
  EXPECT_GT(now.processors, 0);
  EXPECT_GT(now.all, now.busy);
  EXPECT_GT(now.busy, 0);
}

}  // namespace
}  // namespace lathe::cpu
