// SPDX-License-Identifier: Apache-2.0
#pragma once
// Models whose words are looked up: whole (WordLevel), or by their longest beginnings (WordPiece).
#include "runtime/byte_trie.h"
#include "runtime/tokenizer_model.h"

namespace lathe {

/// BERT's: a word is the longest token that it begins with, then the longest for the rest among
/// those that carry the prefix of continuations ("##"), and so on (Wu et al. 2016,
/// arXiv:1609.08144, section 4.1). A word of which a part is not found is one unknown token.
class WordPiece final : public TokenizerModel {
 public:
  explicit WordPiece(const JsonValue& json);
  void encode(std::string_view word, std::vector<int>& ids) const override;

 private:
  ByteTrie beginnings_, continuations_;
  int unknown_ = 0;
  int64_t maxCharacters_ = 0;  // of a word; a longer one is unknown
};

/// A word is one token.
class WordLevel final : public TokenizerModel {
 public:
  explicit WordLevel(const JsonValue& json);
  void encode(std::string_view word, std::vector<int>& ids) const override;

 private:
  std::optional<int> unknown_;
};

}  // namespace lathe
