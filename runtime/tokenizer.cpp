// SPDX-License-Identifier: Apache-2.0
#include "lathe/runtime/tokenizer.h"

#include <filesystem>
#include <mutex>

#include <fmt/format.h>

#include "lathe/runtime/error.h"
#include "lathe/runtime/json_reader.h"
#include "runtime/added_tokens.h"
#include "runtime/folder_tokenizer.h"
#include "runtime/mapped_file.h"
#include "runtime/post_processor.h"
#include "runtime/pre_tokenizer.h"
#include "runtime/text_normalizer.h"
#include "runtime/token_bytes.h"
#include "runtime/token_decoder.h"
#include "runtime/tokenizer_model.h"
#include "runtime/utf8.h"

namespace lathe {

struct Tokenizer::Data {
  std::unique_ptr<const TokenizerModel> model;
  TextNormalizer normalizer;
  PreTokenizer preTokenizer;
  AddedTokenFinder rawTokens, normalizedTokens;
  PostProcessor postProcessor;
  Vocabulary ids;  // model and added tokens together
  std::vector<std::string> tokens;
  TokenDecoder decoder;
  std::vector<std::string> spellings;  // of each token for the decoder
  std::vector<bool> special;
  // What stands in front of a token in the middle of a text: looked for once it is asked for.
  mutable std::once_flag letterFlag;
  mutable std::optional<int> letter;

  void addVocabulary(const JsonValue& model, const JsonValue& added,
                     const std::vector<AddedToken>& addedTokens);
  void readSpellings(const std::vector<AddedToken>& addedTokens);
  void checkId(int id) const;
  std::vector<int> encode(std::string_view text, bool allowSpecialText) const;
};

void Tokenizer::Data::addVocabulary(const JsonValue& model, const JsonValue& added,
                                    const std::vector<AddedToken>& addedTokens) {
  ids = this->model->vocabulary();
  std::unordered_map<int, std::string_view> tokenOf;
  tokenOf.reserve(ids.size());
  for (auto& [token, id] : ids) tokenOf.emplace(id, token);
  for (size_t i = 0; i < addedTokens.size(); ++i) {
    const AddedToken& token = addedTokens[i];
    auto [known, isNew] = ids.emplace(token.content, token.id);
    if (!isNew && known->second != token.id)
      throw added.at(i).error(fmt::format("added token {} has id {} here and {} elsewhere",
                                          inQuotes(token.content), token.id, known->second));
    auto [other, isNewId] = tokenOf.emplace(token.id, token.content);
    if (!isNewId && other->second != token.content)
      throw added.at(i).error(fmt::format("added token {} has id {}, which is that of {}",
                                          inQuotes(token.content), token.id,
                                          inQuotes(other->second)));
  }
  tokens.resize(ids.size());
  for (auto& [token, id] : ids) {
    // Ids are distinct, so one past the end means that another is missing.
    if (size_t(id) >= tokens.size())
      throw model.error(
          fmt::format("token {} has id {}, but there are {} tokens: the ids have gaps",
                      inQuotes(token), id, tokens.size()));
    tokens[size_t(id)] = token;
  }
  special.resize(tokens.size());
  for (const AddedToken& token : addedTokens) special[size_t(token.id)] = token.special;
}

void Tokenizer::Data::readSpellings(const std::vector<AddedToken>& addedTokens) {
  std::vector<std::string> contents = tokens;
  size_t bytes = 0;
  for (const std::string& token : tokens) bytes += token.size();
  TextBudget budget(2 * bytes);
  for (const AddedToken& token : addedTokens)
    if (token.normalized) contents[size_t(token.id)] = normalizer.apply(token.content, budget);
  spellings.reserve(contents.size());
  for (const std::string& token : contents) spellings.push_back(decoder.spell(token, budget));
}

void Tokenizer::Data::checkId(int id) const {
  if (id < 0 || size_t(id) >= tokens.size())
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("expected a token id from 0 to {}, got {}", tokens.size() - 1, id));
}

Tokenizer Tokenizer::load(const std::string& path) {
  std::error_code ignored;
  const bool folder = std::filesystem::is_directory(path, ignored);
  const std::string file =
      folder ? (std::filesystem::path(path) / "tokenizer.json").string() : path;
  if (folder && !std::filesystem::exists(file, ignored))
    if (const auto made = folderTokenizer(path)) return parse(*made, file);
  return read(JsonValue::load(file, kTokenizerFile));
}

Tokenizer Tokenizer::parse(std::string_view json, const std::string& file) {
  return read(JsonValue::parse(json, file));
}

