// SPDX-License-Identifier: Apache-2.0
#pragma once
// How prompts reach a model: most continue them, encoder-decoders read them and write other texts.
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lathe/runtime/model_config.h"
#include "lathe/runtime/session.h"

namespace lathe::cli {

/// Error(Unsupported) of a verb that only continues texts, for an encoder-decoder.
void refuseRewriting(const Program& program, const std::string& path, const std::string& verb);

class PromptReader {
 public:
  /// Throws Error(InvalidFile) for an encoder-decoder whose files do not say what it begins with.
  PromptReader(Session& session, const ModelConfig& config, const GenerationConfig& generation);

  /// Whether it is an encoder-decoder.
  bool isRewriting() const { return !start_.empty(); }
  /// What generators continue, row by row: the prompts, or what the model begins with once the
  /// encoder has read them.
  std::vector<std::vector<int>> read(std::span<const std::vector<int>> prompts);
  /// Tokens of that which count as the text's, for beamSearch.
  int64_t forcedTokens() const { return isRewriting() ? int64_t(start_.size()) - 1 : 0; }

 private:
  Session& session_;
  int64_t vocab_ = 0, padId_ = 0;
  std::vector<int> start_;
};

}  // namespace lathe::cli
