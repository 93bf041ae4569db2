// SPDX-License-Identifier: Apache-2.0
// Long work tells on a terminal how far it is, and nothing in a pipe.
#include <gmock/gmock.h>

#include "tests/unit/compiler/cli_runner.h"

namespace lathe {
namespace {

using test::CliResult;
using test::runLathe;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kStories = LATHE_SOURCE_DIR "/examples/models/stories";

// What a terminal of script(1) gets of both streams.
std::string onTerminal(const std::string& arguments) {
  return runLathe("-qefc '" LATHE_BINARY_DIR "/bin/lathe " + arguments + "' /dev/null",
                  "TERM=xterm LATHE_PROGRESS_SECONDS=0.02", "script")
      .out;
}

TEST(ProgressCli, ABarOnATerminalAndNoneInAPipe) {
  if (std::system("script -qefc true /dev/null >/dev/null 2>&1") != 0)
    GTEST_SKIP() << "script(1) makes the terminal";
  const std::string numerics = "inspect " + kStories + " --check-numerics --precision own";
  EXPECT_THAT(onTerminal(numerics), HasSubstr("\r\033[K" + kStories + ": "));
  const std::string selftest = "selftest --mode test --backend reference --op \"re*\"";
  const std::string shown = onTerminal(selftest);
  EXPECT_THAT(shown, ContainsRegex("testing [a-z_.]+ \\[[#-]*\\] [0-9]+/[0-9]+ "));
  for (const std::string& arguments : {numerics, selftest}) {
    const CliResult piped = runLathe(arguments);
    EXPECT_EQ(piped.status, 0) << piped.err;
    EXPECT_THAT(piped.err, Not(HasSubstr("\033")));
    EXPECT_THAT(piped.err, Not(HasSubstr("\r")));
  }
}

}  // namespace
}  // namespace lathe
