// SPDX-License-Identifier: Apache-2.0
#pragma once
// The BPE "model" of tokenizer.json: a word to token ids by merging neighbours, best rank first.
#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lathe/runtime/json_reader.h"

namespace lathe {

struct StringHash {
  using is_transparent = void;
  size_t operator()(std::string_view s) const { return std::hash<std::string_view>{}(s); }
};
using Vocabulary = std::unordered_map<std::string, int, StringHash, std::equal_to<>>;

class Bpe {
 public:
  Bpe() = default;
  /// Throws Error(InvalidFile) for ids that are negative or used twice, merges of pieces that are
  /// not in the vocabulary, and tokens that are empty or huge; Error(Unsupported) for other models,
  /// dropout, and prefixes or suffixes within words.
  explicit Bpe(const JsonValue& json);

  const Vocabulary& vocabulary() const { return vocabulary_; }
  /// Appends the ids of `word`. O(n log n) in its length. Error(InvalidArgument) for a character
  /// that is not in the vocabulary of a model without an unknown token.
  void encode(std::string_view word, std::vector<int>& ids) const;

 private:
  struct Merge {
    uint32_t rank;
    int id;
  };
  void readVocabulary(const JsonValue& vocab);
  void readMerges(const JsonValue& merges);
  const Merge* findMerge(int left, int right) const;
  std::vector<int> characters(std::string_view word) const;
  bool appendBytes(std::string_view character, std::vector<int>& ids) const;

  Vocabulary vocabulary_;
  std::unordered_map<uint64_t, Merge> merges_;  // key: left id, right id
  std::optional<int> unknown_;
  std::optional<std::array<int, 256>> bytes_;  // ids of "<0x00>" to "<0xFF>", -1 for none
  bool fuseUnknown_ = false;
  bool ignoreMerges_ = false;
};

}  // namespace lathe
