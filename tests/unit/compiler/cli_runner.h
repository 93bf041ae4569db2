// SPDX-License-Identifier: Apache-2.0
#pragma once
// Runs the built `lathe` program as a user's shell would.
#include <sys/wait.h>

#include <cstdio>
#include <string>

#include "tests/unit/test_files.h"

namespace lathe::test {

struct CliResult {
  int status = -1;
  std::string out, err;
};

/// A pattern file whose fusion computes something else, and says so: tanh becomes sigmoid. No
/// built-in fusion takes a tanh.
inline constexpr char kWrongPattern[] = R"(pdl.pattern @wrong : benefit(1) {
  %x = operand
  %y = type
  %root = operation "lathe.tanh"(%x : !pdl.value) -> (%y : !pdl.type)
  %value = result 0 of %root
  apply_native_constraint "approximate"(%value : !pdl.value)
  rewrite %root {
    %new = operation "lathe.sigmoid"(%x : !pdl.value)
    replace %root with %new
  }
}
)";

/// `before` stands in front of the program: environment variables. `arguments` are shell words.
inline CliResult runLathe(const std::string& arguments, const std::string& before = "",
                          const std::string& program = LATHE_BINARY_DIR "/bin/lathe") {
  TemporaryFolder folder;
  std::string command =
      before + " " + program + " " + arguments + " 2>" + (folder / "err") + " </dev/null";
  CliResult result;
  FILE* pipe = popen(command.c_str(), "r");
  if (!pipe) {
    ADD_FAILURE() << "cannot run " << command;
    return result;
  }
  char buffer[4096];
  while (size_t count = fread(buffer, 1, sizeof buffer, pipe)) result.out.append(buffer, count);
  int status = pclose(pipe);
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  result.err = readFile(folder / "err");
  return result;
}

/// A command that must fail with `status`, one line `error: ...` with `text`, and no data; with
/// --json the error is a document, too.
inline void expectFailure(int status, const std::string& text, const std::string& arguments,
                          const std::string& before = "") {
  CliResult r = runLathe(arguments, before);
  EXPECT_EQ(r.status, status) << arguments << "\n" << r.err;
  const bool redirected = arguments.find('>') != std::string::npos;
  if (arguments.find("--json") == std::string::npos || redirected)
    EXPECT_EQ(r.out, "") << arguments;
  else
    EXPECT_NE(r.out.find("\"error\": {"), std::string::npos) << arguments << "\n" << r.out;
  EXPECT_TRUE(r.err.starts_with("error: ")) << arguments << "\n" << r.err;
  EXPECT_NE(r.err.find(text), std::string::npos)
      << arguments << "\nexpected \"" << text << "\" in: " << r.err;
}

/// Fails the test unless the command succeeds; gives its standard output.
inline std::string outputOf(const std::string& arguments, const std::string& before = "") {
  CliResult r = runLathe(arguments, before);
  EXPECT_EQ(r.status, 0) << arguments << "\n" << r.err;
  return r.out;
}

}  // namespace lathe::test
