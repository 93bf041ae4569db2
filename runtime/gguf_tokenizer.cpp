// SPDX-License-Identifier: Apache-2.0
// GGUF's vocabulary as a tokenizer.json: byte-level BPE, whose kind of pre-tokenizer has a name,
// and SentencePiece's BPE, whose merges follow from the scores of its pieces.
#include <algorithm>
#include <array>
#include <tuple>
#include <unordered_map>

#include <fmt/format.h>

#include "lathe/runtime/config_reader.h"
#include "lathe/runtime/error.h"
#include "runtime/gguf_model.h"
#include "runtime/tokenizer_json.h"
#include "runtime/utf8.h"

namespace lathe {
namespace {

using Json = TokenizerJson;

constexpr std::string_view kKeys = "tokenizer.ggml.";
enum TokenKind { kUnknown = 2, kControl = 3, kUserDefined = 4 };

// How words are cut, of the models that give the kind its name.
constexpr std::string_view kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kTekken =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kGpt4o =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

struct PreKind {
  std::string_view name;
  std::string_view pattern;    ///< empty: GPT-2's, which the step ByteLevel has itself
  bool digits = false;         ///< each digit is a word
  bool composes = false;       ///< characters are composed first (NFC)
  bool ignoresMerges = false;  ///< a word that is a token is that token
  bool addsBegin = false;      ///< unless the file says otherwise
};
constexpr auto kPreKinds = std::to_array<PreKind>({
    {.name = "gpt-2", .pattern = ""},
    {.name = "llama-bpe", .pattern = kLlama3, .ignoresMerges = true, .addsBegin = true},
    {.name = "llama3", .pattern = kLlama3, .ignoresMerges = true, .addsBegin = true},
    {.name = "llama-v3", .pattern = kLlama3, .ignoresMerges = true, .addsBegin = true},
    {.name = "dbrx", .pattern = kLlama3},
    {.name = "smaug-bpe", .pattern = kLlama3},
    {.name = "qwen2", .pattern = kQwen2Words, .composes = true},
    {.name = "deepseek-r1-qwen", .pattern = kQwen2Words, .composes = true},
    {.name = "smollm", .pattern = "", .digits = true},
    {.name = "starcoder", .pattern = "", .digits = true},
    {.name = "refact", .pattern = "", .digits = true},
    {.name = "command-r", .pattern = "", .digits = true},
    {.name = "tekken", .pattern = kTekken, .ignoresMerges = true},
    {.name = "gpt-4o", .pattern = kGpt4o},
});

const PreKind& preKindOf(const GgufFile& file) {
  const GgufValue& value = file.at("tokenizer.ggml.pre");
  std::string names;
  for (const PreKind& kind : kPreKinds) {
    if (kind.name == value.asString()) return kind;
    names += (names.empty() ? "" : ", ") + std::string(kind.name);
  }
  throw value.unsupported(fmt::format("expected one of {}, got {}", names, value.show()));
}

class Vocabulary {
 public:
  explicit Vocabulary(const GgufFile& file) : file_(file) {
    const GgufValue& list = file.at("tokenizer.ggml.tokens");
    tokens_ = list.asStrings();
    if (tokens_.empty() || int64_t(tokens_.size()) > kMaxVocabulary)
      throw list.error(
          fmt::format("expected 1 to {} tokens, got {}", kMaxVocabulary, tokens_.size()));
    ids_.reserve(tokens_.size());
    for (size_t i = 0; i < tokens_.size(); ++i)
      if (auto [it, isNew] = ids_.emplace(tokens_[i], i); !isNew)
        throw list.error(
            fmt::format("tokens {} and {} are both {}", it->second, i, inQuotes(tokens_[i])));
    if (const GgufValue* kinds = find("token_type")) {
      kinds_ = kinds->asInts(0, 255);
      expectAll(*kinds, kinds_.size());
    }
  }

  const std::vector<std::string_view>& tokens() const { return tokens_; }
  bool has(std::string_view piece) const { return ids_.contains(piece); }
  size_t idOf(std::string_view piece) const { return ids_.at(piece); }
  int64_t kindOf(size_t id) const { return kinds_.empty() ? 1 : kinds_[id]; }
  /// The first token of a kind that the file names; nothing where there is none.
  std::optional<size_t> firstOf(TokenKind kind) const {
    const auto found = std::ranges::find(kinds_, int64_t(kind));
    return found == kinds_.end() ? std::nullopt : std::optional(size_t(found - kinds_.begin()));
  }

