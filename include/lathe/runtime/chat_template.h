// SPDX-License-Identifier: Apache-2.0
#pragma once
// A conversation as the text that a chat model was trained on: the "chat template" of a Hugging
// Face folder, a Jinja text that comes with the model.
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lathe {

struct ChatMessage {
  std::string role;  ///< "system", "user", "assistant" or what else the template knows
  std::string content;
};

struct ChatOptions {
  /// Begin the assistant's answer at the end.
  bool addGenerationPrompt = true;
  /// What strftime_now tells a template: seconds since 1970 of the local clock; now, if absent.
  std::optional<int64_t> date = std::nullopt;
};

/// Immutable and safe to share between threads. A template reads no file and runs no code but its
/// own, within limits: 1 MiB of text, 5,000,000 steps, 16 MiB of output.
class ChatTemplate {
 public:
  /// Of a folder: chat_template.jinja, else `chat_template` of tokenizer_config.json (of several
  /// the one named "default"). Nothing where there is none.
  static std::optional<ChatTemplate> load(const std::string& folder);
  /// The same of the files' texts, each empty where the file is missing; `model` is what errors
  /// call the folder.
  static std::optional<ChatTemplate> find(std::string_view tokenizerConfig, std::string_view jinja,
                                          const std::string& model);
  /// Throws Error(InvalidFile) for a text that is no template and Error(Unsupported) for parts of
  /// Jinja that are not read here, with the line. `variables` are texts like bos_token.
  static ChatTemplate parse(std::string_view source, const std::string& file,
                            const std::map<std::string, std::string>& variables = {});

  /// The text, in which control tokens stand spelled out: encode it with allowSpecialText and
  /// without addSpecialTokens. Throws Error(InvalidArgument) with the template's own words where it
  /// refuses the conversation, and Error(InvalidFile) for a template that fails or exceeds a limit.
  std::string render(std::span<const ChatMessage> messages, const ChatOptions& options = {}) const;
  /// The same for messages as JSON: a list of objects, of which each has a role.
  std::string renderJson(std::string_view messages, const std::string& file,
                         const ChatOptions& options = {}) const;

 private:
  struct Data;
  explicit ChatTemplate(std::shared_ptr<const Data> data) : data_(std::move(data)) {}
  std::shared_ptr<const Data> data_;
};

}  // namespace lathe
