// SPDX-License-Identifier: Apache-2.0
// Any bytes give patterns or an error that names the file.
#include "lathe/ir/context.h"
#include "passes/pdl/pdl_patterns.h"
#include "tests/fuzz/fuzz_target.h"

std::vector<std::string> lathe::fuzz::seeds() { return {}; }

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // One for all: it holds what has been parsed, which is little.
  static const auto context = lathe::createContext();
  try {
    lathe::parsePatterns(context.get(), {reinterpret_cast<const char*>(data), size}, "fuzz.mlir");
  } catch (const lathe::Error& e) {
    lathe::fuzz::checkNamed(e, "fuzz.mlir:");
  }
  return 0;
}
