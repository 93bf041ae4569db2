// SPDX-License-Identifier: Apache-2.0
#include "runtime/pre_tokenizer.h"

#include <algorithm>

#include "lathe/runtime/error.h"
#include "runtime/byte_level.h"
#include "runtime/text_normalizer.h"
#include "runtime/unicode_classes.h"
#include "runtime/utf8.h"

namespace lathe {
namespace {

// https://github.com/openai/gpt-2/blob/master/src/encoder.py
constexpr const char* kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

std::vector<TextRange> findCharacters(std::string_view text, bool (*isMatch)(char32_t)) {
  std::vector<TextRange> ranges;
  size_t done = 0;
  for (size_t i = 0; i < text.size();) {
    const size_t begin = i;
    if (!isMatch(nextCodePoint(text, i))) continue;
    if (begin > done) ranges.push_back({done, begin, false});
    ranges.push_back({begin, i, true});
    done = i;
  }
  if (done < text.size()) ranges.push_back({done, text.size(), false});
  return ranges;
}

// \w+ and [^\w\s]+ apart; what matches is the space between them.
std::vector<TextRange> findWords(std::string_view text) {
  std::vector<TextRange> ranges;
  int previous = -1;
  for (size_t i = 0; i < text.size();) {
    const size_t begin = i;
    const char32_t c = nextCodePoint(text, i);
    const int kind = unicode::isWord(c) ? 0 : unicode::isWhiteSpace(c) ? 1 : 2;
    if (kind == previous)
      ranges.back().end = i;
    else
      ranges.push_back({begin, i, kind == 1});
    previous = kind;
  }
  return ranges;
}

// As the library that writes these files: kana belongs to Han, and what has no script to the text
// before it; in front of the first text it is left out.
std::vector<TextRange> findScripts(std::string_view text) {
  static const std::optional<uint8_t> han = unicode::scriptOf(0x4e00),
                                      hiragana = unicode::scriptOf(0x3042),
                                      katakana = unicode::scriptOf(0x30a2);
  std::vector<TextRange> ranges;
  std::optional<uint8_t> previous;
  for (size_t i = 0; i < text.size();) {
    const size_t begin = i;
    const char32_t c = nextCodePoint(text, i);
    std::optional<uint8_t> script = unicode::scriptOf(c);
    if (script == hiragana || script == katakana || c == 0x30fc) script = han;
    if (ranges.empty() && !script) {
      ranges.push_back({begin, i, true});
    } else if (script && script != previous) {
      ranges.push_back({begin, i, false});
    } else {
      ranges.back().end = i;
    }
    if (script) previous = script;
  }
  return ranges;
}

std::vector<TextRange> findPieces(std::string_view text, size_t characters) {
  std::vector<TextRange> ranges;
  size_t count = 0, begin = 0;
  for (size_t i = 0; i < text.size();) {
    nextCodePoint(text, i);
    if (++count % characters != 0 && i < text.size()) continue;
    ranges.push_back({begin, i, false});
    begin = i;
  }
  return ranges;
}

std::vector<TextRange> findLiteral(std::string_view text, const std::string& literal) {
  std::vector<TextRange> ranges;
  size_t done = 0;
  for (size_t at; (at = text.find(literal, done)) != std::string_view::npos;
       done = at + literal.size()) {
    if (at > done) ranges.push_back({done, at, false});
    ranges.push_back({at, at + literal.size(), true});
  }
  if (done < text.size()) ranges.push_back({done, text.size(), false});
  return ranges;
}

}  // namespace

void PreTokenizer::add(const JsonValue& json) {
  const std::string& type = json.at("type").asString();
  auto flag = [&](std::string_view key, bool otherwise) {
    auto value = json.find(key);
    return value ? value->asBool() : otherwise;
  };
  if (type == "Sequence") {
    refuseUnknownKeys(json, {"type", "pretokenizers"});
    for (const JsonValue& item : json.at("pretokenizers").elements()) add(item);
  } else if (type == "ByteLevel") {
    // trim_offsets concerns character offsets, which are not computed here.
    refuseUnknownKeys(json, {"type", "add_prefix_space", "trim_offsets", "use_regex"});
    Step step{.kind = Step::Kind::ByteLevel};
    if (flag("add_prefix_space", true)) step.prefix = Prefix::Always;
    step.cuts = flag("use_regex", true);
    if (step.cuts) step.regex.emplace(kGpt2Pattern, json.where());
    addStep(std::move(step), json);
  } else if (type == "Split") {
    refuseUnknownKeys(json, {"type", "pattern", "behavior", "invert"});
    addSplit(json);
  } else if (type == "Metaspace") {
    addMetaspace(json);
  } else if (!addClass(type, json)) {
    throw json.at("type").error(
        "pre-tokenizer " + inQuotes(type) +
            " is not supported, expected BertPreTokenizer, ByteLevel, CharDelimiterSplit, Digits, "
            "FixedLength, Metaspace, Punctuation, Sequence, Split, UnicodeScripts, Whitespace or "
            "WhitespaceSplit",
        ErrorCode::Unsupported);
  }
}

// Stages that look at characters one by one.
bool PreTokenizer::addClass(const std::string& type, const JsonValue& json) {
  auto refuseOtherKeys = [&](std::string_view key) { refuseUnknownKeys(json, {"type", key}); };
  auto addOf = [&](Behavior behavior, bool (*isMatch)(char32_t)) {
    addStep({.behavior = behavior, .isMatch = isMatch}, json);
  };
  if (type == "Digits") {
    refuseOtherKeys("individual_digits");
    auto flag = json.find("individual_digits");
    addOf(flag && flag->asBool() ? Behavior::Isolated : Behavior::Contiguous, unicode::isNumeric);
  } else if (type == "Punctuation") {
    refuseOtherKeys("behavior");
    auto behavior = json.find("behavior");
    addOf(behavior ? behaviorOf(*behavior) : Behavior::Isolated, unicode::isPunctuation);
  } else if (type == "WhitespaceSplit") {
    refuseOtherKeys("type");
    addOf(Behavior::Removed, unicode::isWhiteSpace);
  } else if (type == "BertPreTokenizer") {
    refuseOtherKeys("type");
    addOf(Behavior::Removed, unicode::isWhiteSpace);
    addOf(Behavior::Isolated, unicode::isPunctuation);
  } else if (type == "Whitespace" || type == "UnicodeScripts") {
    refuseOtherKeys("type");
    addStep({.behavior = Behavior::Removed, .find = type == "Whitespace" ? findWords : findScripts},
            json);
  } else if (type == "CharDelimiterSplit") {
    refuseOtherKeys("delimiter");
    const JsonValue delimiter = json.at("delimiter");
    addStep({.behavior = Behavior::Removed, .literal = oneCharacter(delimiter)}, json);
  } else if (type == "FixedLength") {
    refuseOtherKeys("length");
    addStep({.length = size_t(json.at("length").asInt(1))}, json);
  } else {
    return false;
  }
  return true;
}

PreTokenizer::Behavior PreTokenizer::behaviorOf(const JsonValue& json) {
  const std::string& name = json.asString();
  if (name == "Isolated") return Behavior::Isolated;
  if (name == "Removed") return Behavior::Removed;
  if (name == "MergedWithPrevious") return Behavior::MergedWithPrevious;
  if (name == "MergedWithNext") return Behavior::MergedWithNext;
  if (name == "Contiguous") return Behavior::Contiguous;
  throw json.error("unknown behavior " + inQuotes(name));
}

void PreTokenizer::addSplit(const JsonValue& json) {
  Step step{.behavior = behaviorOf(json.at("behavior"))};
  if (auto invert = json.find("invert")) step.invert = invert->asBool();
  JsonValue pattern = json.at("pattern");
  refuseUnknownKeys(pattern, {"String", "Regex"});
  if (auto regex = pattern.find("Regex")) {
    step.regex.emplace(regex->asString(), regex->where());
  } else {
    step.literal = pattern.at("String").asString();
    if (step.literal.empty()) throw pattern.error("expected a pattern that is not empty");
  }
  addStep(std::move(step), json);
}

// Files before 2024 say `add_prefix_space`, which is on unless it is false.
void PreTokenizer::addMetaspace(const JsonValue& json) {
  refuseUnknownKeys(
      json, {"type", "replacement", "prepend_scheme", "add_prefix_space", "split", "str_rep"});
  Step step{.kind = Step::Kind::Metaspace, .behavior = Behavior::MergedWithNext};
  step.literal = oneCharacter(json.at("replacement"));
  step.prefix = Prefix::Always;
  if (auto scheme = json.find("prepend_scheme")) {
    const std::string& name = scheme->asString();
    if (name != "always" && name != "first" && name != "never")
      throw scheme->error("expected always, first or never, got " + inQuotes(name));
    step.prefix = name == "always"  ? Prefix::Always
                  : name == "first" ? Prefix::First
                                    : Prefix::Never;
  }
  if (auto flag = json.find("add_prefix_space"); flag && !flag->asBool()) {
    if (json.find("prepend_scheme") && step.prefix != Prefix::Never)
      throw flag->error("expected what prepend_scheme says, got false");
    step.prefix = Prefix::Never;
  }
  if (auto flag = json.find("split")) step.cuts = flag->asBool();
  addStep(std::move(step), json);
}

void PreTokenizer::addStep(Step step, const JsonValue& json) {
  if (steps_.size() == kMaxStages)
    throw json.error("more than " + std::to_string(kMaxStages) + " pre-tokenizers");
  step.where = json.where();
  steps_.push_back(std::move(step));
}

std::vector<TextRange> PreTokenizer::findMatches(const Step& step, std::string_view word,
                                                 TextBudget& budget) {
  std::vector<TextRange> ranges = step.find      ? step.find(word)
                                  : step.isMatch ? findCharacters(word, step.isMatch)
                                  : step.length  ? findPieces(word, step.length)
                                  : step.regex   ? step.regex->split(word, budget)
                                                 : findLiteral(word, step.literal);
  if (step.invert)
    for (TextRange& range : ranges) range.matched = !range.matched;
  return ranges;
}

// Joins neighbours as the behavior says; of the result, `matched` ranges are to be dropped.
std::vector<TextRange> PreTokenizer::merge(std::vector<TextRange> matches, Behavior behavior) {
  if (behavior == Behavior::Removed) return matches;
  const bool backwards = behavior == Behavior::MergedWithNext;
  if (backwards) std::ranges::reverse(matches);
  std::vector<TextRange> merged;
  bool previous = false;
  for (const TextRange& range : matches) {
    bool join = false;
    if (behavior == Behavior::Contiguous)
      join = range.matched == previous;
    else if (behavior != Behavior::Isolated)
      join = range.matched && !previous;
    previous = range.matched;
    if (!join || merged.empty())
      merged.push_back({range.begin, range.end, false});
    else if (backwards)
      merged.back().begin = range.begin;
    else
      merged.back().end = range.end;
  }
  if (backwards) std::ranges::reverse(merged);
  return merged;
}

// The word with its prefix, and with spaces as the vocabulary has them.
std::string PreTokenizer::spell(const Step& step, Word word, TextBudget& budget) {
  const bool isMetaspace = step.kind == Step::Kind::Metaspace;
  const std::string space = isMetaspace ? step.literal : " ";
  if (isMetaspace) {
    std::string text;
    for (char c : word.text) {
      if (c == ' ')
        text += space;
      else
        text += c;
    }
    budget.makeBytes(text.size(), step.where);
    word.text = std::move(text);
  }
  const bool wanted = step.prefix == Prefix::Always || (step.prefix == Prefix::First && word.first);
  if (wanted && !word.text.starts_with(space)) word.text.insert(0, space);
  return std::move(word.text);
}

void PreTokenizer::apply(const Step& step, Word word, TextBudget& budget, std::vector<Word>& out) {
  const bool byteLevel = step.kind == Step::Kind::ByteLevel;
  // A space in front, and at most two bytes in the alphabet of bytes for each.
  budget.makeBytes((word.text.size() + 1) * (byteLevel ? 2 : 1), step.where);
  const bool first = word.first;
  const std::string text = spell(step, std::move(word), budget);
  if (!step.cuts) return out.push_back({byteLevel ? spellBytes(text) : text, first});
  for (const TextRange& range : merge(findMatches(step, text, budget), step.behavior)) {
    if (range.matched || range.begin == range.end) continue;
    std::string piece = text.substr(range.begin, range.end - range.begin);
    out.push_back({byteLevel ? spellBytes(piece) : std::move(piece), first && range.begin == 0});
  }
}

std::vector<std::string> PreTokenizer::split(std::string text, bool first,
                                             TextBudget& budget) const {
  std::vector<std::string> pieces;
  if (text.empty()) return pieces;
  std::vector<Word> words;
  words.push_back({std::move(text), first});
  for (const Step& step : steps_) {
    std::vector<Word> next;
    for (Word& word : words) apply(step, std::move(word), budget, next);
    words = std::move(next);
  }
  pieces.reserve(words.size());
  for (Word& word : words) pieces.push_back(std::move(word.text));
  return pieces;
}

}  // namespace lathe
