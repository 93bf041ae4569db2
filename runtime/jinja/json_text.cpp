// SPDX-License-Identifier: Apache-2.0
// Values as JSON, spelled as Python's json.dumps spells them.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "runtime/jinja/value.h"
#include "runtime/utf8.h"

namespace lathe::jinja {
namespace {

std::string jsonText(const std::string& text, bool ascii) {
  std::string result = "\"";
  auto escape = [&](uint32_t unit) { result += fmt::format("\\u{:04x}", unit); };
  for (size_t i = 0; i < text.size();) {
    const size_t begin = i;
    const char32_t c = nextCodePoint(text, i);
    static constexpr std::string_view kSpecial = "\"\\\n\r\t\f\b", kNames = "\"\\nrtfb";
    if (size_t at = c < 0x80 ? kSpecial.find(char(c)) : kSpecial.npos; at != kSpecial.npos) {
      result += {'\\', kNames[at]};
    } else if (c < 0x20 || (ascii && c >= 0x7f && c <= 0xffff)) {
      escape(uint32_t(c));
    } else if (ascii && c > 0xffff) {
      escape(0xd800 + (uint32_t(c) - 0x10000) / 0x400);
      escape(0xdc00 + (uint32_t(c) - 0x10000) % 0x400);
    } else {
      result.append(text, begin, i - begin);
    }
  }
  return result + '"';
}

class Writer {
 public:
  explicit Writer(const JsonStyle& style) : style_(style) {}
  bool write(const Value& value, int64_t depth) {
    if (value.isNone()) return text += "null", true;
    if (auto* truth = value.asBool()) return text += *truth ? "true" : "false", true;
    if (auto* number = value.asFloat(); number && !std::isfinite(*number))
      return text += std::isnan(*number) ? "NaN" : *number > 0 ? "Infinity" : "-Infinity", true;
    if (value.asNumber()) return text += value.repr(), true;
    if (auto* string = value.asText()) return text += jsonText(*string, style_.ascii), true;
    if (auto* list = value.asList())
      return writeAll('[', ']', list->size(), depth,
                      [&](size_t i) { return write((*list)[i], depth + 1); });
    auto* dict = value.asDict();
    if (!dict) return false;
    std::vector<const std::pair<std::string, Value>*> members;
    for (auto& member : dict->members) members.push_back(&member);
    if (style_.sorted) std::ranges::sort(members, {}, [](auto* member) { return member->first; });
    return writeAll('{', '}', members.size(), depth, [&](size_t i) {
      text += jsonText(members[i]->first, style_.ascii) + style_.key;
      return write(members[i]->second, depth + 1);
    });
  }
  std::string text;

 private:
  template <class Item>
  bool writeAll(char open, char close, size_t count, int64_t depth, const Item& item) {
    text += open;
    for (size_t i = 0; i < count; ++i) {
      if (i > 0) text += style_.item;
      newLine(depth + 1);
      if (!item(i)) return false;
    }
    if (count > 0) newLine(depth);
    text += close;
    return true;
  }
  void newLine(int64_t depth) {
    if (style_.indent) text += "\n" + std::string(size_t(*style_.indent * depth), ' ');
  }
  const JsonStyle& style_;
};

}  // namespace

std::optional<std::string> toJson(const Value& value, const JsonStyle& style) {
  Writer writer(style);
  if (!writer.write(value, 0)) return std::nullopt;
  return std::move(writer.text);
}

}  // namespace lathe::jinja
