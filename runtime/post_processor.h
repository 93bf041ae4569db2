// SPDX-License-Identifier: Apache-2.0
#pragma once
// The "post_processor" stage of tokenizer.json: control tokens around a text or a pair of texts.
#include <vector>

#include "lathe/runtime/json_reader.h"
#include "lathe/runtime/tokenizer.h"

namespace lathe {

class PostProcessor {
 public:
  /// Adds nothing.
  PostProcessor();
  /// TemplateProcessing, BertProcessing, RobertaProcessing, ByteLevel (which concerns character
  /// offsets, and those are not computed here) and sequences with one of the first three at most;
  /// another is Error(Unsupported). Ids are in [0, vocabSize).
  PostProcessor(const JsonValue& json, int64_t vocabSize);

  std::vector<int> wrap(const std::vector<int>& ids) const;
  PairEncoding wrapPair(const std::vector<int>& first, const std::vector<int>& second) const;

 private:
  struct Piece {
    int text = -1;  // 0: the first, 1: the second, -1: a token
    int id = -1;
    int typeId = 0;
  };
  void add(const JsonValue& json);
  void readTemplate(const JsonValue& json);
  std::vector<Piece> readPieces(const JsonValue& list, const JsonValue& tokens, int texts) const;
  int readToken(const JsonValue& pair) const;

  int64_t vocabSize_ = 0;
  bool wraps_ = false;
  std::vector<Piece> single_, pair_;
};

}  // namespace lathe
