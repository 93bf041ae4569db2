// SPDX-License-Identifier: Apache-2.0
#pragma once
// Names of a kernel text.
#include <cctype>
#include <set>
#include <string>
#include <string_view>

namespace lathe::cuda {

/// A name for the kernel text that is like `hint`, which may be anything: letters, digits and
/// single underscores between them, a letter in front.
std::string identifierOf(std::string_view hint);

/// Whether `c` may stand within an identifier of C++.
inline bool isWordCharacter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
}

/// What a text calls the value of an op, by its name without the dialect: "total" of a sum over an
/// axis, "power" of an exponential; of lathe, and of the scalar dialects with or without their `f`.
/// Empty for an op that has no such word.
std::string wordFor(std::string_view mnemonic);

/// The names that one kernel uses.
class Names {
 public:
  /// A name like `hint` that is not yet taken in this kernel, nor by the language, CUDA or the
  /// headers.
  std::string unique(std::string_view hint);

 private:
  std::set<std::string> taken_;
};

}  // namespace lathe::cuda