  const GgufValue* find(std::string_view key) const {
    return file_.find(std::string(kKeys) + std::string(key));
  }
  bool flag(std::string_view key, bool otherwise) const {
    const GgufValue* value = find(key);
    return value ? value->asBool() : otherwise;
  }
  /// The token that a key names; nothing where the key is missing.
  std::optional<size_t> token(std::string_view key) const {
    const GgufValue* value = find(key);
    if (!value) return std::nullopt;
    return size_t(value->asInt(0, int64_t(tokens_.size()) - 1));
  }
  void expectAll(const GgufValue& value, size_t count) const {
    if (count != tokens_.size())
      throw value.error(
          fmt::format("expected one for each of {} tokens, got {}", tokens_.size(), count));
  }

  Json addedJson() const {
    Json added = Json::array();
    for (size_t i = 0; i < tokens_.size(); ++i) {
      const int64_t kind = kindOf(i);
      if (kind != kControl && kind != kUserDefined && kind != kUnknown) continue;
      added.push_back({{"id", i},
                       {"content", tokens_[i]},
                       {"single_word", false},
                       {"lstrip", false},
                       {"rstrip", false},
                       {"normalized", false},
                       {"special", kind != kUserDefined}});
    }
    return added;
  }
  /// What stands around a text.
  Json postProcessorJson(bool addsBegin, bool addsEnd) const {
    auto tokenOf = [&](const char* key) {
      const std::optional<size_t> id = token(key);
      if (!id)
        throw Error(ErrorCode::InvalidFile,
                    fmt::format("{}: {}{}: the key is missing", file_.path(), kKeys, key));
      return std::string(tokens_[*id]);
    };
    auto around = [&](const char* sequence, int type) {
      TemplatePieces pieces{{sequence, type}};
      if (addsBegin) pieces.insert(pieces.begin(), {tokenOf("bos_token_id"), type});
      if (addsEnd) pieces.emplace_back(tokenOf("eos_token_id"), type);
      return pieces;
    };
    const TemplatePieces single = around("$A", 0), second = around("$B", 1);
    TemplatePieces pair = single;
    pair.insert(pair.end(), second.begin(), second.end());
    return templateJson(single, pair, [&](const std::string& text) { return idOf(text); });
  }

