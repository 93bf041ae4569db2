// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/device/tuning_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lathe/runtime/error.h"

namespace lathe::cuda {
namespace {

using ::testing::HasSubstr;

const char* const kLine =
    "NVIDIA H200, 9.0, 132 | product bf16 m=8 n=4864 k=896 layout=nk epilogue=00c0ffee | 3 | "
    "gemv-dot warps=8x1 splits=1 columns=2 steps=4 | 7.25 us | 1.5 % | driver 13.0 | 2026-01-31";

TEST(TuningRecord, ReadsWhatItWrites) {
  const std::vector<TuningRecord> read = parseTuningRecords(kLine, "own.txt");
  ASSERT_EQ(read.size(), 1u);
  EXPECT_EQ(read[0].device, "NVIDIA H200");
  EXPECT_EQ(read[0].major, 9);
  EXPECT_EQ(read[0].minor, 0);
  EXPECT_EQ(read[0].multiprocessors, 132);
  EXPECT_EQ(read[0].problem, "product bf16 m=8 n=4864 k=896 layout=nk epilogue=00c0ffee");
  EXPECT_EQ(read[0].version, 3);
  EXPECT_EQ(read[0].choice, "gemv-dot warps=8x1 splits=1 columns=2 steps=4");
  EXPECT_DOUBLE_EQ(read[0].microseconds, 7.25);
  EXPECT_DOUBLE_EQ(read[0].spread, 0.015);
  EXPECT_EQ(read[0].software, "driver 13.0");
  EXPECT_EQ(read[0].date, "2026-01-31");
  EXPECT_EQ(toText(read[0]), kLine);
}

TEST(TuningRecord, CommentsAndEmptyLinesSayNothing) {
  const std::string text =
      "# head\n\n  # indented | with | bars\r\n" + std::string(kLine) + "\r\n\n" + kLine;
  EXPECT_EQ(parseTuningRecords(text, "own.txt").size(), 2u);
  EXPECT_TRUE(parseTuningRecords("", "own.txt").empty());
}

TEST(TuningRecord, BadLinesAreNamed) {
  const std::string good = kLine;
  auto with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    return "# head\n" + text + "\n";
  };
  struct Bad {
    std::string text, said;
  };
  const Bad all[] = {
      {with(" | 2026-01-31", ""), "own.txt:2: expected 8 fields"},
      {with("2026-01-31", "2026-01-31 | more"), "got 9"},
      {with("gemv-dot warps=8x1 splits=1 columns=2 steps=4", " "), "field 'choice' is empty"},
      {with(", 132", ""), "expected a device as 'name, 9.0, multiprocessors'"},
      {with("9.0,", "9,"), "expected a compute capability as '9.0', got '9'"},
      {with("| 3 |", "| 3.5 |"), "expected a number as version, got '3.5'"},
      {with("| 3 |", "| -3 |"), "expected a number as version, got '-3'"},
      {with("7.25 us", "7.25 ms"), "expected time to end in 'us', got '7.25 ms'"},
      {with("7.25 us", "nan us"), "expected a number as time, got 'nan'"},
      {with("1.5 %", "1.5"), "expected spread to end in '%'"},
      {with("2026-01-31", "2026-13-41"), "expected a date as '2026-01-31', got '2026-13-41'"},
      {with("2026-01-31", "2026-02-29"), "expected a date"},
      {with("2026-01-31", "2026-1-31"), "expected a date"},
      {with("2026-01-31", "2026-01- 3"), "expected a date"},
      {with("2026-01-31", "yesterday"), "expected a date"},
      {with("2026-01-31", "2026-0x-31"), "expected a number as month, got '0x'"},
      {with("132 |", "99999999999999 |"), "expected a number as multiprocessors"},
  };
  for (const Bad& bad : all) {
    try {
      parseTuningRecords(bad.text, "own.txt");
      ADD_FAILURE() << "no error for " << bad.text;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::InvalidFile);
      EXPECT_THAT(e.what(), HasSubstr("own.txt:2: "));
      EXPECT_THAT(e.what(), HasSubstr(bad.said));
    }
  }
}

}  // namespace
}  // namespace lathe::cuda
