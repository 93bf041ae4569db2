// SPDX-License-Identifier: Apache-2.0
// Stops, callbacks and drafts, on a model that is a function of its cache.
#include "lathe/runtime/text_generation.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <memory>

#include <gtest/gtest.h>

#include "runtime/container.h"
#include "tests/unit/fake_language_model.h"
#include "tests/unit/test_files.h"

namespace lathe {
namespace {

using test::expectError;
using test::fakeLogits;
using test::FakeModel;
using test::fakeProgram;
using test::kFakeVocab;

// Letters "a" to "g" are the ids 0 to 6.
const std::optional<Tokenizer>& letters() {
  static const std::optional<Tokenizer> tokenizer = Tokenizer::parse(
      R"({"model": {"type": "WordLevel", "vocab": {"a": 0, "b": 1, "c": 2, "d": 3, "e": 4, "f": 5,
          "g": 6}}, "pre_tokenizer": {"type": "FixedLength", "length": 1}, "decoder": {"type": "Fuse"}})",
      "letters");
  return tokenizer;
}

// What the model writes greedily, without any of the library.
std::vector<int> written(std::vector<int> text, size_t count, const FakeModel& model = {}) {
  std::vector<int> added;
  for (; added.size() < count; text.push_back(added.back()))
    added.push_back(int(indexOfLargest(fakeLogits(text, model.seed, model.sharpness))));
  return added;
}

struct Writer {
  explicit Writer(const FakeModel& model = {})
      : session(fakeProgram(model)), generator(session, {kFakeVocab, model.maxPositions}) {}
  TextGeneration operator()(const std::vector<int>& prompt, const TextGenerationOptions& options) {
    return generateText(generator, letters(), prompt, options);
  }
  Session session;
  Generator generator;
};

const std::vector<int> kPrompt{1, 2, 3, 1, 2};

TEST(TextGeneration, WritesWhatTheModelSays) {
  Writer write;
  const TextGeneration made = write(kPrompt, {.newTokens = 50});
  EXPECT_EQ(made.ids(), written(kPrompt, 50));
  EXPECT_EQ(made.text, letters()->decode(written(kPrompt, 50)));
  EXPECT_EQ(made.stopped, StopReason::Length);
  // Again with the same generator, from the beginning.
  EXPECT_EQ(write(kPrompt, {.newTokens = 9}).ids(), written(kPrompt, 9));
}

// Vocabularies are padded: what the model says there is no text, and no mistake.
TEST(TextGeneration, RowsThatAreNoTokensHaveNoText) {
  const Tokenizer fewer = Tokenizer::parse(
      R"({"model": {"type": "WordLevel", "vocab": {"a": 0, "b": 1, "c": 2, "d": 3}},
          "pre_tokenizer": {"type": "FixedLength", "length": 1}, "decoder": {"type": "Fuse"}})",
      "fewer");
  Writer write;
  const TextGeneration made =
      generateText(write.generator, fewer, kPrompt, {.newTokens = 50, .logProbabilities = 2});
  const std::vector<int> ids = written(kPrompt, 50);
  EXPECT_EQ(made.ids(), ids);
  std::vector<int> tokens;
  std::ranges::copy_if(ids, std::back_inserter(tokens), [](int id) { return id < 4; });
  EXPECT_LT(tokens.size(), ids.size());
  EXPECT_EQ(made.text, fewer.decode(tokens));
}

TEST(TextGeneration, EndsAtTheLastPosition) {
  Writer write({.maxPositions = 64});
  TextGeneration made = write(kPrompt, {.newTokens = 100});
  EXPECT_EQ(made.tokens.size(), 60u);
  EXPECT_EQ(made.stopped, StopReason::Positions);
  made = write(std::vector<int>(64, 1), {.newTokens = 5});
  EXPECT_EQ(made.tokens.size(), 1u);
  expectError(ErrorCode::InvalidArgument, "the prompt has 65 tokens, the model takes at most 64",
              [&] { write(std::vector<int>(65, 1), {}); });
}

TEST(TextGeneration, EndsAtAnEndToken) {
  Writer write;
  const std::vector<int> all = written(kPrompt, 40);
  const int end = all[5];
  const size_t first = size_t(std::ranges::find(all, end) - all.begin());
  const TextGeneration made = write(kPrompt, {.newTokens = 40, .endIds = {99, end}});
  EXPECT_EQ(made.ids(), std::vector<int>(all.begin(), all.begin() + int64_t(first) + 1));
  EXPECT_EQ(made.text, letters()->decode(std::span(all).first(first)));
  EXPECT_EQ(made.stopped, StopReason::EndToken);
}

