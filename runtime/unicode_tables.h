// SPDX-License-Identifier: Apache-2.0
#pragma once
// The tables of scripts/make_unicode_tables.py; unicode_classes.h asks them.
#include <cstdint>
#include <span>

namespace lathe::unicode {

/// Both ends belong to it. Every table is sorted and without overlap.
struct CharacterRange {
  char32_t first, last;
};
/// Every `step`-th character from the first to the last becomes the one `shift` further on.
struct LowerCase {
  char32_t first, last;
  uint8_t step;
  int32_t shift;
};
struct ScriptRange {
  char32_t first, last;
  uint8_t script;
};

std::span<const CharacterRange> marks();
std::span<const CharacterRange> nonspacingMarks();
std::span<const CharacterRange> control();
std::span<const CharacterRange> punctuation();
std::span<const CharacterRange> numeric();
std::span<const CharacterRange> word();
std::span<const CharacterRange> decomposed();
std::span<const LowerCase> lowerCase();
std::span<const ScriptRange> scripts();

}  // namespace lathe::unicode
