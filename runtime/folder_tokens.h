// SPDX-License-Identifier: Apache-2.0
#pragma once
// The tokens that a folder without tokenizer.json names beside its vocabulary: in
// tokenizer_config.json, special_tokens_map.json and added_tokens.json.
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lathe/runtime/json_reader.h"
#include "runtime/tokenizer_json.h"

namespace lathe {

/// The small files of a folder by name; one that is missing is not there.
struct FolderFiles {
  std::string folder;
  std::map<std::string, std::string> texts;

  bool has(const std::string& name) const { return texts.contains(name); }
  /// "FOLDER/NAME"
  std::string path(const std::string& name) const;
  /// A JSON object; an empty one where the file is missing.
  JsonValue object(const std::string& name) const;
};

struct FolderToken {
  std::string content;
  bool singleWord = false, lstrip = false, rstrip = false;
  bool normalized = false;  ///< looked for in the normalized text
  bool special = true;
};

/// What a class of tokenizers has for a special token that no file names.
struct SpecialDefault {
  std::string_view field;    ///< "bos_token"
  std::string_view content;  ///< empty: none
  bool lstrip = false;
};

/// The special tokens of a class of tokenizers, as transformers' class of that name has them.
struct SpecialKind {
  std::span<const SpecialDefault> defaults;
  bool normalized = false;  ///< of tokens that are texts without flags
};

/// Special and added tokens in transformers' order, each with an id: that in the vocabulary, or the
/// next one behind it.
class FolderTokens {
 public:
  /// `vocabulary` gives the ids of the tokens in it, which are less than `size`.
  FolderTokens(const FolderFiles& files, const SpecialKind& kind,
               std::unordered_map<std::string, size_t> vocabulary, size_t size);

  const JsonValue& config() const { return config_; }
  bool flag(std::string_view key, bool otherwise) const;
  /// The token of a field, such as "bos_token"; nothing where there is none.
  std::optional<std::string> special(std::string_view field) const;
  /// The same; Error(InvalidFile) where there is none.
  std::string require(std::string_view field) const;
  /// Whether an additional special token begins so.
  bool hasAdditional(std::string_view beginning) const;
  /// Of a token that is in the vocabulary or was added. Error(InvalidFile) for others.
  size_t idOf(const std::string& token) const;

  /// Adds a token; one that is there gets its flags.
  void add(const FolderToken& token, std::optional<size_t> id = {});
  /// Adds the tokens of the files. `more` are additional special tokens that the class has itself.
  void addAll(const std::vector<std::string>& more = {});

  /// "added_tokens" of a tokenizer.json.
  TokenizerJson json() const;

 private:
  void readAdded();
  FolderToken tokenOf(const JsonValue& value, bool special) const;

  const FolderFiles& files_;
  SpecialKind kind_;
  JsonValue config_, map_;
  std::map<size_t, FolderToken> added_;  // by id, as added_tokens_decoder or added_tokens.json say
  std::vector<std::pair<std::string, FolderToken>> specials_;  // by field, in transformers' order
  std::vector<FolderToken> additional_;
  std::unordered_map<std::string, size_t> ids_;
  size_t size_;
  std::map<size_t, FolderToken> tokens_;
};

}  // namespace lathe
