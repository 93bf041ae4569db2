// SPDX-License-Identifier: Apache-2.0
#include "runtime/token_decoder.h"

#include <charconv>

#include "runtime/byte_level.h"
#include "runtime/utf8.h"

namespace lathe {
namespace {

// "<0x0A>"
std::optional<uint8_t> byteOf(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token.back() != '>') return std::nullopt;
  uint8_t byte = 0;
  auto [end, error] = std::from_chars(token.data() + 3, token.data() + 5, byte, 16);
  if (error != std::errc() || end != token.data() + 5) return std::nullopt;
  return byte;
}

bool isOneCharacter(const std::string& text) {
  size_t end = 0;
  return !text.empty() && (nextCodePoint(text, end), end == text.size());
}

}  // namespace

TokenDecoder::TokenDecoder(const JsonValue& json) : spaces_(false) { add(json); }

void TokenDecoder::add(const JsonValue& json) {
  const std::string& type = json.at("type").asString();
  auto expectOrder = [&](bool fits, const char* what) {
    if (!fits)
      throw json.error("decoder " + inQuotes(type) + " is supported " + what,
                       ErrorCode::Unsupported);
  };
  if (type == "Sequence") {
    refuseUnknownKeys(json, {"type", "decoders"});
    JsonValue list = json.at("decoders");
    for (size_t i = 0; i < list.size(); ++i) add(list.at(i));
  } else if (type == "ByteLevel") {
    expectOrder(!byteFallback_ && !fused_ && metaspace_.empty(), "in front of all others only");
    byteLevel_ = true;
  } else if (type == "Fuse") {
    fused_ = true;
  } else if (type == "Replace") {
    expectOrder(!byteFallback_ && !fused_ && !byteLevel_ && metaspace_.empty() && !stripCount_,
                "in front of other decoders only");
    if (replacements_.size() == kMaxStages)
      throw json.error("more than " + std::to_string(kMaxStages) + " decoders");
    replacements_.emplace_back(json);
  } else if (type == "ByteFallback") {
    expectOrder(!fused_ && !byteLevel_ && !stripCount_, "in front of Fuse and Strip only");
    byteFallback_ = true;
  } else if (type == "Metaspace") {
    refuseUnknownKeys(
        json, {"type", "replacement", "prepend_scheme", "add_prefix_space", "split", "str_rep"});
    expectOrder(!byteFallback_ && !fused_ && !byteLevel_ && metaspace_.empty() && !stripCount_,
                "in front of other decoders only");
    metaspace_ = json.at("replacement").asString();
    if (!isOneCharacter(metaspace_))
      throw json.at("replacement").error("expected one character, got " + inQuotes(metaspace_));
    auto scheme = json.find("prepend_scheme");
    auto flag = json.find("add_prefix_space");
    dropFirst_ = !(scheme && scheme->asString() == "never") && !(flag && !flag->asBool());
  } else if (type == "Strip") {
    refuseUnknownKeys(json, {"type", "content", "start", "stop"});
    expectOrder(!byteLevel_ && !stripCount_, "once, and not behind ByteLevel");
    if (json.at("stop").asInt(0) != 0)
      throw json.at("stop").error("not supported, got " + json.at("stop").show(),
                                  ErrorCode::Unsupported);
    strip_ = json.at("content").asString();
    if (!isOneCharacter(strip_))
      throw json.at("content").error("expected one character, got " + inQuotes(strip_));
    stripCount_ = size_t(json.at("start").asInt(0, 65536));
    stripFused_ = fused_;
  } else {
    throw json.at("type").error("decoder " + inQuotes(type) +
                                    " is not supported, expected ByteLevel, Replace, ByteFallback, "
                                    "Fuse, Strip, Metaspace or Sequence",
                                ErrorCode::Unsupported);
  }
}

TokenDecoder::Spelling TokenDecoder::spell(const std::string& token, TextBudget& budget) const {
  Spelling spelling{token, std::nullopt};
  for (const TextNormalizer& replacement : replacements_)
    spelling.text = replacement.apply(std::move(spelling.text), budget);
  if (byteLevel_) spelling.text = unspellBytes(spelling.text);
  if (byteFallback_) spelling.byte = byteOf(spelling.text);
  return spelling;
}

void TokenDecoder::push(const Spelling& token, DecoderPlace& place, std::string& out) const {
  if (token.byte) {
    place.run += char(*token.byte);
    place.started = true;
    return;
  }
  finish(place, out);
  std::string text = token.text;
  if (!metaspace_.empty()) {
    std::string spaced;
    for (size_t i = 0; i < text.size();) {
      if (!std::string_view(text).substr(i).starts_with(metaspace_)) {
        spaced += text[i++];
        continue;
      }
      if (place.started || !dropFirst_) spaced += ' ';
      i += metaspace_.size();
    }
    text = std::move(spaced);
  }
  if (spaces_ && place.started) text.insert(0, 1, ' ');
  place.started = true;
  addText(std::move(text), place, out);
}

// Bytes that form no text are one U+FFFD each, the valid ones among them too.
void TokenDecoder::finish(DecoderPlace& place, std::string& out) const {
  if (place.run.empty()) return;
  std::string text = std::move(place.run);
  place.run.clear();
  if (findInvalidUtf8(text) != text.npos) {
    std::string replaced;
    for (size_t i = 0; i < text.size(); ++i) replaced += "\xef\xbf\xbd";
    text = std::move(replaced);
  }
  addText(std::move(text), place, out);
}

void TokenDecoder::addText(std::string text, DecoderPlace& place, std::string& out) const {
  if (!stripFused_) place.stripped = 0, place.textBegun = false;
  size_t begin = 0;
  while (!place.textBegun && place.stripped < stripCount_ &&
         std::string_view(text).substr(begin).starts_with(strip_)) {
    begin += strip_.size();
    ++place.stripped;
  }
  if (begin < text.size()) place.textBegun = true;
  out.append(text, begin);
}

}  // namespace lathe
