// SPDX-License-Identifier: Apache-2.0
#pragma once
// The "decoder" stage of tokenizer.json: tokens back to bytes, one after the other.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lathe/runtime/json_reader.h"
#include "lathe/runtime/tokenizer.h"
#include "runtime/text_normalizer.h"

namespace lathe {

class TokenDecoder {
 public:
  /// Of a file without the stage: tokens as they are, a space between two.
  TokenDecoder() = default;
  /// ByteLevel, Replace, ByteFallback, Fuse, Strip, Metaspace and sequences of them in an order
  /// that can be followed token by token; another is Error(Unsupported).
  explicit TokenDecoder(const JsonValue& json);

  /// What a token stands for, wherever it stands.
  struct Spelling {
    std::string text;
    std::optional<uint8_t> byte;  ///< "<0x0A>": one byte of a character that has no token
  };
  Spelling spell(const std::string& token, TextBudget& budget) const;

  /// Appends to `out` what is certain once `token` is there.
  void push(const Spelling& token, DecoderPlace& place, std::string& out) const;
  /// Appends what the end makes certain.
  void finish(DecoderPlace& place, std::string& out) const;

 private:
  void add(const JsonValue& json);
  void addText(std::string text, DecoderPlace& place, std::string& out) const;

  bool spaces_ = true;  // between tokens
  bool byteLevel_ = false, byteFallback_ = false, fused_ = false;
  std::vector<TextNormalizer> replacements_;
  std::string metaspace_;  // stands for a space; of the first token it is dropped
  bool dropFirst_ = false;
  std::string strip_;  // the character that is taken away at the beginning of each text
  size_t stripCount_ = 0;
  bool stripFused_ = false;  // of the whole text, else of each token
};

}  // namespace lathe
