// SPDX-License-Identifier: Apache-2.0
#pragma once
// Choosing the next token from logits.
#include <array>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

namespace lathe {

/// xoshiro256** seeded through SplitMix64 (Blackman and Vigna, https://prng.di.unimi.it): the same
/// sequence on every machine.
class RandomGenerator {
 public:
  explicit RandomGenerator(uint64_t seed);
  uint64_t next();
  /// Uniform in [0, 1), a multiple of 2^-53.
  double uniform() { return double(next() >> 11) * 0x1.0p-53; }

 private:
  std::array<uint64_t, 4> state_;
};

/// Index of the largest logit, the first of equals; -1 if there are NaN or +inf, or nothing above
/// -inf.
int64_t indexOfLargest(std::span<const float> logits);

struct SamplingOptions {
  double temperature = 0;  ///< 0: the largest logit, the first of equals
  int64_t topK = 0;        ///< keep the k largest (Fan et al. 2018, arXiv:1805.04833); 0 keeps all
  /// Keep the fewest whose probability reaches p, in [0, 1] (Holtzman et al. 2019,
  /// arXiv:1904.09751); 0 keeps the likeliest alone.
  double topP = 1;
  /// Keep those at least p times as likely as the likeliest, in [0, 1] (Nguyen et al. 2024,
  /// arXiv:2407.01082).
  double minP = 0;
  /// Divides positive logits of tokens that the text or its prompt has, multiplies negative ones
  /// (Keskar et al. 2019, arXiv:1909.05858, section 4.1). > 0; 1 changes nothing.
  double repetitionPenalty = 1;
  /// Taken off the logits of tokens that were generated: once, and for each time. As in the API
  /// reference of OpenAI, "frequency and presence penalties".
  double presencePenalty = 0, frequencyPenalty = 0;
  /// Tokens that never come.
  std::vector<int64_t> excluded = {};
  uint64_t seed = 0;
};

/// A token that may come next.
struct Choice {
  int64_t id = 0;
  double probability = 0;
};

/// Makes the logits of these tokens -inf; ids outside of them are nobody's.
void exclude(std::span<const int64_t> ids, std::span<float> logits);

/// Natural logarithms of softmax(logits): of one token, and of the `count` likeliest in order, the
/// lower id first among equals.
double logProbability(std::span<const float> logits, int64_t id);
std::vector<Choice> likeliestLogProbabilities(std::span<const float> logits, int64_t count);

/// One per generated sequence. Order: penalties, temperature, top-k, top-p, min-p, draw; the token
/// that crosses top-p is kept, and among equal logits the lower id comes first.
class Sampler {
 public:
  /// Throws Error(InvalidArgument) for an option out of its range.
  explicit Sampler(const SamplingOptions& options = {});

  /// Whether it takes the largest of the logits as they are, whatever the text.
  bool isPlainGreedy() const;

  /// Tells the tokens that stand in front, for the repetition penalty.
  void notePrompt(std::span<const int> ids);
  /// Tells the token that was taken, for all penalties.
  void accept(int64_t id);

  /// Index into `logits`, f32 [vocab]. -inf excludes a token; Error(Numeric) for NaN, +inf, or
  /// nothing left to choose from.
  int64_t sample(std::span<const float> logits);
  /// What sample() draws from: the tokens that are kept, likeliest first, with probabilities that
  /// sum to 1. At temperature 0 the one token. Valid until the next call.
  std::span<const Choice> distribution(std::span<const float> logits);
  /// Draws from probabilities, which need not sum to 1.
  int64_t draw(std::span<const Choice> choices);
  /// True with this probability. Certain answers draw nothing.
  bool decide(double probability);
  /// Draws from here on as a sampler with this seed does.
  void reseed(uint64_t seed) { random_ = RandomGenerator(seed); }

 private:
  struct Uses {
    bool inPrompt = false;
    int64_t generated = 0;
  };
  std::span<const float> penalized(std::span<const float> logits);
  // The largest; throws where there is nothing to choose from.
  int64_t likeliest(std::span<const float> logits) const;
  // Fills candidates_ with those that top-k keeps, likeliest first.
  void collect(std::span<const float> logits);
  // Fills choices_ with weights that sum to sum_.
  void weigh(std::span<const float> logits, int64_t best);
  // What draw() gives for the same choices, without sorting the vocabulary.
  int64_t drawFromAll(std::span<const float> logits, int64_t best);

  SamplingOptions options_;
  RandomGenerator random_;
  std::unordered_map<int64_t, Uses> uses_;
  std::vector<float> adjusted_;
  std::vector<std::pair<float, int64_t>> candidates_;
  std::vector<Choice> choices_;
  double sum_ = 0;
};

}  // namespace lathe
