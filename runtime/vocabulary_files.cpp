// SPDX-License-Identifier: Apache-2.0
// Vocabularies as texts: vocab.json and merges.txt of byte-level BPE, vocab.txt of WordPiece.
#include <set>

#include <fmt/format.h>

#include "lathe/runtime/error.h"
#include "runtime/folder_tokenizer.h"
#include "runtime/utf8.h"

namespace lathe {
namespace {

constexpr std::string_view kClipWords =
    R"('s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+)";
constexpr size_t kClipMerges = 49152 - 256 - 2;  // of a file that may list more

constexpr SpecialDefault kGpt2[] = {
    {"bos_token", "<|endoftext|>"}, {"eos_token", "<|endoftext|>"}, {"unk_token", "<|endoftext|>"}};
constexpr SpecialDefault kRoberta[] = {{"bos_token", "<s>"},          {"eos_token", "</s>"},
                                       {"unk_token", "<unk>"},        {"sep_token", "</s>"},
                                       {"pad_token", "<pad>"},        {"cls_token", "<s>"},
                                       {"mask_token", "<mask>", true}};
constexpr SpecialDefault kQwen2[] = {
    {"eos_token", "<|endoftext|>"}, {"unk_token", "<|endoftext|>"}, {"pad_token", "<|endoftext|>"}};
constexpr SpecialDefault kClip[] = {{"bos_token", "<|startoftext|>"},
                                    {"eos_token", "<|endoftext|>"},
                                    {"unk_token", "<|endoftext|>"},
                                    {"pad_token", "<|endoftext|>"}};
constexpr SpecialDefault kBert[] = {{"unk_token", "[UNK]"},
                                    {"sep_token", "[SEP]"},
                                    {"pad_token", "[PAD]"},
                                    {"cls_token", "[CLS]"},
                                    {"mask_token", "[MASK]"}};

SpecialKind specialsOf(TokenizerClass which) {
  switch (which) {
    case TokenizerClass::Roberta:
      return {kRoberta, true};
    case TokenizerClass::Qwen2:
      return {kQwen2, false};
    case TokenizerClass::Clip:
      return {kClip, true};
    case TokenizerClass::Whisper:
      return {kGpt2, false};
    default:
      return {kGpt2, true};
  }
}

struct Line {
  size_t number;  // from 1
  std::string_view text;
};

// Lines end in \n, \r or \r\n.
std::vector<Line> linesOf(std::string_view text, const std::string& path) {
  if (const size_t at = findInvalidUtf8(text); at != text.npos)
    throw Error(ErrorCode::InvalidFile,
                fmt::format("{}: expected UTF-8, got the byte 0x{:02x} at position {}", path,
                            uint8_t(text[at]), at));
  std::vector<Line> lines;
  while (!text.empty()) {
    const size_t end = text.find_first_of("\r\n");
    lines.push_back({lines.size() + 1, text.substr(0, end)});
    if (end == text.npos) break;
    text.remove_prefix(end + (text.substr(end).starts_with("\r\n") ? 2 : 1));
  }
  return lines;
}

Error lineError(const std::string& path, const Line& line, const std::string& message) {
  return Error(ErrorCode::InvalidFile, fmt::format("{}: line {}: {}", path, line.number, message));
}

TokenizerJson readMerges(const FolderFiles& files, size_t most,
                         const std::unordered_map<std::string, size_t>& ids) {
  const auto [path, text] = firstOf(files, {"merges.txt"});
  TokenizerJson merges = TokenizerJson::array();
  std::set<std::string_view> seen;  // of equal ones the first counts
  for (const Line& line : linesOf(*text, path)) {
    if ((line.number == 1 && line.text.starts_with("#version")) || line.text.empty()) continue;
    if (merges.size() == most) break;
    const size_t space = line.text.find(' ');
    const std::string_view left = line.text.substr(0, space),
                           right = space == left.npos ? "" : line.text.substr(space + 1);
    if (left.empty() || right.empty() || right.find(' ') != right.npos)
      throw lineError(path, line,
                      "expected two pieces with one space between, got " + inQuotes(line.text));
    for (const std::string& piece :
         {std::string(left), std::string(right), std::string(left) + std::string(right)})
      if (!ids.contains(piece))
        throw lineError(path, line, inQuotes(piece) + " is not in the vocabulary");
    if (seen.insert(line.text).second) merges.push_back(TokenizerJson::array({left, right}));
  }
  return merges;
}

std::unordered_map<std::string, size_t> idsOf(const std::vector<std::string>& tokens) {
  std::unordered_map<std::string, size_t> ids;
  ids.reserve(tokens.size());
  for (size_t i = 0; i < tokens.size(); ++i) ids.emplace(tokens[i], i);
  return ids;
}

TokenizerJson byteLevelJson(bool addsSpace, bool cuts) {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", addsSpace},
          {"trim_offsets", true},
          {"use_regex", cuts}};
}

TokenizerJson sequenceJson(const char* key, TokenizerJson steps) {
  return {{"type", "Sequence"}, {key, std::move(steps)}};
}

// Whisper's tokens in front of a text. Those of a language and a task are of single requests.
TemplatePieces whisperPieces(const FolderTokens& tokens, const char* sequence, int type) {
  for (const char* key : {"language", "task"})
    if (const auto value = tokens.config().find(key))
      throw value->error("expected none, got " + value->show(), ErrorCode::Unsupported);
  TemplatePieces pieces{{"<|startoftranscript|>", 0}};
  if (!tokens.flag("predict_timestamps", false)) pieces.emplace_back("<|notimestamps|>", 0);
  pieces.emplace_back(sequence, type);
  return pieces;
}

TokenizerJson postProcessorOf(const FolderTokens& tokens, TokenizerClass which) {
  auto withId = [&](const char* field) {
    const std::string token = tokens.require(field);
    return TokenizerJson::array({token, tokens.idOf(token)});
  };
  auto idOf = [&](const std::string& token) { return tokens.idOf(token); };
  switch (which) {
    case TokenizerClass::Roberta:
    case TokenizerClass::Clip: {
      const bool isClip = which == TokenizerClass::Clip;
      return {{"type", "RobertaProcessing"},
              {"sep", withId(isClip ? "eos_token" : "sep_token")},
              {"cls", withId(isClip ? "bos_token" : "cls_token")},
              {"trim_offsets", !isClip},
              {"add_prefix_space", tokens.flag("add_prefix_space", false)}};
    }
    case TokenizerClass::Whisper: {
      TemplatePieces single = whisperPieces(tokens, "$A", 0), pair = single;
      single.emplace_back(tokens.require("eos_token"), 0);
      pair.emplace_back("$B", 1);
      pair.emplace_back(tokens.require("eos_token"), 1);
      return templateJson(single, pair, idOf);
    }
    default:
      if (which != TokenizerClass::Gpt2 || !tokens.flag("add_bos_token", false)) return nullptr;
      const std::string begin = tokens.require("bos_token");
      return templateJson({{begin, 0}, {"$A", 0}}, {{begin, 0}, {"$A", 0}, {"$B", 1}}, idOf);
  }
}

}  // namespace

