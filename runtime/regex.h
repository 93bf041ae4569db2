// SPDX-License-Identifier: Apache-2.0
#pragma once
// Regular expressions of tokenizer files: Oniguruma, the engine their authors tested with, under
// limits, as the pattern comes from a file.
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/text_budget.h"

namespace lathe {

/// A half-open range of bytes and whether the pattern matched it.
struct TextRange {
  size_t begin = 0, end = 0;
  bool matched = false;
};

/// Immutable and safe to share between threads.
class Regex {
 public:
  /// `where` is what errors call the place of the pattern: "FILE: KEY.PATH". Throws
  /// Error(InvalidFile) with Oniguruma's words if it does not compile.
  Regex(const std::string& pattern, std::string where);

  /// Cuts valid UTF-8 `text` into matches and what lies between them, in order and without gaps; an
  /// empty match is an empty range. Throws Error(InvalidFile) if the pattern exceeds what the
  /// budget has left for backtracking and time, or the stack that a text of this length may need.
  std::vector<TextRange> split(std::string_view text, TextBudget& budget) const;

 private:
  std::shared_ptr<const void> regex_;
  std::string pattern_, where_;
};

}  // namespace lathe
