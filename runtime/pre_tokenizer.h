// SPDX-License-Identifier: Apache-2.0
#pragma once
// The "pre_tokenizer" stage of tokenizer.json: cuts text into the words that BPE merges within.
#include <optional>
#include <string>
#include <vector>

#include "lathe/runtime/json_reader.h"
#include "runtime/regex.h"

namespace lathe {

class PreTokenizer {
 public:
  /// One word: the whole text.
  PreTokenizer() = default;
  /// ByteLevel, Split, Digits and Sequence; another stage is Error(Unsupported).
  explicit PreTokenizer(const JsonValue& json) { add(json); }

  /// The words of valid UTF-8 `text`, none empty, spelled as the vocabulary spells them. Throws
  /// Error(InvalidFile) naming the stage that spends more than the budget has.
  std::vector<std::string> split(std::string text, TextBudget& budget) const;

 private:
  enum class Behavior { Isolated, Removed, MergedWithPrevious, MergedWithNext, Contiguous };
  struct Step {
    enum class Kind { ByteLevel, Split, Digits } kind;
    Behavior behavior = Behavior::Isolated;
    bool invert = false;
    bool addPrefixSpace = false;
    std::optional<Regex> regex;
    std::string literal;
    std::string where;  // "FILE: KEY.PATH", for errors
  };
  void add(const JsonValue& json);
  void addSplit(const JsonValue& json);
  void addStep(Step step, const JsonValue& json);
  static void apply(const Step& step, std::string word, TextBudget& budget,
                    std::vector<std::string>& out);
  static std::vector<TextRange> findMatches(const Step& step, std::string_view word,
                                            TextBudget& budget);
  static std::vector<TextRange> merge(std::vector<TextRange> matches, Behavior behavior);

  std::vector<Step> steps_;
};

}  // namespace lathe
