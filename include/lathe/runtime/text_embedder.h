// SPDX-License-Identifier: Apache-2.0
#pragma once
// Texts as vectors: the entry point `embed` of encoders like BERT.
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lathe/runtime/array.h"
#include "lathe/runtime/session.h"
#include "lathe/runtime/tokenizer.h"

namespace lathe {

/// The program's entry point `embed` takes input_ids, attention_mask and, where the model has them,
/// token_type_ids, all i64 [batch, seq], and gives embeddings f32 [batch, hidden]. The session must
/// outlive it. One thread at a time.
class TextEmbedder {
 public:
  /// `maxPositions` is the model's; `padId` fills up shorter texts, where the mask is 0. Throws
  /// Error(Unsupported) for a program without such an entry point.
  TextEmbedder(Session& session, Tokenizer tokenizer, int64_t maxPositions, int64_t padId);

  int64_t hidden() const { return hidden_; }
  int64_t maxPositions() const { return maxPositions_; }
  /// The text's tokens as the model reads them. Throws Error(InvalidArgument) for more than it has
  /// positions: nothing is cut off.
  std::vector<int> encode(const std::string& text) const;
  /// f32 [texts, hidden()], row by row what each text gives alone.
  Array embed(std::span<const std::vector<int>> texts);

 private:
  Session& session_;
  Tokenizer tokenizer_;
  size_t entry_ = 0;
  int64_t hidden_ = 0, maxPositions_, padId_, maxRows_ = 1;
};

}  // namespace lathe
