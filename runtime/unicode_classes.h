// SPDX-License-Identifier: Apache-2.0
#pragma once
// Classes of characters as the stages of tokenizer.json know them.
#include <cstdint>
#include <optional>
#include <string>

namespace lathe::unicode {

/// The White_Space property.
bool isWhiteSpace(char32_t c);
/// \w of Unicode regular expressions (UTS 18, annex C).
bool isWord(char32_t c);
/// General categories Nd, Nl and No.
bool isNumeric(char32_t c);
/// General category P, and the symbols of ASCII.
bool isPunctuation(char32_t c);
/// General category M.
bool isMark(char32_t c);
/// General category Mn.
bool isNonspacingMark(char32_t c);
/// Control, format and private characters without tab and line ends, and U+FFFD.
bool isControl(char32_t c);
/// The blocks of ideographs that BERT puts spaces around.
bool isIdeograph(char32_t c);
/// Whether a compatibility decomposition changes the character.
bool isDecomposed(char32_t c);

/// Appends the character in lower case.
void appendLowerCase(std::string& text, char32_t c);
/// A number that characters of one script share; none for a space and unassigned characters.
std::optional<uint8_t> scriptOf(char32_t c);

}  // namespace lathe::unicode
