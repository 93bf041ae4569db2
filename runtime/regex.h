// SPDX-License-Identifier: Apache-2.0
#pragma once
// Regular expressions of tokenizer files: Oniguruma, the engine their authors tested with, under
// limits, as the pattern comes from a file.
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace lathe {

/// A half-open range of bytes and whether the pattern matched it.
struct TextRange {
  size_t begin = 0, end = 0;
  bool matched = false;
};

/// Immutable and safe to share between threads.
class Regex {
 public:
  /// Throws Error(InvalidFile) with Oniguruma's words if `pattern` does not compile.
  explicit Regex(const std::string& pattern);

  /// Cuts valid UTF-8 `text` into matches and what lies between them, in order and without gaps; an
  /// empty match is an empty range. Throws Error(InvalidFile) if the pattern exceeds its limits of
  /// backtracking, stack or time on this text.
  std::vector<TextRange> split(std::string_view text) const;

 private:
  std::shared_ptr<const void> regex_;
  std::string pattern_;
};

}  // namespace lathe