TEST(TextGeneration, EndsInFrontOfAStopText) {
  Writer write;
  const std::string all = letters()->decode(written(kPrompt, 40));
  for (size_t length : {1, 2, 3}) {
    const std::string stop = all.substr(7, length);
    const size_t at = all.find(stop);
    std::string told;
    const TextGeneration made = write(
        kPrompt,
        {.newTokens = 40, .stopTexts = {"xyz", stop}, .onToken = [&](const GenerationEvent& event) {
           told += event.text;
           return true;
         }});
    EXPECT_EQ(made.text, all.substr(0, at));
    EXPECT_EQ(told, made.text);
    EXPECT_EQ(made.tokens.size(), at + length);
    EXPECT_EQ(made.stopped, StopReason::StopText);
  }
  // Two that end with one token: the one that begins first counts, whichever is named first.
  size_t at = 1;
  while (all.find(all[at]) != at) ++at;
  const std::vector<std::string> both{all.substr(at, 1), all.substr(at - 1, 2)};
  EXPECT_EQ(write(kPrompt, {.newTokens = 40, .stopTexts = both}).text, all.substr(0, at - 1));
  // What may begin a stop comes at the end where none does.
  std::string last = all.substr(39) + "#";
  const TextGeneration made = write(kPrompt, {.newTokens = 40, .stopTexts = {last}});
  EXPECT_EQ(made.text, all);
  expectError(ErrorCode::InvalidArgument, "expected a stop text, got an empty one",
              [&] { write(kPrompt, {.stopTexts = {""}}); });
  expectError(ErrorCode::InvalidArgument, "expected a tokenizer for stop texts, got none",
              [&] { generateText(write.generator, std::nullopt, kPrompt, {.stopTexts = {"a"}}); });
}

TEST(TextGeneration, ACallbackCancels) {
  Writer write;
  size_t count = 0;
  auto third = [&](const GenerationEvent&) { return ++count < 3; };
  const TextGeneration made = write(kPrompt, {.newTokens = 40, .onToken = third});
  EXPECT_EQ(made.ids(), written(kPrompt, 3));
  EXPECT_EQ(made.stopped, StopReason::Cancelled);
}

TEST(TextGeneration, TellsLogProbabilitiesOfTheModel) {
  Writer write;
  // Neither the temperature nor top-k changes what the model found likely.
  const TextGeneration made =
      write(kPrompt, {.newTokens = 10,
                      .sampling = {.temperature = 9, .topK = 3, .presencePenalty = 1, .seed = 3},
                      .logProbabilities = 2});
  std::vector<int> text = kPrompt;
  for (const GeneratedToken& token : made.tokens) {
    const std::vector<float> logits = fakeLogits(text, 1, 4);
    double sum = 0;
    for (float logit : logits) sum += std::exp(double(logit));
    EXPECT_NEAR(token.logProbability, logits[size_t(token.id)] - std::log(sum), 1e-9);
    ASSERT_EQ(token.likeliest.size(), 2u);
    const int64_t best = indexOfLargest(logits);
    EXPECT_EQ(token.likeliest[0].id, best);
    EXPECT_NEAR(token.likeliest[0].probability, logits[size_t(best)] - std::log(sum), 1e-9);
    EXPECT_LE(token.likeliest[1].probability, token.likeliest[0].probability);
    text.push_back(token.id);
  }
}

//===--- tokens that the device chooses -----------------------------------------------------===//

TEST(GreedySteps, WriteWhatTheHostWouldWrite) {
  const FakeModel model{.greedy = true};
  Writer write(model);
  ASSERT_TRUE(write.generator.canChoose());
  for (size_t count : {size_t(1), size_t(2), size_t(16), size_t(17), size_t(18), size_t(50)}) {
    SCOPED_TRACE(count);
    std::vector<int> told;
    auto tell = [&](const GenerationEvent& event) {
      if (event.token) told.push_back(event.token->id);
      return true;
    };
    const TextGeneration made = write(kPrompt, {.newTokens = int64_t(count), .onToken = tell});
    EXPECT_EQ(made.ids(), written(kPrompt, count));
    EXPECT_EQ(told, made.ids());
    EXPECT_EQ(made.stopped, StopReason::Length);
    // The last token is not in the cache.
    std::vector<int> all = kPrompt;
    for (int id : made.ids()) all.push_back(id);
    all.pop_back();
    EXPECT_TRUE(std::ranges::equal(write.generator.ids(), all));
  }
}

