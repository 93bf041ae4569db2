// SPDX-License-Identifier: Apache-2.0
#pragma once
// The "normalizer" stage of tokenizer.json.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lathe/runtime/json_reader.h"
#include "runtime/regex.h"

namespace lathe {

class TextNormalizer {
 public:
  /// Does nothing.
  TextNormalizer() = default;
  /// NFC, NFD, NFKC, NFKD, Prepend, Replace and Sequence; another stage is Error(Unsupported).
  explicit TextNormalizer(const JsonValue& json) { add(json); }

  /// Valid UTF-8 in, valid UTF-8 out. Throws Error(InvalidFile) naming the stage that spends more
  /// than the budget has.
  std::string apply(std::string text, TextBudget& budget) const;

 private:
  struct Step {
    enum class Kind { Unicode, Prepend, Replace } kind;
    std::string where;           // "FILE: KEY.PATH", for errors
    int unicodeOptions = 0;      // of utf8proc
    std::string text;            // to prepend or to put in place
    std::string literal;         // to replace
    std::optional<Regex> regex;  // to replace
  };
  void add(const JsonValue& json);
  static std::string replace(const Step& step, const std::string& text, TextBudget& budget);

  std::vector<Step> steps_;
};

/// Sequences of stages may be nested; what is listed together is applied one after the other.
inline constexpr size_t kMaxStages = 32;

/// The largest id of a token: ids are held in an int, and their number too.
inline constexpr int64_t kMaxTokenId = 2147483646;

/// Throws Error(InvalidFile) naming the first key of `json` that is not in `known`: a key that is
/// not understood could change the tokens.
void refuseUnknownKeys(const JsonValue& json, std::initializer_list<std::string_view> known);

}  // namespace lathe
