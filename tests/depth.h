// SPDX-License-Identifier: Apache-2.0
#pragma once
// How much of its breadth a test runs. For every change: each op, backend, class of dtypes,
// template of kernels and fused op. What takes the same way through the code once more, a further
// shape, dtype or config, is left to scripts/nightly, which sets LATHE_TEST_DEPTH=all for every
// test that includes this file, and for ranks_test.py.
#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <vector>

namespace lathe::test {

inline bool inDepth() {
  const char* set = std::getenv("LATHE_TEST_DEPTH");
  return set && std::string_view(set) == "all";
}

/// Indices of `some` of `all` things, the first one and others spread over the rest; in depth of
/// every one.
inline std::vector<size_t> spread(size_t all, size_t some) {
  const size_t count = inDepth() ? all : std::min(all, some);
  std::vector<size_t> chosen;
  for (size_t i = 0; i < count; ++i) chosen.push_back(i * all / count);
  return chosen;
}

}  // namespace lathe::test
