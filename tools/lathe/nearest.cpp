// SPDX-License-Identifier: Apache-2.0
#include "tools/lathe/nearest.h"

#include <algorithm>
#include <vector>

namespace lathe::cli {

size_t editDistance(std::string_view from, std::string_view to) {
  const size_t width = to.size() + 1;
  std::vector<size_t> d((from.size() + 1) * width);
  auto at = [&](size_t i, size_t j) -> size_t& { return d[i * width + j]; };
  for (size_t i = 0; i <= from.size(); ++i) at(i, 0) = i;
  for (size_t j = 0; j <= to.size(); ++j) at(0, j) = j;
  for (size_t i = 1; i <= from.size(); ++i)
    for (size_t j = 1; j <= to.size(); ++j) {
      size_t best = std::min(at(i - 1, j), at(i, j - 1)) + 1;
      best = std::min(best, at(i - 1, j - 1) + (from[i - 1] != to[j - 1]));
      if (i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1])
        best = std::min(best, at(i - 2, j - 2) + 1);
      at(i, j) = best;
    }
  return at(from.size(), to.size());
}

std::string nearest(std::string_view word, std::span<const std::string> candidates) {
  std::string best;
  size_t limit = std::max<size_t>(1, word.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    size_t distance = editDistance(word, candidate);
    if (distance >= limit) continue;
    limit = distance;
    best = candidate;
  }
  return best;
}

std::string didYouMean(std::string_view word, std::span<const std::string> candidates) {
  std::string best = nearest(word, candidates);
  return best.empty() ? "" : "; did you mean '" + best + "'?";
}

}  // namespace lathe::cli
