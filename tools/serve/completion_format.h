// SPDX-License-Identifier: Apache-2.0
#pragma once
// Answers of the completion routes as OpenAI's API spells them.
#include <string>
#include <vector>

#include "tools/serve/answer.h"
#include "tools/serve/api_error.h"
#include "tools/serve/completion_request.h"

namespace lathe::serve {

/// One request's answer, its objects one after the other.
class CompletionFormat {
 public:
  CompletionFormat(const CompletionRequest& request, const Model& model);

  /// The whole answer of texts that have ended, choice by choice.
  Json whole(const std::vector<TextEnd>& ends) const;

  /// Chunks of a stream: the beginning of a choice (of conversations), its pieces, the usage.
  Json begin(size_t choice) const;
  Json chunk(const Piece& piece);
  Json usage(const std::vector<TextEnd>& ends) const;

 private:
  Json object(bool isChunk, Json choices) const;
  Json counts(const std::vector<TextEnd>& ends) const;
  // What a choice has told of its tokens.
  struct Told {
    size_t tokens = 0, characters = 0;
  };
  std::string tokenBytes(int id, bool first) const;
  Json logProbabilities(std::span<const GeneratedToken> tokens, Told& told) const;

  const CompletionRequest& request_;
  const Model& model_;
  std::string id_;
  int64_t created_;
  std::vector<Told> told_;  // of each choice of a stream
};

}  // namespace lathe::serve
