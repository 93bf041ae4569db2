// SPDX-License-Identifier: Apache-2.0
#pragma once
// Child processes: the host compiler and addr2line.
#include <string>
#include <string_view>
#include <vector>

namespace lathe::cuda::host {

/// The path of a program on PATH, or itself if it names a file with '/'; "" if there is none.
std::string findProgram(std::string_view name);

struct ProcessResult {
  int status = 0;      ///< exit status, 128 + n after signal n
  std::string output;  ///< standard output and standard error
};
/// Runs a program without a shell, `input` on its standard input. Throws Error (Io) if it cannot be
/// started.
ProcessResult runProcess(const std::vector<std::string>& command, std::string_view input = {});

}  // namespace lathe::cuda::host