TEST(GreedySteps, EndAtTheLastPosition) {
  Writer write({.maxPositions = 64, .greedy = true});
  const TextGeneration made = write(kPrompt, {.newTokens = 100});
  EXPECT_EQ(made.ids(), written(kPrompt, 60));
  EXPECT_EQ(made.stopped, StopReason::Positions);
}

// What the device has chosen behind an end is taken back: the text goes on from there as if it had
// never been.
TEST(GreedySteps, BehindAnEndTheyAreTakenBack) {
  const std::vector<int> all = written(kPrompt, 40);
  for (size_t stop : {size_t(2), size_t(5), size_t(16), size_t(17), size_t(23)}) {
    SCOPED_TRACE(stop);
    Writer write({.greedy = true});
    size_t count = 0;
    auto some = [&](const GenerationEvent&) { return ++count < stop; };
    const TextGeneration made = write(kPrompt, {.newTokens = 40, .onToken = some});
    EXPECT_EQ(made.ids(), std::vector<int>(all.begin(), all.begin() + int64_t(stop)));
    EXPECT_EQ(write.generator.position(), int64_t(kPrompt.size() + stop) - 1);
    std::vector<int> text = kPrompt;
    for (int id : made.ids()) text.push_back(id);
    EXPECT_EQ(write(text, {.newTokens = 9, .resume = true}).ids(), written(text, 9));
  }
}

TEST(GreedySteps, ANanIsToldWithTheTokensInFrontOfIt) {
  for (int64_t at : {5, 6, 19, 20, 21}) {
    SCOPED_TRACE(at);
    Writer write({.greedy = true, .strangeAt = at});
    std::vector<int> told;
    auto tell = [&](const GenerationEvent& event) {
      told.push_back(event.token->id);
      return true;
    };
    expectError(ErrorCode::Numeric, "expected finite logits, got NaN for token 0",
                [&] { write(kPrompt, {.newTokens = 40, .onToken = tell}); });
    EXPECT_EQ(told, written(kPrompt, size_t(at) - kPrompt.size() + 1));
  }
}

TEST(Verify, MoreThanACallTakesIsRefused) {
  Writer write;
  write.generator.reserve(200);
  const int64_t most = write.generator.maxVerified();
  const std::vector<int> ids(size_t(most) + 1, 1);
  expectError(ErrorCode::InvalidArgument,
              "expected at most " + std::to_string(most) + " tokens to verify, got " +
                  std::to_string(most + 1),
              [&] { write.generator.verify(ids); });
  EXPECT_EQ(write.generator.verify(std::span(ids).first(size_t(most))).size(),
            size_t(most * kFakeVocab));
}

// A repetition penalty counts the tokens of the prompt as well.
TEST(TextGeneration, TokensOfThePromptAreRepetitions) {
  const std::vector<int> prompt{0, 1, 2, 3};
  int wouldRepeat = 0;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    const FakeModel model{.seed = seed};
    Writer write(model);
    auto repeats = [&](double penalty) {
      const TextGenerationOptions options{.newTokens = 1,
                                          .sampling = {.repetitionPenalty = penalty}};
      return std::ranges::count(prompt, write(prompt, options).ids().front());
    };
    wouldRepeat += int(repeats(1));
    EXPECT_EQ(repeats(1e6), 0) << seed;
  }
  EXPECT_GT(wouldRepeat, 0);
}

// Penalties, temperatures and log-probabilities are the host's.
TEST(GreedySteps, OtherWaysOfSamplingStayWithTheHost) {
  Writer host, device({.greedy = true});
  const std::vector<TextGenerationOptions> ways = {
      {.newTokens = 30, .sampling = {.temperature = 0.7, .seed = 3}},
      {.newTokens = 30, .sampling = {.repetitionPenalty = 1.5}},
      {.newTokens = 30, .sampling = {.presencePenalty = 2}},
      {.newTokens = 30, .sampling = {.frequencyPenalty = 2}},
      {.newTokens = 30, .sampling = {.excluded = {written(kPrompt, 1)[0]}}},
      {.newTokens = 30, .logProbabilities = 2}};
  for (const TextGenerationOptions& way : ways) {
    const TextGeneration expected = host(kPrompt, way), made = device(kPrompt, way);
    EXPECT_EQ(made.ids(), expected.ids());
    EXPECT_EQ(made.tokens[1].logProbability, expected.tokens[1].logProbability);
  }
}

