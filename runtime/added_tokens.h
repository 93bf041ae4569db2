// SPDX-License-Identifier: Apache-2.0
#pragma once
// The "added_tokens" of tokenizer.json: tokens that are found in the text before anything else.
#include <string>
#include <string_view>
#include <vector>

#include "lathe/runtime/json_reader.h"
#include "runtime/byte_trie.h"
#include "runtime/text_normalizer.h"

namespace lathe {

struct AddedToken {
  int id = 0;
  std::string content;
  bool singleWord = false;  ///< only between characters that are no part of a word
  bool lstrip = false;      ///< takes the white space before it along
  bool rstrip = false;      ///< takes the white space after it along
  bool normalized = false;  ///< looked for in normalized text, in its own normalized form
  bool special = false;
};

std::vector<AddedToken> parseAddedTokens(const JsonValue& json);

/// A piece of text between tokens, or a token.
struct TextOrToken {
  std::string_view text;
  int token = -1;  ///< id, or -1 for text
};

/// Finds tokens: the leftmost match, and of those the longest.
class AddedTokenFinder {
 public:
  AddedTokenFinder() = default;
  /// Looks for the tokens whose `normalized` is the given one.
  AddedTokenFinder(const std::vector<AddedToken>& tokens, bool normalized,
                   const TextNormalizer& normalizer, TextBudget& budget);

  /// Cuts valid UTF-8 `text`; no piece is empty. A special token's spelling stays text unless
  /// `allowSpecial`.
  std::vector<TextOrToken> split(std::string_view text, bool allowSpecial) const;

 private:
  const AddedToken* longestAt(std::string_view text, size_t position, size_t& end) const;

  std::vector<AddedToken> tokens_;
  ByteTrie trie_;  // to indices into tokens_
};

}  // namespace lathe
