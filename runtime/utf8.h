// SPDX-License-Identifier: Apache-2.0
#pragma once
// UTF-8 as the Unicode standard defines it: no surrogates, no overlong forms, at most U+10FFFF.
#include <cstddef>
#include <string>
#include <string_view>

namespace lathe {

/// Position of the first byte that is not part of a valid sequence; npos if there is none.
size_t findInvalidUtf8(std::string_view text);

/// The code point at `position` of valid UTF-8, which moves past it.
char32_t nextCodePoint(std::string_view text, size_t& position);
/// The code point that ends at `position` > 0 of valid UTF-8.
char32_t codePointBefore(std::string_view text, size_t position);
void appendCodePoint(std::string& text, char32_t c);

/// Replaces each maximal invalid part by U+FFFD (Unicode 15, section 3.9, as Rust and Python do).
std::string replaceInvalidUtf8(std::string_view bytes);
/// Bytes at the end that could still become one valid sequence: 0 to 3.
size_t unfinishedUtf8(std::string_view bytes);

}  // namespace lathe