TEST(GreedySteps, AreRefusedWithoutTheEntryPoint) {
  Writer write;
  write.generator.reserve(8);
  expectError(ErrorCode::InvalidArgument, "has no entry point 'greedy'",
              [&] { write.generator.choose(1, 1); });
}

TEST(GreedySteps, ChooseCountsAndBoundsAreChecked) {
  Writer write({.maxPositions = 64, .greedy = true});
  write.generator.reserve(64);
  write.generator.prefill(kPrompt);
  EXPECT_EQ(write.generator.choose(1, 100).size(), size_t(GreedyStates::kSteps));
  EXPECT_EQ(write.generator.position(), int64_t(kPrompt.size()) + GreedyStates::kSteps);
  expectError(ErrorCode::InvalidArgument, "expected an id from 0 to 6, got 7",
              [&] { write.generator.choose(7, 1); });
}

// Whoever asks for more than fits gets what fits: nothing is written behind the cache.
TEST(GreedySteps, ChooseEndsWithTheCache) {
  Writer write({.maxPositions = 64, .greedy = true});
  write.generator.reserve(64);
  write.generator.prefill(std::vector<int>(57, 1));
  EXPECT_EQ(write.generator.choose(1, 100).size(), 7u);
  EXPECT_EQ(write.generator.position(), 64);
  expectError(ErrorCode::InvalidArgument, "end past the 64 positions",
              [&] { write.generator.choose(1, 1); });
}

TEST(GreedySteps, AreOfTheStatesThatTheyChooseIn) {
  auto refusal = [](auto change) {
    Program program = fakeProgram({.greedy = true});
    change(program);
    Session session(std::move(program));
    return test::messageOf([&] { Generator generator(session, {kFakeVocab, 256}); });
  };
  const std::string entry = "entry point 'greedy' cannot generate text: ";
  EXPECT_EQ(refusal([](Program&) {}), "");
  auto state = [](Program& p, const char* name) -> TensorInfo& {
    return *std::ranges::find(p.states, name, &TensorInfo::name);
  };
  // A state that the entry point does not take, one of another dtype, too few steps.
  EXPECT_EQ(refusal([&](Program& p) { state(p, GreedyStates::kIds).dtype = DType::I32; }),
            entry + "expected the state next_ids of integers in 64 bits");
  EXPECT_EQ(
      refusal([&](Program& p) { state(p, GreedyStates::kPositions).shape.push_back(DimExpr(1)); }),
      entry + "expected the state next_positions of integers in 64 bits");
  EXPECT_EQ(refusal([&](Program& p) { state(p, GreedyStates::kChosen).shape[0] = DimExpr(8); }),
            entry + "expected the state chosen_ids of integers in 64 bits, [16, batch]");
  EXPECT_EQ(refusal([&](Program& p) {
              p.entries.back().statesIn.erase(p.entries.back().statesIn.begin());
            }),
            entry + "expected the state next_ids of integers in 64 bits");
  EXPECT_EQ(refusal([&](Program& p) {
              EntryPoint& greedy = p.entries.back();
              greedy.slots.push_back({SlotKind::Argument, DType::I64, {DimExpr(1)}, 0, -1});
              greedy.inputs = {{"x", int(greedy.slots.size()) - 1}};
            }),
            entry + "expected neither inputs nor outputs");
}

TEST(TextGeneration, DraftsNeedAProgramThatVerifies) {
  Writer write({.seed = 5, .verify = false});
  NgramDrafter drafter;
  expectError(ErrorCode::InvalidArgument, "has no entry point 'verify'",
              [&] { write(kPrompt, {.drafter = &drafter}); });
}

// Rounding may make every share of a draft as large as the model's: nothing is left over, and the
// token is the model's all the same.
TEST(TextGeneration, DraftsThatLeaveNothingOverChangeNothing) {
  struct Rounded : Drafter {
    void start(std::span<const int>, int64_t, uint64_t) override {}
    void accept(int) override {}
    std::vector<Draft> propose(int64_t) override {
      Draft draft{guess, {}};
      for (int64_t id = 0; id < kFakeVocab; ++id) draft.from.push_back({id, 1});
      return {draft};
    }
    int guess = 0;
  } drafter;
  const std::vector<int> expected = written(kPrompt, 9);
  // The guess is not one of the tokens that may be drawn.
  while (std::ranges::find(expected, drafter.guess) != expected.end()) ++drafter.guess;
  ASSERT_LT(drafter.guess, kFakeVocab);
  Writer write;
  const TextGeneration made = write(
      kPrompt, {.newTokens = 9, .sampling = {.temperature = 1, .topK = 1}, .drafter = &drafter});
  EXPECT_EQ(made.ids(), expected);
  EXPECT_GT(made.drafted, 0);
  EXPECT_EQ(made.accepted, 0);
}

