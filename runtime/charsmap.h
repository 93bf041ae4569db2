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
  /// `json` is the map in base64. Throws Error(InvalidFile) for what is no map.
  explicit Charsmap(const JsonValue& json);

  /// Valid UTF-8 in, valid UTF-8 out. As the library that writes these files does, it looks up
  /// each grapheme (UAX 29) of fewer than 6 bytes by its shortest beginning that has a rule, and
  /// otherwise its characters. `where` is the place in the file for the budget.
  std::string apply(std::string_view text, const std::string& where, TextBudget& budget) const;

 private:
  std::optional<std::string_view> find(std::string_view text) const;

  std::vector<uint32_t> units_;
  std::string texts_;  // each ends with a zero byte
};

}  // namespace lathe
