// SPDX-License-Identifier: Apache-2.0
#pragma once
// The compiler's log as a person wants to read it: each mistake with the lines around it.
#include <string>
#include <string_view>

#include "backends/cuda/lowering/nvrtc/nvrtc.h"

namespace lathe::cuda {

/// What compilers call a text that is no file: "/lathe/NAME".
std::string kernelFile(std::string_view name);

/// `log` with the numbered source lines after each "file(line): error", taken from `text` (called
/// `file`) or the header of that name; the names of all headers where one was not found. What is
/// no error is left out if there are errors.
std::string explainLog(std::string_view log, std::string_view file, std::string_view text,
                       const Headers& headers);

}  // namespace lathe::cuda