TEST(TextGeneration, LogitsThatDoNotFitAreTold) {
  auto refusal = [](const char* name) {
    Program program = fakeProgram({});
    EntryPoint& entry = *std::ranges::find(program.entries, name, &EntryPoint::name);
    entry.slots[3].shape.push_back(DimExpr(1));
    Session session(std::move(program));
    return test::messageOf([&] {
      Generator generator(session, {kFakeVocab, 256});
      generator.reserve(8);
      generator.verify(std::vector<int>{1, 2});
    });
  };
  const std::string text = "cannot generate text: expected logits to be f32 ";
  EXPECT_EQ(refusal("decode"), "entry point 'decode' " + text + "[batch, vocab]");
  EXPECT_EQ(refusal("verify"), "entry point 'verify' " + text + "[batch, seq, vocab]");
}

// Guesses by what stood in the text, and by models that often or never agree.
enum class Guesser { Ngrams, SameModel, OtherModel };
struct Guesses {
  Guesses(Guesser guesser, const SamplingOptions& sampling)
      : model(FakeModel{.seed = uint64_t(guesser == Guesser::SameModel ? 1 : 2)}) {
    if (guesser == Guesser::Ngrams)
      drafter = std::make_unique<NgramDrafter>();
    else
      drafter = std::make_unique<ModelDrafter>(model.generator, sampling);
  }
  Writer model;
  std::unique_ptr<Drafter> drafter;
};

class Speculation : public testing::TestWithParam<Guesser> {};
INSTANTIATE_TEST_SUITE_P(Guessers, Speculation,
                         testing::Values(Guesser::Ngrams, Guesser::SameModel, Guesser::OtherModel),
                         [](auto& info) {
                           return std::string(info.param == Guesser::Ngrams      ? "Ngrams"
                                              : info.param == Guesser::SameModel ? "SameModel"
                                                                                 : "OtherModel");
                         });

TEST_P(Speculation, ChangesNothingAtTemperatureZero) {
  Guesses guesses(GetParam(), {});
  Writer write;
  for (int64_t count : {1, 2, 3, 60, 251}) {
    for (int64_t drafted : {1, 2, 5, 63, 100}) {
      const TextGeneration made = write(
          kPrompt, {.newTokens = count, .drafter = guesses.drafter.get(), .draftTokens = drafted});
      EXPECT_EQ(made.ids(), written(kPrompt, size_t(count))) << count << " by " << drafted;
      EXPECT_LE(made.accepted, made.drafted);
      if (GetParam() == Guesser::SameModel) EXPECT_EQ(made.accepted, made.drafted);
      // The text goes round in circles, which is what n-grams find.
      if (GetParam() != Guesser::OtherModel && count >= 60) EXPECT_GT(made.accepted, count / 3);
    }
  }
}

// A model that guesses may have less room than the one that writes: there it has nothing to say.
TEST(TextGeneration, ADraftModelEndsEarlier) {
  Writer guesser({.maxPositions = 64}), write;
  ModelDrafter drafter(guesser.generator, {});
  for (int64_t drafted : {1, 3, 8}) {
    const TextGeneration made =
        write(kPrompt, {.newTokens = 100, .drafter = &drafter, .draftTokens = drafted});
    EXPECT_EQ(made.ids(), written(kPrompt, 100)) << drafted;
    EXPECT_GT(made.accepted, 20);
    EXPECT_EQ(made.accepted, made.drafted);
    EXPECT_LE(made.drafted, 64 - int64_t(kPrompt.size()));
  }
  // Asked for more than it has room for, it gives what fits, up to the very last position.
  for (size_t length : {size_t(61), size_t(62), size_t(63), size_t(64), size_t(65)}) {
    const std::vector<int> text(length, 1);
    drafter.start(text, 200, 0);
    EXPECT_EQ(drafter.propose(8).size(), size_t(std::max(0, 64 - int(length)))) << length;
  }
}

