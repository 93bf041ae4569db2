// SPDX-License-Identifier: Apache-2.0
#include "lathe/runtime/text_generation.h"

#include <algorithm>
#include <memory>
#include <unordered_map>

#include "lathe/runtime/error.h"
#include "runtime/text_in_progress.h"

namespace lathe {
namespace {

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
bool stepWithDrafts(Generator& generator, TextInProgress& text,
                    const TextGenerationOptions& options) {
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
    text.take(choose(text.sampler(), drafts[i], text.permitted(row), taken), row);
    text.result().accepted += taken;
    if (taken && !text.ended()) continue;
    generator.rewind(begin + int64_t(i) + 1);
    return true;
  }
}

// Tokens that the device has chosen itself. False: there was none.
bool stepsOfDevice(Generator& generator, TextInProgress& text) {
  const int64_t begin = generator.position();
  const std::span<const int> ids = generator.choose(text.last(), text.left());
  for (size_t i = 0; i < ids.size(); ++i) {
    text.take(ids[i], {});
    if (!text.ended()) continue;
    generator.rewind(begin + int64_t(i) + 1);
    break;
  }
  return !ids.empty();
}

}  // namespace

TextGeneration generateText(Generator& generator, const std::optional<Tokenizer>& tokenizer,
                            std::span<const int> prompt, const TextGenerationOptions& options) {
  checkTextOptions(options, tokenizer.has_value());
  if (options.drafter) generator.requireVerify();
  TextInProgress text(tokenizer, options, prompt, generator.maxPositions(), 0);
  if (options.resume)
    generator.resume(prompt, text.positions());
  else
    generator.reserve(text.positions());
  if (options.drafter) options.drafter->start(prompt, text.positions(), options.sampling.seed);
  text.sample(generator.prefill(prompt.subspan(size_t(generator.position()))));
  // Nothing is asked of the logits that only the host knows.
  const bool isOnDevice = generator.canChoose() && text.sampler().isPlainGreedy() &&
                          !options.logProbabilities && !options.constraint && !options.drafter;
  while (!text.ended()) {
    if (isOnDevice && stepsOfDevice(generator, text)) continue;
    if (options.drafter && stepWithDrafts(generator, text, options)) continue;
    text.sample(generator.next(text.last()));
  }
  return std::move(text.result());
}

std::vector<TextGeneration> generateTexts(BatchGenerator& generator,
                                          const std::optional<Tokenizer>& tokenizer,
                                          std::span<const std::vector<int>> prompts,
                                          const TextGenerationOptions& options) {
  checkTextOptions(options, tokenizer.has_value());
  if (options.drafter)
    throw Error(ErrorCode::InvalidArgument, "drafts are for one text at a time, got a batch");
  std::vector<std::unique_ptr<TextInProgress>> texts;
  int64_t positions = 1;
  for (const std::vector<int>& prompt : prompts) {
    texts.push_back(std::make_unique<TextInProgress>(
        tokenizer, options, prompt, generator.maxPositions(), int64_t(texts.size())));
    positions = std::max(positions, texts.back()->positions());
  }
  generator.reserve(int64_t(prompts.size()), positions);
  std::span<const float> logits = generator.prefill(prompts);
  std::vector<int> ids(texts.size());
  for (bool more = true; more;) {
    more = false;
    const size_t vocab = logits.size() / texts.size();
    for (size_t row = 0; row < texts.size(); ++row) {
      TextInProgress& text = *texts[row];
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
