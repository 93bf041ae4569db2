// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/lowering/tuning/tuning_database.h"

#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lathe/runtime/error.h"
#include "tests/unit/test_files.h"

namespace lathe::cuda {
namespace {

using test::TemporaryFolder;
using ::testing::AllOf;
using ::testing::HasSubstr;

class TuningDatabaseTest : public ::testing::Test {
 protected:
  void TearDown() override { unsetenv("LATHE_TUNING"); }
  static std::string messageOf(const std::string& path, ErrorCode code) {
    setenv("LATHE_TUNING", path.c_str(), 1);
    try {
      tuningDatabase();
      ADD_FAILURE() << "no error for " << path;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), code);
      return e.what();
    }
    return "";
  }
  TemporaryFolder folder_;
};

TEST_F(TuningDatabaseTest, WhatIsNoFileOfRecordsIsNamed) {
  const std::string folder = folder_ / "records";
  std::filesystem::create_directory(folder);
  EXPECT_THAT(messageOf(folder, ErrorCode::InvalidFile),
              HasSubstr("LATHE_TUNING: " + folder + ": expected a regular file, got a directory"));
  const std::string none = folder_ / "none.txt";
  EXPECT_THAT(messageOf(none, ErrorCode::Io),
              AllOf(HasSubstr(none + ": cannot open: No such"), HasSubstr("docs/tuning.md")));
  // Opens and cannot be read: address 0 of a process is never mapped.
  EXPECT_THAT(messageOf("/proc/self/mem", ErrorCode::Io), HasSubstr("/proc/self/mem: cannot read"));
}

TEST_F(TuningDatabaseTest, LinesAreReadToTheEndOfTheFile) {
  const std::string head = "NVIDIA H200, 9.0, 132 | own problem | 1 | choice | 7 us | 1 % | d | ";
  std::string text;
  while (text.size() < 5000) text += "# a file longer than one read\n";
  const std::string good = folder_.write("good.txt", text + head + "2026-02-28");
  setenv("LATHE_TUNING", good.c_str(), 1);
  const TuningRecord* record = tuningDatabase()->find("own problem");
  ASSERT_NE(record, nullptr);
  EXPECT_EQ(record->choice, "choice");
  EXPECT_THAT(messageOf(folder_.write("bad.txt", head + "2026-13-41\n"), ErrorCode::InvalidFile),
              AllOf(HasSubstr("bad.txt:1: "), HasSubstr("got '2026-13-41'")));
  setenv("LATHE_TUNING", folder_.write("empty.txt", "").c_str(), 1);
  EXPECT_EQ(tuningDatabase()->find("own problem"), nullptr);
}

}  // namespace
}  // namespace lathe::cuda