TEST_P(Speculation, WithPenaltiesChangesNothingAtTemperatureZero) {
  const SamplingOptions sampling{.repetitionPenalty = 1.3, .frequencyPenalty = 0.2};
  Guesses guesses(GetParam(), sampling);
  Writer write;
  const std::vector<int> plain = write(kPrompt, {.newTokens = 80, .sampling = sampling}).ids();
  EXPECT_NE(plain, written(kPrompt, 80));
  for (int turn = 0; turn < 2; ++turn) {
    const TextGeneration made =
        write(kPrompt, {.newTokens = 80, .sampling = sampling, .drafter = guesses.drafter.get()});
    EXPECT_EQ(made.ids(), plain);
    // The same model guesses with the same penalties, of this text alone.
    if (GetParam() == Guesser::SameModel) EXPECT_EQ(made.accepted, made.drafted) << turn;
  }
}

// Who asks twice is told the same twice: the whole text is in the cache then.
TEST(TextGeneration, ADraftModelCanBeAskedAgain) {
  Writer guesser;
  ModelDrafter drafter(guesser.generator, {});
  drafter.start(kPrompt, 40, 0);
  auto guesses = [&] {
    std::vector<int> ids;
    for (const Draft& draft : drafter.propose(3)) ids.push_back(draft.id);
    return ids;
  };
  const std::vector<int> expected = written(kPrompt, 4);
  EXPECT_EQ(guesses(), std::vector<int>(expected.begin(), expected.begin() + 3));
  EXPECT_EQ(guesses(), std::vector<int>(expected.begin(), expected.begin() + 3));
  drafter.accept(expected[0]);
  EXPECT_EQ(guesses(), std::vector<int>(expected.begin() + 1, expected.end()));
}

// Three tokens together, against the product of the model's own probabilities.
TEST_P(Speculation, DrawsFromTheModelsDistribution) {
  SamplingOptions sampling{.temperature = 2, .topK = 5};
  Guesses guesses(GetParam(), {.temperature = 3});
  Writer write;
  std::map<std::vector<int>, double> expected;
  auto extend = [&](auto& self, std::vector<int> text, double probability) -> void {
    if (text.size() == kPrompt.size() + 3) {
      expected[{text.end() - 3, text.end()}] = probability;
      return;
    }
    Sampler sampler(sampling);
    for (const Choice& choice : sampler.distribution(fakeLogits(text, 1, 4))) {
      text.push_back(int(choice.id));
      self(self, text, probability * choice.probability);
      text.pop_back();
    }
  };
  extend(extend, kPrompt, 1);
  ASSERT_EQ(expected.size(), 125u);
  constexpr int kRuns = 20'000;
  std::map<std::vector<int>, int> counts;
  int64_t accepted = 0, drafted = 0;
  for (int run = 0; run < kRuns; ++run) {
    sampling.seed = uint64_t(run);
    const TextGeneration made =
        write(kPrompt, {.newTokens = 3, .sampling = sampling, .drafter = guesses.drafter.get()});
    ++counts[made.ids()];
    accepted += made.accepted;
    drafted += made.drafted;
  }
  EXPECT_GT(accepted, 0);
  EXPECT_LT(accepted, drafted);
  double chiSquare = 0;
  for (auto& [ids, count] : counts) ASSERT_TRUE(expected.contains(ids));
  for (auto& [ids, probability] : expected) {
    const double mean = kRuns * probability, off = counts[ids] - mean;
    chiSquare += off * off / mean;
  }
  // 124 degrees of freedom: more than 200 comes once in 50,000 times.
  EXPECT_LT(chiSquare, 200);
}

TEST(TextGeneration, ReadsAgainOnlyWhatTheCacheLacks) {
  Writer write;
  write(kPrompt, {.newTokens = 20});
  EXPECT_EQ(write.generator.ids().size(), kPrompt.size() + 19);
  // The same beginning, another one, one that ends within the cache, and more than there is room.
  for (std::vector<int> prompt : {std::vector<int>{1, 2, 3, 1, 2, 6, 6}, {4, 4}, {4}, {1, 2, 3, 1}})
    EXPECT_EQ(write(prompt, {.newTokens = 12, .resume = true}).ids(), written(prompt, 12));
  const std::vector<int> longer(100, 5);
  EXPECT_EQ(write(longer, {.newTokens = 12, .resume = true}).ids(), written(longer, 12));
  write.generator.resume(longer, 110);
  EXPECT_EQ(write.generator.position(), 99);
}