 private:
  const GgufFile& file_;
  std::vector<std::string_view> tokens_;
  std::unordered_map<std::string_view, size_t> ids_;
  std::vector<int64_t> kinds_;
};

Json byteLevel(const Vocabulary& vocabulary, const GgufFile& file) {
  const PreKind& kind = preKindOf(file);
  Json steps = Json::array();
  if (kind.digits) steps.push_back({{"type", "Digits"}, {"individual_digits", true}});
  if (!kind.pattern.empty()) steps.push_back(splitJson(kind.pattern));
  steps.push_back({{"type", "ByteLevel"},
                   {"add_prefix_space", vocabulary.flag("add_space_prefix", false)},
                   {"trim_offsets", true},
                   {"use_regex", kind.pattern.empty()}});
  Json merges = Json::array();
  for (std::string_view merge : file.at("tokenizer.ggml.merges").asStrings())
    merges.push_back(merge);
  Json root;
  root["added_tokens"] = vocabulary.addedJson();
  root["normalizer"] = kind.composes ? Json{{"type", "NFC"}} : Json(nullptr);
  root["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", steps}};
  const bool addsBegin = vocabulary.flag("add_bos_token", kind.addsBegin);
  const bool addsEnd = vocabulary.flag("add_eos_token", false);
  root["post_processor"] =
      addsBegin || addsEnd ? vocabulary.postProcessorJson(addsBegin, addsEnd) : Json(nullptr);
  root["decoder"] = {{"type", "ByteLevel"}};
  root["model"] = {{"type", "BPE"},
                   {"ignore_merges", kind.ignoresMerges},
                   {"vocab", vocabularyJson(vocabulary.tokens())},
                   {"merges", merges}};
  return root;
}

// Pieces that join to a piece, the best scores first. SentencePiece joins the pair whose result has
// the best score: the same order.
Json mergesOf(const Vocabulary& vocabulary, const GgufFile& file) {
  const GgufValue& list = file.at("tokenizer.ggml.scores");
  const std::vector<double> scores = list.asDoubles();
  vocabulary.expectAll(list, scores.size());
  struct Merge {
    double score;
    size_t left, right;  // ids
    size_t cut;
    size_t whole;
  };
  std::vector<Merge> merges;
  size_t bytes = 0;
  for (size_t id = 0; id < vocabulary.tokens().size(); ++id) {
    const std::string_view piece = vocabulary.tokens()[id];
    bytes += piece.size() * piece.size();
    if (bytes > kMostMergeBytes)
      throw file.at("tokenizer.ggml.tokens")
          .error("the pieces are too long to find what they are merged of");
    if (vocabulary.kindOf(id) != 1 && vocabulary.kindOf(id) != kUserDefined) continue;
    for (size_t cut = 0; cut < piece.size();) {
      nextCodePoint(piece, cut);
      if (cut == piece.size()) break;
      const std::string_view left = piece.substr(0, cut), right = piece.substr(cut);
      if (vocabulary.has(left) && vocabulary.has(right))
        merges.push_back({scores[id], vocabulary.idOf(left), vocabulary.idOf(right), cut, id});
    }
  }
  std::ranges::sort(merges, {},
                    [](const Merge& m) { return std::tuple(-m.score, m.whole, m.left, m.right); });
  Json pairs = Json::array();
  for (const Merge& m : merges) {
    const std::string_view piece = vocabulary.tokens()[m.whole];
    pairs.push_back(Json::array({piece.substr(0, m.cut), piece.substr(m.cut)}));
  }
  return pairs;
}

Json sentencePiece(const Vocabulary& vocabulary, const GgufFile& file) {
  if (const GgufValue* spaces = vocabulary.find("remove_extra_whitespaces");
      spaces && spaces->asBool())
    throw spaces->unsupported("expected false, got true");
  if (const GgufValue* map = vocabulary.find("precompiled_charsmap"); map && map->size())
    throw map->unsupported("expected no normalization, got " + map->show());
  const bool hasPrefix = vocabulary.flag("add_space_prefix", true);
  Json root;
  root["added_tokens"] = vocabulary.addedJson();
  Json normalizers = Json::array(), decoders = Json::array();
  if (hasPrefix) normalizers.push_back({{"type", "Prepend"}, {"prepend", kPieceSpace}});
  normalizers.push_back(
      {{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", kPieceSpace}});
  root["normalizer"] = {{"type", "Sequence"}, {"normalizers", normalizers}};
  root["pre_tokenizer"] = nullptr;
  const bool addsBegin = vocabulary.flag("add_bos_token", true);
  const bool addsEnd = vocabulary.flag("add_eos_token", false);
  root["post_processor"] =
      addsBegin || addsEnd ? vocabulary.postProcessorJson(addsBegin, addsEnd) : Json(nullptr);
  decoders.push_back(
      {{"type", "Replace"}, {"pattern", {{"String", kPieceSpace}}}, {"content", " "}});
  decoders.push_back({{"type", "ByteFallback"}});
  decoders.push_back({{"type", "Fuse"}});
  if (hasPrefix)
    decoders.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  root["decoder"] = {{"type", "Sequence"}, {"decoders", decoders}};
  root["model"] = {{"type", "BPE"}, {"fuse_unk", true}, {"byte_fallback", true}};
  std::optional<size_t> unknown = vocabulary.token("unknown_token_id");
  if (!unknown) unknown = vocabulary.firstOf(kUnknown);
  if (unknown) root["model"]["unk_token"] = vocabulary.tokens()[*unknown];
  root["model"]["vocab"] = vocabularyJson(vocabulary.tokens());
  root["model"]["merges"] = mergesOf(vocabulary, file);
  return root;
}

}  // namespace

std::string ggufTokenizer(const GgufFile& file) {
  const GgufValue& model = file.at("tokenizer.ggml.model");
  const std::string_view name = model.asString();
  if (name != "gpt2" && name != "llama")
    throw model.unsupported("expected gpt2 (byte-level BPE) or llama (SentencePiece's BPE), got " +
                            model.show());
  const Vocabulary vocabulary(file);
  Json root = name == "gpt2" ? byteLevel(vocabulary, file) : sentencePiece(vocabulary, file);
  root["version"] = "1.0";
  return root.dump();
}

std::string ggufTokenizerConfig(const GgufFile& file) {
  const Vocabulary vocabulary(file);
  Json root = Json::object();
  for (auto [key, field] :
       {std::pair("bos_token_id", "bos_token"), std::pair("eos_token_id", "eos_token"),
        std::pair("unknown_token_id", "unk_token"), std::pair("padding_token_id", "pad_token")})
    if (auto id = vocabulary.token(key)) root[field] = vocabulary.tokens()[*id];
  return root.dump();
}

}  // namespace lathe