TokenizerJson byteLevelTokenizer(const FolderFiles& files, TokenizerClass which) {
  const bool isClip = which == TokenizerClass::Clip;
  const std::vector<std::string> vocabulary = readVocabJson(files);
  const auto ids = idsOf(vocabulary);
  TokenizerJson merges = readMerges(files, isClip ? kClipMerges : vocabulary.size() * 64, ids);
  FolderTokens tokens(files, specialsOf(which), ids, vocabulary.size());
  tokens.addAll();
  const bool addsSpace = !isClip && tokens.flag("add_prefix_space", false);
  TokenizerJson root;
  root["added_tokens"] = tokens.json();
  TokenizerJson normalizer, preTokenizer, decoder = {{"type", "ByteLevel"}};
  if (which == TokenizerClass::Qwen2) {
    normalizer = {{"type", "NFC"}};
    preTokenizer = sequenceJson(
        "pretokenizers",
        TokenizerJson::array({splitJson(kQwen2Words), byteLevelJson(addsSpace, false)}));
  } else if (isClip) {
    normalizer = sequenceJson(
        "normalizers",
        TokenizerJson::array(
            {{{"type", "NFC"}},
             {{"type", "Replace"}, {"pattern", {{"Regex", R"(\s+)"}}}, {"content", " "}},
             {{"type", "Lowercase"}}}));
    TokenizerJson words = splitJson(kClipWords);
    words["behavior"] = "Removed";
    words["invert"] = true;
    preTokenizer =
        sequenceJson("pretokenizers", TokenizerJson::array({words, byteLevelJson(false, true)}));
    decoder = sequenceJson(
        "decoders", TokenizerJson::array(
                        {{{"type", "ByteLevel"}},
                         {{"type", "Replace"}, {"pattern", {{"String", "</w>"}}}, {"content", " "}},
                         {{"type", "Strip"}, {"content", " "}, {"start", 0}, {"stop", 1}}}));
  } else {
    preTokenizer = byteLevelJson(addsSpace, true);
  }
  root["normalizer"] = normalizer;
  root["pre_tokenizer"] = preTokenizer;
  root["post_processor"] = postProcessorOf(tokens, which);
  root["decoder"] = decoder;
  root["model"] = {{"type", "BPE"}};
  if (isClip) {
    root["model"]["end_of_word_suffix"] = "</w>";
    root["model"]["unk_token"] = tokens.require("unk_token");
  }
  root["model"]["vocab"] =
      vocabularyJson(std::vector<std::string_view>(vocabulary.begin(), vocabulary.end()));
  root["model"]["merges"] = std::move(merges);
  return root;
}