TEST(PromptCache, GoesOnWhereItWasSaved) {
  test::TemporaryFolder folder;
  const std::string file = folder.path() + "/cache";
  Writer first;
  expectError(ErrorCode::InvalidArgument, "expected tokens in the cache, it is empty",
              [&] { first.generator.saveCache(file); });
  const std::vector<int> text = first(kPrompt, {.newTokens = 30}).ids();
  first.generator.saveCache(file);
  std::vector<int> prompt = kPrompt;
  prompt.insert(prompt.end(), text.begin(), text.end() - 1);
  EXPECT_EQ(std::vector<int>(first.generator.ids().begin(), first.generator.ids().end()), prompt);
  for (int64_t room : {1, 34, 200}) {  // capacities of 64 and of 256
    Writer second;
    second.generator.loadCache(file, room);
    EXPECT_EQ(second.generator.position(), 34);
    EXPECT_EQ(std::vector<int>(second.generator.ids().begin(), second.generator.ids().end()),
              prompt);
    EXPECT_EQ(indexOfLargest(second.generator.next(text.back())), written(prompt, 2).back());
    prompt.push_back(text.back());
    EXPECT_EQ(second(prompt, {.newTokens = 25, .resume = true}).ids(), written(prompt, 25));
    prompt.pop_back();
  }
  Writer other({.seed = 2});
  expectError(ErrorCode::InvalidFile, "cache: the cache is of another model or of other weights",
              [&] { other.generator.loadCache(file); });
  EXPECT_EQ(other.generator.position(), 0);
  // Numbers that are none are no sign of the same model.
  Writer strange({.strangeAt = 33});
  expectError(ErrorCode::InvalidFile, "cache: the cache is of another model or of other weights",
              [&] { strange.generator.loadCache(file); });
  EXPECT_EQ(strange.generator.position(), 0);
  Writer shorter({.seed = 3, .maxPositions = 32});
  expectError(ErrorCode::InvalidFile, "ids: expected from 1 to 32 tokens, got 34",
              [&] { shorter.generator.loadCache(file); });
}

// Whoever loads a file cannot know how many tokens it has.
TEST(PromptCache, HasRoomForItsTokensWhateverIsAskedFor) {
  test::TemporaryFolder folder;
  std::vector<int> prompt(100);  // a capacity of 128, where 64 were enough for what is asked
  for (size_t i = 0; i < prompt.size(); ++i) prompt[i] = int((i * i + i / 3) % 7);
  Writer first;
  first.generator.reserve(100);
  first.generator.prefill(prompt);
  first.generator.saveCache(folder / "cache");
  Writer second;
  second.generator.loadCache(folder / "cache", 1);
  EXPECT_EQ(second.generator.position(), 100);
  EXPECT_EQ(second(prompt, {.newTokens = 12, .resume = true}).ids(), written(prompt, 12));
  // As many as the model has positions.
  while (prompt.size() < 256) prompt.push_back(prompt[prompt.size() / 3]);
  first.generator.reserve(256);
  first.generator.prefill(prompt);
  first.generator.saveCache(folder / "full");
  second.generator.loadCache(folder / "full");
  EXPECT_EQ(second.generator.position(), 256);
}

TEST(PromptCache, OfNoTokensIsRefused) {
  test::TemporaryFolder folder;
  ContainerWriter writer;
  writer.setHeader(R"({"kind": "prompt_cache", "ids": []})");
  writer.save(folder / "cache");
  Writer write;
  expectError(ErrorCode::InvalidFile, "ids: expected from 1 to 256 tokens, got 0",
              [&] { write.generator.loadCache(folder / "cache"); });
}

// A state with several axes in front of its positions, of which each row has its own.
TEST(PromptCache, KeepsEveryRowInFrontOfThePositions) {
  test::TemporaryFolder folder;
  const std::string file = folder.path() + "/cache";
  auto program = [] {
    Program p = fakeProgram({});
    const TensorInfo deep{"deep", DType::F32, {2, 3, DimExpr::symbol("cache"), 2}};
    p.states.push_back(deep);
    for (EntryPoint& e : p.entries) {
      e.statesIn.push_back({"deep", int(e.slots.size())});
      e.statesOut.push_back(e.statesIn.back());
      e.slots.push_back({SlotKind::State, DType::F32, deep.shape, 1, -1});
    }
    return p;
  };
  const std::vector<int> prompt{1, 2, 3, 4, 5};
  Session first(program());
  Generator writer(first, {kFakeVocab, 256});
  writer.reserve(64);
  writer.prefill(prompt);
  Array deep = first.state("deep");
  for (int64_t i = 0; i < deep.size(); ++i) deep.set(i, double(i));
  first.setState("deep", deep);
  writer.saveCache(file);
  Session second(program());
  Generator reader(second, {kFakeVocab, 256});
  reader.loadCache(file, 200);  // of another capacity
  const Array loaded = second.state("deep");
  ASSERT_EQ(loaded.shape(), (Shape{2, 3, 256, 2}));
  for (int64_t row = 0; row < 6; ++row)
    for (int64_t i = 0; i < int64_t(prompt.size()) * 2; ++i)
      ASSERT_EQ(loaded.at(row * 512 + i), deep.at(row * 128 + i)) << "row " << row;
}

