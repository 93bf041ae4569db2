// SPDX-License-Identifier: Apache-2.0
#include "runtime/text_normalizer.h"

#include <algorithm>
#include <array>
#include <tuple>

#include <utf8proc.h>

#include "lathe/runtime/error.h"
#include "runtime/utf8.h"

namespace lathe {
namespace {

void checkUnicode(utf8proc_ssize_t result) {
  if (result < 0)
    throw Error(ErrorCode::InvalidArgument,
                std::string("Unicode normalization failed: ") + utf8proc_errmsg(result));
}

// The marks behind a character by their classes; those of one class stay in order.
void sortMarks(std::vector<utf8proc_int32_t>& points) {
  std::vector<std::tuple<unsigned, size_t, utf8proc_int32_t>> marks;
  for (size_t begin = 0, i = 0; i <= points.size(); ++i) {
    const unsigned order =
        i < points.size() ? unsigned(utf8proc_get_property(points[i])->combining_class) : 0;
    if (order != 0) {
      marks.emplace_back(order, i, points[i]);
      continue;
    }
    std::ranges::sort(marks);
    for (size_t k = 0; k < marks.size(); ++k) points[begin + k] = std::get<2>(marks[k]);
    marks.clear();
    begin = i + 1;
  }
}

// As utf8proc_map does, whose time is quadratic in the length of a run of marks: it sorts them by
// their classes by swapping neighbours. No form makes more than 11 bytes of one.
std::string mapUnicode(const std::string& text, int options) {
  const auto option = utf8proc_option_t(options);
  std::vector<utf8proc_int32_t> points;
  points.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const auto point = utf8proc_int32_t(nextCodePoint(text, i));
    std::array<utf8proc_int32_t, 32> parts;
    int boundary = 0;
    const utf8proc_ssize_t count =
        utf8proc_decompose_char(point, parts.data(), parts.size(), option, &boundary);
    checkUnicode(count);
    points.insert(points.end(), parts.begin(), parts.begin() + count);
  }
  sortMarks(points);
  const utf8proc_ssize_t length =
      utf8proc_normalize_utf32(points.data(), utf8proc_ssize_t(points.size()), option);
  checkUnicode(length);
  std::string result;
  result.reserve(text.size());
  for (utf8proc_ssize_t i = 0; i < length; ++i) {
    std::array<utf8proc_uint8_t, 4> bytes;
    const utf8proc_ssize_t count = utf8proc_encode_char(points[size_t(i)], bytes.data());
    result.append(reinterpret_cast<const char*>(bytes.data()), size_t(count));
  }
  return result;
}

std::vector<TextRange> findLiteral(const std::string& text, const std::string& literal) {
  std::vector<TextRange> ranges;
  size_t done = 0;
  for (size_t at; (at = text.find(literal, done)) != std::string::npos;
       done = at + literal.size()) {
    ranges.push_back({done, at, false});
    ranges.push_back({at, at + literal.size(), true});
  }
  ranges.push_back({done, text.size(), false});
  return ranges;
}

}  // namespace

void refuseUnknownKeys(const JsonValue& json, std::initializer_list<std::string_view> known) {
  for (size_t i = 0; i < json.size(); ++i) {
    auto [key, value] = json.member(i);
    if (std::ranges::find(known, key) == known.end())
      throw value.error("unknown key, this reader does not know what it changes");
  }
}

void TextNormalizer::add(const JsonValue& json) {
  const std::string& type = json.at("type").asString();
  Step step{Step::Kind::Unicode, json.where(), UTF8PROC_STABLE, "", "", std::nullopt};
  if (type == "Sequence") {
    refuseUnknownKeys(json, {"type", "normalizers"});
    JsonValue list = json.at("normalizers");
    for (size_t i = 0; i < list.size(); ++i) add(list.at(i));
    return;
  }
  if (type == "NFC" || type == "NFKC") {
    step.unicodeOptions |= UTF8PROC_COMPOSE;
  } else if (type == "NFD" || type == "NFKD") {
    step.unicodeOptions |= UTF8PROC_DECOMPOSE;
  } else if (type == "Prepend") {
    refuseUnknownKeys(json, {"type", "prepend"});
    step.kind = Step::Kind::Prepend;
    step.text = json.at("prepend").asString();
  } else if (type == "Replace") {
    refuseUnknownKeys(json, {"type", "pattern", "content"});
    step.kind = Step::Kind::Replace;
    step.text = json.at("content").asString();
    JsonValue pattern = json.at("pattern");
    refuseUnknownKeys(pattern, {"String", "Regex"});
    if (auto regex = pattern.find("Regex")) {
      step.regex.emplace(regex->asString(), regex->where());
    } else {
      step.literal = pattern.at("String").asString();
      if (step.literal.empty()) throw pattern.error("expected a pattern that is not empty");
    }
  } else {
    throw json.at("type").error(
        "normalizer " + inQuotes(type) +
            " is not supported, expected NFC, NFD, NFKC, NFKD, Prepend, Replace or Sequence",
        ErrorCode::Unsupported);
  }
  if (type.starts_with("NFK")) step.unicodeOptions |= UTF8PROC_COMPAT;
  if (steps_.size() == kMaxStages)
    throw json.error("more than " + std::to_string(kMaxStages) + " normalizers");
  steps_.push_back(std::move(step));
}

std::string TextNormalizer::replace(const Step& step, const std::string& text, TextBudget& budget) {
  std::string result;
  for (const TextRange& range :
       step.regex ? step.regex->split(text, budget) : findLiteral(text, step.literal)) {
    const std::string_view piece =
        std::string_view(text).substr(range.begin, range.end - range.begin);
    const std::string_view made = range.matched ? std::string_view(step.text) : piece;
    budget.makeBytes(made.size(), step.where);
    result += made;
  }
  return result;
}

std::string TextNormalizer::apply(std::string text, TextBudget& budget) const {
  for (const Step& step : steps_) {
    if (text.empty()) break;
    switch (step.kind) {
      case Step::Kind::Unicode:
        text = mapUnicode(text, step.unicodeOptions);
        budget.makeBytes(text.size(), step.where);
        break;
      case Step::Kind::Prepend:
        budget.makeBytes(step.text.size() + text.size(), step.where);
        text = step.text + text;
        break;
      case Step::Kind::Replace:
        text = replace(step, text, budget);
        break;
    }
  }
  return text;
}

}  // namespace lathe
