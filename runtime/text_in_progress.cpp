// SPDX-License-Identifier: Apache-2.0
#include "runtime/text_in_progress.h"

#include <algorithm>
#include <limits>

#include "lathe/runtime/error.h"

namespace lathe {

std::string_view nameOf(StopReason reason) {
  switch (reason) {
    case StopReason::Length:
      return "length";
    case StopReason::Positions:
      return "positions";
    case StopReason::EndToken:
      return "eos";
    case StopReason::StopText:
      return "stop";
    case StopReason::Cancelled:
      return "cancelled";
    case StopReason::Complete:
      return "complete";
  }
  return "";
}

std::vector<int> TextGeneration::ids() const {
  std::vector<int> ids;
  for (const GeneratedToken& token : tokens) ids.push_back(token.id);
  return ids;
}

void checkTextOptions(const TextGenerationOptions& options, bool hasTokenizer) {
  auto refuse = [](const std::string& message) {
    throw Error(ErrorCode::InvalidArgument, message);
  };
  auto needsTokenizer = [&](const std::string& what) {
    refuse("expected a tokenizer for " + what +
           ", got none; give the model's folder its tokenizer, or leave that out");
  };
  if (!hasTokenizer && !options.stopTexts.empty()) needsTokenizer("stop texts");
  if (!hasTokenizer && options.constraint) needsTokenizer("a constraint");
  if (options.logProbabilities && *options.logProbabilities < 0)
    refuse("expected a count of likeliest tokens >= 0, got " +
           std::to_string(*options.logProbabilities));
  if (options.newTokens < 1)
    refuse("expected at least 1 token to add, got " + std::to_string(options.newTokens));
  if (options.drafter && options.draftTokens < 1)
    refuse("expected at least 1 token to draft, got " + std::to_string(options.draftTokens) +
           "; leave the drafter out to draft none");
}

TextInProgress::TextInProgress(const std::optional<Tokenizer>& tokenizer,
                               const TextGenerationOptions& options, std::span<const int> prompt,
                               int64_t maxPositions, int64_t row)
    : options_(options), sampler_(options.sampling), stops_(options.stopTexts), row_(row) {
  sampler_.reseed(options.sampling.seed + uint64_t(row));
  sampler_.notePrompt(prompt);
  if (tokenizer) {
    stream_.emplace(*tokenizer);
    tokens_ = tokenizer->vocabSize();
  }
  if (options.constraint) constraint_.emplace(options.constraint);
  const int64_t length = int64_t(prompt.size());
  if (length > maxPositions)
    throw Error(ErrorCode::InvalidArgument, "the prompt has " + std::to_string(length) +
                                                " tokens, the model takes at most " +
                                                std::to_string(maxPositions) + " positions");
  count_ = std::min(options.newTokens, maxPositions - length + 1);  // the last is not fed back
  positions_ = std::max(length, length + count_ - 1);
}

bool TextInProgress::isEnd(int64_t id) const {
  return std::ranges::find(options_.endIds, id) != options_.endIds.end();
}

std::span<const float> TextInProgress::permitted(std::span<const float> logits) {
  if (!constraint_) return logits;
  constexpr float kExcluded = -std::numeric_limits<float>::infinity();
  permitted_.assign(logits.size(), kExcluded);
  const std::span<const uint64_t> allowed = constraint_->allowed();
  for (size_t id = 0; id < std::min(logits.size(), allowed.size() * 64); ++id)
    if (allowed[id / 64] >> (id % 64) & 1) permitted_[id] = logits[id];
  // The end comes where the text is whole, and nowhere else.
  const bool mayEnd = constraint_->isComplete();
  for (int64_t id : options_.endIds)
    if (id >= 0 && size_t(id) < logits.size())
      permitted_[size_t(id)] = mayEnd ? logits[size_t(id)] : kExcluded;
  return permitted_;
}

void TextInProgress::sample(std::span<const float> logits) {
  take(draw(permitted(logits)), logits);
}

void TextInProgress::take(int id, std::span<const float> logits) {
  sampler_.accept(id);
  if (options_.drafter) options_.drafter->accept(id);
  GeneratedToken token;
  token.id = id;
  if (options_.logProbabilities) {
    // The likeliest token's value gives the others': one sum of exponentials over the vocabulary.
    const int64_t wanted = *options_.logProbabilities;
    token.likeliest = likeliestLogProbabilities(logits, std::max<int64_t>(wanted, 1));
    const Choice& first = token.likeliest.front();
    token.logProbability =
        first.probability + double(logits[size_t(id)]) - double(logits[size_t(first.id)]);
    token.likeliest.resize(std::min(token.likeliest.size(), size_t(wanted)));
  }
  result_.tokens.push_back(std::move(token));
  const bool ends = isEnd(id);
  if (constraint_ && !ends) constraint_->accept(id);
  std::string text;
  // A model may have more rows than there are tokens, for their number's sake: such a row is no
  // text.
  if (stream_ && !ends && id < tokens_) text = stops_.push(stream_->push(id));
  const bool goOn = tell(&result_.tokens.back(), text);
  if (!goOn)
    stop(StopReason::Cancelled);
  else if (ends)
    stop(StopReason::EndToken);
  else if (stops_.found())
    stop(StopReason::StopText);
  else if (constraint_ && constraint_->isComplete() && !constraint_->canGoOn())
    stop(StopReason::Complete);
  else if (left() == 0)
    stop(count_ < options_.newTokens ? StopReason::Positions : StopReason::Length);
}

void TextInProgress::cancel() {
  if (!ended_) stop(StopReason::Cancelled);
}

void TextInProgress::stop(StopReason reason) {
  ended_ = true;
  result_.stopped = reason;
  if (!stream_) return;
  std::string text = stops_.push(stream_->finish());
  if (stops_.found() && reason != StopReason::Cancelled) result_.stopped = StopReason::StopText;
  text += stops_.finish();
  if (reason == StopReason::Cancelled)
    result_.text += text;
  else if (!text.empty())
    tell(nullptr, text);
}

bool TextInProgress::tell(const GeneratedToken* token, const std::string& text) {
  result_.text += text;
  return !options_.onToken || options_.onToken({row_, token, text});
}

}  // namespace lathe
