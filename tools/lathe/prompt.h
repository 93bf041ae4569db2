// SPDX-License-Identifier: Apache-2.0
#pragma once
// What goes into `lathe generate` and how its tokens come out.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lathe/runtime/tokenizer.h"
#include "tools/lathe/model.h"

namespace lathe::cli {

struct PromptFlags {
  std::string text, file, ids;
  bool hasText = false;  ///< an empty text is a prompt where the tokenizer adds a first token
  bool chat = false;     ///< the text is what a user says, put into the model's chat template
  bool special = false;  ///< control tokens that are spelled in the text count as such
  std::string system, messages;
  /// A conversation: --chat, --system or --messages.
  bool isChat() const { return chat || !system.empty() || !messages.empty(); }
  /// Whether there is anything to read.
  bool isGiven() const { return hasText || !file.empty() || !ids.empty() || !messages.empty(); }
};

struct Prompt {
  std::string text;  ///< what was encoded; empty where ids were given
  std::vector<int> ids;
};

/// Adds -p, -f, --chat, --system, --messages and --special; `verb` is what the text is for.
void addPromptFlags(CLI::App& parser, PromptFlags& flags, const std::string& verb);
/// Sets what the parser alone knows; called after parsing.
void finishPromptFlags(const CLI::App& parser, PromptFlags& flags);

/// A conversation as a JSON list of messages, in the model's chat template, as ids. Throws Error
/// for messages that spell control tokens.
std::vector<int> encodeMessages(const ChatTemplate& chat, const std::string& messages,
                                const Tokenizer& tokenizer);

/// Encodes the text of the flags. Plain text gets what the tokenizer's template adds (BOS); a
/// conversation has it from its chat template. Throws Error for a model without the file that is
/// needed, and for messages that spell control tokens, unless --special allows it.
Prompt encodePrompt(const PromptFlags& flags, const Model& model,
                    const std::optional<Tokenizer>& tokenizer);
/// The same, or the ids that were given. Throws Error for a prompt without tokens and ids outside
/// [0, vocab).
Prompt readPrompt(const PromptFlags& flags, const Model& model,
                  const std::optional<Tokenizer>& tokenizer, int64_t vocab);

/// Prints what is generated as it comes: text where there is a tokenizer, else ids.
class TokenWriter {
 public:
  TokenWriter(bool hasTokenizer, bool prints) : hasTokenizer_(hasTokenizer), prints_(prints) {}
  void push(std::optional<int> id, std::string_view text);
  /// A line end.
  void finish();

 private:
  bool hasTokenizer_, prints_, first_ = true;
};

}  // namespace lathe::cli
