// SPDX-License-Identifier: Apache-2.0
#include "runtime/jinja/value.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <utf8proc.h>

#include "runtime/utf8.h"

namespace lathe::jinja {
namespace {

std::string numberText(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  std::string text = fmt::format("{}", value);
  return text.find_first_of(".e") == text.npos ? text + ".0" : text;
}

bool isPrintable(char32_t c) {
  if (c < 0x20 || c == 0x7f || c > 0x10ffff) return false;
  if (c < 0x7f) return true;
  switch (utf8proc_category(utf8proc_int32_t(c))) {
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
    case UTF8PROC_CATEGORY_ZS:
      return false;
    default:
      return true;
  }
}

std::string quoted(const std::string& text) {
  const char quote = text.find('\'') != text.npos && text.find('"') == text.npos ? '"' : '\'';
  std::string result(1, quote);
  for (size_t i = 0; i < text.size();) {
    const size_t begin = i;
    const char32_t c = nextCodePoint(text, i);
    if (c == char32_t(quote) || c == '\\') {
      result += {'\\', char(c)};
    } else if (c == '\n') {
      result += "\\n";
    } else if (c == '\r') {
      result += "\\r";
    } else if (c == '\t') {
      result += "\\t";
    } else if (isPrintable(c)) {
      result.append(text, begin, i - begin);
    } else {
      result += c <= 0xff     ? fmt::format("\\x{:02x}", uint32_t(c))
                : c <= 0xffff ? fmt::format("\\u{:04x}", uint32_t(c))
                              : fmt::format("\\U{:08x}", uint32_t(c));
    }
  }
  return result + quote;
}

}  // namespace

const Value* Dict::find(std::string_view key) const {
  auto it = std::ranges::find(members, key, [](auto& m) -> std::string_view { return m.first; });
  return it == members.end() ? nullptr : &it->second;
}

void Dict::set(std::string_view key, Value value) {
  if (const Value* known = find(key))
    *const_cast<Value*>(known) = std::move(value);
  else
    members.emplace_back(key, std::move(value));
}

namespace {
// 40 lists that hold the one before twice have 2^40 leaves.
uint64_t saturated(uint64_t a, uint64_t b) { return std::min(a + b, uint64_t(1) << 62); }
}  // namespace

uint64_t Value::textSize() const {
  if (auto* text = asText()) return text->size();
  return std::max<uint64_t>(textSize_, 1);
}

Value::Value(List list) {
  for (const Value& item : list) {
    depth_ = std::max(depth_, item.depth_);
    textSize_ = saturated(textSize_, item.textSize());
  }
  ++depth_;
  data_ = std::make_shared<const List>(std::move(list));
}

Value::Value(Dict dict) {
  for (auto& member : dict.members) {
    depth_ = std::max(depth_, member.second.depth_);
    textSize_ = saturated(textSize_, member.first.size() + member.second.textSize());
  }
  ++depth_;
  data_ = std::make_shared<const Dict>(std::move(dict));
}

Value Value::fromJson(const JsonValue& json) {
  if (json.isNull()) return None{};
  if (json.isBool()) return json.asBool();
  if (json.isInteger()) return json.asInt();
  if (json.isNumber()) return json.asDouble();
  if (json.isString()) return json.asString();
  if (json.isArray()) return listFrom(json, fromJson);
  Dict dict;
  for (size_t i = 0; i < json.size(); ++i) {
    auto [key, value] = json.member(i);
    dict.members.emplace_back(key, fromJson(value));
  }
  return dict;
}

const std::string* Value::asText() const {
  auto* text = std::get_if<Text>(&data_);
  return text ? text->get() : nullptr;
}

const List* Value::asList() const {
  auto* list = std::get_if<std::shared_ptr<const List>>(&data_);
  return list ? list->get() : nullptr;
}

const Dict* Value::asDict() const {
  auto* dict = std::get_if<std::shared_ptr<const Dict>>(&data_);
  return dict ? dict->get() : nullptr;
}

std::optional<int64_t> Value::asInt() const {
  if (auto* truth = asBool()) return int64_t(*truth);
  if (auto* number = std::get_if<int64_t>(&data_)) return *number;
  return std::nullopt;
}

std::optional<double> Value::asNumber() const {
  if (auto number = asInt()) return double(*number);
  if (auto* number = asFloat()) return *number;
  return std::nullopt;
}

bool Value::isTrue() const {
  if (isUndefined() || isNone()) return false;
  if (auto number = asNumber()) return *number != 0;
  if (auto* text = asText()) return !text->empty();
  if (auto* list = asList()) return !list->empty();
  if (auto* dict = asDict()) return !dict->members.empty();
  return true;
}

bool Value::operator==(const Value& other) const {
  if (auto a = asInt(), b = other.asInt(); a && b) return *a == *b;
  if (auto a = asNumber(), b = other.asNumber(); a || b) return a && b && *a == *b;
  if (auto *a = asText(), *b = other.asText(); a || b) return a && b && *a == *b;
  if (auto *a = asList(), *b = other.asList(); a || b) return a && b && *a == *b;
  if (auto *a = asDict(), *b = other.asDict(); a || b) {
    if (!a || !b || a->members.size() != b->members.size()) return false;
    return std::ranges::all_of(a->members, [&](auto& member) {
      const Value* value = b->find(member.first);
      return value && *value == member.second;
    });
  }
  if (asNamespace() || other.asNamespace())
    return asNamespace() && other.asNamespace() &&
           asNamespace()->members == other.asNamespace()->members;
  if (asFunction() || other.asFunction()) return false;
  return isNone() == other.isNone();
}

std::string Value::text() const {
  if (isUndefined()) return "";
  if (auto* text = asText()) return *text;
  return repr();
}

std::string Value::repr() const {
  if (isUndefined()) return "Undefined";
  if (isNone()) return "None";
  if (auto* truth = asBool()) return *truth ? "True" : "False";
  if (auto number = asInt()) return std::to_string(*number);
  if (auto* number = asFloat()) return numberText(*number);
  if (auto* text = asText()) return quoted(*text);
  if (auto* list = asList()) {
    std::string text = "[";
    for (size_t i = 0; i < list->size(); ++i) text += (i ? ", " : "") + (*list)[i].repr();
    return text + "]";
  }
  if (auto* dict = asDict()) {
    std::string text = "{";
    for (auto& [key, value] : dict->members)
      text += (text.size() > 1 ? ", " : "") + quoted(key) + ": " + value.repr();
    return text + "}";
  }
  return "<" + typeName() + ">";
}

std::string Value::typeName() const {
  static constexpr const char* names[] = {"undefined", "None", "bool", "int",       "float",
                                          "str",       "list", "dict", "namespace", "function"};
  return names[data_.index()];
}

bool isSpace(char32_t c) {
  return (c >= 9 && c <= 13) || (c >= 0x1c && c <= 0x20) || c == 0x85 || c == 0xa0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f ||
         c == 0x3000;
}

std::string strip(std::string_view text, bool left, bool right, const std::string* characters) {
  const std::u32string set = characters ? codePoints(*characters) : std::u32string();
  auto goes = [&](char32_t c) { return characters ? set.find(c) != set.npos : isSpace(c); };
  size_t begin = 0, end = text.size();
  for (size_t next = 0; left && next < end && goes(nextCodePoint(text, next));) begin = next;
  while (right && end > begin && goes(codePointBefore(text, end))) do
      --end;
    while ((uint8_t(text[end]) & 0xc0) == 0x80);
  return std::string(text.substr(begin, end - begin));
}

std::string changeCase(std::string_view text, Case kind) {
  auto upper = [](char32_t c) { return char32_t(utf8proc_toupper(utf8proc_int32_t(c))); };
  auto lower = [](char32_t c) { return char32_t(utf8proc_tolower(utf8proc_int32_t(c))); };
  std::u32string points = codePoints(text);
  bool first = true;
  for (char32_t& c : points) {
    const bool isCased = upper(c) != c || lower(c) != c;
    const bool large = kind == Case::Upper || (kind != Case::Lower && first);
    c = large ? upper(c) : lower(c);
    first = kind == Case::Title && !isCased;
  }
  return fromCodePoints(points);
}

std::u32string codePoints(std::string_view text) {
  std::u32string points;
  for (size_t i = 0; i < text.size();) points += nextCodePoint(text, i);
  return points;
}

std::string fromCodePoints(std::u32string_view points) {
  std::string text;
  for (char32_t c : points) appendCodePoint(text, c);
  return text;
}

}  // namespace lathe::jinja
