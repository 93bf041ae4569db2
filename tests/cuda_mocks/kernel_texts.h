// SPDX-License-Identifier: Apache-2.0
#pragma once
// The kernel texts of tests/cuda_kernels, and what a test that compiles begins with.
#include <string>

#include "backends/cuda/lowering/nvrtc/nvrtc.h"
#include "tests/unit/test_files.h"

namespace lathe::test {

inline std::string kernelFileText(const std::string& name) {
  return readFile(std::string(LATHE_SOURCE_DIR "/tests/cuda_kernels/") + name + ".cu");
}

}  // namespace lathe::test

/// For the first line of a test that compiles.
#define SKIP_WITHOUT_NVRTC()              \
  try {                                   \
    ::lathe::cuda::Nvrtc::library();      \
  } catch (const ::lathe::Error& error) { \
    GTEST_SKIP() << error.what();         \
  }
