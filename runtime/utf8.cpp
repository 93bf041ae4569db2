// SPDX-License-Identifier: Apache-2.0
#include "runtime/utf8.h"

#include <algorithm>
#include <cstdint>

namespace lathe {
namespace {

struct Sequence {
  size_t length;   // of the valid or, if cut off, of the longest valid beginning; at least 1
  size_t missing;  // bytes that are lacking at the end of the text
  bool valid;
};

// Table 3-7 of the Unicode standard: the lead byte fixes the length and the second byte's range.
Sequence readSequence(std::string_view text, size_t position) {
  const uint8_t lead = uint8_t(text[position]);
  if (lead < 0x80) return {1, 0, true};
  size_t length = lead >= 0xc2 && lead <= 0xdf   ? 2
                  : lead >= 0xe0 && lead <= 0xef ? 3
                  : lead >= 0xf0 && lead <= 0xf4 ? 4
                                                 : 0;
  if (length == 0) return {1, 0, false};
  uint8_t low = 0x80, high = 0xbf;
  if (lead == 0xe0) low = 0xa0;
  if (lead == 0xed) high = 0x9f;
  if (lead == 0xf0) low = 0x90;
  if (lead == 0xf4) high = 0x8f;
  for (size_t i = 1; i < length; ++i) {
    if (position + i == text.size()) return {i, length - i, false};
    const uint8_t byte = uint8_t(text[position + i]);
    if (byte < low || byte > high) return {i, 0, false};
    low = 0x80;
    high = 0xbf;
  }
  return {length, 0, true};
}

}  // namespace

size_t findInvalidUtf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    Sequence s = readSequence(text, i);
    if (!s.valid) return i;
    i += s.length;
  }
  return std::string_view::npos;
}

char32_t nextCodePoint(std::string_view text, size_t& position) {
  auto byte = [&](size_t i) { return char32_t(uint8_t(text[position + i])); };
  const char32_t lead = byte(0);
  if (lead < 0x80) return ++position, lead;
  char32_t c;
  if (lead < 0xe0) {
    c = (lead & 0x1f) << 6 | (byte(1) & 0x3f);
    position += 2;
  } else if (lead < 0xf0) {
    c = (lead & 0xf) << 12 | (byte(1) & 0x3f) << 6 | (byte(2) & 0x3f);
    position += 3;
  } else {
    c = (lead & 7) << 18 | (byte(1) & 0x3f) << 12 | (byte(2) & 0x3f) << 6 | (byte(3) & 0x3f);
    position += 4;
  }
  return c;
}

char32_t codePointBefore(std::string_view text, size_t position) {
  do --position;
  while ((uint8_t(text[position]) & 0xc0) == 0x80);
  return nextCodePoint(text, position);
}

void appendCodePoint(std::string& text, char32_t c) {
  if (c < 0x80) {
    text += char(c);
  } else if (c < 0x800) {
    text += {char(0xc0 | c >> 6), char(0x80 | (c & 0x3f))};
  } else if (c < 0x10000) {
    text += {char(0xe0 | c >> 12), char(0x80 | (c >> 6 & 0x3f)), char(0x80 | (c & 0x3f))};
  } else {
    text += {char(0xf0 | c >> 18), char(0x80 | (c >> 12 & 0x3f)), char(0x80 | (c >> 6 & 0x3f)),
             char(0x80 | (c & 0x3f))};
  }
}

std::string replaceInvalidUtf8(std::string_view bytes) {
  std::string result;
  result.reserve(bytes.size());
  for (size_t i = 0; i < bytes.size();) {
    Sequence s = readSequence(bytes, i);
    result += s.valid ? bytes.substr(i, s.length) : std::string_view("\uFFFD");
    i += s.length;
  }
  return result;
}

size_t unfinishedUtf8(std::string_view bytes) {
  for (size_t n = 1; n <= std::min<size_t>(3, bytes.size()); ++n) {
    const size_t start = bytes.size() - n;
    if ((uint8_t(bytes[start]) & 0xc0) == 0x80) continue;
    Sequence s = readSequence(bytes, start);
    return s.missing > 0 ? n : 0;
  }
  return 0;
}

}  // namespace lathe
