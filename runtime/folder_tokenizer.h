// SPDX-License-Identifier: Apache-2.0
#pragma once
// Tokenizers of folders without tokenizer.json: their older files as the tokenizer.json that
// transformers' converters (convert_slow_tokenizer.py) make of them.
#include <map>
#include <optional>
#include <string>

#include "runtime/folder_tokens.h"

namespace lathe {

/// The text of a tokenizer.json; nothing where the folder has no vocabulary. Throws
/// Error(InvalidFile) that names file and place, and Error(Unsupported) for a class of tokenizers
/// that has no converter.
std::optional<std::string> folderTokenizer(const std::string& folder);
/// The same of files in memory.
std::optional<std::string> convertTokenizer(const FolderFiles& files);

/// config.json, tokenizer.json and the other small files of a folder by name, as they are there.
std::map<std::string, std::string> readModelFiles(const std::string& folder);

/// Classes of tokenizers, as tokenizer_config.json names them.
enum class TokenizerClass {
  Gpt2,
  Roberta,
  Qwen2,
  Clip,
  Whisper,
  Bert,
  T5,
  Llama,
  Gemma,
  XlmRoberta,
  Marian
};

// What folderTokenizer() chooses from. Each takes the files that it needs and throws
// Error(InvalidFile) where one is missing.
TokenizerJson byteLevelTokenizer(const FolderFiles& files, TokenizerClass which);
TokenizerJson wordPieceTokenizer(const FolderFiles& files);
TokenizerJson sentencePieceTokenizer(const FolderFiles& files, TokenizerClass which);
TokenizerJson marianTokenizer(const FolderFiles& files);

/// The text of the first of the files that is there, and its name. Error(InvalidFile) where none
/// is.
std::pair<std::string, const std::string*> firstOf(const FolderFiles& files,
                                                   std::initializer_list<const char*> names);
/// vocab.json: tokens in the order of their ids, which have no gaps.
std::vector<std::string> readVocabJson(const FolderFiles& files);

}  // namespace lathe
