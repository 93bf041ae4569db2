// SPDX-License-Identifier: Apache-2.0
#pragma once
// The function that the user called, where it records several ops.
#include <string>

namespace lathe {

/// While one exists on a thread, errors of what is recorded name the function: "stack:
/// lathe.concat: ...". Of nested ones the outermost counts, which is the call that the user wrote.
class Composing {
 public:
  explicit Composing(const char* function);
  ~Composing();
  Composing(const Composing&) = delete;
  Composing& operator=(const Composing&) = delete;

  /// The outermost function, or null.
  static const char* function();
  /// An error's text with the function in front.
  static std::string named(const std::string& text);

 private:
  bool isOutermost_;
};

}  // namespace lathe
