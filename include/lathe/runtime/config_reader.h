// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reads a model's config.json and remembers what was read: a field that nobody asked for and that
// may change the mathematics is an error, never a silence.
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "lathe/runtime/json_reader.h"

namespace lathe {

/// Far above every model there is, and low enough that sizes do not overflow and that compiling
/// ends: it takes some 20 ms for each layer.
inline constexpr int64_t kMaxLayers = 1000, kMaxVocabulary = int64_t(1) << 24,
                         kMaxPositions = int64_t(1) << 24, kMaxHidden = int64_t(1) << 20,
                         kMaxIntermediate = int64_t(1) << 24, kMaxHeads = 65536, kMaxExperts = 4096;

/// One object of a config.json. Every accessor throws Error(InvalidFile) "FILE: KEY: expected ...,
/// got ..." for a value of another kind; null counts as missing. Copies share what was read.
class ConfigReader {
 public:
  /// Throws Error(InvalidFile) unless it is an object.
  explicit ConfigReader(JsonValue object);

  const JsonValue& json() const { return object_; }
  /// The value, or nothing where it is missing or null.
  std::optional<JsonValue> find(std::string_view key);
  /// A missing key is an error.
  JsonValue at(std::string_view key);
  bool has(std::string_view key) const { return object_.find(key).has_value(); }

  /// An integer from 1 to `high`; `otherwise` where it is missing, an error without one.
  int64_t size(std::string_view key, int64_t high, std::optional<int64_t> otherwise = {});
  double number(std::string_view key, double otherwise);
  /// A number above 0.
  double positive(std::string_view key, double otherwise);
  /// A number between 0 and 1, both excluded: the epsilon of a norm.
  double epsilon(std::string_view key, double otherwise);
  bool flag(std::string_view key, bool otherwise);
  std::string text(std::string_view key, std::string_view otherwise);

  /// For texts of which only one is built: another one is Error(Unsupported).
  void expect(std::string_view key, std::string_view wanted);
  /// For fields that do not change what this family computes at inference.
  void ignore(std::initializer_list<std::string_view> keys);

  /// Throws Error(Unsupported) that names the first field that was not read and might change the
  /// mathematics: one that is neither known to be harmless nor null, false, empty or the number
  /// that switches it off. `who` is the architecture, for the message.
  void finish(std::string_view who) const;

 private:
  JsonValue object_;
  std::shared_ptr<std::set<std::string, std::less<>>> read_;
};

}  // namespace lathe
