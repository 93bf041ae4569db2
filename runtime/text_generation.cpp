// SPDX-License-Identifier: Apache-2.0
#include "lathe/runtime/text_generation.h"

#include <algorithm>
#include <memory>
#include <unordered_map>

#include "lathe/runtime/error.h"
#include "runtime/stop_finder.h"

namespace lathe {
namespace {

void checkOptions(const TextGenerationOptions& options, bool hasTokenizer) {
  auto refuse = [](const std::string& message) {
    throw Error(ErrorCode::InvalidArgument, message);
  };
  if (!hasTokenizer && !options.stopTexts.empty())
    refuse("stop texts need a tokenizer, there is none");
  if (options.logProbabilities && *options.logProbabilities < 0)
    refuse("expected a count of likeliest tokens >= 0, got " +
           std::to_string(*options.logProbabilities));
  if (options.newTokens < 1)
    refuse("expected at least 1 token to add, got " + std::to_string(options.newTokens));
  if (options.drafter && options.draftTokens < 1)
    refuse("expected at least 1 token to draft, got " + std::to_string(options.draftTokens));
}

// One text in the making.
class Text {
 public:
  Text(const std::optional<Tokenizer>& tokenizer, const TextGenerationOptions& options,
       std::span<const int> prompt, int64_t maxPositions, int64_t row)
      : options_(options), sampler_(options.sampling), stops_(options.stopTexts), row_(row) {
    sampler_.reseed(options.sampling.seed + uint64_t(row));
    sampler_.notePrompt(prompt);
    if (tokenizer) stream_.emplace(*tokenizer);
    const int64_t length = int64_t(prompt.size());
    if (length > maxPositions)
      throw Error(ErrorCode::InvalidArgument, "the prompt has " + std::to_string(length) +
                                                  " tokens, the model takes at most " +
                                                  std::to_string(maxPositions) + " positions");
    count_ = std::min(options.newTokens, maxPositions - length + 1);  // the last is not fed back
    positions_ = std::max(length, length + count_ - 1);
  }

  /// Tokens of the cache that it may need.
  int64_t positions() const { return positions_; }
  int64_t left() const { return count_ - int64_t(result_.tokens.size()); }
  bool ended() const { return ended_; }
  int last() const { return result_.tokens.back().id; }
  Sampler& sampler() { return sampler_; }
  TextGeneration& result() { return result_; }

  void sample(std::span<const float> logits) { take(int(sampler_.sample(logits)), logits); }

  void take(int id, std::span<const float> logits) {
    sampler_.accept(id);
    if (options_.drafter) options_.drafter->accept(id);
    GeneratedToken token;
    token.id = id;
    if (options_.logProbabilities) {
      token.logProbability = logProbability(logits, id);
      token.likeliest = likeliestLogProbabilities(logits, *options_.logProbabilities);
    }
    result_.tokens.push_back(std::move(token));
    const bool isEnd = std::ranges::find(options_.endIds, id) != options_.endIds.end();
    std::string text;
    if (stream_ && !isEnd) text = stops_.push(stream_->push(id));
    const bool goOn = tell(&result_.tokens.back(), text);
    if (!goOn)
      stop(StopReason::Cancelled);
    else if (isEnd)
      stop(StopReason::EndToken);
    else if (stops_.found())
      stop(StopReason::StopText);
    else if (left() == 0)
      stop(count_ < options_.newTokens ? StopReason::Positions : StopReason::Length);
  }

