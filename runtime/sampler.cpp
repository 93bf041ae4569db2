// SPDX-License-Identifier: Apache-2.0
#include "lathe/runtime/sampler.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <string>

#include "lathe/runtime/error.h"
#include "runtime/token_mass.h"

namespace lathe {
namespace {

constexpr float kExcluded = -std::numeric_limits<float>::infinity();

uint64_t splitMix64(uint64_t& state) {
  uint64_t z = (state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

void require(bool good, const char* expected, double got) {
  if (!good)
    throw Error(ErrorCode::InvalidArgument,
                std::string("expected ") + expected + ", got " + std::to_string(got));
}

}  // namespace

int64_t indexOfLargest(std::span<const float> logits) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  // Lanes that do not wait for each other become vectors; the tail is a chunk of its own.
  constexpr size_t kLanes = 16;
  float largest[kLanes];
  int strange[kLanes] = {};
  std::fill(largest, largest + kLanes, -kInfinity);
  size_t i = 0;
  for (; i + kLanes <= logits.size(); i += kLanes)
    for (size_t j = 0; j < kLanes; ++j) {
      const float x = logits[i + j];
      largest[j] = x > largest[j] ? x : largest[j];
      strange[j] |= !(x < kInfinity);  // or NaN
    }
  for (; i < logits.size(); ++i) {
    largest[0] = std::max(largest[0], logits[i]);
    strange[0] |= !(logits[i] < kInfinity);
  }
  for (size_t j = 1; j < kLanes; ++j) {
    largest[0] = std::max(largest[0], largest[j]);
    strange[0] |= strange[j];
  }
  if (strange[0] || largest[0] == -kInfinity) return -1;
  size_t block = 0;
  for (; block + kLanes <= logits.size(); block += kLanes) {
    int found = 0;
    for (size_t j = 0; j < kLanes; ++j) found |= logits[block + j] == largest[0];
    if (found) break;
  }
  return std::find(logits.begin() + int64_t(block), logits.end(), largest[0]) - logits.begin();
}

RandomGenerator::RandomGenerator(uint64_t seed) {
  for (uint64_t& word : state_) word = splitMix64(seed);
}

uint64_t RandomGenerator::next() {
  auto& s = state_;
  const uint64_t result = std::rotl(s[1] * 5, 7) * 9, t = s[1] << 17;
  s[2] ^= s[0];
  s[3] ^= s[1];
  s[1] ^= s[2];
  s[0] ^= s[3];
  s[2] ^= t;
  s[3] = std::rotl(s[3], 45);
  return result;
}

void exclude(std::span<const int64_t> ids, std::span<float> logits) {
  for (int64_t id : ids)
    if (id >= 0 && size_t(id) < logits.size())
      logits[size_t(id)] = -std::numeric_limits<float>::infinity();
}

double logProbability(std::span<const float> logits, int64_t id) {
  const int64_t best = indexOfLargest(logits);
  if (best < 0) throw Error(ErrorCode::Numeric, "expected finite logits for log-probabilities");
  const double largest = logits[size_t(best)];
  double sum = 0;
  for (float logit : logits) sum += std::exp(double(logit) - largest);
  return double(logits[size_t(id)]) - largest - std::log(sum);
}

std::vector<Choice> likeliestLogProbabilities(std::span<const float> logits, int64_t count) {
  std::vector<int64_t> order(logits.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = int64_t(i);
  const auto end = order.begin() + std::min<int64_t>(count, int64_t(order.size()));
  std::partial_sort(order.begin(), end, order.end(), [&](int64_t a, int64_t b) {
    return logits[size_t(a)] != logits[size_t(b)] ? logits[size_t(a)] > logits[size_t(b)] : a < b;
  });
  std::vector<Choice> likeliest;
  if (count == 0) return likeliest;
  const double first = logProbability(logits, order[0]);
  for (auto it = order.begin(); it != end; ++it)
    likeliest.push_back(
        {*it, first + double(logits[size_t(*it)]) - double(logits[size_t(order[0])])});
  return likeliest;
}

Sampler::Sampler(const SamplingOptions& options) : options_(options), random_(options.seed) {
  require(std::isfinite(options.temperature) && options.temperature >= 0,
          "a finite temperature >= 0", options.temperature);
  require(options.topK >= 0, "top-k >= 0 (0 keeps every token)", double(options.topK));
  require(options.topP >= 0 && options.topP <= 1, "top-p in [0, 1]", options.topP);
  require(options.minP >= 0 && options.minP <= 1, "min-p in [0, 1]", options.minP);
  require(std::isfinite(options.repetitionPenalty) && options.repetitionPenalty > 0,
          "a finite repetition penalty > 0", options.repetitionPenalty);
  require(std::isfinite(options.presencePenalty), "a finite presence penalty",
          options.presencePenalty);
  require(std::isfinite(options.frequencyPenalty), "a finite frequency penalty",
          options.frequencyPenalty);
  // No probability is left: the likeliest alone, as OpenAI's servers have it.
  if (options_.topP == 0) {
    options_.topP = 1;
    options_.topK = 1;
  }
}

bool Sampler::isPlainGreedy() const {
  const SamplingOptions& o = options_;
  return (o.temperature == 0 || o.topK == 1) && o.repetitionPenalty == 1 &&
         o.presencePenalty == 0 && o.frequencyPenalty == 0 && o.excluded.empty();
}

void Sampler::notePrompt(std::span<const int> ids) {
  for (int id : ids) uses_[id].inPrompt = true;
}

void Sampler::accept(int64_t id) { ++uses_[id].generated; }

std::span<const float> Sampler::penalized(std::span<const float> logits) {
  const SamplingOptions& o = options_;
  const bool isPlain = uses_.empty() || (o.repetitionPenalty == 1 && o.presencePenalty == 0 &&
                                         o.frequencyPenalty == 0);
  if (isPlain && o.excluded.empty()) return logits;
  adjusted_.assign(logits.begin(), logits.end());
  exclude(o.excluded, adjusted_);
  if (isPlain) return adjusted_;
  for (auto& [id, uses] : uses_) {
    if (id < 0 || size_t(id) >= adjusted_.size()) continue;
    double logit = adjusted_[size_t(id)];
    logit = logit > 0 ? logit / o.repetitionPenalty : logit * o.repetitionPenalty;
    if (uses.generated > 0)
      logit -= o.presencePenalty + o.frequencyPenalty * double(uses.generated);
    adjusted_[size_t(id)] = float(logit);
  }
  return adjusted_;
}

int64_t Sampler::likeliest(std::span<const float> logits) const {
  const int64_t best = indexOfLargest(logits);
  for (size_t i = 0; best < 0 && i < logits.size(); ++i)
    if (const float logit = logits[i]; std::isnan(logit) || logit == -kExcluded)
      throw Error(ErrorCode::Numeric,
                  "expected finite logits, got " + std::string(std::isnan(logit) ? "NaN" : "+inf") +
                      " for token " + std::to_string(i) + "; the model's activations overflowed");
  if (best < 0)
    throw Error(ErrorCode::Numeric, "no token to choose from: " + std::to_string(logits.size()) +
                                        " logits, all of them -inf");
  return best;
}

void Sampler::collect(std::span<const float> logits) {
  auto before = [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : a.second < b.second;
  };
  const size_t most = options_.topK > 0 ? size_t(options_.topK) : logits.size();
  candidates_.clear();
  if (most < logits.size()) {
    // A heap with the least likely of those so far on top; few tokens get past it.
    for (size_t i = 0; i < logits.size(); ++i) {
      if (candidates_.size() == most) {
        if (!(logits[i] > candidates_.front().first)) continue;
        std::ranges::pop_heap(candidates_, before);
        candidates_.pop_back();
      }
      if (logits[i] == kExcluded) continue;
      candidates_.emplace_back(logits[i], int64_t(i));
      std::ranges::push_heap(candidates_, before);
    }
  } else {
    for (size_t i = 0; i < logits.size(); ++i)
      if (logits[i] != kExcluded) candidates_.emplace_back(logits[i], int64_t(i));
  }
  // The order fixes which token a draw means, and top-p needs it.
  std::ranges::sort(candidates_, before);
}

void Sampler::weigh(std::span<const float> logits, int64_t best) {
  choices_.assign(1, {best, 1});
  sum_ = 1;
  if (options_.temperature == 0 || options_.topK == 1) return;
  collect(logits);
  choices_.clear();
  sum_ = 0;
  for (auto& [logit, id] : candidates_) {
    // The difference is in double: at a tiny temperature logit / temperature would overflow.
    const double weight =
        std::exp((double(logit) - double(candidates_[0].first)) / options_.temperature);
    choices_.push_back({id, weight});
    sum_ += weight;
  }
  size_t kept = choices_.size();
  if (options_.topP < 1) {
    double mass = 0;
    for (kept = 0; kept < choices_.size() && mass < options_.topP * sum_; ++kept)
      mass += choices_[kept].probability;
    sum_ = mass;
  }
  if (options_.minP > 0) {
    // The likeliest has the weight 1.
    while (choices_[kept - 1].probability < options_.minP) sum_ -= choices_[--kept].probability;
  }
  choices_.resize(kept);
}

int64_t Sampler::draw(std::span<const Choice> choices) {
  double sum = 0;
  for (const Choice& choice : choices) sum += choice.probability;
  double target = random_.uniform() * sum;
  for (const Choice& choice : choices.first(choices.size() - 1)) {
    if (target < choice.probability) return choice.id;
    target -= choice.probability;
  }
  return choices.back().id;
}

bool Sampler::decide(double probability) {
  if (probability >= 1) return true;
  return probability > 0 && random_.uniform() < probability;
}

int64_t Sampler::drawFromAll(std::span<const float> logits, int64_t best) {
  thread_local TokenMass mass;
  mass.weigh(logits, logits[size_t(best)], options_.temperature, options_.minP);
  TokenMass::Place last{-1, mass.placed()};
  if (const double share = options_.topP * mass.total(); options_.topP < 1 && share < last.sum)
    last = mass.reach(share, /*beyond=*/false);
  const int64_t id = mass.reach(random_.uniform() * last.sum, /*beyond=*/true).id;
  // A target that was rounded up to the sum itself lies beyond the last one.
  const bool past = last.id >= 0 && (logits[size_t(id)] != logits[size_t(last.id)]
                                         ? logits[size_t(id)] < logits[size_t(last.id)]
                                         : id > last.id);
  return past ? last.id : id;
}

int64_t Sampler::sample(std::span<const float> raw) {
  const std::span<const float> logits = penalized(raw);
  const int64_t best = likeliest(logits);
  if (options_.temperature == 0 || options_.topK == 1) return best;
  if (options_.topK == 0 || size_t(options_.topK) >= logits.size())
    return drawFromAll(logits, best);
  weigh(logits, best);
  return draw(choices_);
}

std::span<const Choice> Sampler::distribution(std::span<const float> raw) {
  const std::span<const float> logits = penalized(raw);
  weigh(logits, likeliest(logits));
  for (Choice& choice : choices_) choice.probability /= sum_;
  return choices_;
}

}  // namespace lathe
