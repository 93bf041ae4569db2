// SPDX-License-Identifier: Apache-2.0
#include "runtime/word_models.h"

#include <algorithm>

#include "runtime/text_normalizer.h"

namespace lathe {

WordPiece::WordPiece(const JsonValue& json) {
  refuseUnknownKeys(json, {"type", "unk_token", "continuing_subword_prefix",
                           "max_input_chars_per_word", "vocab"});
  const std::string& prefix = json.at("continuing_subword_prefix").asString();
  maxCharacters_ = json.at("max_input_chars_per_word").asInt(0);
  readVocabulary(json.at("vocab"), ByteTrie::kMaxTokenBytes);
  unknown_ = idOfToken(json.at("unk_token"));
  for (auto& [token, id] : vocabulary_) {
    beginnings_.add(token, id);
    if (token.size() > prefix.size() && token.starts_with(prefix))
      continuations_.add(std::string_view(token).substr(prefix.size()), id);
  }
}

void WordPiece::encode(std::string_view word, std::vector<int>& ids) const {
  auto beginsCharacter = [](char byte) { return (uint8_t(byte) & 0xc0) != 0x80; };
  if (std::ranges::count_if(word, beginsCharacter) > maxCharacters_) return ids.push_back(unknown_);
  const size_t before = ids.size();
  for (size_t at = 0; at < word.size();) {
    size_t end = at;
    int id = -1;
    (at == 0 ? beginnings_ : continuations_).match(word, at, [&](size_t tokenEnd, int token) {
      end = tokenEnd;
      id = token;
    });
    if (id < 0) {
      ids.resize(before);
      return ids.push_back(unknown_);
    }
    ids.push_back(id);
    at = end;
  }
}

WordLevel::WordLevel(const JsonValue& json) {
  refuseUnknownKeys(json, {"type", "unk_token", "vocab"});
  readVocabulary(json.at("vocab"), 65536);
  if (auto token = json.find("unk_token")) unknown_ = find(token->asString());
}

void WordLevel::encode(std::string_view word, std::vector<int>& ids) const {
  std::optional<int> id = find(word);
  if (!id) id = unknown_;
  if (!id) failWithoutToken("word", word);
  ids.push_back(*id);
}

}  // namespace lathe
