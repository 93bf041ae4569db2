// SPDX-License-Identifier: Apache-2.0
#include "runtime/pre_tokenizer.h"

#include <algorithm>

#include <utf8proc.h>

#include "lathe/runtime/error.h"
#include "runtime/byte_level.h"
#include "runtime/text_normalizer.h"
#include "runtime/utf8.h"

namespace lathe {
namespace {

// https://github.com/openai/gpt-2/blob/master/src/encoder.py
constexpr const char* kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

bool isNumeric(char32_t c) {
  utf8proc_category_t category = utf8proc_category(utf8proc_int32_t(c));
  return category == UTF8PROC_CATEGORY_ND || category == UTF8PROC_CATEGORY_NL ||
         category == UTF8PROC_CATEGORY_NO;
}

std::vector<TextRange> findDigits(std::string_view text) {
  std::vector<TextRange> ranges;
  size_t done = 0;
  for (size_t i = 0; i < text.size();) {
    const size_t begin = i;
    if (!isNumeric(nextCodePoint(text, i))) continue;
    if (begin > done) ranges.push_back({done, begin, false});
    ranges.push_back({begin, i, true});
    done = i;
  }
  if (done < text.size()) ranges.push_back({done, text.size(), false});
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
    JsonValue list = json.at("pretokenizers");
    for (size_t i = 0; i < list.size(); ++i) add(list.at(i));
  } else if (type == "ByteLevel") {
    // trim_offsets concerns character offsets, which are not computed here.
    refuseUnknownKeys(json, {"type", "add_prefix_space", "trim_offsets", "use_regex"});
    Step step{.kind = Step::Kind::ByteLevel, .addPrefixSpace = flag("add_prefix_space", true)};
    if (flag("use_regex", true)) step.regex.emplace(kGpt2Pattern, json.where());
    addStep(std::move(step), json);
  } else if (type == "Digits") {
    refuseUnknownKeys(json, {"type", "individual_digits"});
    Behavior behavior =
        flag("individual_digits", false) ? Behavior::Isolated : Behavior::Contiguous;
    addStep({.kind = Step::Kind::Digits, .behavior = behavior}, json);
  } else if (type == "Split") {
    refuseUnknownKeys(json, {"type", "pattern", "behavior", "invert"});
    addSplit(json);
  } else {
    throw json.at("type").error("pre-tokenizer " + inQuotes(type) +
                                    " is not supported, expected ByteLevel, Split, Digits or "
                                    "Sequence",
                                ErrorCode::Unsupported);
  }
}

void PreTokenizer::addSplit(const JsonValue& json) {
  Step step{.kind = Step::Kind::Split};
  const std::string& behavior = json.at("behavior").asString();
  if (behavior == "Isolated")
    step.behavior = Behavior::Isolated;
  else if (behavior == "Removed")
    step.behavior = Behavior::Removed;
  else if (behavior == "MergedWithPrevious")
    step.behavior = Behavior::MergedWithPrevious;
  else if (behavior == "MergedWithNext")
    step.behavior = Behavior::MergedWithNext;
  else if (behavior == "Contiguous")
    step.behavior = Behavior::Contiguous;
  else
    throw json.at("behavior").error("unknown behavior " + inQuotes(behavior));
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

void PreTokenizer::addStep(Step step, const JsonValue& json) {
  if (steps_.size() == kMaxStages)
    throw json.error("more than " + std::to_string(kMaxStages) + " pre-tokenizers");
  step.where = json.where();
  steps_.push_back(std::move(step));
}

std::vector<TextRange> PreTokenizer::findMatches(const Step& step, std::string_view word,
                                                 TextBudget& budget) {
  std::vector<TextRange> ranges = step.kind == Step::Kind::Digits ? findDigits(word)
                                  : step.regex                    ? step.regex->split(word, budget)
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

void PreTokenizer::apply(const Step& step, std::string word, TextBudget& budget,
                         std::vector<std::string>& out) {
  const bool byteLevel = step.kind == Step::Kind::ByteLevel;
  // A space in front, and at most two bytes in the alphabet of bytes for each.
  budget.makeBytes((word.size() + 1) * (byteLevel ? 2 : 1), step.where);
  if (step.addPrefixSpace && !word.starts_with(' ')) word.insert(0, 1, ' ');
  if (byteLevel && !step.regex) return out.push_back(spellBytes(word));
  for (const TextRange& range : merge(findMatches(step, word, budget), step.behavior)) {
    if (range.matched || range.begin == range.end) continue;
    std::string piece = word.substr(range.begin, range.end - range.begin);
    out.push_back(byteLevel ? spellBytes(piece) : std::move(piece));
  }
}

std::vector<std::string> PreTokenizer::split(std::string text, TextBudget& budget) const {
  std::vector<std::string> words;
  if (text.empty()) return words;
  words.push_back(std::move(text));
  for (const Step& step : steps_) {
    std::vector<std::string> next;
    for (std::string& word : words) apply(step, std::move(word), budget, next);
    words = std::move(next);
  }
  return words;
}

}  // namespace lathe
