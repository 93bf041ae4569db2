// SPDX-License-Identifier: Apache-2.0
#include "runtime/unicode_classes.h"

#include <algorithm>

#include "runtime/unicode_tables.h"
#include "runtime/utf8.h"

namespace lathe::unicode {
namespace {

// The range that holds the character, or null.
template <class Range>
const Range* find(std::span<const Range> table, char32_t c) {
  auto it = std::ranges::lower_bound(table, c, {}, &Range::last);
  return it != table.end() && it->first <= c ? &*it : nullptr;
}

}  // namespace

bool isWhiteSpace(char32_t c) {
  return (c >= 9 && c <= 13) || c == 0x20 || c == 0x85 || c == 0xa0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f ||
         c == 0x3000;
}

bool isWord(char32_t c) { return find(word(), c); }
bool isNumeric(char32_t c) { return find(numeric(), c); }
bool isPunctuation(char32_t c) { return find(punctuation(), c); }
bool isMark(char32_t c) { return c >= 0x300 && find(marks(), c); }
bool isNonspacingMark(char32_t c) { return c >= 0x300 && find(nonspacingMarks(), c); }
bool isControl(char32_t c) { return find(control(), c); }
bool isDecomposed(char32_t c) { return c >= 0xa0 && find(decomposed(), c); }

bool isIdeograph(char32_t c) {
  return (c >= 0x3400 && c <= 0x4dbf) || (c >= 0x4e00 && c <= 0x9fff) ||
         (c >= 0xf900 && c <= 0xfaff) || (c >= 0x20000 && c <= 0x2a6df) ||
         (c >= 0x2a700 && c <= 0x2b81f) || (c >= 0x2b920 && c <= 0x2ceaf) ||
         (c >= 0x2f800 && c <= 0x2fa1f);
}

void appendLowerCase(std::string& text, char32_t c) {
  if (c == 0x130) {
    text += "i\u0307";
    return;
  }
  const LowerCase* run = find(lowerCase(), c);
  if (run && (c - run->first) % run->step == 0) c = char32_t(int32_t(c) + run->shift);
  appendCodePoint(text, c);
}

std::optional<uint8_t> scriptOf(char32_t c) {
  const ScriptRange* range = find(scripts(), c);
  if (!range) return std::nullopt;
  return range->script;
}

}  // namespace lathe::unicode