 private:
  void stop(StopReason reason) {
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

  bool tell(const GeneratedToken* token, const std::string& text) {
    result_.text += text;
    return !options_.onToken || options_.onToken({row_, token, text});
  }

  const TextGenerationOptions& options_;
  Sampler sampler_;
  StopFinder stops_;
  std::optional<StreamDecoder> stream_;
  int64_t row_ = 0, count_ = 0, positions_ = 0;
  bool ended_ = false;
  TextGeneration result_;
};

// The guess or, where it is not taken, the token instead of it. A guess x is taken with the
// probability min(1, p(x) / q(x)), p being the model's distribution and q what x was drawn from;
// otherwise the token comes from max(0, p - q) (arXiv:2211.17192, section 2.3).
int choose(Sampler& sampler, const Draft& draft, std::span<const float> logits, bool& taken) {
  const std::span<const Choice> p = sampler.distribution(logits);
  std::unordered_map<int64_t, double> q;
  for (const Choice& choice : draft.from) q.emplace(choice.id, choice.probability);
  if (draft.from.empty()) q.emplace(draft.id, 1.0);
  const auto guess = std::ranges::find(p, draft.id, &Choice::id);
  taken = guess != p.end() && sampler.decide(guess->probability / q.at(draft.id));
  if (taken) return draft.id;
  std::vector<Choice> rest;
  for (const Choice& choice : p) {
    const auto drawnFrom = q.find(choice.id);
    const double surplus = choice.probability - (drawnFrom == q.end() ? 0 : drawnFrom->second);
    if (surplus > 0) rest.push_back({choice.id, surplus});
  }
  // Rounding may leave nothing where both distributions are the same.
  if (rest.empty()) rest.assign(p.begin(), p.end());
  return int(rest.size() == 1 ? rest[0].id : sampler.draw(rest));
}

// The last token and its guesses go through the model together. False: there was no guess.
bool stepWithDrafts(Generator& generator, Text& text, const TextGenerationOptions& options) {
  const int64_t most =
      std::min({options.draftTokens, text.left() - 1, generator.maxVerified() - 1});
  std::vector<Draft> drafts;
  if (most > 0) drafts = options.drafter->propose(most);
  if (drafts.empty()) return false;
  std::vector<int> ids{text.last()};
  for (const Draft& draft : drafts) ids.push_back(draft.id);
  const int64_t begin = generator.position();
  const std::span<const float> logits = generator.verify(ids);
  const size_t vocab = logits.size() / ids.size();
  text.result().drafted += int64_t(drafts.size());
  for (size_t i = 0;; ++i) {
    const std::span<const float> row = logits.subspan(i * vocab, vocab);
    if (i == drafts.size()) {
      text.sample(row);
      return true;
    }
    bool taken = false;
    text.take(choose(text.sampler(), drafts[i], row, taken), row);
    text.result().accepted += taken;
    if (taken && !text.ended()) continue;
    generator.rewind(begin + int64_t(i) + 1);
    return true;
  }
}

}  // namespace

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
  }
  return "";
}

std::vector<int> TextGeneration::ids() const {
  std::vector<int> ids;
  for (const GeneratedToken& token : tokens) ids.push_back(token.id);
  return ids;
}

TextGeneration generateText(Generator& generator, const std::optional<Tokenizer>& tokenizer,
                            std::span<const int> prompt, const TextGenerationOptions& options) {
  checkOptions(options, tokenizer.has_value());
  if (options.drafter) generator.requireVerify();
  Text text(tokenizer, options, prompt, generator.maxPositions(), 0);
  if (options.resume)
    generator.resume(prompt, text.positions());
  else
    generator.reserve(text.positions());
  if (options.drafter) options.drafter->start(prompt, text.positions(), options.sampling.seed);
  text.sample(generator.prefill(prompt.subspan(size_t(generator.position()))));
  while (!text.ended())
    if (!options.drafter || !stepWithDrafts(generator, text, options))
      text.sample(generator.next(text.last()));
  return std::move(text.result());
}

std::vector<TextGeneration> generateTexts(BatchGenerator& generator,
                                          const std::optional<Tokenizer>& tokenizer,
                                          std::span<const std::vector<int>> prompts,
                                          const TextGenerationOptions& options) {
  checkOptions(options, tokenizer.has_value());
  if (options.drafter)
    throw Error(ErrorCode::InvalidArgument, "drafts are for one text at a time, got a batch");
  std::vector<std::unique_ptr<Text>> texts;
  int64_t positions = 1;
  for (const std::vector<int>& prompt : prompts) {
    texts.push_back(std::make_unique<Text>(tokenizer, options, prompt, generator.maxPositions(),
                                           int64_t(texts.size())));
    positions = std::max(positions, texts.back()->positions());
  }
  generator.reserve(int64_t(prompts.size()), positions);
  std::span<const float> logits = generator.prefill(prompts);
  std::vector<int> ids(texts.size());
  for (bool more = true; more;) {
    more = false;
    const size_t vocab = logits.size() / texts.size();
    for (size_t row = 0; row < texts.size(); ++row) {
      Text& text = *texts[row];
      if (!text.ended()) text.sample(logits.subspan(row * vocab, vocab));
      ids[row] = text.ended() ? BatchGenerator::kRest : text.last();
      more |= !text.ended();
    }
    if (more) logits = generator.next(ids);
  }
  std::vector<TextGeneration> results;
  for (auto& text : texts) results.push_back(std::move(text->result()));
  return results;
}

}  // namespace lathe
