// SPDX-License-Identifier: Apache-2.0
#include "runtime/folder_tokenizer.h"

#include <filesystem>

#include <fmt/format.h>

#include "lathe/runtime/error.h"
#include "runtime/mapped_file.h"

namespace lathe {
namespace {

namespace fs = std::filesystem;

constexpr std::pair<const char*, FileKind> kFiles[] = {{"config.json", kConfigFile},
                                                       {"tokenizer_config.json", kConfigFile},
                                                       {"special_tokens_map.json", kConfigFile},
                                                       {"added_tokens.json", kConfigFile},
                                                       {"vocab.json", kTokenizerFile},
                                                       {"merges.txt", kTokenizerFile},
                                                       {"vocab.txt", kTokenizerFile},
                                                       {"tokenizer.model", kTokenizerFile},
                                                       {"spiece.model", kTokenizerFile},
                                                       {"sentencepiece.bpe.model", kTokenizerFile},
                                                       {"source.spm", kTokenizerFile},
                                                       {"target.spm", kTokenizerFile}};
// One of them is there where a folder has a vocabulary.
constexpr const char* kVocabularies[] = {"vocab.json",   "vocab.txt",
                                         "spiece.model", "tokenizer.model",
                                         "source.spm",   "sentencepiece.bpe.model"};

struct NamedClass {
  std::string_view name;
  TokenizerClass which;
};
constexpr NamedClass kClasses[] = {{"GPT2Tokenizer", TokenizerClass::Gpt2},
                                   {"CodeGenTokenizer", TokenizerClass::Gpt2},
                                   {"RobertaTokenizer", TokenizerClass::Roberta},
                                   {"BartTokenizer", TokenizerClass::Roberta},
                                   {"Qwen2Tokenizer", TokenizerClass::Qwen2},
                                   {"CLIPTokenizer", TokenizerClass::Clip},
                                   {"WhisperTokenizer", TokenizerClass::Whisper},
                                   {"BertTokenizer", TokenizerClass::Bert},
                                   {"DistilBertTokenizer", TokenizerClass::Bert},
                                   {"T5Tokenizer", TokenizerClass::T5},
                                   {"MT5Tokenizer", TokenizerClass::T5},
                                   {"LlamaTokenizer", TokenizerClass::Llama},
                                   {"GemmaTokenizer", TokenizerClass::Gemma},
                                   {"XLMRobertaTokenizer", TokenizerClass::XlmRoberta},
                                   {"MarianTokenizer", TokenizerClass::Marian}};
// What a model_type has where nothing names a class.
constexpr NamedClass kModelTypes[] = {{"gpt2", TokenizerClass::Gpt2},
                                      {"gptj", TokenizerClass::Gpt2},
                                      {"opt", TokenizerClass::Gpt2},
                                      {"phi", TokenizerClass::Gpt2},
                                      {"granite", TokenizerClass::Gpt2},
                                      {"starcoder2", TokenizerClass::Gpt2},
                                      {"roberta", TokenizerClass::Roberta},
                                      {"bart", TokenizerClass::Roberta},
                                      {"qwen2", TokenizerClass::Qwen2},
                                      {"qwen2_moe", TokenizerClass::Qwen2},
                                      {"qwen3", TokenizerClass::Qwen2},
                                      {"qwen3_moe", TokenizerClass::Qwen2},
                                      {"clip", TokenizerClass::Clip},
                                      {"clip_text_model", TokenizerClass::Clip},
                                      {"whisper", TokenizerClass::Whisper},
                                      {"bert", TokenizerClass::Bert},
                                      {"distilbert", TokenizerClass::Bert},
                                      {"t5", TokenizerClass::T5},
                                      {"mt5", TokenizerClass::T5},
                                      {"llama", TokenizerClass::Llama},
                                      {"mistral", TokenizerClass::Llama},
                                      {"mixtral", TokenizerClass::Llama},
                                      {"phi3", TokenizerClass::Llama},
                                      {"gemma", TokenizerClass::Gemma},
                                      {"gemma2", TokenizerClass::Gemma},
                                      {"gemma3", TokenizerClass::Gemma},
                                      {"gemma3_text", TokenizerClass::Gemma},
                                      {"xlm-roberta", TokenizerClass::XlmRoberta},
                                      {"marian", TokenizerClass::Marian}};

std::optional<TokenizerClass> find(std::span<const NamedClass> list, std::string_view name) {
  for (const NamedClass& known : list)
    if (known.name == name) return known.which;
  return std::nullopt;
}

TokenizerClass classOf(const FolderFiles& files) {
  const JsonValue config = files.object("config.json");
  for (const JsonValue& source : {files.object("tokenizer_config.json"), config}) {
    const auto value = source.find("tokenizer_class");
    if (!value) continue;
    std::string_view name = value->asString();
    if (name.ends_with("Fast")) name.remove_suffix(4);
    if (const auto which = find(kClasses, name)) return *which;
    std::string names;
    for (const NamedClass& known : kClasses)
      names += (names.empty() ? "" : ", ") + std::string(known.name);
    throw value->error(fmt::format("a folder without tokenizer.json: expected one of {}, got {}",
                                   names, value->show()),
                       ErrorCode::Unsupported);
  }
  const auto type = config.find("model_type");
  if (type)
    if (const auto which = find(kModelTypes, type->asString())) return *which;
  throw Error(ErrorCode::Unsupported,
              files.folder +
                  ": expected tokenizer.json, or a tokenizer_class in "
                  "tokenizer_config.json that says what the vocabulary is for");
}

TokenizerJson convert(const FolderFiles& files, TokenizerClass which) {
  switch (which) {
    case TokenizerClass::Bert:
      return wordPieceTokenizer(files);
    case TokenizerClass::T5:
    case TokenizerClass::Llama:
    case TokenizerClass::Gemma:
    case TokenizerClass::XlmRoberta:
      return sentencePieceTokenizer(files, which);
    case TokenizerClass::Marian:
      return marianTokenizer(files);
    default:
      return byteLevelTokenizer(files, which);
  }
}

}  // namespace

std::pair<std::string, const std::string*> firstOf(const FolderFiles& files,
                                                   std::initializer_list<const char*> names) {
  std::string expected;
  for (const char* name : names) {
    if (const auto file = files.texts.find(name); file != files.texts.end())
      return {files.path(name), &file->second};
    expected += (expected.empty() ? "" : " or ") + std::string(name);
  }
  throw Error(ErrorCode::InvalidFile,
              files.folder + ": expected " + expected + " of a folder without tokenizer.json");
}

std::vector<std::string> readVocabJson(const FolderFiles& files) {
  const auto [path, text] = firstOf(files, {"vocab.json"});
  const JsonValue vocab = JsonValue::parse(*text, path);
  if (!vocab.isObject() || vocab.size() == 0)
    throw vocab.error("expected an object of tokens, got " + vocab.show());
  std::vector<std::string> tokens(vocab.size());
  for (size_t i = 0; i < vocab.size(); ++i) {
    const auto [token, id] = vocab.member(i);
    std::string& place = tokens[size_t(id.asInt(0, int64_t(vocab.size()) - 1))];
    if (token.empty()) throw vocab.error("the vocabulary has an empty token");
    if (!place.empty()) throw id.error(fmt::format("{} has the same id", inQuotes(place)));
    place = token;
  }
  return tokens;
}

std::optional<std::string> convertTokenizer(const FolderFiles& files) {
  bool hasVocabulary = false;
  for (const char* name : kVocabularies) hasVocabulary |= files.has(name);
  if (!hasVocabulary) return std::nullopt;
  TokenizerJson root = convert(files, classOf(files));
  root["version"] = "1.0";
  return root.dump();
}

std::optional<std::string> folderTokenizer(const std::string& folder) {
  FolderFiles files{.folder = folder};
  std::error_code ignored;
  for (const auto& [name, kind] : kFiles)
    if (fs::exists(fs::path(folder) / name, ignored))
      files.texts[name] = readWholeFile((fs::path(folder) / name).string(), kind);
  return convertTokenizer(files);
}

std::map<std::string, std::string> readModelFiles(const std::string& folder) {
  std::map<std::string, std::string> files;
  std::error_code ignored;
  for (const ModelFile& file : kModelFiles) {
    const std::string path = (fs::path(folder) / file.name).string();
    if (fs::exists(path, ignored)) files[file.name] = readWholeFile(path, file.kind);
  }
  return files;
}

}  // namespace lathe
