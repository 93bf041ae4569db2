// SPDX-License-Identifier: Apache-2.0
#pragma once
// The "model" stage of tokenizer.json: a word to token ids.
#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lathe/runtime/json_reader.h"

namespace lathe {

struct StringHash {
  using is_transparent = void;
  size_t operator()(std::string_view s) const { return std::hash<std::string_view>{}(s); }
};
using Vocabulary = std::unordered_map<std::string, int, StringHash, std::equal_to<>>;

class TokenizerModel {
 public:
  virtual ~TokenizerModel() = default;
  const Vocabulary& vocabulary() const { return vocabulary_; }
  /// Appends the ids of `word`, which is valid UTF-8 and not empty, in time that is linear in its
  /// length but for a logarithm. Error(InvalidArgument) for text that is not in the vocabulary of a
  /// model without an unknown token.
  virtual void encode(std::string_view word, std::vector<int>& ids) const = 0;

 protected:
  /// Adds tokens that are an object of ids. Throws Error(InvalidFile) for ids that are negative or
  /// used twice, and for tokens that are empty or longer than `maxBytes`.
  void readVocabulary(const JsonValue& vocab, size_t maxBytes);
  static void checkToken(const std::string& token, const JsonValue& vocab, size_t maxBytes);
  /// The id of the token that `name` spells; Error(InvalidFile) if there is none.
  int idOfToken(const JsonValue& name) const;
  std::optional<int> find(std::string_view token) const;
  /// Ids of "<0x00>" to "<0xFF>", -1 for none.
  std::array<int, 256> byteTokens() const;

  Vocabulary vocabulary_;
};

/// BPE, WordPiece, Unigram or WordLevel; older files tell by their keys alone which one. Another
/// is Error(Unsupported).
std::unique_ptr<const TokenizerModel> readTokenizerModel(const JsonValue& json);

/// Appends the ids of a character's bytes; false, and nothing, where one of them has no token.
bool appendByteTokens(const std::array<int, 256>& tokens, std::string_view character,
                      std::vector<int>& ids);

/// Thrown by models without an unknown token.
[[noreturn]] void failWithoutToken(std::string_view what, std::string_view text);

}  // namespace lathe
