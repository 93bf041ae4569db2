// SPDX-License-Identifier: Apache-2.0
#pragma once
// The "pre_tokenizer" stage of tokenizer.json: cuts text into the words that the model
// sees one by one.
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
  /// Every stage of Hugging Face's tokenizers 0.23; another is Error(Unsupported).
  explicit PreTokenizer(const JsonValue& json) { add(json); }

  /// The words of valid UTF-8 `text`, none empty, spelled as the vocabulary spells them. `first`:
  /// nothing stands in front of it. Throws Error(InvalidFile) naming the stage that spends more
  /// than the budget has.
  std::vector<std::string> split(std::string text, bool first, TextBudget& budget) const;

 private:
  enum class Behavior { Isolated, Removed, MergedWithPrevious, MergedWithNext, Contiguous };
  enum class Prefix { Never, First, Always };
  struct Word {
    std::string text;
    bool first;  // nothing stands in front of it
  };
  struct Step {
    enum class Kind { ByteLevel, Split, Metaspace } kind = Kind::Split;
    Behavior behavior = Behavior::Isolated;
    bool invert = false;
    Prefix prefix = Prefix::Never;  // a space, or what stands for one
    bool cuts = true;
    // Where to cut, one of these.
    std::optional<Regex> regex = {};
    std::string literal = {};             // of Metaspace: what stands for a space
    bool (*isMatch)(char32_t) = nullptr;  // each such character
    std::vector<TextRange> (*find)(std::string_view) = nullptr;
    size_t length = 0;       // every so many characters
    std::string where = {};  // "FILE: KEY.PATH", for errors
  };
  void add(const JsonValue& json);
  bool addClass(const std::string& type, const JsonValue& json);
  void addSplit(const JsonValue& json);
  static Behavior behaviorOf(const JsonValue& json);
  void addMetaspace(const JsonValue& json);
  void addStep(Step step, const JsonValue& json);
  static std::string spell(const Step& step, Word word, TextBudget& budget);
  static void apply(const Step& step, Word word, TextBudget& budget, std::vector<Word>& out);
  static std::vector<TextRange> findMatches(const Step& step, std::string_view word,
                                            TextBudget& budget);
  static std::vector<TextRange> merge(std::vector<TextRange> matches, Behavior behavior);

  std::vector<Step> steps_;
};

}  // namespace lathe
