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
class Unigram final : public TokenizerModel {
 public:
  explicit Unigram(const JsonValue& json);
  /// O(n L) for n bytes and tokens of L bytes.
  void encode(std::string_view word, std::vector<int>& ids) const override;

 private:
  void appendText(std::string_view text, std::vector<int>& ids) const;

  ByteTrie tokens_;
  std::vector<double> scores_;
  double unknownScore_ = 0;
  std::optional<int> unknown_;
  std::optional<std::array<int, 256>> bytes_;
};

}  // namespace lathe
