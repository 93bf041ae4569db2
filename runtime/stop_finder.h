// SPDX-License-Identifier: Apache-2.0
#pragma once
// Looks for texts that end a text, in pieces of it as they come.
#include <string>
#include <string_view>
#include <vector>

namespace lathe {

class StopFinder {
 public:
  /// Throws Error(InvalidArgument) for an empty text.
  explicit StopFinder(std::vector<std::string> stops);

  /// What is certain to stand in front of any stop: an end that may begin one is held back.
  std::string push(std::string_view piece);
  /// Whether a stop was found: nothing comes after it.
  bool found() const { return found_; }
  /// What was held back, when the text ends otherwise.
  std::string finish();

 private:
  std::vector<std::string> stops_;
  std::string held_;
  bool found_ = false;
};

}  // namespace lathe
