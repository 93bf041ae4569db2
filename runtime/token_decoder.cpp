// SPDX-License-Identifier: Apache-2.0
#include "runtime/token_decoder.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "runtime/byte_level.h"
#include "runtime/utf8.h"

namespace lathe {
namespace {

constexpr size_t kMaxFusedPattern = 1024;  // bytes of a text that is looked for across tokens

// "<0x0A>"
std::optional<uint8_t> byteOf(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token.back() != '>') return std::nullopt;
  uint8_t byte = 0;
  auto [end, error] = std::from_chars(token.data() + 3, token.data() + 5, byte, 16);
  if (error != std::errc() || end != token.data() + 5) return std::nullopt;
  return byte;
}

std::string replaced(std::string_view text, std::string_view from, std::string_view to) {
  std::string result;
  size_t done = 0;
  for (size_t at; (at = text.find(from, done)) != text.npos; done = at + from.size()) {
    result += text.substr(done, at - done);
    result += to;
  }
  return result += text.substr(done);
}

// English as it is written: what BERT's tokenizer took apart. In this order.
std::string tidied(std::string text) {
  constexpr std::pair<const char*, const char*> kRules[] = {
      {" .", "."},   {" ?", "?"},     {" !", "!"},    {" ,", ","},
      {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},  {" do not", " don't"},
      {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (auto& [from, to] : kRules) text = replaced(text, from, to);
  return text;
}

std::string_view withoutBeginning(std::string_view text, std::string_view what, size_t most) {
  for (; most > 0 && text.starts_with(what); --most) text.remove_prefix(what.size());
  return text;
}
std::string_view withoutEnd(std::string_view text, std::string_view what, size_t most) {
  for (; most > 0 && text.ends_with(what); --most) text.remove_suffix(what.size());
  return text;
}

}  // namespace

TokenDecoder::TokenDecoder() { steps_.push_back({.kind = Step::Kind::Spaces}); }

TokenDecoder::TokenDecoder(const JsonValue& json) {
  add(json);
  while (spelled_ < steps_.size() && steps_[spelled_].kind == Step::Kind::Replace &&
         !steps_[spelled_].fused)
    ++spelled_;
}

bool TokenDecoder::isFused() const {
  if (steps_.empty()) return false;
  const Step& last = steps_.back();
  return last.fused || last.kind == Step::Kind::Fuse || last.kind == Step::Kind::Bytes;
}

void TokenDecoder::addStep(Step step, const JsonValue& json) {
  if (steps_.size() == kMaxStages)
    throw json.error("more than " + std::to_string(kMaxStages) + " decoders");
  step.where = json.where();
  step.fused = isFused();
  steps_.push_back(std::move(step));
}

void TokenDecoder::add(const JsonValue& json) {
  const std::string& type = json.at("type").asString();
  if (type == "Sequence") {
    refuseUnknownKeys(json, {"type", "decoders"});
    for (const JsonValue& item : json.at("decoders").elements()) add(item);
    return;
  }
  if (type == "Fuse") {
    refuseUnknownKeys(json, {"type"});
    return addStep({.kind = Step::Kind::Fuse}, json);
  }
  if (type == "Strip") return addStrip(json);
  Step step{.kind = Step::Kind::Replace};
  if (type == "Replace") {
    step.replace.emplace(json);
    if (auto literal = json.at("pattern").find("String")) {
      step.text = literal->asString();
      step.content = json.at("content").asString();
    }
    if (isFused() && (step.text.empty() || step.text.size() > kMaxFusedPattern))
      throw json.error(
          "decoder \"Replace\" behind Fuse or ByteLevel is supported for a text of at "
          "most 1024 bytes, not for a pattern",
          ErrorCode::Unsupported);
    return addStep(std::move(step), json);
  }
  if (!readKind(type, json, step))
    throw json.at("type").error("decoder " + inQuotes(type) +
                                    " is not supported, expected BPEDecoder, ByteFallback, "
                                    "ByteLevel, CTC, Fuse, Metaspace, Replace, Sequence, Strip or "
                                    "WordPiece",
                                ErrorCode::Unsupported);
  if (isFused())
    throw json.error("decoder " + inQuotes(type) +
                         " is supported in front of Fuse and ByteLevel only, which make one token "
                         "of all",
                     ErrorCode::Unsupported);
  addStep(std::move(step), json);
}

// Those that need single tokens.
bool TokenDecoder::readKind(const std::string& type, const JsonValue& json, Step& step) const {
  if (type == "ByteLevel") {
    refuseUnknownKeys(json, {"type", "add_prefix_space", "trim_offsets", "use_regex"});
    step.kind = Step::Kind::Bytes;
  } else if (type == "ByteFallback") {
    refuseUnknownKeys(json, {"type"});
    step.kind = Step::Kind::ByteFallback;
  } else if (type == "Metaspace") {
    refuseUnknownKeys(
        json, {"type", "replacement", "prepend_scheme", "add_prefix_space", "split", "str_rep"});
    step.kind = Step::Kind::Metaspace;
    step.text = oneCharacter(json.at("replacement"));
    auto scheme = json.find("prepend_scheme");
    auto flag = json.find("add_prefix_space");
    step.flag = !(scheme && scheme->asString() == "never") && !(flag && !flag->asBool());
  } else if (type == "WordPiece") {
    refuseUnknownKeys(json, {"type", "prefix", "cleanup"});
    step.kind = Step::Kind::WordPiece;
    step.text = json.at("prefix").asString();
    step.flag = json.at("cleanup").asBool();
  } else if (type == "BPEDecoder") {
    refuseUnknownKeys(json, {"type", "suffix"});
    step.kind = Step::Kind::Suffix;
    step.text = json.at("suffix").asString();
    if (step.text.empty()) throw json.at("suffix").error("expected a suffix, got empty text");
  } else if (type == "CTC") {
    refuseUnknownKeys(json, {"type", "pad_token", "word_delimiter_token", "cleanup"});
    step.kind = Step::Kind::Ctc;
    step.text = json.at("pad_token").asString();
    step.content = json.at("word_delimiter_token").asString();
    step.flag = json.at("cleanup").asBool();
    for (std::string_view key : {"pad_token", "word_delimiter_token"})
      if (json.at(key).asString().empty())
        throw json.at(key).error("expected a token, got empty text");
  } else {
    return false;
  }
  return true;
}

void TokenDecoder::addStrip(const JsonValue& json) {
  refuseUnknownKeys(json, {"type", "content", "start", "stop"});
  addStep({.kind = Step::Kind::Strip,
           .text = oneCharacter(json.at("content")),
           .start = size_t(json.at("start").asInt(0, 65536)),
           .stop = size_t(json.at("stop").asInt(0, 65536))},
          json);
}

std::string TokenDecoder::spell(const std::string& token, TextBudget& budget) const {
  std::string text = token;
  for (size_t i = 0; i < spelled_; ++i) text = steps_[i].replace->apply(std::move(text), budget);
  return text;
}

void TokenDecoder::push(const std::string& text, DecoderPlace& place, std::string& out) const {
  if (place.steps.empty()) place.steps.resize(steps_.size());
  feed(spelled_, text, place, out);
}

void TokenDecoder::finish(DecoderPlace& place, std::string& out) const {
  if (!place.steps.empty())
    for (size_t i = spelled_; i < steps_.size(); ++i) end(i, place, out);
  place = {};
}

void TokenDecoder::feed(size_t at, std::string piece, DecoderPlace& place, std::string& out) const {
  if (at == steps_.size()) {
    out += piece;
    return;
  }
  const Step& step = steps_[at];
  State& state = place.steps[at];
  const bool isFirst = !std::exchange(state.started, true);
  auto give = [&](std::string text) { feed(at + 1, std::move(text), place, out); };
  switch (step.kind) {
    case Step::Kind::Spaces:
      return give(isFirst ? piece : " " + piece);
    case Step::Kind::Fuse:
      return give(std::move(piece));
    case Step::Kind::Replace: {
      if (step.fused) return give(replaceFused(step, std::move(piece), state));
      TextBudget budget(piece.size());
      return give(step.replace->apply(std::move(piece), budget));
    }
    case Step::Kind::Bytes: {
      state.held += unspellBytes(piece);
      const size_t ready = state.held.size() - unfinishedUtf8(state.held);
      std::string text = replaceInvalidUtf8(std::string_view(state.held).substr(0, ready));
      state.held.erase(0, ready);
      return give(std::move(text));
    }
    case Step::Kind::ByteFallback: {
      if (auto byte = byteOf(piece)) {
        state.held += char(*byte);
        return;
      }
      end(at, place, out);
      return give(std::move(piece));
    }
    case Step::Kind::Metaspace:
      return give(replaced(piece, step.text, isFirst && step.flag ? "" : " "));
    case Step::Kind::WordPiece: {
      if (!isFirst && piece.starts_with(step.text))
        piece.erase(0, step.text.size());
      else if (!isFirst)
        piece.insert(0, 1, ' ');
      return give(step.flag ? tidied(std::move(piece)) : std::move(piece));
    }
    case Step::Kind::Suffix:
      std::swap(state.held, piece);
      if (!isFirst) give(replaced(piece, step.text, " "));
      return;
    case Step::Kind::Ctc: {
      if (!isFirst && piece == state.held) return;
      state.held = piece;
      std::string text = replaced(piece, step.text, "");
      if (step.flag) text = replaced(tidied(std::move(text)), step.content, " ");
      if (!text.empty()) give(std::move(text));
      return;
    }
    case Step::Kind::Strip:
      if (step.fused) return give(stripFused(step, std::move(piece), state));
      return give(std::string(
          withoutEnd(withoutBeginning(piece, step.text, step.start), step.text, step.stop)));
  }
}

void TokenDecoder::end(size_t at, DecoderPlace& place, std::string& out) const {
  const Step& step = steps_[at];
  std::string held;
  std::swap(held, place.steps[at].held);
  auto give = [&](std::string text) { feed(at + 1, std::move(text), place, out); };
  switch (step.kind) {
    case Step::Kind::ByteFallback:
      // Bytes that form no text are one U+FFFD each, the valid ones among them too.
      if (findInvalidUtf8(held) != held.npos)
        for (size_t i = 0; i < held.size(); ++i) give("\uFFFD");
      else if (!held.empty())
        give(std::move(held));
      break;
    case Step::Kind::Bytes:
      if (!held.empty()) give(replaceInvalidUtf8(held));
      break;
    case Step::Kind::Suffix:
      if (place.steps[at].started) give(replaced(held, step.text, ""));
      break;
    case Step::Kind::Replace:
      if (!held.empty()) give(std::move(held));
      break;
    default:  // nothing is held, or what is held is dropped
      break;
  }
}

// Holds back an end that could begin what is looked for.
std::string TokenDecoder::replaceFused(const Step& step, std::string piece, State& state) {
  const std::string text = std::exchange(state.held, {}) + piece;
  std::string result;
  size_t done = 0;
  for (size_t at; (at = text.find(step.text, done)) != text.npos; done = at + step.text.size()) {
    result.append(text, done, at - done);
    result += step.content;
  }
  const std::string_view rest = std::string_view(text).substr(done);
  size_t kept = std::min(rest.size(), step.text.size() - 1);
  while (kept > 0 && !step.text.starts_with(rest.substr(rest.size() - kept))) --kept;
  result += rest.substr(0, rest.size() - kept);
  state.held = rest.substr(rest.size() - kept);
  return result;
}

// `state.count` characters were taken away at the beginning; what could be the end is held back.
std::string TokenDecoder::stripFused(const Step& step, std::string piece, State& state) {
  const std::string text = std::exchange(state.held, {}) + piece;
  std::string_view rest = text;
  if (!state.textBegun) {
    rest = withoutBeginning(text, step.text, step.start - state.count);
    state.count += (text.size() - rest.size()) / step.text.size();
    state.textBegun = !rest.empty();
  }
  const std::string_view certain = withoutEnd(rest, step.text, step.stop);
  state.held = rest.substr(certain.size());
  return std::string(certain);
}

}  // namespace lathe
