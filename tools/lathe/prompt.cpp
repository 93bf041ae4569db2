// SPDX-License-Identifier: Apache-2.0
#include "tools/lathe/prompt.h"

#include <map>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "lathe/runtime/error.h"
#include "lathe/runtime/json_reader.h"
#include "runtime/utf8.h"
#include "tools/lathe/arguments.h"
#include "tools/lathe/exit_status.h"
#include "tools/lathe/text_lines.h"

namespace lathe::cli {
namespace {

std::string readText(const std::string& path) {
  std::string text = textOf(path);
  if (size_t at = findInvalidUtf8(text); at != text.npos)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("{}: expected a text in UTF-8, got the byte 0x{:02x} at position {}; "
                            "`iconv -f LATIN1 -t UTF-8` converts one in Latin-1",
                            path == "-" ? "standard input" : path, uint8_t(text[at]), at));
  return text;
}

// What a person or a program says must not end its own turn or begin another.
void refuseControlTokens(const Tokenizer& tokenizer, const std::string& text) {
  std::map<int, int64_t> surplus;
  for (int id : tokenizer.encode(text, {.addSpecialTokens = false, .allowSpecialText = true}))
    ++surplus[id];
  for (int id : tokenizer.encode(text, {.addSpecialTokens = false, .allowSpecialText = false}))
    --surplus[id];
  for (auto [id, count] : surplus)
    if (count > 0 && tokenizer.isSpecial(id))
      throw Error(ErrorCode::InvalidArgument,
                  fmt::format("the message spells the control token {}; leave it out, or add "
                              "--special to `lathe generate` if it is meant as one",
                              tokenizer.idToToken(id)));
}

// The same of every text in a document: templates print roles, names and arguments of tools, too.
void refuseControlTokens(const Tokenizer& tokenizer, const JsonValue& value) {
  if (value.isString()) return refuseControlTokens(tokenizer, value.asString());
  for (size_t i = 0; value.isArray() && i < value.size(); ++i)
    refuseControlTokens(tokenizer, value.at(i));
  for (size_t i = 0; value.isObject() && i < value.size(); ++i) {
    const auto [key, member] = value.member(i);
    refuseControlTokens(tokenizer, key);
    refuseControlTokens(tokenizer, member);
  }
}

std::string renderMessages(const ChatTemplate& chat, const std::string& text,
                           const std::string& file, const Tokenizer* checkedBy) {
  const JsonValue json = JsonValue::parse(text, file);
  if (checkedBy) refuseControlTokens(*checkedBy, json);
  return chat.renderJson(text, file);
}

std::string renderChat(const PromptFlags& flags, const Model& model, const Tokenizer& tokenizer) {
  const std::optional<ChatTemplate> chat = chatTemplateOf(model);
  if (!chat)
    throw Error(ErrorCode::InvalidFile,
                model.path +
                    ": expected a model with a chat template (chat_template.jinja, or "
                    "chat_template in tokenizer_config.json), this one has none; give the text "
                    "as the model was trained on it, with --special");
  auto check = [&](const std::string& text) {
    if (!flags.special) refuseControlTokens(tokenizer, text);
  };
  if (!flags.messages.empty())
    return renderMessages(*chat, readText(flags.messages), flags.messages,
                          flags.special ? nullptr : &tokenizer);
  std::vector<ChatMessage> messages;
  if (!flags.system.empty()) messages.push_back({"system", flags.system});
  messages.push_back({"user", flags.hasText ? flags.text : readText(flags.file)});
  for (const ChatMessage& message : messages) check(message.content);
  return chat->render(messages);
}

}  // namespace

void addPromptFlags(CLI::App& parser, PromptFlags& flags, const std::string& verb) {
  auto* prompt = parser.add_option("-p,--prompt", flags.text, "the text to " + verb);
  auto* file = parser.add_option("-f,--file", flags.file, "read the text from a file; - is stdin")
                   ->excludes(prompt);
  parser.add_flag("--chat", flags.chat,
                  "the text is what a user says: put it into the model's chat template");
  auto* system =
      parser.add_option("--system", flags.system, "what the system says before (--chat)");
  parser
      .add_option("--messages", flags.messages,
                  "a conversation as JSON, [{\"role\": .., \"content\": ..}]; - is stdin")
      ->excludes(prompt)
      ->excludes(file)
      ->excludes(system);
  parser.add_flag("--special", flags.special,
                  "control tokens that are spelled in the text count as such");
}

void finishPromptFlags(const CLI::App& parser, PromptFlags& flags) {
  flags.hasText = parser.get_option("--prompt")->count() > 0;
  if (flags.isChat() && !flags.ids.empty())
    throw Error(ErrorCode::InvalidArgument, "--ids are no conversation; leave out --chat");
}

std::vector<int> encodeMessages(const ChatTemplate& chat, const std::string& messages,
                                const Tokenizer& tokenizer) {
  return tokenizer.encode(renderMessages(chat, messages, "messages", &tokenizer),
                          {.addSpecialTokens = false, .allowSpecialText = true});
}

Prompt encodePrompt(const PromptFlags& flags, const Model& model,
                    const std::optional<Tokenizer>& tokenizer) {
  if (!tokenizer) throw missingTokenizer(model, "; give token ids with --ids");
  Prompt prompt;
  if (flags.isChat()) {
    prompt.text = renderChat(flags, model, *tokenizer);
    prompt.ids =
        tokenizer->encode(prompt.text, {.addSpecialTokens = false, .allowSpecialText = true});
  } else {
    prompt.text = flags.hasText ? flags.text : readText(flags.file);
    prompt.ids = tokenizer->encode(prompt.text, {.allowSpecialText = flags.special});
  }
  return prompt;
}

Prompt readPrompt(const PromptFlags& flags, const Model& model,
                  const std::optional<Tokenizer>& tokenizer, int64_t vocab) {
  Prompt prompt;
  if (!flags.ids.empty()) {
    prompt.ids = parseIds(flags.ids, "--ids");
    for (size_t i = 0; i < prompt.ids.size(); ++i)
      if (prompt.ids[i] < 0 || prompt.ids[i] >= vocab)
        throw Error(ErrorCode::InvalidArgument,
                    fmt::format("--ids: item {}: expected an id from 0 to {}, got {}", i, vocab - 1,
                                prompt.ids[i]));
    return prompt;
  }
  prompt = encodePrompt(flags, model, tokenizer);
  if (prompt.ids.empty())
    throw Error(ErrorCode::InvalidArgument, "the prompt has no tokens; write some text");
  for (int id : prompt.ids)
    if (id >= vocab)
      throw Error(ErrorCode::InvalidFile,
                  fmt::format("{}: the tokenizer gives the id {}, the model's vocabulary has {}",
                              model.path, id, vocab));
  return prompt;
}

void TokenWriter::push(std::optional<int> id, std::string_view text) {
  if (!prints_) return;
  if (hasTokenizer_)
    fmt::print("{}", text);
  else if (id)
    fmt::print("{}{}", first_ ? "" : ",", *id);
  first_ = false;
  flushOutput();
}

void TokenWriter::finish() {
  if (prints_) fmt::print("\n");
}

}  // namespace lathe::cli
