// SPDX-License-Identifier: Apache-2.0
// What a failure of the `lathe` command is to a script: status, line and document.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <new>
#include <system_error>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/unit/test_files.h"
#include "tools/lathe/exit_status.h"
#include "tools/lathe/json_output.h"

namespace lathe::cli {
namespace {

using test::expectError;
using test::TemporaryFolder;

TEST(ExitStatus, StatusesTellWhatWentWrong) {
  struct Case {
    std::function<int()> command;
    int status;
    const char* line;
  };
  const std::vector<Case> cases{
      {[] { return 0; }, 0, ""},
      {[] { return 5; }, 5, ""},
      {[]() -> int { throw Error(ErrorCode::InvalidArgument, "a"); }, 2, "error: a\n"},
      {[]() -> int { throw Error(ErrorCode::InvalidFile, "a"); }, 3, "error: a\n"},
      {[]() -> int { throw Error(ErrorCode::Io, "a"); }, 3, "error: a\n"},
      {[]() -> int { throw Error(ErrorCode::Unsupported, "a"); }, 4, "error: a\n"},
      {[]() -> int { throw Error(ErrorCode::Numeric, "a"); }, 5, "error: a\n"},
      {[]() -> int { throw Error(ErrorCode::OutOfMemory, "a"); }, 6, "error: a\n"},
      {[]() -> int { throw OutputError("a"); }, 1, "error: a\n"},
      {[]() -> int { throw std::bad_alloc(); }, 6,
       "error: out of memory; close other programs or use a smaller model or context\n"},
      {[]() -> int {
         throw std::system_error(std::make_error_code(std::errc::no_space_on_device));
       },
       1, "error: No space left on device\n"},
      {[]() -> int { throw std::logic_error("a"); }, 70,
       "error: internal error: a; this is a bug of Lathe, please report it with the output of "
       "`lathe env`\n"}};
  for (const Case& c : cases) {
    testing::internal::CaptureStderr();
    EXPECT_EQ(guarded(c.command), c.status) << c.line;
    EXPECT_EQ(testing::internal::GetCapturedStderr(), c.line);
  }
}

// The status of a command in a process of its own, as a command that has printed a document prints
// no second one; its standard output is written to `path`.
int statusOf(const std::function<int()>& command, bool json, const std::string& path) {
  const pid_t child = fork();
  if (child == 0) {
    if (!freopen(path.c_str(), "w", stdout) || !freopen("/dev/null", "w", stderr)) _exit(99);
    const int status = guarded(command, json);
    fflush(stdout);
    _exit(status);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(ExitStatus, ErrorsOfJsonAreDocumentsOfTheirKind) {
  auto documentOf = [](const std::function<int()>& command) {
    TemporaryFolder folder;
    const std::string path = folder / "out";
    statusOf(command, true, path);
    return nlohmann::json::parse(test::readFile(path));
  };
  auto expected = [](const char* kind, int status) {
    return nlohmann::json{{"schema_version", 1},
                          {"error", {{"kind", kind}, {"message", "a"}, {"exit_status", status}}}};
  };
  using E = ErrorCode;
  for (auto [code, kind, status] : {std::tuple(E::InvalidArgument, "invalid_argument", 2),
                                    {E::InvalidFile, "invalid_file", 3},
                                    {E::Io, "io", 3},
                                    {E::Unsupported, "unsupported", 4},
                                    {E::Numeric, "numeric", 5},
                                    {E::OutOfMemory, "out_of_memory", 6}})
    EXPECT_EQ(documentOf([code = code]() -> int { throw Error(code, "a"); }),
              expected(kind, status));
  EXPECT_EQ(documentOf([]() -> int { throw OutputError("a"); }), expected("output", 1));
}

// A reader of standard output gets one document, and nothing at all where it asked for none.
TEST(ExitStatus, AnErrorBehindADocumentAddsNoSecondOne) {
  TemporaryFolder folder;
  const std::string path = folder / "out";
  auto failing = [](bool printsFirst) {
    return [printsFirst]() -> int {
      if (printsFirst) printJson({{"a", 1}});
      throw Error(ErrorCode::Numeric, "b");
    };
  };
  EXPECT_EQ(statusOf(failing(true), true, path), 5);
  EXPECT_EQ(test::readFile(path), "{\n  \"a\": 1\n}\n");
  EXPECT_EQ(statusOf(failing(false), false, path), 5);
  EXPECT_EQ(test::readFile(path), "");
}

TEST(ExitStatus, OutputThatNobodyTakesIsAFailureHoweverTheCommandEnds) {
  auto ends = [](int status) {
    return [status] {
      std::puts("x");
      return status;
    };
  };
  for (bool json : {false, true}) {
    EXPECT_EQ(statusOf(ends(0), json, "/dev/full"), 1);
    EXPECT_EQ(statusOf(ends(5), json, "/dev/full"), 1);
    EXPECT_EQ(statusOf(ends(5), json, "/dev/null"), 5);
  }
}

TEST(ExitStatus, OnlyFailedWritesAreFailuresOfTheOutput) {
  try {
    writeOutput("x.npy", [] { throw Error(ErrorCode::Io, "full"); });
    ADD_FAILURE();
  } catch (const OutputError& e) {
    EXPECT_STREQ(e.what(), "cannot write x.npy: full");
  }
  expectError(ErrorCode::Unsupported, "no such dtype", [] {
    writeOutput("x.npy", [] { throw Error(ErrorCode::Unsupported, "no such dtype"); });
  });
}

}  // namespace
}  // namespace lathe::cli
