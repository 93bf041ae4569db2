// SPDX-License-Identifier: Apache-2.0
#include "runtime/text_normalizer.h"

#include <algorithm>
#include <cstdlib>
#include <memory>

#include <utf8proc.h>

#include "runtime/error.h"

namespace lathe {
namespace {

std::string mapUnicode(const std::string& text, int options) {
  utf8proc_uint8_t* mapped = nullptr;
  utf8proc_ssize_t n =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                   utf8proc_ssize_t(text.size()), &mapped, utf8proc_option_t(options));
  std::unique_ptr<utf8proc_uint8_t, void (*)(void*)> owner(mapped, std::free);
  if (n < 0)
    throw Error(n == UTF8PROC_ERROR_NOMEM ? ErrorCode::OutOfMemory : ErrorCode::InvalidArgument,
                std::string("Unicode normalization failed: ") + utf8proc_errmsg(n));
  return std::string(reinterpret_cast<const char*>(mapped), size_t(n));
}

std::string replaceLiteral(const std::string& text, const std::string& from,
                           const std::string& to) {
  std::string result;
  size_t done = 0;
  for (size_t at; (at = text.find(from, done)) != std::string::npos; done = at + from.size())
    result.append(text, done, at - done) += to;
  return result.append(text, done);
}

std::string replaceMatches(const std::string& text, const Regex& regex, const std::string& to) {
  std::string result;
  for (const TextRange& range : regex.split(text))
    range.matched ? result += to : result.append(text, range.begin, range.end - range.begin);
  return result;
}

}  // namespace

void refuseUnknownKeys(const JsonValue& json, std::initializer_list<std::string_view> known) {
  for (size_t i = 0; i < json.size(); ++i) {
    auto [key, value] = json.member(i);
    if (std::ranges::find(known, key) == known.end())
      throw value.error("unknown key, this reader does not know what it changes");
  }
}

void TextNormalizer::add(const JsonValue& json) {
  const std::string& type = json.at("type").asString();
  Step step{Step::Kind::Unicode, UTF8PROC_STABLE, "", "", std::nullopt};
  if (type == "Sequence") {
    refuseUnknownKeys(json, {"type", "normalizers"});
    JsonValue list = json.at("normalizers");
    for (size_t i = 0; i < list.size(); ++i) add(list.at(i));
    return;
  }
  if (type == "NFC" || type == "NFKC") {
    step.unicodeOptions |= UTF8PROC_COMPOSE;
  } else if (type == "NFD" || type == "NFKD") {
    step.unicodeOptions |= UTF8PROC_DECOMPOSE;
  } else if (type == "Prepend") {
    refuseUnknownKeys(json, {"type", "prepend"});
    step.kind = Step::Kind::Prepend;
    step.text = json.at("prepend").asString();
  } else if (type == "Replace") {
    refuseUnknownKeys(json, {"type", "pattern", "content"});
    step.kind = Step::Kind::Replace;
    step.text = json.at("content").asString();
    JsonValue pattern = json.at("pattern");
    refuseUnknownKeys(pattern, {"String", "Regex"});
    if (auto regex = pattern.find("Regex")) {
      step.regex.emplace(regex->asString());
    } else {
      step.literal = pattern.at("String").asString();
      if (step.literal.empty()) throw pattern.error("expected a pattern that is not empty");
    }
  } else {
    throw json.at("type").error(
        "normalizer " + inQuotes(type) +
            " is not supported, expected NFC, NFD, NFKC, NFKD, Prepend, Replace or Sequence",
        ErrorCode::Unsupported);
  }
  if (type.starts_with("NFK")) step.unicodeOptions |= UTF8PROC_COMPAT;
  steps_.push_back(std::move(step));
}

std::string TextNormalizer::apply(std::string text) const {
  for (const Step& step : steps_) {
    if (text.empty()) break;
    switch (step.kind) {
      case Step::Kind::Unicode:
        text = mapUnicode(text, step.unicodeOptions);
        break;
      case Step::Kind::Prepend:
        text = step.text + text;
        break;
      case Step::Kind::Replace:
        text = step.regex ? replaceMatches(text, *step.regex, step.text)
                          : replaceLiteral(text, step.literal, step.text);
        break;
    }
  }
  return text;
}

}  // namespace lathe
