// SPDX-License-Identifier: Apache-2.0
// Against a search that keeps whole texts and computes everything anew, on a model that is a
// function of its cache.
#include "lathe/runtime/beam_search.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include <gtest/gtest.h>

#include "lathe/runtime/sampler.h"
#include "tests/unit/fake_language_model.h"
#include "tests/unit/test_files.h"

namespace lathe {
namespace {

using test::expectError;
using test::fakeLogits;
using test::FakeModel;
using test::fakeProgram;
using test::kFakeVocab;

const std::vector<int> kPrompt{1, 2, 3};

struct Searcher {
  explicit Searcher(const FakeModel& model = {})
      : session(fakeProgram(model)), generator(session, {kFakeVocab, model.maxPositions}) {}
  std::vector<BeamText> operator()(const BeamSearchOptions& options) {
    return beamSearch(generator, kPrompt, options);
  }
  Session session;
  BatchGenerator generator;
};

std::vector<double> logSoftmax(const std::vector<int>& added) {
  std::vector<int> text = kPrompt;
  text.insert(text.end(), added.begin(), added.end());
  double sum = 0;
  std::vector<double> result;
  for (float logit : fakeLogits(text, 1, 4)) {
    result.push_back(logit);
    sum += std::exp(double(logit));
  }
  for (double& x : result) x -= std::log(sum);
  return result;
}

double sumOf(const std::vector<int>& ids) {
  double sum = 0;
  std::vector<int> text;
  for (int id : ids) {
    sum += logSoftmax(text)[size_t(id)];
    text.push_back(id);
  }
  return sum;
}

// With a beam for every text nothing is left out: the best of all 7^2.
TEST(BeamSearch, FindsTheBestOfAllTexts) {
  std::vector<int> best;
  double bestScore = -1e9;
  for (int a = 0; a < 7; ++a)
    for (int b = 0; b < 7; ++b) {
      const double score = sumOf({a, b});
      if (score > bestScore) best = {a, b}, bestScore = score;
    }
  Searcher search;
  const std::vector<BeamText> found = search({.beams = 7, .newTokens = 2});
  ASSERT_EQ(found.size(), 7u);
  EXPECT_EQ(found[0].ids, best);
  EXPECT_NEAR(found[0].score, bestScore / 2, 1e-6);
  EXPECT_FALSE(found[0].ended);
}

TEST(BeamSearch, ExcludedTokensTakeNoShareAndForcedOnesCount) {
  std::vector<double> first = logSoftmax({});
  const auto best = std::ranges::max_element(first) - first.begin();
  double rest = 0;
  for (size_t id = 0; id < first.size(); ++id)
    if (int64_t(id) != int64_t(best)) rest += std::exp(first[id]);
  first[size_t(best)] = -1e9;
  const auto second = std::ranges::max_element(first) - first.begin();
  Searcher search;
  const std::vector<BeamText> found =
      search({.beams = 1, .newTokens = 1, .excluded = {int64_t(best)}, .forcedTokens = 1});
  EXPECT_EQ(found[0].ids, (std::vector<int>{int(second)}));
  // Two tokens long, of which the forced one was certain.
  EXPECT_NEAR(found[0].score, (first[size_t(second)] - std::log(rest)) / 2, 1e-6);
  expectError(ErrorCode::InvalidArgument, "expected from 0 to 3 forced tokens, got 4",
              [&] { search({.forcedTokens = 4}); });
  // Where one token is left there is one text, however many beams there are.
  std::vector<int64_t> all;
  for (int64_t id = 0; id < kFakeVocab; ++id)
    if (id != int64_t(best)) all.push_back(id);
  const std::vector<BeamText> only = search({.beams = 3, .newTokens = 2, .excluded = all});
  ASSERT_EQ(only.size(), 1u);
  EXPECT_EQ(only[0].ids, std::vector<int>(2, int(best)));
  EXPECT_EQ(only[0].score, 0);
}

TEST(BeamSearch, OneBeamIsGreedy) {
  std::vector<int> greedy;
  while (greedy.size() < 30) {
    const std::vector<double> all = logSoftmax(greedy);
    greedy.push_back(int(std::ranges::max_element(all) - all.begin()));
  }
  EXPECT_EQ(Searcher()({.beams = 1, .newTokens = 30})[0].ids, greedy);
}

struct Kept {
  std::vector<int> ids;
  double sum;
};

std::vector<BeamText> plainSearch(const BeamSearchOptions& o) {
  std::vector<Kept> beams{{{}, 0}};
  std::vector<BeamText> ended;
  auto score = [&](const Kept& k) {
    return k.sum / std::pow(double(k.ids.size()) + double(o.forcedTokens), o.lengthPenalty);
  };
  auto best = [&] {
    std::ranges::sort(ended, std::greater(), &BeamText::score);
    if (int64_t(ended.size()) > o.beams) ended.resize(size_t(o.beams));
  };
  for (int64_t step = 1; step <= o.newTokens; ++step) {
    std::vector<Kept> all;
    for (const Kept& beam : beams) {
      const std::vector<double> p = logSoftmax(beam.ids);
      for (int id = 0; id < 7; ++id) {
        Kept longer{beam.ids, beam.sum + p[size_t(id)]};
        longer.ids.push_back(id);
        all.push_back(longer);
      }
    }
    std::ranges::sort(all, std::greater(), &Kept::sum);
    beams.clear();
    for (int64_t rank = 0; rank < int64_t(all.size()) && int64_t(beams.size()) < o.beams; ++rank) {
      const Kept& k = all[size_t(rank)];
      if (std::ranges::find(o.endIds, k.ids.back()) == o.endIds.end())
        beams.push_back(k);
      else if (rank < o.beams)
        ended.push_back({k.ids, score(k), true});
    }
    best();
    if (step < o.newTokens && int64_t(ended.size()) == o.beams &&
        ended.back().score >= score(beams[0]))
      return ended;
  }
  for (const Kept& k : beams) ended.push_back({k.ids, score(k), false});
  best();
  return ended;
}

TEST(BeamSearch, IsThatOfWholeTexts) {
  Searcher search;
  size_t ended = 0;
  for (int64_t beams : {2, 3, 5, 8})
    for (double penalty : {0.0, 1.0, 2.0})
      for (auto [ends, forced] :
           {std::pair<std::vector<int64_t>, int64_t>{{}, 0}, {{0}, 0}, {{2, 5}, 0}, {{2, 5}, 3}}) {
        // Forced tokens lengthen what has ended and what a beam may still reach.
        const BeamSearchOptions options{.beams = beams,
                                        .newTokens = 25,
                                        .lengthPenalty = penalty,
                                        .endIds = ends,
                                        .forcedTokens = forced};
        const std::vector<BeamText> found = search(options), expected = plainSearch(options);
        ASSERT_EQ(found.size(), expected.size());
        for (size_t i = 0; i < found.size(); ++i) {
          // Texts that go round the same circle at another place are equally likely.
          const double own =
              sumOf(found[i].ids) / std::pow(double(found[i].ids.size()) + double(forced), penalty);
          EXPECT_NEAR(own, expected[i].score, 1e-6) << beams << " beams, text " << i;
          for (size_t k = 0; k < i; ++k) EXPECT_NE(found[i].ids, found[k].ids);
          EXPECT_NEAR(found[i].score, expected[i].score, 1e-6);
          EXPECT_EQ(found[i].ended, expected[i].ended);
          ended += found[i].ended;
        }
      }
  EXPECT_GT(ended, 10u);
}

TEST(BeamSearch, RefusesWhatDoesNotFit) {
  Searcher search({.maxPositions = 64});
  expectError(ErrorCode::InvalidArgument, "expected from 1 to 8 texts at once, got 9",
              [&] { search({.beams = 9}); });
  expectError(ErrorCode::InvalidArgument, "expected from 1 to 8 texts at once, got 0",
              [&] { search({.beams = 0}); });
  expectError(ErrorCode::InvalidArgument, "at least 1 token to add, got 0",
              [&] { search({.newTokens = 0}); });
  EXPECT_EQ(search({.beams = 2, .newTokens = 500})[0].ids.size(), 62u);
}

}  // namespace
}  // namespace lathe
