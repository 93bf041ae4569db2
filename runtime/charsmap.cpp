// SPDX-License-Identifier: Apache-2.0
#include "runtime/charsmap.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include <fmt/format.h>
#include <utf8proc.h>

#include "runtime/utf8.h"

namespace lathe {
namespace {

// RFC 4648, section 4.
std::string decodeBase64(const JsonValue& json) {
  auto valueOf = [](char c) {
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
  };
  std::string_view text = json.asString();
  if (text.size() % 4 != 0)
    throw json.error(fmt::format("expected base64, got {} characters", text.size()));
  for (int padding = 0; padding < 2 && text.ends_with('='); ++padding) text.remove_suffix(1);
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3 + 2);
  uint32_t bits = 0, count = 0;
  for (char c : text) {
    const int value = valueOf(c);
    if (value < 0) throw json.error("expected base64, got the character " + inQuotes({&c, 1}));
    bits = bits << 6 | uint32_t(value);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes += char(bits >> count & 0xff);
  }
  return bytes;
}

// The fields of a unit of darts-clone's double array.
bool hasLeaf(uint32_t unit) { return unit >> 8 & 1; }
uint32_t labelOf(uint32_t unit) { return unit & (1u << 31 | 0xff); }
uint32_t valueOf(uint32_t unit) { return unit & ((1u << 31) - 1); }
uint32_t offsetOf(uint32_t unit) { return (unit >> 10) << ((unit & 1u << 9) >> 6); }

constexpr size_t kLongestGrapheme = 5, kLongestRule = 128;  // bytes

}  // namespace

Charsmap::Charsmap(const JsonValue& json, bool takesLongest) : takesLongest_(takesLongest) {
  static_assert(std::endian::native == std::endian::little);
  const std::string bytes = decodeBase64(json);
  uint32_t trieBytes = 0;
  if (bytes.size() >= 4) std::memcpy(&trieBytes, bytes.data(), 4);
  if (bytes.size() < 4 || trieBytes == 0 || trieBytes % 4 != 0 || trieBytes > bytes.size() - 4)
    throw json.error(
        fmt::format("expected a trie within its {} bytes, got one of {}", bytes.size(), trieBytes));
  units_.resize(trieBytes / 4);
  std::memcpy(units_.data(), bytes.data() + 4, trieBytes);
  texts_ = bytes.substr(4 + trieBytes);
  if (!texts_.ends_with('\0')) texts_ += '\0';
  if (findInvalidUtf8(texts_) != texts_.npos)
    throw json.error("expected replacements in UTF-8, got other bytes");
  // What rules refer to is then a whole text, wherever the trie leads.
  for (uint32_t unit : units_)
    if (unit >> 31 &&
        (valueOf(unit) >= texts_.size() || (uint8_t(texts_[valueOf(unit)]) & 0xc0) == 0x80))
      throw json.error(fmt::format("expected a replacement within {} bytes, got one at {}",
                                   texts_.size(), valueOf(unit)));
}

std::optional<std::string_view> Charsmap::find(std::string_view text, size_t& end) const {
  std::optional<std::string_view> found;
  size_t node = offsetOf(units_[0]);
  for (size_t i = 0; i < std::min(text.size(), kLongestRule); ++i) {
    const auto byte = uint8_t(text[i]);
    if (byte == 0) break;
    node ^= byte;
    if (node >= units_.size() || labelOf(units_[node]) != byte) break;
    const uint32_t unit = units_[node];
    node ^= offsetOf(unit);
    if (!hasLeaf(unit)) continue;
    if (node >= units_.size() || valueOf(units_[node]) >= texts_.size()) break;
    // A rule for a part of a character is none.
    const bool isWhole = i + 1 == text.size() || (uint8_t(text[i + 1]) & 0xc0) != 0x80;
    if (takesLongest_ && !isWhole) continue;
    found = std::string_view(texts_.c_str() + valueOf(units_[node]));
    end = i + 1;
    if (!takesLongest_) break;
  }
  return found;
}

std::string Charsmap::apply(std::string_view text, const std::string& where,
                            TextBudget& budget) const {
  std::string result;
  result.reserve(text.size());
  auto append = [&](std::string_view made) {
    budget.makeBytes(made.size(), where);
    result += made;
  };
  size_t ruleEnd = 0;
  for (size_t i = 0; takesLongest_ && i < text.size();) {
    size_t end = i;
    nextCodePoint(text, end);
    const auto made = find(text.substr(i), ruleEnd);
    append(made.value_or(text.substr(i, end - i)));
    i = made ? i + ruleEnd : end;
  }
  if (takesLongest_) return result;
  auto appendCharacters = [&](std::string_view grapheme) {
    for (size_t i = 0; i < grapheme.size();) {
      const size_t begin = i;
      nextCodePoint(grapheme, i);
      const std::string_view character = grapheme.substr(begin, i - begin);
      append(find(character, ruleEnd).value_or(character));
    }
  };
  for (size_t begin = 0; begin < text.size();) {
    size_t end = begin;
    char32_t last = nextCodePoint(text, end);
    utf8proc_int32_t state = 0;
    for (size_t next = end; next < text.size(); end = next) {
      const char32_t c = nextCodePoint(text, next);
      if (utf8proc_grapheme_break_stateful(utf8proc_int32_t(last), utf8proc_int32_t(c), &state))
        break;
      last = c;
    }
    const std::string_view grapheme = text.substr(begin, end - begin);
    const auto made = grapheme.size() <= kLongestGrapheme ? find(grapheme, ruleEnd) : std::nullopt;
    if (made)
      append(*made);
    else
      appendCharacters(grapheme);
    begin = end;
  }
  return result;
}

}  // namespace lathe
