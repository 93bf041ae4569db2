// SPDX-License-Identifier: Apache-2.0
// SentencePiece's models of T5, XLM-R, Llama, Gemma and Marian.
#include <algorithm>
#include <tuple>

#include <fmt/format.h>

#include "lathe/runtime/error.h"
#include "runtime/base64.h"
#include "runtime/folder_tokenizer.h"
#include "runtime/sentencepiece_model.h"
#include "runtime/utf8.h"

namespace lathe {
namespace {

using Type = SentencePieceModel::Type;
using Kind = SentencePieceModel::Kind;

constexpr SpecialDefault kT5[] = {
    {"eos_token", "</s>"}, {"unk_token", "<unk>"}, {"pad_token", "<pad>"}};
constexpr SpecialDefault kXlmRoberta[] = {{"bos_token", "<s>"},          {"eos_token", "</s>"},
                                          {"unk_token", "<unk>"},        {"sep_token", "</s>"},
                                          {"pad_token", "<pad>"},        {"cls_token", "<s>"},
                                          {"mask_token", "<mask>", true}};
constexpr SpecialDefault kLlama[] = {
    {"bos_token", "<s>"}, {"eos_token", "</s>"}, {"unk_token", "<unk>"}};
constexpr SpecialDefault kGemma[] = {
    {"bos_token", "<bos>"}, {"eos_token", "<eos>"}, {"unk_token", "<unk>"}, {"pad_token", "<pad>"}};
constexpr SpecialDefault kMarian[] = {
    {"eos_token", "</s>"}, {"unk_token", "<unk>"}, {"pad_token", "<pad>"}};

struct Entry {
  std::string_view text;
  double score;
};

TokenizerJson stepsJson(const char* key, TokenizerJson steps) {
  return {{"type", "Sequence"}, {key, std::move(steps)}};
}
TokenizerJson replaceJson(const char* kind, std::string_view from, std::string_view to) {
  return {{"type", "Replace"}, {"pattern", {{kind, from}}}, {"content", to}};
}
TokenizerJson metaspaceJson(std::string_view scheme, bool splits) {
  return {{"type", "Metaspace"},
          {"replacement", kPieceSpace},
          {"prepend_scheme", scheme},
          {"split", splits}};
}

TokenizerJson unigramVocabulary(const std::vector<Entry>& entries) {
  TokenizerJson vocab = TokenizerJson::array();
  for (const Entry& entry : entries)
    vocab.push_back(TokenizerJson::array({entry.text, entry.score}));
  return vocab;
}

TokenizerJson charsmapJson(const SentencePieceModel& model, bool takesLongest) {
  return {{"type", "Precompiled"},
          {"precompiled_charsmap", encodeBase64(std::as_bytes(std::span(model.charsmap)))},
          {"takes_longest", takesLongest}};
}

// What SentencePiece does to a text, but for the prefix and the spelling of spaces.
TokenizerJson exactNormalizers(const SentencePieceModel& model) {
  TokenizerJson steps = TokenizerJson::array();
  if (!model.charsmap.empty()) steps.push_back(charsmapJson(model, true));
  if (model.removesSpaces) {
    steps.push_back(replaceJson("Regex", R"(\A +| +\z)", ""));
    steps.push_back(replaceJson("Regex", " {2,}", " "));
  }
  return steps;
}

// As transformers' converter has it, which takes space of any kind away at the end.
TokenizerJson usualNormalizers(const SentencePieceModel& model) {
  TokenizerJson steps = TokenizerJson::array();
  if (!model.charsmap.empty()) steps.push_back(charsmapJson(model, false));
  steps.push_back({{"type", "Strip"}, {"strip_left", false}, {"strip_right", true}});
  steps.push_back(replaceJson("Regex", " {2,}", kPieceSpace));
  return steps;
}

TokenizerJson exactUnigramNormalizers(const SentencePieceModel& model) {
  TokenizerJson steps = exactNormalizers(model);
  // Metaspace puts no prefix in front of one that is there.
  if (model.addsPrefix) steps.push_back(replaceJson("Regex", R"(\A(?=[ \x{2581}]))", kPieceSpace));
  return steps;
}

TokenizerJson withByteFallback(bool falls, TokenizerJson decoder) {
  if (!falls) return decoder;
  return stepsJson("decoders", TokenizerJson::array({{{"type", "ByteFallback"}}, decoder}));
}

// Pieces that join to a piece, in the order of transformers' generate_merges: the best score first,
// then the longest left part and the longest right one, in characters.
TokenizerJson mergesOf(const SentencePieceModel& model, const std::vector<Entry>& entries,
                       const std::unordered_map<std::string, size_t>& ids) {
  struct Merge {
    double score;
    size_t leftCharacters, rightCharacters;
    size_t left, right;  // ids
    size_t whole;
    size_t cut;
  };
  std::vector<Merge> merges;
  size_t bytes = 0;
  auto idOf = [&](std::string_view piece) {
    const auto found = ids.find(std::string(piece));
    return found == ids.end() ? entries.size() : found->second;
  };
  for (size_t id = 0; id < entries.size(); ++id) {
    const std::string_view piece = entries[id].text;
    bytes += piece.size() * piece.size();
    if (bytes > kMostMergeBytes)
      throw model.error("the pieces are too long to find what they are merged of");
    const size_t characters =
        size_t(std::ranges::count_if(piece, [](char c) { return (uint8_t(c) & 0xc0) != 0x80; }));
    for (size_t cut = 0, count = 1; cut < piece.size(); ++count) {
      nextCodePoint(piece, cut);
      if (cut == piece.size()) break;
      const size_t left = idOf(piece.substr(0, cut)), right = idOf(piece.substr(cut));
      if (left == entries.size() || right == entries.size()) continue;
      merges.push_back({entries[id].score, count, characters - count, left, right, id, cut});
    }
  }
  std::ranges::sort(merges, {}, [](const Merge& m) {
    return std::tuple(-m.score, -int64_t(m.leftCharacters), -int64_t(m.rightCharacters), m.whole,
                      m.left, m.right);
  });
  TokenizerJson pairs = TokenizerJson::array();
  for (const Merge& m : merges) {
    const std::string_view piece = entries[m.whole].text;
    pairs.push_back(TokenizerJson::array({piece.substr(0, m.cut), piece.substr(m.cut)}));
  }
  return pairs;
}

// Pieces with the tokens that transformers puts in place of some. `names` are of what it puts
// there.
std::vector<Entry> entriesOf(const SentencePieceModel& model, TokenizerClass which,
                             const FolderFiles& files, std::vector<std::string>& names) {
  std::vector<Entry> entries;
  auto addPieces = [&](size_t from) {
    for (size_t i = from; i < model.pieces.size(); ++i)
      entries.push_back({model.pieces[i].text, model.pieces[i].score});
  };
  if (which != TokenizerClass::T5 && model.pieces.size() < 4)
    throw model.error(fmt::format("expected at least 4 pieces, got {}", model.pieces.size()));
  if (which == TokenizerClass::T5) {
    addPieces(0);
    const auto extra = files.object("tokenizer_config.json").find("extra_ids");
    for (int64_t i = extra ? extra->asInt(0, 65536) : 100; i-- > 0;)
      names.push_back(fmt::format("<extra_id_{}>", i));
    for (const std::string& name : names) entries.push_back({name, 0});
  } else if (which == TokenizerClass::XlmRoberta) {
    for (const char* token : {"<s>", "<pad>", "</s>", "<unk>"}) entries.push_back({token, 0});
    addPieces(3);
    entries.push_back({"<mask>", 0});
  } else {
    // The first three have other names where the folder says so.
    names.resize(3);
    const auto added = files.object("tokenizer_config.json").find("added_tokens_decoder");
    for (size_t i = 0; i < 3; ++i) {
      const auto token = added ? added->find(std::to_string(i)) : std::nullopt;
      names[i] = token ? token->at("content").asString() : std::string(model.pieces[i].text);
      entries.push_back({names[i], 0});
    }
    addPieces(3);
  }
  return entries;
}

std::unordered_map<std::string, size_t> idsOf(const SentencePieceModel& model,
                                              const std::vector<Entry>& entries) {
  std::unordered_map<std::string, size_t> ids;
  ids.reserve(entries.size());
  for (size_t i = 0; i < entries.size(); ++i)
    if (!ids.emplace(entries[i].text, i).second)
      throw model.error(fmt::format("the token {} is there twice, as {} and {}",
                                    inQuotes(entries[i].text), ids.at(std::string(entries[i].text)),
                                    i));
  return ids;
}

SpecialKind specialsOf(TokenizerClass which) {
  switch (which) {
    case TokenizerClass::T5:
      return {kT5, false};
    case TokenizerClass::XlmRoberta:
      return {kXlmRoberta, false};
    case TokenizerClass::Gemma:
      return {kGemma, false};
    default:
      return {kLlama, false};
  }
}

// Control pieces and those that a user defined are found before anything else.
void addPieceTokens(const SentencePieceModel& model, TokenizerClass which, FolderTokens& tokens,
                    const std::unordered_map<std::string, size_t>& ids) {
  for (const SentencePieceModel::Piece& piece : model.pieces) {
    if (piece.type != Type::Control && piece.type != Type::UserDefined) continue;
    const std::string text(piece.text);
    const bool isTurn =
        which == TokenizerClass::Gemma && (text == "<start_of_turn>" || text == "<end_of_turn>");
    if (ids.contains(text))
      tokens.add({.content = text, .special = piece.type == Type::Control || isTurn});
  }
}

// BOS and EOS around each text, as add_bos_token and add_eos_token say.
TokenizerJson aroundJson(const FolderTokens& tokens) {
  TemplatePieces single, pair;
  auto around = [&](const char* sequence, int type, TemplatePieces& pieces) {
    if (tokens.flag("add_bos_token", true)) pieces.emplace_back(tokens.require("bos_token"), type);
    pieces.emplace_back(sequence, type);
    if (tokens.flag("add_eos_token", false)) pieces.emplace_back(tokens.require("eos_token"), type);
  };
  around("$A", 0, single);
  pair = single;
  around("$B", 1, pair);
  return templateJson(single, pair, [&](const std::string& token) { return tokens.idOf(token); });
}

// T5 and XLM-R.
void completeUnigram(const SentencePieceModel& model, TokenizerClass which,
                     const FolderTokens& tokens, TokenizerJson& root) {
  const bool isT5 = which == TokenizerClass::T5;
  const bool hasPrefix = model.addsPrefix && (!isT5 || tokens.flag("add_prefix_space", true));
  const bool isLegacy = !isT5 || tokens.flag("legacy", true);
  const char* scheme = !hasPrefix ? "never" : isLegacy ? "always" : "first";
  // What transformers' converter assumes of a model; others are read as SentencePiece reads them.
  const bool isUsual = model.addsPrefix && model.removesSpaces && !model.byteFallback;
  root["normalizer"] =
      stepsJson("normalizers", isUsual ? usualNormalizers(model) : exactUnigramNormalizers(model));
  root["pre_tokenizer"] = metaspaceJson(scheme, true);
  auto idOf = [&](const std::string& token) { return tokens.idOf(token); };
  const std::string end = "</s>", begin = "<s>";
  root["post_processor"] =
      isT5 ? templateJson({{"$A", 0}, {end, 0}}, {{"$A", 0}, {end, 0}, {"$B", 0}, {end, 0}}, idOf)
           : templateJson({{begin, 0}, {"$A", 0}, {end, 0}},
                          {{begin, 0}, {"$A", 0}, {end, 0}, {end, 0}, {"$B", 0}, {end, 0}}, idOf);
  root["decoder"] = withByteFallback(model.byteFallback, metaspaceJson(scheme, true));
}

// Llama and Gemma.
void completeBpe(const SentencePieceModel& model, TokenizerClass which, const FolderTokens& tokens,
                 TokenizerJson& root) {
  const bool isGemma = which == TokenizerClass::Gemma;
  const bool hasPrefix = !isGemma && model.addsPrefix && tokens.flag("add_prefix_space", true);
  const bool isLegacy = tokens.flag("legacy", true);
  TokenizerJson steps = exactNormalizers(model);
  root["pre_tokenizer"] = nullptr;
  if (isGemma) {
    steps.push_back(replaceJson("String", " ", kPieceSpace));
  } else if (isLegacy) {
    if (hasPrefix) steps.push_back({{"type", "Prepend"}, {"prepend", kPieceSpace}});
    steps.push_back(replaceJson("String", " ", kPieceSpace));
  } else {
    root["pre_tokenizer"] = metaspaceJson(hasPrefix ? "first" : "never", false);
  }
  root["normalizer"] = steps.empty() ? TokenizerJson(nullptr) : stepsJson("normalizers", steps);
  root["post_processor"] = aroundJson(tokens);
  TokenizerJson decoders = TokenizerJson::array(
      {replaceJson("String", kPieceSpace, " "), {{"type", "ByteFallback"}}, {{"type", "Fuse"}}});
  if (hasPrefix)
    decoders.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  root["decoder"] = stepsJson("decoders", decoders);
}

}  // namespace

TokenizerJson sentencePieceTokenizer(const FolderFiles& files, TokenizerClass which) {
  const auto [path, bytes] =
      firstOf(files, {"tokenizer.model", "spiece.model", "sentencepiece.bpe.model"});
  const SentencePieceModel model = SentencePieceModel::read(*bytes, path);
  const bool isBpe = which == TokenizerClass::Llama || which == TokenizerClass::Gemma;
  if (isBpe != (model.kind == Kind::Bpe))
    throw model.error(isBpe ? "model_type: expected 2 (BPE) of this class, got 1 (unigram)"
                            : "model_type: expected 1 (unigram) of this class, got 2 (BPE)",
                      ErrorCode::Unsupported);
  std::vector<std::string> names;
  std::vector<Entry> entries = entriesOf(model, which, files, names);
  if (which == TokenizerClass::Gemma) {
    // Older files have no piece for a tab.
    const auto tab = std::ranges::find(entries, "\t", &Entry::text);
    const auto byte = std::ranges::find(entries, "<0x09>", &Entry::text);
    if (tab == entries.end() && byte != entries.end()) *byte = {"\t", 0};
  }
  const auto ids = idsOf(model, entries);
  FolderTokens tokens(files, specialsOf(which), ids, entries.size());
  addPieceTokens(model, which, tokens, ids);
  std::vector<std::string> extra;
  if (which == TokenizerClass::T5 && !tokens.hasAdditional("<extra_id_"))
    extra.assign(names.rbegin(), names.rend());
  tokens.addAll(extra);
  TokenizerJson root;
  root["added_tokens"] = tokens.json();
  if (isBpe) {
    completeBpe(model, which, tokens, root);
    std::vector<std::string_view> texts;
    for (const Entry& entry : entries) texts.push_back(entry.text);
    const std::string_view unknown =
        model.unknown < 3 ? entries[model.unknown].text : model.pieces[model.unknown].text;
    root["model"] = {{"type", "BPE"},
                     {"fuse_unk", true},
                     {"byte_fallback", true},
                     {"unk_token", unknown},
                     {"vocab", vocabularyJson(texts)},
                     {"merges", mergesOf(model, entries, ids)}};
  } else {
    completeUnigram(model, which, tokens, root);
    root["model"] = {{"type", "Unigram"},
                     {"unk_id", which == TokenizerClass::T5 ? model.unknown : 3},
                     {"vocab", unigramVocabulary(entries)},
                     {"byte_fallback", model.byteFallback}};
  }
  return root;
}

// Pieces of source.spm cut a text, vocab.json says their ids; target.spm has the pieces that are
// written, which vocab.json lists, too.
TokenizerJson marianTokenizer(const FolderFiles& files) {
  const auto [path, bytes] = firstOf(files, {"source.spm"});
  const SentencePieceModel model = SentencePieceModel::read(*bytes, path);
  if (model.kind != Kind::Unigram)
    throw model.error("model_type: expected 1 (unigram), got 2 (BPE)", ErrorCode::Unsupported);
  const std::vector<std::string> vocabulary = readVocabJson(files);
  std::unordered_map<std::string, size_t> ids;
  for (size_t i = 0; i < vocabulary.size(); ++i) ids.emplace(vocabulary[i], i);
  FolderTokens tokens(files, {kMarian, false}, ids, vocabulary.size());
  if (tokens.flag("separate_vocabs", false))
    throw tokens.config()
        .at("separate_vocabs")
        .error("expected false, got true", ErrorCode::Unsupported);
  std::vector<Entry> pieces;
  for (const SentencePieceModel::Piece& piece : model.pieces)
    if (piece.type == Type::Normal || piece.type == Type::UserDefined)
      pieces.push_back({piece.text, piece.score});
  // ">>fra<<", the language to write, at the beginning of a text.
  for (const std::string& token : vocabulary)
    if (token.size() > 4 && token.starts_with(">>") && token.ends_with("<<"))
      tokens.add({.content = token, .special = false});
  for (const SentencePieceModel::Piece& piece : model.pieces)
    if (piece.type == Type::UserDefined && ids.contains(std::string(piece.text)))
      tokens.add({.content = std::string(piece.text), .special = false});
  tokens.addAll();
  const std::string end = tokens.require("eos_token");
  TokenizerJson root;
  root["added_tokens"] = tokens.json();
  root["normalizer"] = stepsJson("normalizers", exactUnigramNormalizers(model));
  const char* scheme = model.addsPrefix ? "always" : "never";
  root["pre_tokenizer"] = metaspaceJson(scheme, true);
  root["post_processor"] =
      templateJson({{"$A", 0}, {end, 0}}, {{"$A", 0}, {"$B", 0}, {end, 0}},
                   [&](const std::string& token) { return tokens.idOf(token); });
  root["decoder"] = withByteFallback(model.byteFallback, metaspaceJson(scheme, true));
  root["model"] = {{"type", "Unigram"},
                   {"unk_id", tokens.idOf(tokens.require("unk_token"))},
                   {"vocab", vocabularyJson(std::vector<std::string_view>(vocabulary.begin(),
                                                                          vocabulary.end()))},
                   {"pieces", unigramVocabulary(pieces)},
                   {"byte_fallback", model.byteFallback}};
  return root;
}

}  // namespace lathe
