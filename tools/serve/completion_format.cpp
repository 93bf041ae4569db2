// SPDX-License-Identifier: Apache-2.0
#include "tools/serve/completion_format.h"

#include <atomic>
#include <ctime>
#include <random>

#include <fmt/format.h>

#include "runtime/utf8.h"

namespace lathe::serve {
namespace {

std::string newId(bool isChat) {
  static const uint64_t process = std::random_device()();
  static std::atomic<uint64_t> count{0};
  return fmt::format("{}-{:08x}{:08x}", isChat ? "chatcmpl" : "cmpl", process, ++count);
}

const char* finishReason(StopReason reason) {
  return reason == StopReason::Length || reason == StopReason::Positions ? "length" : "stop";
}

}  // namespace

CompletionFormat::CompletionFormat(const CompletionRequest& request, const Model& model)
    : request_(request),
      model_(model),
      id_(newId(request.isChat)),
      created_(int64_t(std::time(nullptr))),
      told_(request.prompts.size() * size_t(request.choices)) {}

Json CompletionFormat::object(bool isChunk, Json choices) const {
  const char* kind = !request_.isChat ? "text_completion"
                     : isChunk        ? "chat.completion.chunk"
                                      : "chat.completion";
  Json out = {{"id", id_}, {"object", kind}, {"created", created_}, {"model", model_.name}};
  out["choices"] = std::move(choices);
  // Of a stream that tells it at its end, the other chunks have none.
  if (isChunk && request_.includesUsage) out["usage"] = nullptr;
  return out;
}

Json CompletionFormat::counts(const std::vector<TextEnd>& ends) const {
  int64_t prompt = 0, reused = 0, generated = 0;
  for (size_t i = 0; i < ends.size(); ++i) {
    // The choices of one prompt share it.
    if (i % size_t(request_.choices) == 0) {
      prompt += ends[i].promptTokens;
      reused += ends[i].reusedTokens;
    }
    generated += int64_t(ends[i].text.tokens.size());
  }
  return {{"prompt_tokens", prompt},
          {"completion_tokens", generated},
          {"total_tokens", prompt + generated},
          {"prompt_tokens_details", {{"cached_tokens", reused}}}};
}

std::string CompletionFormat::tokenBytes(int id, bool first) const {
  if (!model_.tokenizer) return std::to_string(id);
  if (id >= model_.tokenizer->vocabSize()) return "";  // a row of the model that is no token
  return model_.tokenizer->tokenBytes(id, first);
}

Json CompletionFormat::logProbabilities(std::span<const GeneratedToken> tokens, Told& told) const {
  if (!request_.options.logProbabilities) return nullptr;
  if (request_.isChat) {
    Json content = Json::array();
    for (const GeneratedToken& token : tokens) {
      const bool isFirst = told.tokens++ == 0;
      auto entry = [&](int64_t id, double logProbability) {
        const std::string own = tokenBytes(int(id), isFirst);
        Json bytes = Json::array();
        for (char byte : own) bytes.push_back(int(uint8_t(byte)));
        return Json{
            {"token", replaceInvalidUtf8(own)}, {"logprob", logProbability}, {"bytes", bytes}};
      };
      Json one = entry(token.id, token.logProbability);
      one["top_logprobs"] = Json::array();
      for (const Choice& choice : token.likeliest)
        one["top_logprobs"].push_back(entry(choice.id, choice.probability));
      content.push_back(std::move(one));
    }
    return {{"content", content}};
  }
  Json out = {{"tokens", Json::array()},
              {"token_logprobs", Json::array()},
              {"top_logprobs", Json::array()},
              {"text_offset", Json::array()}};
  for (const GeneratedToken& token : tokens) {
    const bool isFirst = told.tokens++ == 0;
    auto textOf = [&](int64_t id) { return replaceInvalidUtf8(tokenBytes(int(id), isFirst)); };
    const std::string text = textOf(token.id);
    out["tokens"].push_back(text);
    out["token_logprobs"].push_back(token.logProbability);
    Json likeliest = Json::object();
    for (const Choice& choice : token.likeliest) likeliest[textOf(choice.id)] = choice.probability;
    out["top_logprobs"].push_back(likeliest);
    out["text_offset"].push_back(told.characters);
    told.characters +=
        size_t(std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; }));
  }
  return out;
}

Json CompletionFormat::whole(const std::vector<TextEnd>& ends) const {
  Json choices = Json::array();
  for (size_t i = 0; i < ends.size(); ++i) {
    const TextGeneration& text = ends[i].text;
    Json choice = {{"index", i}};
    if (request_.isChat)
      choice["message"] = {{"role", "assistant"}, {"content", text.text}, {"refusal", nullptr}};
    else
      choice["text"] = text.text;
    Told told;
    choice["logprobs"] = logProbabilities(text.tokens, told);
    choice["finish_reason"] = finishReason(text.stopped);
    choices.push_back(std::move(choice));
  }
  Json out = object(false, std::move(choices));
  out["usage"] = counts(ends);
  return out;
}

Json CompletionFormat::begin(size_t choice) const {
  return object(true, Json::array({{{"index", choice},
                                    {"delta", {{"role", "assistant"}, {"content", ""}}},
                                    {"logprobs", nullptr},
                                    {"finish_reason", nullptr}}}));
}

Json CompletionFormat::chunk(const Piece& piece) {
  Json choice = {{"index", piece.choice}};
  if (!request_.isChat)
    choice["text"] = piece.text;
  else
    choice["delta"] = piece.end ? Json::object() : Json{{"content", piece.text}};
  choice["logprobs"] =
      piece.token ? logProbabilities({&*piece.token, 1}, told_[piece.choice]) : Json();
  choice["finish_reason"] = piece.end ? Json(finishReason(piece.end->text.stopped)) : Json();
  return object(true, Json::array({std::move(choice)}));
}

Json CompletionFormat::usage(const std::vector<TextEnd>& ends) const {
  Json out = object(true, Json::array());
  out["usage"] = counts(ends);
  return out;
}

}  // namespace lathe::serve
