// SPDX-License-Identifier: Apache-2.0
#pragma once
// SentencePiece's "precompiled_charsmap": rules that replace short texts, as a double-array trie
// (Aoe 1989, doi:10.1109/32.31365, in the layout of darts-clone) in front of the texts that are put
// in their place.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lathe/runtime/json_reader.h"
#include "runtime/text_budget.h"

namespace lathe {

class Charsmap {
 public:
  /// `json` is the map in base64. Throws Error(InvalidFile) for what is no map. `takesLongest`: at
  /// each place the longest rule of at most 128 bytes counts, as in SentencePiece itself. Else the
  /// text is looked up as Hugging Face's library does: each grapheme (UAX 29) of fewer than 6 bytes
  /// by its shortest beginning that has a rule, and otherwise its characters.
  explicit Charsmap(const JsonValue& json, bool takesLongest = false);

  /// Valid UTF-8 in, valid UTF-8 out. `where` is the place in the file for the budget.
  std::string apply(std::string_view text, const std::string& where, TextBudget& budget) const;

 private:
  /// What the shortest rule, or the longest one, that `text` begins with puts in its place; `end`
  /// is where it ends.
  std::optional<std::string_view> find(std::string_view text, size_t& end) const;

  bool takesLongest_;
  std::vector<uint32_t> units_;
  std::string texts_;  // each ends with a zero byte
};

}  // namespace lathe
