// SPDX-License-Identifier: Apache-2.0
#include "lathe/runtime/tokenizer.h"

#include <filesystem>

#include <fmt/format.h>

#include "lathe/runtime/error.h"
#include "lathe/runtime/json_reader.h"
#include "runtime/added_tokens.h"
#include "runtime/bpe.h"
#include "runtime/mapped_file.h"
#include "runtime/pre_tokenizer.h"
#include "runtime/text_normalizer.h"
#include "runtime/token_decoder.h"
#include "runtime/utf8.h"

namespace lathe {

struct Tokenizer::Data {
  Bpe bpe;
  TextNormalizer normalizer;
  PreTokenizer preTokenizer;
  AddedTokenFinder rawTokens, normalizedTokens;
  std::vector<int> prefix, suffix;  // what the template puts around a text
  Vocabulary ids;                   // model and added tokens together
  std::vector<std::string> tokens;
  TokenDecoder decoder;
  std::vector<TokenDecoder::Spelling> spellings;  // what each token decodes to
  std::vector<bool> special;

  void addVocabulary(const JsonValue& model, const JsonValue& added,
                     const std::vector<AddedToken>& addedTokens);
  void readPostProcessor(const JsonValue& json);
  void readTemplate(const JsonValue& json);
  void readSpellings(const std::vector<AddedToken>& addedTokens);
  void checkId(int id) const;
};

void Tokenizer::Data::addVocabulary(const JsonValue& model, const JsonValue& added,
                                    const std::vector<AddedToken>& addedTokens) {
  ids = bpe.vocabulary();
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

void Tokenizer::Data::readTemplate(const JsonValue& json) {
  refuseUnknownKeys(json, {"type", "single", "pair", "special_tokens"});
  JsonValue single = json.at("single");
  std::vector<int> before, after;
  bool text = false;
  for (size_t i = 0; i < single.size(); ++i) {
    JsonValue piece = single.at(i);
    if (auto sequence = piece.find("Sequence")) {
      if (text || sequence->at("id").asString() != "A")
        throw piece.error("expected the sequence A exactly once");
      text = true;
      continue;
    }
    const std::string& name = piece.at("SpecialToken").at("id").asString();
    auto entry = json.at("special_tokens").find(name);
    if (!entry)
      throw piece.error("special token " + inQuotes(name) + " is not listed in special_tokens");
    JsonValue list = entry->at("ids");
    for (size_t k = 0; k < list.size(); ++k)
      (text ? after : before).push_back(int(list.at(k).asInt(0, int64_t(tokens.size()) - 1)));
  }
  if (!text) throw single.error("expected the sequence A exactly once");
  prefix.insert(prefix.begin(), before.begin(), before.end());
  suffix.insert(suffix.end(), after.begin(), after.end());
}

void Tokenizer::Data::readPostProcessor(const JsonValue& json) {
  const std::string& type = json.at("type").asString();
  if (type == "ByteLevel") return;  // concerns character offsets, which are not computed here
  if (type == "TemplateProcessing") return readTemplate(json);
  if (type != "Sequence")
    throw json.at("type").error("post-processor " + inQuotes(type) +
                                    " is not supported, expected ByteLevel, TemplateProcessing or "
                                    "Sequence",
                                ErrorCode::Unsupported);
  JsonValue list = json.at("processors");
  for (size_t i = 0; i < list.size(); ++i) readPostProcessor(list.at(i));
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
  data->bpe = Bpe(model);
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
  if (auto stage = root.find("post_processor")) data->readPostProcessor(*stage);
  if (auto stage = root.find("decoder")) data->decoder = TokenDecoder(*stage);
  data->readSpellings(added);
  return Tokenizer(std::move(data));
}

std::vector<int> Tokenizer::encode(std::string_view text, const EncodeOptions& options) const {
  if (size_t at = findInvalidUtf8(text); at != text.npos)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("expected valid UTF-8, got the byte 0x{:02x} at position {}",
                            uint8_t(text[at]), at));
  const Data& d = data();
  TextBudget budget(text.size());
  std::vector<int> ids;
  if (options.addSpecialTokens) ids = d.prefix;
  bool first = true;
  for (const TextOrToken& raw : d.rawTokens.split(text, options.allowSpecialText)) {
    if (raw.token >= 0) {
      first = false;
      ids.push_back(raw.token);
      continue;
    }
    const std::string normalized = d.normalizer.apply(std::string(raw.text), budget);
    for (const TextOrToken& piece :
         d.normalizedTokens.split(normalized, options.allowSpecialText)) {
      if (piece.token >= 0) {
        ids.push_back(piece.token);
        first = false;
        continue;
      }
      for (const std::string& word : d.preTokenizer.split(std::string(piece.text), first, budget))
        d.bpe.encode(word, ids);
      first = false;
    }
  }
  if (options.addSpecialTokens) ids.insert(ids.end(), d.suffix.begin(), d.suffix.end());
  return ids;
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

StreamDecoder::StreamDecoder(Tokenizer tokenizer, bool skipSpecial)
    : tokenizer_(std::move(tokenizer)), skipSpecial_(skipSpecial) {}

std::string StreamDecoder::push(int id) {
  const Tokenizer::Data& d = tokenizer_.data();
  d.checkId(id);
  if (skipSpecial_ && d.special[size_t(id)]) return "";
  d.decoder.push(d.spellings[size_t(id)], place_, pending_);
  const size_t ready = pending_.size() - unfinishedUtf8(pending_);
  std::string text = replaceInvalidUtf8(std::string_view(pending_).substr(0, ready));
  pending_.erase(0, ready);
  return text;
}

std::string StreamDecoder::finish() {
  tokenizer_.data().decoder.finish(place_, pending_);
  std::string text = replaceInvalidUtf8(pending_);
  pending_.clear();
  place_ = {};
  return text;
}

}  // namespace lathe
