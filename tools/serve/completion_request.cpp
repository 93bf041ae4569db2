// SPDX-License-Identifier: Apache-2.0
#include "tools/serve/completion_request.h"

#include <algorithm>
#include <random>
#include <string_view>

#include "lathe/runtime/constraint.h"
#include "tools/serve/api_error.h"

namespace lathe::serve {
namespace {

constexpr std::string_view kCommon[] = {"model",
                                        "stream",
                                        "stream_options",
                                        "n",
                                        "max_tokens",
                                        "temperature",
                                        "top_p",
                                        "top_k",
                                        "min_p",
                                        "seed",
                                        "stop",
                                        "presence_penalty",
                                        "frequency_penalty",
                                        "repetition_penalty",
                                        "logprobs",
                                        "response_format",
                                        "regex"};
constexpr std::string_view kOfChat[] = {"messages", "max_completion_tokens", "top_logprobs"};
constexpr std::string_view kOfTexts[] = {"prompt"};
// They change no text.
constexpr std::string_view kIgnored[] = {"user", "metadata", "service_tier", "safety_identifier",
                                         "prompt_cache_key"};

template <class List>
bool contains(const List& list, std::string_view word) {
  return std::ranges::find(list, word) != std::end(list);
}

// What a client sends for a field that it does not use.
bool isNeutral(std::string_view key, const JsonValue& value) {
  if (value.isNull()) return true;
  if (key == "store" || key == "echo") return value.isBool() && !value.asBool();
  if (key == "best_of") return value.isInteger() && value.asInt() == 1;
  if (key == "tool_choice") return value.isString() && value.asString() == "none";
  return (value.isObject() || value.isArray()) && value.size() == 0;
}

void checkFields(const JsonValue& body, bool isChat) {
  for (size_t i = 0; i < body.size(); ++i) {
    const auto [key, value] = body.member(i);
    const bool known = contains(kCommon, key) || contains(kIgnored, key) ||
                       (isChat ? contains(kOfChat, key) : contains(kOfTexts, key));
    if (!known && !isNeutral(key, value))
      throw ApiError(400, "the field '" + key + "' is not supported", key, "unsupported_parameter");
  }
}

double number(const JsonValue& body, const char* key, double otherwise, double least, double most) {
  const auto value = body.find(key);
  if (!value) return otherwise;
  const double number = value->asDouble();
  if (number < least || number > most)
    throw ApiError(400,
                   std::string(key) + ": expected a number from " + std::to_string(least) + " to " +
                       std::to_string(most) + ", got " + value->show(),
                   key);
  return number;
}

int64_t whole(const JsonValue& body, const char* key, int64_t otherwise, int64_t least,
              int64_t most) {
  const auto value = body.find(key);
  return value ? value->asInt(least, most) : otherwise;
}

std::vector<int> idsOf(const JsonValue& list, const Model& model) {
  const int64_t most = model.tokenizer ? model.tokenizer->vocabSize() - 1 : INT32_MAX;
  return listFrom(list, [&](const JsonValue& id) { return int(id.asInt(0, most)); });
}

std::vector<std::vector<int>> promptsOf(const JsonValue& body, const Model& model,
                                        const Limits& limits) {
  const JsonValue prompt = body.at("prompt");
  std::vector<std::vector<int>> prompts;
  if (prompt.isString()) {
    prompts.push_back(model.encodeText(prompt.asString()));
  } else if (prompt.isArray() && prompt.size() > 0 && prompt.at(0).isNumber()) {
    prompts.push_back(idsOf(prompt, model));
  } else {
    if (!prompt.isArray() || prompt.size() == 0)
      throw ApiError(
          400,
          "prompt: expected a text, a list of texts or a list of token ids, got " + prompt.show(),
          "prompt");
    if (int64_t(prompt.size()) > limits.choices)
      throw ApiError(400,
                     "prompt: expected at most " + std::to_string(limits.choices) + " texts, got " +
                         std::to_string(prompt.size()),
                     "prompt");
    for (const JsonValue& item : prompt.elements())
      prompts.push_back(item.isArray() ? idsOf(item, model) : model.encodeText(item.asString()));
  }
  return prompts;
}

// Messages with one text each: of content in parts, the texts joined.
std::string messagesOf(const JsonValue& body) {
  const JsonValue list = body.at("messages");
  if (!list.isArray() || list.size() == 0)
    throw ApiError(400, "messages: expected a list of at least one message", "messages");
  Json messages = Json::array();
  for (size_t i = 0; i < list.size(); ++i) {
    const JsonValue message = list.at(i);
    Json out;
    for (size_t k = 0; k < message.size(); ++k) {
      const auto [key, value] = message.member(k);
      if (key == "role" || key == "name") {
        if (!value.isNull()) out[key] = value.asString();
      } else if (key != "content" && !isNeutral(key, value)) {
        throw ApiError(400, value.path() + " is not supported", value.path(),
                       "unsupported_parameter");
      }
    }
    message.at("role").asString();
    const JsonValue content = message.at("content");
    std::string text;
    if (content.isString()) {
      text = content.asString();
    } else {
      for (const JsonValue& part : content.elements()) {
        const JsonValue type = part.at("type");
        if (type.asString() != "text")
          throw ApiError(400, type.path() + ": expected \"text\", got " + type.show(), type.path(),
                         "unsupported_parameter");
        text += part.at("text").asString();
      }
    }
    out["content"] = text;
    messages.push_back(std::move(out));
  }
  return dump(messages);
}

std::string jsonText(const JsonValue& value) {
  // The document's own text is gone; a schema is small.
  if (value.isNull()) return "null";
  if (value.isBool()) return value.asBool() ? "true" : "false";
  if (value.isString()) return jsonString(value.asString());
  if (value.isInteger())
    return value.asDouble() < 0 ? std::to_string(value.asInt()) : std::to_string(value.asUint());
  if (value.isNumber()) return Json(value.asDouble()).dump();
  std::string out;
  for (size_t i = 0; i < value.size(); ++i) {
    if (i) out += ',';
    if (value.isArray())
      out += jsonText(value.at(i));
    else
      out += jsonString(value.member(i).first) + ':' + jsonText(value.member(i).second);
  }
  return value.isArray() ? '[' + out + ']' : '{' + out + '}';
}

std::shared_ptr<Constraint> constraintOf(const JsonValue& body, const Model& model) {
  const auto format = body.find("response_format"), regex = body.find("regex");
  if (!format && !regex) return nullptr;
  if (format && regex) throw ApiError(400, "regex and response_format exclude each other", "regex");
  if (!model.tokenizer) throw ApiError(400, "constraints need a model with a tokenizer");
  if (regex) return Constraint::regex(regex->asString(), *model.tokenizer);
  const std::string& type = format->at("type").asString();
  if (type == "text") return nullptr;
  if (type == "json_object") return Constraint::jsonObject(*model.tokenizer);
  if (type != "json_schema")
    throw ApiError(400,
                   "response_format.type: expected text, json_object or json_schema, got " +
                       format->at("type").show(),
                   "response_format.type");
  return Constraint::jsonSchema(jsonText(format->at("json_schema").at("schema")),
                                "json_schema.schema", *model.tokenizer);
}

std::vector<std::string> stopsOf(const JsonValue& body, const Model& model) {
  constexpr size_t kMostStops = 16;
  const auto stop = body.find("stop");
  if (!stop) return model.tokenizer ? model.stopTexts : std::vector<std::string>();
  if (stop->isString()) return {stop->asString()};
  auto texts = listFrom(*stop, [](const JsonValue& text) { return text.asString(); });
  if (texts.size() > kMostStops)
    throw ApiError(400, "stop: expected at most " + std::to_string(kMostStops) + " texts", "stop");
  return texts;
}

void readLogProbabilities(const JsonValue& body, CompletionRequest& request) {
  constexpr int64_t kMost = 20;
  const auto wanted = body.find("logprobs");
  if (!request.isChat) {
    if (wanted) request.options.logProbabilities = wanted->asInt(0, kMost);
    return;
  }
  const int64_t top = whole(body, "top_logprobs", 0, 0, kMost);
  if (wanted && wanted->asBool())
    request.options.logProbabilities = top;
  else if (top > 0)
    throw ApiError(400, "top_logprobs needs logprobs: true", "top_logprobs");
}

}  // namespace

JsonValue parseBody(const std::string& body) {
  JsonValue value = JsonValue::parse(body, "request", {.maxDepth = 64, .maxNodes = 2'000'000});
  if (!value.isObject()) throw ApiError(400, "expected a JSON object, got " + value.show());
  return value;
}

void checkModel(const JsonValue& body, const Model& model) {
  const auto name = body.find("model");
  if (name && name->asString() != model.name)
    throw ApiError(404,
                   "there is no model " + name->show() + "; this server has \"" + model.name + "\"",
                   "model", "model_not_found");
}

CompletionRequest readCompletionRequest(const JsonValue& body, bool isChat, const Model& model,
                                        const Limits& limits) {
  checkFields(body, isChat);
  checkModel(body, model);
  CompletionRequest request;
  request.isChat = isChat;
  if (const auto stream = body.find("stream")) request.streams = stream->asBool();
  if (const auto options = body.find("stream_options")) {
    if (!request.streams)
      throw ApiError(400, "stream_options needs stream: true", "stream_options");
    for (size_t i = 0; i < options->size(); ++i) {
      const auto [key, value] = options->member(i);
      if (key == "include_usage")
        request.includesUsage = value.asBool();
      else if (key != "include_obfuscation" || value.asBool())
        throw ApiError(400, "stream_options." + key + " is not supported", "stream_options",
                       "unsupported_parameter");
    }
  }
  TextGenerationOptions& options = request.options;
  SamplingOptions& sampling = options.sampling = model.sampling;
  sampling.temperature = number(body, "temperature", sampling.temperature, 0, 100);
  sampling.topP = number(body, "top_p", sampling.topP, 0, 1);
  sampling.topK = whole(body, "top_k", sampling.topK, 0, INT32_MAX);
  sampling.minP = number(body, "min_p", sampling.minP, 0, 1);
  sampling.presencePenalty = number(body, "presence_penalty", 0, -2, 2);
  sampling.frequencyPenalty = number(body, "frequency_penalty", 0, -2, 2);
  sampling.repetitionPenalty =
      number(body, "repetition_penalty", sampling.repetitionPenalty, 1e-3, 1e3);
  const auto seed = body.find("seed");
  sampling.seed = seed ? uint64_t(seed->asInt()) : std::random_device()();
  request.choices = whole(body, "n", 1, 1, limits.choices);

  const char* key =
      isChat && body.find("max_completion_tokens") ? "max_completion_tokens" : "max_tokens";
  options.newTokens =
      whole(body, key, std::min(model.newTokens.value_or(limits.newTokens), limits.newTokens), 1,
            limits.newTokens);
  options.endIds = model.endIds;
  options.stopTexts = stopsOf(body, model);
  readLogProbabilities(body, request);
  if (const auto user = body.find("user")) request.user = user->asString();
  options.constraint = constraintOf(body, model);

  if (isChat) {
    if (!model.encodeMessages)
      throw ApiError(400, "the model has no chat template; use /v1/completions", "messages");
    request.prompts.push_back(model.encodeMessages(messagesOf(body)));
  } else {
    request.prompts = promptsOf(body, model, limits);
  }
  if (int64_t(request.prompts.size()) * request.choices > limits.choices)
    throw ApiError(400,
                   "n: expected at most " + std::to_string(limits.choices) +
                       " texts of one request, got " +
                       std::to_string(int64_t(request.prompts.size()) * request.choices),
                   "n");
  for (const std::vector<int>& prompt : request.prompts) {
    if (prompt.empty())
      throw ApiError(400, "the prompt has no tokens", isChat ? "messages" : "prompt");
    if (int64_t(prompt.size()) > model.engine->maxPositions())
      throw ApiError(400,
                     "the prompt has " + std::to_string(prompt.size()) +
                         " tokens, the server takes at most " +
                         std::to_string(model.engine->maxPositions()),
                     isChat ? "messages" : "prompt", "context_length_exceeded");
  }
  return request;
}

}  // namespace lathe::serve
