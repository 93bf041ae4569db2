// SPDX-License-Identifier: Apache-2.0
#pragma once
// Bad inputs as tables: each row is an action that must be refused with the right error. One suite,
// one table per kind of input.
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "lathe/runtime/error.h"

namespace lathe {

struct BadInput {
  std::string name;
  ErrorCode code;
  std::vector<std::string> words;  ///< pieces of the message, all of them
  std::function<void()> action;
  /// The end of the file name that the error must point at; empty: no line of C++ is to blame.
  std::string blamed = "";
};

inline void PrintTo(const BadInput& row, std::ostream* out) { *out << row.name; }

class BadInputs : public ::testing::TestWithParam<BadInput> {};

TEST_P(BadInputs, IsRefusedWithTheRightError) {
  const BadInput& row = GetParam();
  try {
    row.action();
  } catch (const Error& e) {
    EXPECT_EQ(int(e.code()), int(row.code)) << e.what();
    for (const std::string& piece : row.words)
      EXPECT_NE(std::string(e.what()).find(piece), std::string::npos)
          << "expected \"" << piece << "\" in: " << e.what();
    EXPECT_TRUE(row.blamed.empty() ? e.file().empty() : e.file().ends_with(row.blamed))
        << "blames '" << e.file() << "': " << e.what();
    return;
  }
  FAIL() << "was accepted";
}

inline std::string nameOfRow(const ::testing::TestParamInfo<BadInput>& info) {
  return info.param.name;
}

}  // namespace lathe
