// SPDX-License-Identifier: Apache-2.0
// Lines of other languages are told whatever became of the texts that named them.
#include "runtime/foreign_line.h"

#include <gtest/gtest.h>

#include <string>

namespace lathe {
namespace {

TEST(ForeignLine, OutlivesTheTextsThatItWasMadeOf) {
  std::string file = "a/rather/long/path/of/a/model.py", function = "a_function_with_a_long_name";
  const std::source_location at = foreignLine(file, 7, function);
  file.assign(file.size(), '?');
  function.assign(function.size(), '?');
  EXPECT_STREQ(at.file_name(), "a/rather/long/path/of/a/model.py");
  EXPECT_STREQ(at.function_name(), "a_function_with_a_long_name");
  EXPECT_EQ(at.line(), 7u);
  const std::source_location same =
      foreignLine("a/rather/long/path/of/a/model.py", 7, "a_function_with_a_long_name");
  EXPECT_STREQ(same.file_name(), at.file_name());
}

}  // namespace
}  // namespace lathe
