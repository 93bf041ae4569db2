// SPDX-License-Identifier: Apache-2.0
#include "lathe/runtime/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/test_files.h"

namespace lathe {
namespace {

using test::expectError;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
const std::vector<float> kLogits = {1, 3, 2, 3, -kInf};

TEST(Sampler, ExcludedTokensNeverCome) {
  const std::vector<float> logits{3, 9, 5, 1};
  SamplingOptions options;
  options.excluded = {1, 77};  // the second is none of the model's
  EXPECT_EQ(Sampler(options).sample(logits), 2);
  options.temperature = 100;
  Sampler drawing(options);
  for (int i = 0; i < 200; ++i) EXPECT_NE(drawing.sample(logits), 1);
  // With penalties, which change a copy of the logits, too.
  options.repetitionPenalty = 2;
  Sampler penalized(options);
  penalized.accept(2);
  for (int i = 0; i < 200; ++i) EXPECT_NE(penalized.sample(logits), 1);
}

TEST(RandomGenerator, GivesThePublishedSequence) {
  RandomGenerator random(0);
  for (uint64_t expected : {0x99ec5f36cb75f2b4u, 0xbf6e1f784956452au, 0x1a5f849d4933e6e0u,
                            0x6aa594f1262d2d2cu, 0xbba5ad4a1f842e59u, 0xffef8375d9ebcacau})
    EXPECT_EQ(random.next(), expected);
}

TEST(RandomGenerator, UniformStaysBelowOne) {
  RandomGenerator random(42);
  double sum = 0;
  for (int i = 0; i < 10'000; ++i) {
    double u = random.uniform();
    ASSERT_GE(u, 0);
    ASSERT_LT(u, 1);
    sum += u;
  }
  EXPECT_NEAR(sum / 10'000, 0.5, 0.02);
}

TEST(Sampler, FindsTheFirstOfTheLargestAtEveryPlace) {
  for (size_t n : {1, 31, 32, 33, 64, 257}) {
    for (size_t place = 0; place < n; ++place) {
      std::vector<float> logits(n, -2);
      logits[place] = -1;
      logits[n - 1] = std::max(logits[n - 1], place % 2 ? -1.0f : -2.0f);
      EXPECT_EQ(indexOfLargest(logits), int64_t(place)) << n;
      for (float strange : {kNan, kInf}) {
        logits[place] = strange;
        EXPECT_EQ(indexOfLargest(logits), -1) << n << " " << place;
      }
    }
    EXPECT_EQ(indexOfLargest(std::vector<float>(n, -kInf)), -1);
    EXPECT_EQ(indexOfLargest(std::vector<float>(n, 0.0f)), 0);
  }
  EXPECT_EQ(indexOfLargest({}), -1);
}

TEST(Sampler, TemperatureZeroTakesTheFirstOfTheLargest) {
  Sampler sampler;
  EXPECT_EQ(sampler.sample(kLogits), 1);
  EXPECT_EQ(sampler.sample(std::vector<float>{-kInf, -5}), 1);
}

TEST(Sampler, TopKOfOneIsTheLargestToo) {
  Sampler sampler({.temperature = 5, .topK = 1});
  for (int i = 0; i < 20; ++i) EXPECT_EQ(sampler.sample(kLogits), 1);
}

TEST(Sampler, SameSeedSameTokens) {
  Sampler a({.temperature = 1, .seed = 7}), b({.temperature = 1, .seed = 7}),
      c({.temperature = 1, .seed = 8});
  std::vector<int64_t> fromA, fromB, fromC;
  for (int i = 0; i < 50; ++i) {
    fromA.push_back(a.sample(kLogits));
    fromB.push_back(b.sample(kLogits));
    fromC.push_back(c.sample(kLogits));
  }
  EXPECT_EQ(fromA, fromB);
  EXPECT_NE(fromA, fromC);
}

TEST(Sampler, DrawsByProbability) {
  Sampler sampler({.temperature = 2, .seed = 1});
  std::vector<float> logits = {0, 2 * std::log(3.0f)};  // after the temperature 1 : 3
  int ones = 0;
  for (int i = 0; i < 20'000; ++i) ones += sampler.sample(logits) == 1;
  EXPECT_NEAR(ones / 20'000.0, 0.75, 0.015);
}

std::set<int64_t> drawn(const SamplingOptions& options, const std::vector<float>& logits) {
  Sampler sampler(options);
  std::set<int64_t> ids;
  for (int i = 0; i < 2000; ++i) ids.insert(sampler.sample(logits));
  return ids;
}

TEST(Sampler, TopKKeepsTheLowerIdOfEquals) {
  EXPECT_EQ(drawn({.temperature = 10, .topK = 2}, {1, 2, 1, 1}), (std::set<int64_t>{0, 1}));
}

// In whatever order they come: the later ones push out the least likely of those before.
TEST(Sampler, TopKKeepsTheLikeliestWhereverTheyStand) {
  std::vector<float> logits = {0, 1, 2, 3, 4, 5};
  do {
    for (int64_t topK : {2, 3, 5}) {
      Sampler sampler({.temperature = 1, .topK = topK});
      const std::span<const Choice> kept = sampler.distribution(logits);
      ASSERT_EQ(int64_t(kept.size()), topK);
      for (int64_t i = 0; i < topK; ++i)
        ASSERT_EQ(logits[size_t(kept[size_t(i)].id)], float(5 - i))
            << "the " << i << " of " << topK;
    }
  } while (std::next_permutation(logits.begin(), logits.end()));
}

TEST(Sampler, TopKAboveTheVocabularyKeepsAll) {
  EXPECT_EQ(drawn({.temperature = 10, .topK = 100}, {1, 2, 1}), (std::set<int64_t>{0, 1, 2}));
}

TEST(Sampler, TopPKeepsTheTokenThatCrossesIt) {
  std::vector<float> logits = {std::log(0.5f), std::log(0.3f), std::log(0.2f)};
  EXPECT_EQ(drawn({.temperature = 1, .topP = 0.6}, logits), (std::set<int64_t>{0, 1}));
  EXPECT_EQ(drawn({.temperature = 1, .topP = 0.4}, logits), (std::set<int64_t>{0}));
  EXPECT_EQ(drawn({.temperature = 1, .topP = 0.9}, logits), (std::set<int64_t>{0, 1, 2}));
}

TEST(Sampler, TopPKeepsNoTokenBeyondAnExactShare) {
  const std::vector<float> equal(4, 2.0f);  // 1/4 each: no rounding decides
  EXPECT_EQ(drawn({.temperature = 1, .topP = 0.25}, equal), (std::set<int64_t>{0}));
  EXPECT_EQ(drawn({.temperature = 1, .topP = 0.5}, equal), (std::set<int64_t>{0, 1}));
  EXPECT_EQ(drawn({.temperature = 1, .topP = 0.75}, equal), (std::set<int64_t>{0, 1, 2}));
}

TEST(Sampler, ADistributionEndsAtExactShares) {
  const std::vector<float> equal(4, 2.0f);
  for (size_t kept : {1, 2, 3}) {
    Sampler sampler({.temperature = 1, .topP = double(kept) / 4});
    EXPECT_EQ(sampler.distribution(equal).size(), kept);
  }
  // What is as likely as min-p asks stays.
  Sampler sampler({.temperature = 1, .minP = 1});
  EXPECT_EQ(sampler.distribution(std::vector<float>{2, 1, 2}).size(), 2u);
}

TEST(Sampler, TopPDrawsInProportionOfWhatItKeeps) {
  Sampler sampler({.temperature = 1, .topP = 0.6, .seed = 1});
  const std::vector<float> logits = {std::log(0.5f), std::log(0.3f), std::log(0.2f)};
  int first = 0;
  for (int i = 0; i < 20'000; ++i) first += sampler.sample(logits) == 0;
  EXPECT_NEAR(first / 20'000.0, 0.5 / 0.8, 0.015);
}

TEST(Sampler, TopPCountsWithinTopK) {
  // Of the two that top-k keeps the first has 5/8, so p = 0.6 is reached with it alone.
  std::vector<float> logits = {std::log(0.5f), std::log(0.3f), std::log(0.2f)};
  EXPECT_EQ(drawn({.temperature = 1, .topK = 2, .topP = 0.6}, logits), (std::set<int64_t>{0}));
}

TEST(Sampler, NeverDrawsExcludedTokens) {
  EXPECT_EQ(drawn({.temperature = 100}, {-kInf, 0, -kInf, 1}), (std::set<int64_t>{1, 3}));
}

TEST(Sampler, SurvivesExtremeTemperatures) {
  EXPECT_EQ(drawn({.temperature = 1e-300}, {1e30f, 3e38f, -3e38f}), (std::set<int64_t>{1}));
  EXPECT_EQ(drawn({.temperature = 1e300}, {1e30f, 3e38f}), (std::set<int64_t>{0, 1}));
}

TEST(Sampler, MinPIsAShareOfTheLikeliest) {
  const std::vector<float> logits = {std::log(0.5f), std::log(0.26f), std::log(0.24f)};
  EXPECT_EQ(drawn({.temperature = 1, .minP = 0.5}, logits), (std::set<int64_t>{0, 1}));
  EXPECT_EQ(drawn({.temperature = 1, .minP = 1}, logits), (std::set<int64_t>{0}));
  EXPECT_EQ(drawn({.temperature = 1, .minP = 0.4}, logits), (std::set<int64_t>{0, 1, 2}));
  EXPECT_EQ(drawn({.temperature = 1, .topP = 0.4, .minP = 0.1}, logits), (std::set<int64_t>{0}));
}

TEST(Sampler, ARepetitionPenaltyTakesOffWhatTheTextHas) {
  Sampler sampler({.repetitionPenalty = 2});
  sampler.notePrompt(std::vector<int>{1});
  EXPECT_EQ(sampler.sample(std::vector<float>{1.6f, 3, -1}), 0);  // 3 / 2 < 1.6
  EXPECT_EQ(sampler.sample(std::vector<float>{1.4f, 3, -1}), 1);
  EXPECT_EQ(sampler.sample(std::vector<float>{-1.9f, -1, -1.8f}), 2);  // -1 * 2 < -1.8
  sampler.accept(2);
  EXPECT_EQ(sampler.sample(std::vector<float>{-1.9f, -1, -1}), 0);
}

TEST(Sampler, PresenceAndFrequencyCountWhatWasGenerated) {
  Sampler presence({.presencePenalty = 1}), frequency({.frequencyPenalty = 1});
  for (Sampler* sampler : {&presence, &frequency}) {
    sampler->notePrompt(std::vector<int>{0});
    EXPECT_EQ(sampler->sample(std::vector<float>{3, 2.5f}), 0);  // the prompt does not count
    sampler->accept(0);
    EXPECT_EQ(sampler->sample(std::vector<float>{3, 2.5f}), 1);
    EXPECT_EQ(sampler->sample(std::vector<float>{3, 1.5f}), 0);
    sampler->accept(0);
  }
  EXPECT_EQ(presence.sample(std::vector<float>{3, 1.5f}), 0);
  EXPECT_EQ(frequency.sample(std::vector<float>{3, 1.5f}), 1);
}

// Draws go by the order of the whole vocabulary, which is not sorted for it: the token at which the
// sorted probabilities reach the same random number is the one that comes.
TEST(Sampler, DrawsFromManyTokensAsFromTheSortedOnes) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    RandomGenerator random(seed);
    const size_t vocab = 1 + size_t(random.next() % 5000);
    std::vector<float> logits(vocab);
    const double spread = std::pow(10.0, double(seed % 5) - 2);
    for (float& logit : logits) {
      logit = float((random.uniform() - 0.5) * spread);
      if (seed % 3 == 0) logit = std::round(logit);  // many equal ones
      if (seed % 4 == 0 && random.next() % 5 == 0) logit = -kInf;
    }
    logits[vocab / 2] = 1;
    SamplingOptions options{.temperature = seed % 2 ? 1.0 : 0.3, .seed = seed};
    if (seed % 7 == 1) options.topP = 0.9;
    if (seed % 7 == 2) options.minP = 0.05;
    if (seed % 7 == 3) options.topP = 0.5, options.minP = 0.2;
    if (seed % 7 == 4) options.topK = 1 + int64_t(random.next() % 50);
    Sampler sampler(options), sorted(options);
    for (int i = 0; i < 20; ++i)
      EXPECT_EQ(sampler.sample(logits), sorted.draw(sorted.distribution(logits)))
          << "seed " << seed << ", draw " << i;
  }
}

TEST(Sampler, TellsTheDistributionThatItDrawsFrom) {
  Sampler sampler({.temperature = 1, .topK = 2});
  const std::vector<float> logits = {std::log(0.2f), std::log(0.6f), std::log(0.2f)};
  const std::span<const Choice> choices = sampler.distribution(logits);
  ASSERT_EQ(choices.size(), 2u);
  EXPECT_EQ(choices[0].id, 1);
  EXPECT_NEAR(choices[0].probability, 0.75, 1e-7);
  EXPECT_EQ(choices[1].id, 0);
  EXPECT_NEAR(choices[1].probability, 0.25, 1e-7);
  EXPECT_EQ(Sampler().distribution(logits).size(), 1u);
  for (const SamplingOptions& options : {SamplingOptions{.temperature = 1, .topP = 0.7},
                                         {.temperature = 1, .minP = 0.3},
                                         {.temperature = 1, .minP = 0.5},
                                         {.temperature = 1, .topK = 2, .minP = 0.5}}) {
    double sum = 0;
    Sampler kept(options);
    for (const Choice& choice : kept.distribution(logits)) sum += choice.probability;
    EXPECT_NEAR(sum, 1, 1e-12);
  }
  // What is excluded is none of it, also where fewer are left than top-k keeps.
  for (int64_t topK : {0, 2, 3}) {
    Sampler kept({.temperature = 1, .topK = topK, .excluded = {1, 2}});
    EXPECT_EQ(kept.distribution(logits).size(), 1u) << topK;
  }
}

TEST(Sampler, TellsLogProbabilities) {
  const std::vector<float> logits = {std::log(0.2f) + 5, std::log(0.6f) + 5, std::log(0.2f) + 5};
  EXPECT_NEAR(logProbability(logits, 2), std::log(0.2), 1e-6);
  const std::vector<Choice> likeliest = likeliestLogProbabilities(logits, 2);
  ASSERT_EQ(likeliest.size(), 2u);
  EXPECT_EQ(likeliest[0].id, 1);
  EXPECT_NEAR(likeliest[0].probability, std::log(0.6), 1e-6);
  EXPECT_EQ(likeliest[1].id, 0);
  EXPECT_EQ(likeliestLogProbabilities(logits, 9).size(), 3u);
  EXPECT_TRUE(likeliestLogProbabilities(logits, 0).empty());
}

// No probability at all leaves the likeliest, whatever else is asked for.
TEST(Sampler, TopPOfZeroIsTheLikeliest) {
  Sampler sampler({.temperature = 50, .topK = 4, .topP = 0, .minP = 0});
  EXPECT_TRUE(sampler.isPlainGreedy());
  for (int i = 0; i < 50; ++i) EXPECT_EQ(sampler.sample(kLogits), 1);
}

TEST(Sampler, RefusesBadOptions) {
  auto make = [](SamplingOptions options) { return [options] { Sampler s(options); }; };
  constexpr ErrorCode kArgument = ErrorCode::InvalidArgument;
  expectError(kArgument, "expected a finite temperature >= 0, got -1", make({.temperature = -1}));
  expectError(kArgument, "temperature >= 0, got nan", make({.temperature = kNan}));
  expectError(kArgument, "temperature >= 0, got inf", make({.temperature = kInf}));
  expectError(kArgument, "expected top-k >= 0", make({.topK = -1}));
  for (double p : {-0.5, 1.5, double(kNan)})
    expectError(kArgument, "expected top-p in [0, 1], got", make({.topP = p}));
  for (double p : {-0.5, 1.5, double(kNan)})
    expectError(kArgument, "expected min-p in [0, 1], got", make({.minP = p}));
  for (double p : {0.0, -1.0, double(kInf), double(kNan)})
    expectError(kArgument, "expected a finite repetition penalty > 0, got",
                make({.repetitionPenalty = p}));
  expectError(kArgument, "a finite presence penalty, got nan", make({.presencePenalty = kNan}));
  expectError(kArgument, "a finite frequency penalty, got inf", make({.frequencyPenalty = kInf}));
}

TEST(Sampler, RefusesBadLogits) {
  Sampler greedy, random({.temperature = 1});
  for (Sampler* sampler : {&greedy, &random}) {
    auto sample = [&](std::vector<float> logits) { return [=] { sampler->sample(logits); }; };
    expectError(ErrorCode::Numeric, "got NaN for token 1", sample({0, kNan}));
    expectError(ErrorCode::Numeric, "got +inf for token 0", sample({kInf, 0}));
    expectError(ErrorCode::Numeric, "2 logits, all of them -inf", sample({-kInf, -kInf}));
    expectError(ErrorCode::Numeric, "no token to choose from: 0 logits", sample({}));
  }
}

// Penalties and shares as numbers: what is drawn from, in its order.
TEST(Sampler, PenaltiesAreTheseNumbers) {
  Sampler sampler(
      {.temperature = 1, .repetitionPenalty = 2, .presencePenalty = 0.5, .frequencyPenalty = 0.25});
  sampler.notePrompt(std::vector<int>{1});
  sampler.accept(0);
  sampler.accept(0);
  sampler.accept(9);  // none of the model's
  // 4 / 2 - 0.5 - 2 x 0.25, -2 x 2 without what is for generated ones, and 1.
  const std::vector<float> logits{4, -2, 1};
  const std::span<const Choice> all = sampler.distribution(logits);
  ASSERT_EQ(all.size(), 3u);
  const double sum = 2 + std::exp(-5.0);
  const std::pair<int64_t, double> expected[] = {
      {0, 1 / sum}, {2, 1 / sum}, {1, std::exp(-5.0) / sum}};
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(all[i].id, expected[i].first);
    EXPECT_NEAR(all[i].probability, expected[i].second, 1e-12);
  }
  EXPECT_EQ(logits, (std::vector<float>{4, -2, 1})) << "the caller's";
}

TEST(Sampler, ExclusionsOfOtherVocabulariesAreNone) {
  std::vector<float> logits{1, 2, 3, 4};
  // Behind what is seen of it lies the last one.
  exclude(std::vector<int64_t>{-1, 1, 3, 4}, std::span(logits).first(3));
  EXPECT_EQ(logits, (std::vector<float>{1, -kInf, 3, 4}));
}

// Certain decisions take no number from the sequence.
TEST(Sampler, DecisionsDrawOnlyWhereTheyAreOpen) {
  Sampler some({.temperature = 1, .seed = 5}), other({.temperature = 1, .seed = 5});
  EXPECT_TRUE(some.decide(1));
  EXPECT_TRUE(some.decide(1.5));
  EXPECT_FALSE(some.decide(0));
  EXPECT_FALSE(some.decide(-1));
  const std::vector<Choice> choices{{3, 0.5}, {4, 0.25}, {5, 0.25}};
  for (int i = 0; i < 20; ++i) EXPECT_EQ(some.draw(choices), other.draw(choices));
  int taken = 0;
  for (int i = 0; i < 4000; ++i) taken += some.decide(0.25);
  EXPECT_NEAR(taken / 4000.0, 0.25, 0.03);
}

// The draw as a number: of weights 1, 2 and 1 that of four quarters of which it falls into.
TEST(Sampler, DrawsFallWhereTheNumberSays) {
  Sampler sampler({.temperature = 1, .seed = 11});
  RandomGenerator random(11);
  const std::vector<Choice> choices{{7, 1}, {8, 2}, {9, 1}};
  for (int i = 0; i < 200; ++i) {
    const double target = random.uniform() * 4;
    EXPECT_EQ(sampler.draw(choices), target < 1 ? 7 : target < 3 ? 8 : 9) << target;
  }
}

TEST(Sampler, MinPKeepsWhatIsExactlyItsShare) {
  const std::vector<float> logits{0, -0.5f, -1};
  Sampler sampler({.temperature = 1, .minP = std::exp(-0.5)});
  EXPECT_EQ(sampler.distribution(logits).size(), 2u);
  EXPECT_EQ(drawn({.temperature = 1, .minP = std::exp(-0.5)}, logits), (std::set<int64_t>{0, 1}));
}

TEST(Sampler, LogProbabilitiesStandInTheirOrder) {
  const std::vector<float> logits{1, 3, 3, -kInf, 2};
  const std::vector<Choice> all = likeliestLogProbabilities(logits, 5);
  ASSERT_EQ(all.size(), 5u);
  const int64_t ids[] = {1, 2, 4, 0, 3};
  const double sum = std::log(2 * std::exp(0.0) + std::exp(-1.0) + std::exp(-2.0));
  const double expected[] = {-sum, -sum, -1 - sum, -2 - sum, -double(kInf)};
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(all[i].id, ids[i]);
    if (i < 4) EXPECT_NEAR(all[i].probability, expected[i], 1e-12);
  }
  EXPECT_EQ(all[4].probability, -double(kInf));
  expectError(ErrorCode::Numeric, "expected finite logits for log-probabilities",
              [] { logProbability(std::vector<float>{0, kNan}, 0); });
}

// The first token is one like the others.
TEST(Sampler, TheFirstTokenIsExcludedAndTheLikeliestToo) {
  SamplingOptions options{.temperature = 0};
  options.excluded = {0, -1, 3};
  const std::vector<float> logits{5, 3, 4};
  EXPECT_EQ(Sampler(options).sample(logits), 2);
  EXPECT_NEAR(logProbability(logits, 0), -std::log(1 + std::exp(-2.0) + std::exp(-1.0)), 1e-12);
}

// What an entry point that gives the likeliest token alone may serve.
TEST(Sampler, PlainGreedyIsTheLikeliestWithoutAnyRule) {
  EXPECT_TRUE(Sampler({.temperature = 0}).isPlainGreedy());
  EXPECT_TRUE(Sampler({.temperature = 1, .topK = 1}).isPlainGreedy());
  EXPECT_TRUE(Sampler({.temperature = 1, .topP = 0}).isPlainGreedy());
  EXPECT_FALSE(Sampler({.temperature = 1, .topK = 2}).isPlainGreedy());
  EXPECT_FALSE(Sampler({.temperature = 1}).isPlainGreedy());
  SamplingOptions excluding{.temperature = 0};
  excluding.excluded = {0};
  EXPECT_FALSE(Sampler(excluding).isPlainGreedy());
  SamplingOptions repeating{.temperature = 0}, present{.temperature = 0},
      frequent{.temperature = 0};
  repeating.repetitionPenalty = 1.5;
  present.presencePenalty = 0.5;
  frequent.frequencyPenalty = 0.5;
  for (const SamplingOptions& penalized : {repeating, present, frequent})
    EXPECT_FALSE(Sampler(penalized).isPlainGreedy());
}

}  // namespace
}  // namespace lathe
