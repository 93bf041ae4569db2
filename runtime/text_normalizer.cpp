// SPDX-License-Identifier: Apache-2.0
#include "runtime/text_normalizer.h"

#include <algorithm>
#include <array>
#include <tuple>

#include <utf8proc.h>

#include "lathe/runtime/error.h"
#include "runtime/byte_level.h"
#include "runtime/unicode_classes.h"
#include "runtime/utf8.h"

namespace lathe {
namespace {

void checkUnicode(utf8proc_ssize_t result) {
  if (result < 0)
    throw Error(ErrorCode::InvalidArgument,
                std::string("Unicode normalization failed: ") + utf8proc_errmsg(result));
}

// The class of a mark (UAX 15); 0 for what stays where it is, marks among it that the library which
// writes these files does not know.
unsigned orderOf(utf8proc_int32_t point) {
  return unicode::isMark(char32_t(point)) ? unsigned(utf8proc_get_property(point)->combining_class)
                                          : 0;
}

// The marks behind a character by their classes; those of one class stay in order.
void sortMarks(std::vector<utf8proc_int32_t>& points) {
  std::vector<std::tuple<unsigned, size_t, utf8proc_int32_t>> marks;
  for (size_t begin = 0, i = 0; i <= points.size(); ++i) {
    const unsigned order = i < points.size() ? orderOf(points[i]) : 0;
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
    if (!unicode::isDecomposed(char32_t(point))) {
      points.push_back(point);
      continue;
    }
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

// Of Nmt: what SentencePiece's rules for translation take away and what is space to them.
void appendNmt(std::string& text, char32_t c) {
  const bool isControl = (c >= 1 && c <= 8) || c == 0xb || (c >= 0xe && c <= 0x1f) || c == 0x7f ||
                         c == 0x8f || c == 0x9f;
  const bool isSpace = c == 9 || c == 0xa || c == 0xc || c == 0xd || c == 0x1680 ||
                       (c >= 0x200b && c <= 0x200f) || c == 0x2028 || c == 0x2029 || c == 0x2581 ||
                       c == 0xfeff || c == 0xfffd;
  if (isSpace)
    text += ' ';
  else if (!isControl)
    appendCodePoint(text, c);
}

// Of BertNormalizer, as BERT's own tokenizer does (https://github.com/google-research/bert).
void appendClean(std::string& text, char32_t c) {
  if (unicode::isControl(c)) return;
  if (unicode::isWhiteSpace(c))
    text += ' ';
  else
    appendCodePoint(text, c);
}
void appendIdeograph(std::string& text, char32_t c) {
  const bool apart = unicode::isIdeograph(c);
  if (apart) text += ' ';
  appendCodePoint(text, c);
  if (apart) text += ' ';
}
void appendUnlessNonspacing(std::string& text, char32_t c) {
  if (!unicode::isNonspacingMark(c)) appendCodePoint(text, c);
}
void appendUnlessMark(std::string& text, char32_t c) {
  if (!unicode::isMark(c)) appendCodePoint(text, c);
}

std::string strip(std::string_view text, bool left, bool right) {
  while (left && !text.empty()) {
    size_t end = 0;
    if (!unicode::isWhiteSpace(nextCodePoint(text, end))) break;
    text.remove_prefix(end);
  }
  while (right && !text.empty() && unicode::isWhiteSpace(codePointBefore(text, text.size()))) {
    while ((uint8_t(text.back()) & 0xc0) == 0x80) text.remove_suffix(1);
    text.remove_suffix(1);
  }
  return std::string(text);
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

const std::string& oneCharacter(const JsonValue& json) {
  const std::string& text = json.asString();
  size_t end = 0;
  if (text.empty() || (nextCodePoint(text, end), end != text.size()))
    throw json.error("expected one character, got " + inQuotes(text));
  return text;
}

void TextNormalizer::addStep(Step step, const JsonValue& json) {
  if (steps_.size() == kMaxStages)
    throw json.error("more than " + std::to_string(kMaxStages) + " normalizers");
  steps_.push_back(std::move(step));
}

void TextNormalizer::addBert(const JsonValue& json) {
  refuseUnknownKeys(json,
                    {"type", "clean_text", "handle_chinese_chars", "strip_accents", "lowercase"});
  auto add = [&](void (*change)(std::string&, char32_t)) {
    addStep({.kind = Step::Kind::Characters, .where = json.where(), .change = change}, json);
  };
  const bool lowercase = json.at("lowercase").asBool();
  const auto accents = json.find("strip_accents");
  if (json.at("clean_text").asBool()) add(appendClean);
  if (json.at("handle_chinese_chars").asBool()) add(appendIdeograph);
  if (accents ? accents->asBool() : lowercase) {
    addStep({.kind = Step::Kind::Unicode,
             .where = json.where(),
             .unicodeOptions = UTF8PROC_STABLE | UTF8PROC_DECOMPOSE},
            json);
    add(appendUnlessNonspacing);
  }
  if (lowercase) add(unicode::appendLowerCase);
}

void TextNormalizer::add(const JsonValue& json) {
  const std::string& type = json.at("type").asString();
  Step step{.kind = Step::Kind::Unicode, .where = json.where(), .unicodeOptions = UTF8PROC_STABLE};
  auto refuseOtherKeys = [&](std::string_view first = "type", std::string_view second = "type") {
    refuseUnknownKeys(json, {"type", first, second});
  };
  if (type == "Sequence") {
    refuseOtherKeys("normalizers");
    for (const JsonValue& item : json.at("normalizers").elements()) add(item);
    return;
  }
  if (type == "BertNormalizer") return addBert(json);
  if (type == "NFC" || type == "NFKC" || type == "NFD" || type == "NFKD") {
    refuseOtherKeys();
    step.unicodeOptions |= type.ends_with("C") ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE;
    if (type.starts_with("NFK")) step.unicodeOptions |= UTF8PROC_COMPAT;
  } else if (type == "Lowercase" || type == "StripAccents" || type == "Nmt") {
    refuseOtherKeys();
    step.kind = Step::Kind::Characters;
    step.change = type == "Nmt"            ? appendNmt
                  : type == "StripAccents" ? appendUnlessMark
                                           : unicode::appendLowerCase;
  } else if (type == "Strip") {
    refuseOtherKeys("strip_left", "strip_right");
    step.kind = Step::Kind::Strip;
    step.left = json.at("strip_left").asBool();
    step.right = json.at("strip_right").asBool();
  } else if (type == "ByteLevel") {
    refuseOtherKeys();
    step.kind = Step::Kind::Bytes;
  } else if (type == "Precompiled") {
    // The second key is our own, of models that SentencePiece itself reads.
    refuseOtherKeys("precompiled_charsmap", "takes_longest");
    // As older converters wrote models without rules.
    const auto map = json.find("precompiled_charsmap");
    if (!map || map->asString().empty()) return;
    step.kind = Step::Kind::Charsmap;
    const auto longest = json.find("takes_longest");
    step.charsmap = std::make_shared<Charsmap>(*map, longest && longest->asBool());
  } else if (type == "Prepend") {
    refuseOtherKeys("prepend");
    step.kind = Step::Kind::Prepend;
    step.text = json.at("prepend").asString();
  } else if (type == "Replace") {
    refuseOtherKeys("pattern", "content");
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
    throw json.at("type").error("normalizer " + inQuotes(type) +
                                    " is not supported, expected BertNormalizer, ByteLevel, "
                                    "Lowercase, NFC, NFD, NFKC, NFKD, Nmt, Precompiled, Prepend, "
                                    "Replace, Sequence, Strip or StripAccents",
                                ErrorCode::Unsupported);
  }
  addStep(std::move(step), json);
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
      case Step::Kind::Characters: {
        std::string changed;
        changed.reserve(text.size());
        for (size_t i = 0; i < text.size();) step.change(changed, nextCodePoint(text, i));
        budget.makeBytes(changed.size(), step.where);
        text = std::move(changed);
        break;
      }
      case Step::Kind::Strip:
        text = strip(text, step.left, step.right);
        break;
      case Step::Kind::Charsmap:
        text = step.charsmap->apply(text, step.where, budget);
        break;
      case Step::Kind::Bytes:
        budget.makeBytes(2 * text.size(), step.where);
        text = spellBytes(text);
        break;
    }
  }
  return text;
}

}  // namespace lathe
