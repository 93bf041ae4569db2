// SPDX-License-Identifier: Apache-2.0
#include "lathe/runtime/draft.h"

#include <algorithm>
#include <string>

#include "lathe/runtime/error.h"

namespace lathe {

NgramDrafter::NgramDrafter(int64_t longest) : longest_(longest) {
  if (longest < 1 || longest > 8)
    throw Error(ErrorCode::InvalidArgument,
                "NgramDrafter: expected from 1 to 8 tokens, got " + std::to_string(longest));
}

// Equal hashes of other tokens only make a worse guess. No id is as large as what a length begins
// with: an id that cancelled it would make ends of all lengths one.
uint64_t NgramDrafter::hashOfLast(int64_t length) const {
  constexpr uint64_t kMix = 0x9e3779b97f4a7c15u;
  uint64_t hash = uint64_t(length) * kMix;
  for (size_t i = text_.size() - size_t(length); i < text_.size(); ++i)
    hash = (hash ^ uint64_t(uint32_t(text_[i]))) * kMix + 1;
  return hash;
}

void NgramDrafter::start(std::span<const int> prompt, int64_t, uint64_t) {
  text_.clear();
  places_.clear();
  for (int id : prompt) accept(id);
}

void NgramDrafter::accept(int id) {
  text_.push_back(id);
  for (int64_t length = 1; length <= std::min(longest_, int64_t(text_.size())); ++length) {
    Places& places = places_[hashOfLast(length)];
    places.before = places.last;
    places.last = text_.size();
  }
}

std::vector<Draft> NgramDrafter::propose(int64_t count) {
  for (int64_t length = std::min(longest_, int64_t(text_.size())); length >= 1; --length) {
    // The end itself was noted last.
    const auto places = places_.find(hashOfLast(length));
    if (places == places_.end() || places->second.before == 0) continue;
    std::vector<Draft> drafts;
    for (size_t i = places->second.before; i < text_.size() && int64_t(drafts.size()) < count; ++i)
      drafts.push_back({text_[i], {}});
    return drafts;
  }
  return {};
}

ModelDrafter::ModelDrafter(Generator& generator, const SamplingOptions& sampling)
    : generator_(generator), options_(sampling), sampler_(sampling), random_(0) {}

void ModelDrafter::start(std::span<const int> prompt, int64_t positions, uint64_t seed) {
  text_.assign(prompt.begin(), prompt.end());
  fed_.clear();
  random_ = RandomGenerator(~seed);  // draws that have nothing to do with those of the text
  sampler_ = Sampler(options_);
  sampler_.notePrompt(prompt);
  generator_.reserve(std::min(positions, generator_.maxPositions()));
}

void ModelDrafter::accept(int id) {
  text_.push_back(id);
  sampler_.accept(id);
}

std::vector<Draft> ModelDrafter::propose(int64_t count) {
  count = std::min(count, generator_.maxPositions() - int64_t(text_.size()));
  if (count < 1) return {};
  // Guesses that were taken stay in the cache; one token at least is fed for its logits.
  const auto differs = std::ranges::mismatch(fed_, text_).in1;
  const size_t kept = std::min(size_t(differs - fed_.begin()), text_.size() - 1);
  generator_.rewind(int64_t(kept));
  std::span<const float> logits = generator_.prefill(std::span(text_).subspan(kept));
  fed_ = text_;
  std::vector<Draft> drafts;
  Sampler ahead = sampler_;  // which counts the guesses for its penalties
  ahead.reseed(random_.next());
  while (true) {
    const std::span<const Choice> choices = ahead.distribution(logits);
    Draft draft{0, {choices.begin(), choices.end()}};
    draft.id = int(draft.from.size() == 1 ? draft.from[0].id : ahead.draw(draft.from));
    ahead.accept(draft.id);
    drafts.push_back(std::move(draft));
    if (int64_t(drafts.size()) == count) return drafts;
    logits = generator_.next(drafts.back().id);
    fed_.push_back(drafts.back().id);
  }
}

}  // namespace lathe
