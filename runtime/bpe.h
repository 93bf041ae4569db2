// SPDX-License-Identifier: Apache-2.0
#pragma once
// The BPE "model" of tokenizer.json: a word to token ids by merging neighbours, best rank first.
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "runtime/tokenizer_model.h"

namespace lathe {

class Bpe final : public TokenizerModel {
 public:
  /// Throws Error(InvalidFile) for merges of pieces that are not in the vocabulary, and
  /// Error(Unsupported) for dropout, which makes the ids of a text random.
  explicit Bpe(const JsonValue& json);

  /// O(n log n) in the word's length.
  void encode(std::string_view word, std::vector<int>& ids) const override;

 private:
  struct Merge {
    uint32_t rank;
    int id;
  };
  void readMerges(const JsonValue& merges);
  const Merge* findMerge(int left, int right) const;
  // A character with what it carries at its place in a word, in `buffer` where that is more.
  std::string_view spellingOf(std::string_view character, bool isFirst, bool isLast,
                              std::string& buffer) const;
  std::vector<int> characters(std::string_view word) const;

  std::unordered_map<uint64_t, Merge> merges_;  // key: left id, right id
  // What characters carry in the vocabulary that do not begin a word, or end one ("</w>").
  std::string continuingPrefix_, endSuffix_;
  std::optional<int> unknown_;
  std::optional<std::array<int, 256>> bytes_;
  bool fuseUnknown_ = false;
  bool ignoreMerges_ = false;
};

}  // namespace lathe