TokenizerJson wordPieceTokenizer(const FolderFiles& files) {
  const auto [path, text] = firstOf(files, {"vocab.txt"});
  std::vector<std::string_view> vocabulary;
  std::unordered_map<std::string, size_t> ids;
  for (const Line& line : linesOf(*text, path)) {
    if (line.text.empty()) throw lineError(path, line, "expected a token, got nothing");
    if (!ids.emplace(line.text, vocabulary.size()).second)
      throw lineError(path, line, inQuotes(line.text) + " is there twice");
    vocabulary.push_back(line.text);
  }
  FolderTokens tokens(files, {kBert, false}, std::move(ids), vocabulary.size());
  tokens.addAll();
  const std::string cls = tokens.require("cls_token"), sep = tokens.require("sep_token");
  const auto accents = tokens.config().find("strip_accents");
  TokenizerJson root;
  root["added_tokens"] = tokens.json();
  root["normalizer"] = {
      {"type", "BertNormalizer"},
      {"clean_text", true},
      {"handle_chinese_chars", tokens.flag("tokenize_chinese_chars", true)},
      {"strip_accents", accents ? TokenizerJson(accents->asBool()) : TokenizerJson(nullptr)},
      {"lowercase", tokens.flag("do_lower_case", true)}};
  root["pre_tokenizer"] = {{"type", "BertPreTokenizer"}};
  root["post_processor"] = templateJson(
      {{cls, 0}, {"$A", 0}, {sep, 0}}, {{cls, 0}, {"$A", 0}, {sep, 0}, {"$B", 1}, {sep, 1}},
      [&](const std::string& token) { return tokens.idOf(token); });
  root["decoder"] = {{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", true}};
  root["model"] = {{"type", "WordPiece"},
                   {"unk_token", tokens.require("unk_token")},
                   {"continuing_subword_prefix", "##"},
                   {"max_input_chars_per_word", 100},
                   {"vocab", vocabularyJson(vocabulary)}};
  return root;
}

}  // namespace lathe
