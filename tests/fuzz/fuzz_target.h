// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a fuzz target is made of: LLVMFuzzerTestOneInput and the seeds that it makes itself. It is
// linked with libFuzzer, or with replay.cpp, which runs seeds, files and fixed mutants of them.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "lathe/runtime/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace lathe::fuzz {

/// Inputs that are not kept as files.
std::vector<std::string> seeds();

/// What holds whatever the input is. If it does not, the process ends.
inline void check(bool holds, const char* what, const char* detail = "") {
  if (holds) return;
  std::fprintf(stderr, "broken promise: %s%s%s\n", what, *detail ? ": " : "", detail);
  std::abort();
}

/// An error about a file begins with its name.
inline void checkNamed(const Error& e, std::string_view file) {
  check(std::string_view(e.what()).starts_with(file), "an error names its file", e.what());
}

}  // namespace lathe::fuzz
