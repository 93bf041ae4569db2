// SPDX-License-Identifier: Apache-2.0
#pragma once
// What encoding one text may cost, whatever the stages of a tokenizer's file ask for: time and
// memory linear in the text.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include <fmt/format.h>

#include "lathe/runtime/error.h"

namespace lathe {

/// Stages share one per text. Each spends from it what it makes and what its search gives up.
class TextBudget {
 public:
  explicit TextBudget(size_t textBytes)
      : textBytes_(textBytes),
        bytes_((size_t(1) << 20) + 64 * textBytes),
        retries_(10'000'000 + 64 * uint64_t(textBytes)),
        deadline_(std::chrono::steady_clock::now() + std::chrono::seconds(5) +
                  std::chrono::microseconds(5) * textBytes) {}

  size_t textBytes() const { return textBytes_; }

  /// Counts bytes that the stage at `where` ("FILE: KEY.PATH") is about to make.
  void makeBytes(size_t count, const std::string& where) {
    if (count > bytes_)
      throw Error(
          ErrorCode::InvalidFile,
          fmt::format("{}: makes more than 1 MiB and 64 bytes for each byte out of a text of "
                      "{} bytes",
                      where, textBytes_));
    bytes_ -= count;
  }
  /// Counts steps back of a search; false if there were too many.
  bool retry(uint64_t count) {
    const bool enough = count <= retries_;
    retries_ -= enough ? count : retries_;
    return enough;
  }
  bool isLate() const { return std::chrono::steady_clock::now() > deadline_; }

 private:
  size_t textBytes_, bytes_;
  uint64_t retries_;
  std::chrono::steady_clock::time_point deadline_;
};

}  // namespace lathe
