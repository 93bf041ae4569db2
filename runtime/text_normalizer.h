// SPDX-License-Identifier: Apache-2.0
#pragma once
// The "normalizer" stage of tokenizer.json.
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lathe/runtime/json_reader.h"
#include "runtime/charsmap.h"
#include "runtime/regex.h"

namespace lathe {

class TextNormalizer {
 public:
  /// Does nothing.
  TextNormalizer() = default;
  /// Every stage of Hugging Face's tokenizers 0.23; another is Error(Unsupported).
  explicit TextNormalizer(const JsonValue& json) { add(json); }

  /// Valid UTF-8 in, valid UTF-8 out. Throws Error(InvalidFile) naming the stage that spends more
  /// than the budget has.
  std::string apply(std::string text, TextBudget& budget) const;

 private:
  struct Step {
    enum class Kind { Unicode, Prepend, Replace, Characters, Strip, Charsmap, Bytes } kind;
    std::string where;                                 // "FILE: KEY.PATH", for errors
    int unicodeOptions = 0;                            // of utf8proc
    std::string text = {};                             // to prepend or to put in place
    std::string literal = {};                          // to replace
    std::optional<Regex> regex = {};                   // to replace
    void (*change)(std::string&, char32_t) = nullptr;  // appends what a character becomes
    bool left = false, right = false;                  // where to strip
    std::shared_ptr<const Charsmap> charsmap = {};
  };
  void add(const JsonValue& json);
  void addBert(const JsonValue& json);
  void addStep(Step step, const JsonValue& json);
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
/// The text, if it is one character.
const std::string& oneCharacter(const JsonValue& json);

}  // namespace lathe
