// SPDX-License-Identifier: Apache-2.0
#pragma once
// What goes into `lathe generate` and how its tokens come out.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lathe/runtime/tokenizer.h"

namespace lathe::cli {

struct PromptFlags {
  std::string text, file, ids;
  bool hasText = false;  ///< an empty text is a prompt where the tokenizer adds a first token
};

struct Prompt {
  std::string text;  ///< empty where ids were given
  std::vector<int> ids;
};

/// Reads and encodes the prompt; text gets what the tokenizer's template adds (BOS), ids are taken
/// as they are. Throws Error for text without a tokenizer, a prompt without tokens and ids outside
/// [0, vocab).
Prompt readPrompt(const PromptFlags& flags, const std::string& model,
                  const std::optional<Tokenizer>& tokenizer, int64_t vocab);

/// Collects and prints tokens as they come: text where there is a tokenizer, else ids.
class TokenWriter {
 public:
  TokenWriter(const std::optional<Tokenizer>& tokenizer, bool prints);
  void push(int id);
  /// What was held back of an unfinished character, and a line end.
  void finish();
  const std::string& text() const { return text_; }

 private:
  void put(const std::string& piece);

  std::optional<StreamDecoder> decoder_;
  std::string text_;
  bool prints_, first_ = true;
};

}  // namespace lathe::cli
