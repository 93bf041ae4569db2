// SPDX-License-Identifier: Apache-2.0
#pragma once
// SentencePiece's Unigram model: the likeliest way to write a word as tokens (Kudo 2018,
// arXiv:1804.10959, section 3.2).
#include "runtime/byte_trie.h"
#include "runtime/tokenizer_model.h"

namespace lathe {

/// The sum of the tokens' scores (natural logarithms of probabilities) is the largest, found by
/// Viterbi's algorithm from left to right; of equals the token that begins earlier. A character
/// without a token of its own costs the lowest score of the vocabulary less 10; those that follow
/// one another are one unknown token together, or the tokens of their bytes.
///
/// Where the ids are not the pieces' places (Marian), "vocab" is an object of ids and "pieces" the
/// list of pieces and scores, a key of our own; a piece without an id is an unknown token by
/// itself.
class Unigram final : public TokenizerModel {
 public:
  explicit Unigram(const JsonValue& json);
  /// O(n L) for n bytes and tokens of L bytes.
  void encode(std::string_view word, std::vector<int>& ids) const override;

 private:
  void readPieces(const JsonValue& list, bool haveIds);
  void appendText(std::string_view text, std::vector<int>& ids) const;

  ByteTrie pieces_;  // by their places
  std::vector<double> scores_;
  std::vector<int> ids_;
  double unknownScore_ = 0;
  std::optional<int> unknown_;
  int unknownPiece_ = -1;  // its place
  std::optional<std::array<int, 256>> bytes_;
};

}  // namespace lathe