struct Batch {
  explicit Batch(const FakeModel& model = {})
      : session(fakeProgram(model)), generator(session, {kFakeVocab, model.maxPositions}) {}
  Session session;
  BatchGenerator generator;
};

TEST(TextGeneration, ABatchWritesWhatEachTextDoesAlone) {
  Batch batch;
  Writer write;
  // Lengths around the 64 tokens of a call, one token among them, and all the same.
  const std::vector<std::vector<size_t>> lengths{
      {1, 150, 7, 64, 65, 2}, {1, 2}, {5, 5, 5}, {64, 64}, {65, 65}, {3}, {129, 1, 1}};
  for (const std::vector<size_t>& each : lengths) {
    std::vector<std::vector<int>> prompts;
    for (size_t row = 0; row < each.size(); ++row) {
      std::vector<int>& prompt = prompts.emplace_back(each[row]);
      for (size_t i = 0; i < prompt.size(); ++i) prompt[i] = int((i * i + row + i / 3) % 7);
    }
    for (double temperature : {0.0, 1.0}) {
      TextGenerationOptions options{
          .newTokens = 40,
          .sampling = {.temperature = temperature, .repetitionPenalty = 1.2, .seed = 5},
          .endIds = {4},
          .stopTexts = {"fg"}};
      const std::vector<TextGeneration> made =
          generateTexts(batch.generator, letters(), prompts, options);
      ASSERT_EQ(made.size(), prompts.size());
      for (size_t row = 0; row < prompts.size(); ++row) {
        options.sampling.seed = 5 + row;
        const TextGeneration alone = write(prompts[row], options);
        EXPECT_EQ(made[row].ids(), alone.ids()) << "row " << row << " of " << each.size();
        EXPECT_EQ(made[row].text, alone.text);
        EXPECT_EQ(made[row].stopped, alone.stopped);
      }
    }
  }
}

TEST(TextGeneration, ABatchKeepsToItsRoom) {
  Batch batch({.maxPositions = 64});
  const std::vector<std::vector<int>> prompts{std::vector<int>(60, 1), {2}};
  const auto made = generateTexts(batch.generator, letters(), prompts, {.newTokens = 20});
  EXPECT_EQ(made[0].tokens.size(), 5u);
  EXPECT_EQ(made[0].stopped, StopReason::Positions);
  EXPECT_EQ(made[1].ids(), written({2}, 20));
  expectError(ErrorCode::InvalidArgument, "expected from 1 to 8 texts at once, got 9",
              [&] { batch.generator.reserve(9, 10); });
  batch.generator.reserve(2, 10);
  expectError(ErrorCode::InvalidArgument, "expected a prompt for each of 2 rows, got 1",
              [&] { batch.generator.prefill(std::vector<std::vector<int>>{{1}}); });
  expectError(ErrorCode::InvalidArgument, "row 1: expected at least one token, got none",
              [&] { batch.generator.prefill(std::vector<std::vector<int>>{{1}, {}}); });
  expectError(ErrorCode::InvalidArgument, "row 0: 65 tokens at position 0 end past the 64", [&] {
    batch.generator.prefill(std::vector<std::vector<int>>{std::vector<int>(65, 1), {1}});
  });
  batch.generator.prefill(std::vector<std::vector<int>>{{1}, {1, 2}});
  expectError(ErrorCode::InvalidArgument, "expected a token for each of 2 rows, got 1",
              [&] { batch.generator.next(std::vector<int>{1}); });
  expectError(ErrorCode::InvalidArgument, "expected an id from 0 to 6, got 7",
              [&] { batch.generator.next(std::vector<int>{1, 7}); });
  expectError(ErrorCode::InvalidArgument, "call reserve() before another prefill",
              [&] { batch.generator.prefill(std::vector<std::vector<int>>{{1}, {1}}); });
}

}  // namespace
}  // namespace lathe
