// SPDX-License-Identifier: Apache-2.0
#pragma once
// A model of SentencePiece (https://github.com/google/sentencepiece): a ModelProto of Protocol
// Buffers with pieces, their scores, and what is done to a text first.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lathe/runtime/error.h"

namespace lathe {

/// Views of the file's bytes, which outlive it.
struct SentencePieceModel {
  enum class Type { Normal = 1, Unknown = 2, Control = 3, UserDefined = 4, Unused = 5, Byte = 6 };
  struct Piece {
    std::string_view text;
    float score = 0;
    Type type = Type::Normal;
  };
  enum class Kind { Unigram = 1, Bpe = 2 };

  std::string file;  ///< for errors
  Kind kind = Kind::Unigram;
  std::vector<Piece> pieces;  ///< of distinct texts
  size_t unknown = 0;         ///< the one piece of type Unknown
  bool byteFallback = false;  ///< characters without a piece become pieces of their bytes
  std::string_view charsmap;  ///< rules that replace short texts; empty: none
  bool addsPrefix = true;     ///< a space in front of the text
  bool removesSpaces = true;  ///< at both ends, and all but one of several

  /// `bytes` are the file's. Throws Error(InvalidFile) that names the file and the byte or the
  /// piece, and Error(Unsupported) for models by words and characters, spaces as suffixes or
  /// unescaped, unused pieces, and rules for decoding.
  static SentencePieceModel read(std::string_view bytes, const std::string& file);

  Error error(const std::string& message, ErrorCode code = ErrorCode::InvalidFile) const;
};

}  // namespace lathe