Tokenizer Tokenizer::read(const JsonValue& root) {
  if (!root.isObject()) throw root.error("expected an object, got " + root.show());
  // Truncation and padding shape batches for training and are off when text is encoded for use,
  // as in the library that writes them.
  refuseUnknownKeys(root, {"version", "truncation", "padding", "added_tokens", "normalizer",
                           "pre_tokenizer", "post_processor", "decoder", "model"});
  JsonValue model = root.at("model");
  auto data = std::make_shared<Data>();
  data->model = readTokenizerModel(model);
  if (auto stage = root.find("normalizer")) data->normalizer = TextNormalizer(*stage);
  if (auto stage = root.find("pre_tokenizer")) data->preTokenizer = PreTokenizer(*stage);
  std::vector<AddedToken> added;
  auto list = root.find("added_tokens");
  if (list) added = parseAddedTokens(*list);
  data->addVocabulary(model, list ? *list : root, added);
  size_t contents = 0;
  for (const AddedToken& token : added) contents += token.content.size();
  TextBudget budget(2 * contents);
  data->rawTokens = AddedTokenFinder(added, false, data->normalizer, budget);
  data->normalizedTokens = AddedTokenFinder(added, true, data->normalizer, budget);
  if (auto stage = root.find("post_processor"))
    data->postProcessor = PostProcessor(*stage, int64_t(data->tokens.size()));
  if (auto stage = root.find("decoder")) data->decoder = TokenDecoder(*stage);
  data->readSpellings(added);
  return Tokenizer(std::move(data));
}

std::vector<int> Tokenizer::Data::encode(std::string_view text, bool allowSpecialText) const {
  if (size_t at = findInvalidUtf8(text); at != text.npos)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("expected valid UTF-8, got the byte 0x{:02x} at position {}",
                            uint8_t(text[at]), at));
  TextBudget budget(text.size());
  std::vector<int> result;
  bool first = true;
  for (const TextOrToken& raw : rawTokens.split(text, allowSpecialText)) {
    if (raw.token >= 0) {
      first = false;
      result.push_back(raw.token);
      continue;
    }
    const std::string normalized = normalizer.apply(std::string(raw.text), budget);
    for (const TextOrToken& piece : normalizedTokens.split(normalized, allowSpecialText)) {
      if (piece.token >= 0) {
        result.push_back(piece.token);
        first = false;
        continue;
      }
      for (const std::string& word : preTokenizer.split(std::string(piece.text), first, budget))
        model->encode(word, result);
      first = false;
    }
  }
  return result;
}

std::vector<int> Tokenizer::encode(std::string_view text, const EncodeOptions& options) const {
  const Data& d = data();
  std::vector<int> ids = d.encode(text, options.allowSpecialText);
  return options.addSpecialTokens ? d.postProcessor.wrap(ids) : ids;
}

PairEncoding Tokenizer::encodePair(std::string_view first, std::string_view second,
                                   const EncodeOptions& options) const {
  const Data& d = data();
  return (options.addSpecialTokens ? d.postProcessor : PostProcessor())
      .wrapPair(d.encode(first, options.allowSpecialText),
                d.encode(second, options.allowSpecialText));
}

std::string Tokenizer::decode(std::span<const int> ids, bool skipSpecial) const {
  StreamDecoder stream(*this, skipSpecial);
  std::string text;
  for (int id : ids) text += stream.push(id);
  return text + stream.finish();
}

const Tokenizer::Data& Tokenizer::data() const {
  if (!data_)
    throw Error(ErrorCode::InvalidArgument,
                "the Tokenizer was moved from; use the one that it was moved to");
  return *data_;
}

int Tokenizer::vocabSize() const { return int(data().tokens.size()); }

std::optional<int> Tokenizer::tokenToId(std::string_view token) const {
  auto it = data().ids.find(token);
  if (it == data().ids.end()) return std::nullopt;
  return it->second;
}

const std::string& Tokenizer::idToToken(int id) const {
  data().checkId(id);
  return data().tokens[size_t(id)];
}

bool Tokenizer::isSpecial(int id) const {
  data().checkId(id);
  return data().special[size_t(id)];
}

std::string Tokenizer::tokenBytes(int id, bool first) const {
  const Data& d = data();
  const std::string& token = idToToken(id);
  std::call_once(d.letterFlag, [&] { d.letter = findLetterToken(*this); });
  if (!first && d.letter) {
    const std::string before = decode(std::vector<int>{*d.letter}, false);
    const std::string both = decode(std::vector<int>{*d.letter, id}, false);
    if (both.starts_with(before)) return ownBytes(token, both.substr(before.size()));
  }
  return ownBytes(token, decode(std::vector<int>{id}, false));
}

StreamDecoder::StreamDecoder(Tokenizer tokenizer, bool skipSpecial)
    : tokenizer_(std::move(tokenizer)), skipSpecial_(skipSpecial) {}

std::string StreamDecoder::push(int id) {
  const Tokenizer::Data& d = tokenizer_.data();
  d.checkId(id);
  if (skipSpecial_ && d.special[size_t(id)]) return "";
  std::string text;
  d.decoder.push(d.spellings[size_t(id)], place_, text);
  return text;
}

std::string StreamDecoder::finish() {
  std::string text;
  tokenizer_.data().decoder.finish(place_, text);
  return text;
}

}  // namespace lathe
