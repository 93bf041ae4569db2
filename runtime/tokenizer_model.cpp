// SPDX-License-Identifier: Apache-2.0
#include "runtime/tokenizer_model.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "lathe/runtime/error.h"
#include "runtime/bpe.h"
#include "runtime/text_normalizer.h"
#include "runtime/unigram.h"
#include "runtime/word_models.h"

namespace lathe {

void TokenizerModel::checkToken(const std::string& token, const JsonValue& vocab, size_t maxBytes) {
  if (token.empty()) throw vocab.error("the vocabulary has an empty token");
  if (token.size() > maxBytes)
    throw vocab.error(
        fmt::format("a token of {} bytes, expected at most {}", token.size(), maxBytes));
}

void TokenizerModel::readVocabulary(const JsonValue& vocab, size_t maxBytes) {
  if (!vocab.isObject()) throw vocab.error("expected an object of tokens, got " + vocab.show());
  vocabulary_.reserve(vocab.size());
  std::unordered_map<int, std::string_view> tokenOf;
  tokenOf.reserve(vocab.size());
  for (size_t i = 0; i < vocab.size(); ++i) {
    auto [token, value] = vocab.member(i);
    checkToken(token, vocab, maxBytes);
    int id = int(value.asInt(0, kMaxTokenId));
    auto [it, isNew] = tokenOf.emplace(id, token);
    if (!isNew)
      throw vocab.error(fmt::format("tokens {} and {} have the same id {}", inQuotes(it->second),
                                    inQuotes(token), id));
    vocabulary_.emplace(token, id);
  }
}

std::optional<int> TokenizerModel::find(std::string_view token) const {
  auto it = vocabulary_.find(token);
  if (it == vocabulary_.end()) return std::nullopt;
  return it->second;
}

int TokenizerModel::idOfToken(const JsonValue& name) const {
  const std::optional<int> id = find(name.asString());
  if (!id) throw name.error(inQuotes(name.asString()) + " is not in the vocabulary");
  return *id;
}

std::array<int, 256> TokenizerModel::byteTokens() const {
  std::array<int, 256> ids;
  for (size_t byte = 0; byte < 256; ++byte)
    ids[byte] = find(fmt::format("<0x{:02X}>", byte)).value_or(-1);
  return ids;
}

bool appendByteTokens(const std::array<int, 256>& tokens, std::string_view character,
                      std::vector<int>& ids) {
  auto idOf = [&](char byte) { return tokens[uint8_t(byte)]; };
  if (std::ranges::any_of(character, [&](char byte) { return idOf(byte) < 0; })) return false;
  std::ranges::transform(character, std::back_inserter(ids), idOf);
  return true;
}

void failWithoutToken(std::string_view what, std::string_view text) {
  throw Error(ErrorCode::InvalidArgument,
              fmt::format("the tokenizer has no token for the {} {} and no unknown token", what,
                          inQuotes(text)));
}

std::unique_ptr<const TokenizerModel> readTokenizerModel(const JsonValue& json) {
  std::string kind;
  auto type = json.find("type");
  if (type)
    kind = type->asString();
  else if (json.has("max_input_chars_per_word"))
    kind = "WordPiece";
  else
    kind = json.has("vocab") && json.at("vocab").isArray() ? "Unigram" : "BPE";
  if (kind == "BPE") return std::make_unique<Bpe>(json);
  if (kind == "WordPiece") return std::make_unique<WordPiece>(json);
  if (kind == "Unigram") return std::make_unique<Unigram>(json);
  if (kind == "WordLevel") return std::make_unique<WordLevel>(json);
  throw type->error("model " + inQuotes(kind) +
                        " is not supported, expected BPE, WordPiece, Unigram or WordLevel",
                    ErrorCode::Unsupported);
}

}  // namespace lathe
