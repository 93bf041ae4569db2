// SPDX-License-Identifier: Apache-2.0
#include "lathe/runtime/chat_template.h"

#include <ctime>
#include <filesystem>

#include <fmt/format.h>

#include "lathe/runtime/error.h"
#include "lathe/runtime/json_reader.h"
#include "runtime/jinja/interpreter.h"
#include "runtime/jinja/parser.h"
#include "runtime/mapped_file.h"
#include "runtime/utf8.h"

namespace lathe {

struct ChatTemplate::Data {
  std::string file;
  jinja::NodePtr root;
  std::map<std::string, std::string> variables;

  std::string render(jinja::Value messages, const ChatOptions& options) const;
};

namespace {

constexpr size_t kMaxSource = size_t(1) << 20;

// Control tokens by their names, as text or as an object with `content`.
std::map<std::string, std::string> tokensOf(const JsonValue& config) {
  std::map<std::string, std::string> tokens;
  for (size_t i = 0; i < config.size(); ++i) {
    auto [key, value] = config.member(i);
    if (!key.ends_with("_token")) continue;
    if (value.isString()) tokens[key] = value.asString();
    if (value.isObject()) tokens[key] = value.at("content").asString();
  }
  return tokens;
}

std::optional<std::string> sourceOf(const JsonValue& config) {
  auto entry = config.find("chat_template");
  if (!entry) return std::nullopt;
  if (entry->isString()) return entry->asString();
  if (!entry->isArray())
    throw entry->error("expected a template or an array of templates with names, got " +
                       entry->show());
  std::optional<std::string> source;
  for (const JsonValue& item : entry->elements()) {
    if (item.at("name").asString() == "default") source = item.at("template").asString();
  }
  if (!source) throw entry->error("expected a template named \"default\" among them");
  return source;
}

int64_t localNow() {
  const time_t now = std::time(nullptr);
  tm fields{};
  localtime_r(&now, &fields);
  return int64_t(now) + fields.tm_gmtoff;
}

}  // namespace

std::optional<ChatTemplate> ChatTemplate::load(const std::string& folder) {
  auto read = [&](const char* name, const FileKind& kind) -> std::string {
    const auto path = std::filesystem::path(folder) / name;
    std::error_code ignored;
    return std::filesystem::exists(path, ignored) ? readWholeFile(path.string(), kind) : "";
  };
  return find(read("tokenizer_config.json", kConfigFile),
              read("chat_template.jinja", kChatTemplateFile), folder);
}

std::optional<ChatTemplate> ChatTemplate::find(std::string_view tokenizerConfig,
                                               std::string_view jinja, const std::string& model) {
  std::map<std::string, std::string> variables;
  std::optional<std::string> source;
  const std::string base = model.empty() ? "" : model + "/";
  std::string file = base + "chat_template.jinja";
  if (!tokenizerConfig.empty()) {
    const JsonValue config = JsonValue::parse(tokenizerConfig, base + "tokenizer_config.json");
    variables = tokensOf(config);
    if (jinja.empty()) {
      source = sourceOf(config);
      file = base + "tokenizer_config.json: chat_template";
    }
  }
  if (!jinja.empty()) source = std::string(jinja);
  if (!source) return std::nullopt;
  return parse(*source, file, variables);
}

ChatTemplate ChatTemplate::parse(std::string_view source, const std::string& file,
                                 const std::map<std::string, std::string>& variables) {
  if (source.size() > kMaxSource)
    throw Error(ErrorCode::InvalidFile,
                fmt::format("{}: a chat template of {} bytes, expected at most {}", file,
                            source.size(), kMaxSource));
  if (size_t at = findInvalidUtf8(source); at != source.npos)
    throw Error(ErrorCode::InvalidFile,
                fmt::format("{}: expected valid UTF-8, got the byte 0x{:02x} at position {}", file,
                            uint8_t(source[at]), at));
  auto data = std::make_shared<Data>();
  data->file = file;
  data->root = jinja::Parser::parse(source, file);
  data->variables = variables;
  return ChatTemplate(std::move(data));
}

std::string ChatTemplate::Data::render(jinja::Value messages, const ChatOptions& options) const {
  jinja::Dict given;
  for (auto& [name, value] : variables) given.set(name, value);
  given.set("messages", std::move(messages));
  given.set("add_generation_prompt", options.addGenerationPrompt);
  given.set("tools", jinja::None{});
  given.set("documents", jinja::None{});
  const int64_t date = options.date ? *options.date : localNow();
  return jinja::Interpreter(file, {}, date).render(*root, std::move(given));
}

std::string ChatTemplate::render(std::span<const ChatMessage> messages,
                                 const ChatOptions& options) const {
  jinja::List list;
  for (const ChatMessage& message : messages) {
    for (const std::string* text : {&message.role, &message.content})
      if (findInvalidUtf8(*text) != text->npos)
        throw Error(ErrorCode::InvalidArgument,
                    fmt::format("message {}: expected valid UTF-8", list.size()));
    jinja::Dict dict;
    dict.set("role", message.role);
    dict.set("content", message.content);
    list.emplace_back(std::move(dict));
  }
  return data_->render(std::move(list), options);
}

std::string ChatTemplate::renderJson(std::string_view messages, const std::string& file,
                                     const ChatOptions& options) const {
  const JsonValue json = JsonValue::parse(messages, file, {.maxDepth = 32});
  if (!json.isArray()) throw json.error("expected a list of messages, got " + json.show());
  for (const JsonValue& message : json.elements()) (void)message.at("role").asString();
  return data_->render(jinja::Value::fromJson(json), options);
}

}  // namespace lathe
