// SPDX-License-Identifier: Apache-2.0
// Texts that join and leave a running batch are what they are alone: on a model that is a function
// of its cache, so that a row that was not written, or not taken back, shows.
#include "lathe/runtime/batch_engine.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <new>
#include <thread>

#include <gmock/gmock.h>

#include "tests/unit/fake_language_model.h"
#include "tests/unit/runtime/slots_that_fail.h"
#include "tests/unit/test_files.h"

namespace lathe {
namespace {

using test::expectError;
using test::FakeModel;
using test::fakeProgram;
using test::kFakeVocab;
using test::SlotsThatFail;
using ::testing::ElementsAre;

// A model whose words depend on three tokens, with little room: slots are used again and again.
constexpr FakeModel kModel{.seed = 21, .maxPositions = 64};

struct Ended {
  std::map<int, TextEnd> ends;
  std::vector<int> order;
  std::function<void(TextEnd)> at(int name) {
    return [this, name](TextEnd end) {
      EXPECT_FALSE(ends.contains(name)) << "told twice";
      ends[name] = std::move(end);
      order.push_back(name);
    };
  }
};

struct EngineOfFake {
  explicit EngineOfFake(int64_t slots = 3, const BatchEngineOptions& options = {})
      : session(fakeProgram({.seed = kModel.seed,
                             .maxPositions = kModel.maxPositions,
                             .positionsFirst = slots % 2 == 0})),
        engine(contiguousSlots(session, {kFakeVocab, kModel.maxPositions}, slots, 64), std::nullopt,
               options) {}
  void finish() {
    while (engine.step()) {
    }
  }
  Session session;
  BatchEngine engine;
};

TextGeneration alone(const std::vector<int>& prompt, const TextGenerationOptions& options) {
  Session session(fakeProgram(kModel));
  Generator generator(session, {kFakeVocab, kModel.maxPositions});
  return generateText(generator, std::nullopt, prompt, options);
}

std::vector<int> promptOf(RandomGenerator& random, size_t longest) {
  std::vector<int> prompt(1 + size_t(random.next() % longest));
  for (int& id : prompt) id = int(random.next() % kFakeVocab);
  return prompt;
}

TEST(BatchEngine, TextsThatComeAndGoAreWhatTheyAreAlone) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    RandomGenerator random(seed);
    EngineOfFake e(1 + int64_t(seed % 4), {.maxWaiting = 100, .chunkWhileRunning = 3});
    Ended ended;
    std::vector<TextRequest> asked;
    std::vector<int> cancelled;
    std::map<int, uint64_t> ids;
    for (int name = 0; name < 40; ++name) {
      TextRequest request;
      // Some begin as others do: what a slot holds of them is taken over.
      request.prompt = name > 3 && random.next() % 3 == 0
                           ? asked[random.next() % asked.size()].prompt
                           : promptOf(random, 40);
      request.options.newTokens = 1 + int64_t(random.next() % 30);
      request.options.sampling.temperature = random.next() % 2 ? 0.0 : 0.8;
      request.options.sampling.seed = random.next();
      request.client = std::to_string(random.next() % 3);
      request.onEnd = ended.at(name);
      asked.push_back(request);
      ids[name] = e.engine.submit(request).value();
      for (uint64_t steps = random.next() % 6; steps > 0; --steps) e.engine.step();
      if (random.next() % 8 == 0) {
        const int which = int(random.next() % uint64_t(name + 1));
        e.engine.cancel(ids[which]);
        cancelled.push_back(which);
      }
    }
    e.finish();
    ASSERT_EQ(ended.ends.size(), asked.size());
    for (auto& [name, end] : ended.ends) {
      const TextGeneration expected =
          alone(asked[size_t(name)].prompt, asked[size_t(name)].options);
      std::vector<int> ids = expected.ids();
      EXPECT_FALSE(end.error);
      if (end.text.stopped == StopReason::Cancelled) {
        EXPECT_THAT(cancelled, ::testing::Contains(name));
        ids.resize(end.text.tokens.size());
      }
      EXPECT_EQ(end.text.ids(), ids) << "seed " << seed << ", text " << name;
    }
    const BatchEngineCounts counts = e.engine.counts();
    EXPECT_EQ(counts.taken, 40);
    EXPECT_EQ(counts.finished + counts.cancelled, 40);
    EXPECT_EQ(counts.running + counts.waiting + counts.failed + counts.refused, 0);
  }
}

// A decode call writes every row from the first to the last that is asked for: a row between that
// has no room left loses its last token, one with room nothing.
TEST(ContiguousSlots, AFullRowThatRestsLosesItsLastToken) {
  Session session(fakeProgram(kModel));
  const auto slots = contiguousSlots(session, {kFakeVocab, kModel.maxPositions}, 4, 64);
  auto fill = [&](int64_t slot, int64_t count) {
    for (int64_t i = 0; i < count; ++i) slots->prefill(slot, std::vector<int>{int(i % kFakeVocab)});
  };
  fill(0, 2);
  fill(1, 64);
  fill(2, 63);
  fill(3, 1);
  auto lengths = [&] {
    std::vector<size_t> all;
    for (int64_t slot = 0; slot < 4; ++slot) all.push_back(slots->ids(slot).size());
    return all;
  };
  slots->next(std::vector<int64_t>{0, 3}, std::vector<int>{5, 6});
  EXPECT_THAT(lengths(), ElementsAre(3u, 63u, 63u, 2u));
  // What was lost is read again, and what is said then is what it was.
  const std::vector<int> text(slots->ids(1).begin(), slots->ids(1).end());
  const std::span<const float> logits = slots->prefill(1, std::vector<int>{4});
  std::vector<int> whole = text;
  whole.push_back(4);
  EXPECT_EQ(std::vector<float>(logits.begin(), logits.end()),
            test::fakeLogits(whole, kModel.seed, kModel.sharpness));
  // Rows outside of the call keep all that they have.
  slots->next(std::vector<int64_t>{2, 3}, std::vector<int>{1, 2});
  EXPECT_THAT(lengths(), ElementsAre(3u, 64u, 64u, 3u));
  // Nothing is written behind a full row's end, where the next row begins.
  slots->clear(2);
  slots->prefill(2, std::vector<int>{6, 5});
  slots->next(std::vector<int64_t>{0, 3}, std::vector<int>{1, 2});
  const std::span<const float> next = slots->prefill(2, std::vector<int>{4});
  EXPECT_EQ(std::vector<float>(next.begin(), next.end()),
            test::fakeLogits(std::vector<int>{6, 5, 4}, kModel.seed, kModel.sharpness));
}

// Whatever order slots are asked in, with gaps or without: the logits come in that order.
TEST(ContiguousSlots, LogitsComeInTheOrderThatIsAsked) {
  Session session(fakeProgram(kModel));
  const auto slots = contiguousSlots(session, {kFakeVocab, kModel.maxPositions}, 4, 64);
  std::vector<std::vector<int>> texts;
  for (int slot = 0; slot < 4; ++slot) {
    texts.push_back({slot, int(2 * slot % kFakeVocab), 3});
    slots->prefill(slot, texts.back());
  }
  int token = 0;
  for (const std::vector<int64_t>& order : std::vector<std::vector<int64_t>>{
           {0, 1, 2, 3}, {3, 2, 1, 0}, {1, 0}, {2, 3}, {3, 0}, {0, 3}, {2, 0, 1}, {1}, {3, 1, 2}}) {
    std::vector<int> ids;
    for (int64_t slot : order) {
      ids.push_back(++token % kFakeVocab);
      texts[size_t(slot)].push_back(ids.back());
    }
    const std::span<const float> logits = slots->next(order, ids);
    ASSERT_EQ(logits.size(), order.size() * kFakeVocab);
    for (size_t i = 0; i < order.size(); ++i) {
      const auto own = logits.subspan(i * kFakeVocab, kFakeVocab);
      EXPECT_EQ(std::vector<float>(own.begin(), own.end()),
                test::fakeLogits(texts[size_t(order[i])], kModel.seed, kModel.sharpness))
          << "slot " << order[i] << " of " << order.size();
    }
  }
}

TEST(BatchEngine, APromptDoesNotHoldUpRunningTexts) {
  EngineOfFake e(2, {.chunkWhileRunning = 4});
  Ended ended;
  int64_t first = 0;
  TextRequest running{.prompt = {1}, .options = {.newTokens = 60}, .onEnd = ended.at(0)};
  running.options.onToken = [&](const GenerationEvent&) { return ++first > 0; };
  e.engine.submit(running);
  e.engine.step();
  const int64_t before = first;
  int64_t atFirst = 0;
  TextRequest late{
      .prompt = std::vector<int>(40, 2), .options = {.newTokens = 5}, .onEnd = ended.at(1)};
  late.options.onToken = [&](const GenerationEvent&) {
    if (atFirst == 0) atFirst = first;
    return true;
  };
  e.engine.submit(late);
  e.finish();
  // Ten chunks, a token of the running text between any two of them.
  EXPECT_EQ(atFirst - before, 9);
  EXPECT_THAT(ended.order, ElementsAre(1, 0));
}

// A chunk may be longer than the slots take at once.
TEST(BatchEngine, ChunksAreNoLongerThanTheSlotsTakeThem) {
  Program program = fakeProgram(kModel);
  for (SymbolInfo& symbol : program.symbols)
    if (symbol.name == "seq") symbol.hi = 8;
  Session session(std::move(program));
  auto slots = contiguousSlots(session, {kFakeVocab, kModel.maxPositions}, 2, 64);
  ASSERT_EQ(slots->maxChunk(), 8);
  BatchEngine engine(std::move(slots), std::nullopt, {.chunkWhileRunning = 50});
  Ended ended;
  const std::vector<int> prompt(30, 2);
  engine.submit({.prompt = {1}, .options = {.newTokens = 20}, .onEnd = ended.at(0)});
  engine.step();
  engine.submit({.prompt = prompt, .options = {.newTokens = 3}, .onEnd = ended.at(1)});
  while (engine.step()) {
  }
  EXPECT_FALSE(ended.ends[0].error || ended.ends[1].error);
  EXPECT_EQ(ended.ends[1].text.ids(), alone(prompt, {.newTokens = 3}).ids());
}

TEST(BatchEngine, ATextWhosePromptIsReadCanBeCancelled) {
  EngineOfFake e(2, {.chunkWhileRunning = 4});
  Ended ended;
  e.engine.submit({.prompt = {1}, .options = {.newTokens = 20}, .onEnd = ended.at(0)});
  e.engine.step();
  const auto late = e.engine.submit(
      {.prompt = std::vector<int>(40, 2), .options = {.newTokens = 5}, .onEnd = ended.at(1)});
  e.engine.step();
  EXPECT_EQ(e.engine.counts().running, 2);
  e.engine.cancel(*late);
  e.engine.step();
  ASSERT_TRUE(ended.ends.contains(1));
  EXPECT_EQ(ended.ends[1].text.stopped, StopReason::Cancelled);
  EXPECT_TRUE(ended.ends[1].text.tokens.empty());
  EXPECT_EQ(e.engine.counts().running, 1);
  e.finish();
  EXPECT_EQ(ended.ends[0].text.ids(), alone({1}, {.newTokens = 20}).ids());
}

TEST(BatchEngine, CountsWhatItDid) {
  EngineOfFake e(3);
  Ended ended;
  for (int name = 0; name < 2; ++name)
    e.engine.submit(
        {.prompt = {name, 1, 2}, .options = {.newTokens = 4 - name}, .onEnd = ended.at(name)});
  auto expect = [&](std::vector<int64_t> counts) {
    const BatchEngineCounts c = e.engine.counts();
    EXPECT_EQ((std::vector<int64_t>{c.taken, c.refused, c.finished, c.cancelled, c.failed,
                                    c.promptTokens, c.reusedTokens, c.generatedTokens, c.steps,
                                    c.stepTexts, c.waiting, c.running, c.slots}),
              counts);
  };
  expect({2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 3});
  e.engine.step();  // both prompts, and a token more of each
  expect({2, 0, 0, 0, 0, 6, 0, 0, 1, 2, 0, 2, 3});
  e.engine.step();
  expect({2, 0, 1, 0, 0, 6, 0, 3, 2, 4, 0, 1, 3});
  e.engine.step();
  expect({2, 0, 2, 0, 0, 6, 0, 7, 3, 5, 0, 0, 3});
  EXPECT_FALSE(e.engine.step());
  EXPECT_EQ(ended.ends[0].promptTokens, 3);
  EXPECT_EQ(ended.ends[0].reusedTokens, 0);
  // A text of one token takes no step.
  e.engine.submit({.prompt = {5, 5, 5}, .options = {.newTokens = 1}, .onEnd = ended.at(2)});
  e.finish();
  expect({3, 0, 3, 0, 0, 9, 0, 8, 3, 5, 0, 0, 3});
}

// Also while those who wait for them are told one after the other.
TEST(BatchEngine, EachTextIsCountedOnceAtAnyTime) {
  for (const bool stops : {false, true}) {
    EngineOfFake e(2, {.chunkWhileRunning = 4});
    std::vector<std::vector<int64_t>> told;
    auto note = [&](TextEnd) {
      const BatchEngineCounts c = e.engine.counts();
      told.push_back({c.waiting, c.running, c.finished, c.cancelled});
    };
    std::vector<uint64_t> ids;
    for (const int64_t tokens : {1, 20, 20, 20, 20})
      ids.push_back(e.engine
                        .submit({.prompt = std::vector<int>(tokens == 20 ? 8 : 1, 1),
                                 .options = {.newTokens = tokens},
                                 .onEnd = note})
                        .value());
    // The first has ended, the second is read; then it runs and the third is read.
    e.engine.step();
    e.engine.step();
    e.engine.step();
    EXPECT_EQ(e.engine.counts().running, 2);
    for (size_t i = 1; i < ids.size() && !stops; ++i) e.engine.cancel(ids[i]);
    if (stops) e.engine.stop(0);
    while (e.engine.step()) {
    }
    EXPECT_THAT(
        told, ElementsAre(ElementsAre(4, 0, 1, 0), ElementsAre(0, 0, 1, 4), ElementsAre(0, 0, 1, 4),
                          ElementsAre(0, 0, 1, 4), ElementsAre(0, 0, 1, 4)));
  }
}

TEST(BatchEngine, ShortPromptsAreReadTogetherAsLongAsThereIsTime) {
  for (auto [chunk, atOnce] : {std::pair<int64_t, int64_t>{64, 3}, {16, 2}, {4, 1}}) {
    EngineOfFake e(3, {.chunkWhileRunning = chunk});
    Ended ended;
    for (int name = 0; name < 3; ++name)
      e.engine.submit({.prompt = {name, 1}, .options = {.newTokens = 9}, .onEnd = ended.at(name)});
    e.engine.step();
    EXPECT_EQ(e.engine.counts().running, atOnce) << chunk;
    EXPECT_EQ(e.engine.counts().stepTexts, atOnce) << chunk;
    e.finish();
    for (auto& [name, end] : ended.ends)
      EXPECT_EQ(end.text.ids(), alone({name, 1}, {.newTokens = 9}).ids());
  }
}

// What is left of the time behind a short prompt is taken to its last token, by no longer prompt.
TEST(BatchEngine, APromptThatJustFitsIsReadInTheSameStep) {
  for (auto [length, fits] : {std::pair<size_t, bool>{8, true}, {9, false}}) {
    EngineOfFake e(3, {.chunkWhileRunning = 16});
    Ended ended;
    for (const std::vector<int>& prompt : {std::vector<int>{1}, std::vector<int>(length, 2)})
      e.engine.submit(
          {.prompt = prompt, .options = {.newTokens = 20}, .onEnd = ended.at(int(prompt.size()))});
    e.engine.step();
    EXPECT_EQ(e.engine.counts().stepTexts, fits ? 2 : 1) << length;
  }
}

// One that is longer than what is left of the time has the next step's for itself.
TEST(BatchEngine, APromptThatDoesNotFitWaitsForTheNextStep) {
  EngineOfFake e(3, {.chunkWhileRunning = 16});
  Ended ended;
  auto ask = [&](int name, size_t length) {
    e.engine.submit({.prompt = std::vector<int>(length, name),
                     .options = {.newTokens = 20},
                     .onEnd = ended.at(name)});
  };
  ask(0, 1);
  e.engine.step();
  ask(1, 2);
  ask(2, 12);
  const int64_t before = e.engine.counts().stepTexts;
  e.engine.step();
  EXPECT_EQ(e.engine.counts().stepTexts - before, 2);
  e.engine.step();
  EXPECT_EQ(e.engine.counts().stepTexts - before, 2 + 3);
}

// Where no slot holds more of a prompt than others, the text that was used longest ago is given up.
TEST(BatchEngine, TheSlotThatRestedLongestIsTaken) {
  // A text of one token is read, too, though no step follows.
  for (int64_t newTokens : {2, 1}) {
    EngineOfFake e(3);
    Ended ended;
    auto ask = [&](int name, int id) {
      e.engine.submit({.prompt = std::vector<int>(20, id),
                       .options = {.newTokens = newTokens},
                       .onEnd = ended.at(name)});
      e.finish();
      return ended.ends[name].reusedTokens;
    };
    for (int name = 0; name < 4; ++name) EXPECT_EQ(ask(name, name), 0);
    EXPECT_EQ(ask(4, 2), 19);
    EXPECT_EQ(ask(5, 3), 19);
    EXPECT_EQ(ask(6, 0), 0) << "given up for the fourth";
  }
}

TEST(BatchEngine, TakesOverWhatSlotsHold) {
  EngineOfFake e(2);
  Ended ended;
  std::vector<int> prompt(30);
  for (size_t i = 0; i < prompt.size(); ++i) prompt[i] = int(i * i % 7);
  e.engine.submit({.prompt = prompt, .options = {.newTokens = 4}, .onEnd = ended.at(0)});
  e.finish();
  EXPECT_EQ(ended.ends[0].reusedTokens, 0);
  // The text goes on: what it wrote is held, too, but for the last token.
  std::vector<int> longer = prompt;
  for (int id : ended.ends[0].text.ids()) longer.push_back(id);
  longer.push_back(3);
  e.engine.submit({.prompt = longer, .options = {.newTokens = 20}, .onEnd = ended.at(1)});
  e.engine.step();
  // The same beginning while that one runs: a copy.
  e.engine.submit({.prompt = prompt, .options = {.newTokens = 9}, .onEnd = ended.at(2)});
  e.finish();
  EXPECT_EQ(ended.ends[1].reusedTokens, 33);
  EXPECT_EQ(ended.ends[2].reusedTokens, 29);
  // A prompt is as long as it was asked, however much of it is not read again.
  EXPECT_EQ(ended.ends[1].promptTokens, int64_t(longer.size()));
  EXPECT_EQ(ended.ends[2].promptTokens, int64_t(prompt.size()));
  EXPECT_EQ(ended.ends[1].text.ids(), alone(longer, {.newTokens = 20}).ids());
  EXPECT_EQ(ended.ends[2].text.ids(), alone(prompt, {.newTokens = 9}).ids());
}

// A beginning that another slot holds is copied from 16 tokens on.
TEST(BatchEngine, ShortBeginningsAreReadAndNotCopied) {
  for (const size_t common : {15, 16}) {
    EngineOfFake e(2);
    Ended ended;
    std::vector<int> prompt(common, 3);
    e.engine.submit({.prompt = prompt, .options = {.newTokens = 30}, .onEnd = ended.at(0)});
    e.engine.step();
    prompt.push_back((alone(prompt, {.newTokens = 1}).ids()[0] + 1) % int(kFakeVocab));
    prompt.push_back(1);
    e.engine.submit({.prompt = prompt, .options = {.newTokens = 2}, .onEnd = ended.at(1)});
    e.finish();
    EXPECT_EQ(ended.ends[1].reusedTokens, common < 16 ? 0 : 16);
    EXPECT_EQ(ended.ends[1].text.ids(), alone(prompt, {.newTokens = 2}).ids());
  }
}

TEST(BatchEngine, ClientsTakeTurns) {
  EngineOfFake e(1);
  Ended ended;
  for (int name = 0; name < 6; ++name)
    e.engine.submit(
        {.prompt = {1}, .options = {.newTokens = 2}, .client = "much", .onEnd = ended.at(name)});
  e.engine.submit(
      {.prompt = {2}, .options = {.newTokens = 2}, .client = "little", .onEnd = ended.at(10)});
  e.finish();
  EXPECT_THAT(ended.order, ElementsAre(0, 10, 1, 2, 3, 4, 5));
}

// One client's users share its turns, however many it names.
TEST(BatchEngine, UsersTakeTheTurnsOfTheirClient) {
  EngineOfFake e(1);
  Ended ended;
  auto ask = [&](int name, const std::string& client, const std::string& user) {
    e.engine.submit({.prompt = {1},
                     .options = {.newTokens = 2},
                     .client = client,
                     .user = user,
                     .onEnd = ended.at(name)});
  };
  for (int name = 0; name < 3; ++name) ask(name, "front end", "much");
  ask(3, "front end", "little");
  for (int name = 4; name < 7; ++name) ask(name, "other", "");
  e.finish();
  EXPECT_THAT(ended.order, ElementsAre(0, 4, 3, 5, 1, 6, 2));
}

// However much some ask for, whoever comes next finds a place.
TEST(BatchEngine, NobodyFillsTheQueue) {
  EngineOfFake e(1, {.maxWaiting = 30});
  Ended ended;
  int asked = 0;
  Refusal why{};
  auto takes = [&](const std::string& client, const std::string& user) {
    int taken = 0;
    while (e.engine.submit({.prompt = {1},
                            .options = {.newTokens = 2},
                            .client = client,
                            .user = user,
                            .onEnd = ended.at(asked)},
                           &why))
      ++asked, ++taken;
    return taken;
  };
  EXPECT_EQ(takes("a", "1"), 10);  // a third
  EXPECT_EQ(why, Refusal::UserFull);
  EXPECT_EQ(takes("a", "2"), 4);  // of the 20 that are free the client may have 10 more
  EXPECT_EQ(takes("a", "3"), 1);
  EXPECT_EQ(takes("a", "4"), 0);
  EXPECT_EQ(why, Refusal::ClientFull);
  EXPECT_EQ(takes("b", ""), 5);
  EXPECT_EQ(takes("c", ""), 4);
  EXPECT_EQ(e.engine.counts().waiting, 24);
  e.finish();
  EXPECT_EQ(ended.ends.size(), size_t(asked));
  EXPECT_GT(takes("a", "1"), 0);  // who has nothing waiting is as new
  e.finish();
}

TEST(BatchEngine, RefusesMoreThanMayWait) {
  EngineOfFake e(1, {.maxWaiting = 2});
  Ended ended;
  Refusal why{};
  auto ask = [&](int name) {
    return e.engine
        .submit({.prompt = {1},
                 .options = {.newTokens = 2},
                 .client = std::to_string(name),
                 .onEnd = ended.at(name)},
                &why)
        .has_value();
  };
  EXPECT_TRUE(ask(0));
  EXPECT_TRUE(ask(1));
  EXPECT_FALSE(ask(2));
  EXPECT_EQ(why, Refusal::QueueFull);
  e.engine.step();  // one runs now
  EXPECT_TRUE(ask(3));
  e.finish();
  EXPECT_EQ(ended.ends.size(), 3u);
  EXPECT_EQ(e.engine.counts().refused, 1);
}

TEST(BatchEngine, RefusesMistakes) {
  EngineOfFake e(1);
  expectError(ErrorCode::InvalidArgument, "expected at least one token, got none",
              [&] { e.engine.submit({}); });
  expectError(ErrorCode::InvalidArgument, "the prompt has 65 tokens, the model takes at most 64",
              [&] { e.engine.submit({.prompt = std::vector<int>(65, 1)}); });
  expectError(ErrorCode::InvalidArgument, "expected a finite temperature", [&] {
    e.engine.submit({.prompt = {1}, .options = {.sampling = {.temperature = -1}}});
  });
  expectError(ErrorCode::InvalidArgument, "drafts and `resume` are for one text at a time",
              [&] { e.engine.submit({.prompt = {1}, .options = {.resume = true}}); });
  expectError(ErrorCode::InvalidArgument, "expected from 1 to 8 texts at once, got 9",
              [] { EngineOfFake tooMany(9); });
  for (const BatchEngineOptions& options :
       {BatchEngineOptions{.maxWaiting = 0}, BatchEngineOptions{.chunkWhileRunning = 0}})
    expectError(ErrorCode::InvalidArgument, "expected options of at least 1, got 0",
                [&] { EngineOfFake none(1, options); });
  // An id that the model does not have is told to whoever asks, not to those who run.
  Ended ended;
  e.engine.submit({.prompt = {1}, .options = {.newTokens = 9}, .onEnd = ended.at(0)});
  e.engine.step();
  for (int id : {-1, 7, 99})
    expectError(ErrorCode::InvalidArgument,
                "token 1: expected an id from 0 to 6, got " + std::to_string(id),
                [&] { e.engine.submit({.prompt = {1, id}}); });
  e.finish();
  EXPECT_FALSE(ended.ends.at(0).error);
  EXPECT_EQ(ended.ends.at(0).text.ids(), alone({1}, {.newTokens = 9}).ids());
}

// What the slots held before a call of the model failed may be gone: nothing of it is taken over.
TEST(BatchEngine, AFailureEmptiesTheSlots) {
  // Every slot holds a text of its own, of which one is asked for again.
  const std::vector<int> prompts[] = {std::vector<int>(30, 1), std::vector<int>(30, 3)};
  for (int again : {0, 1}) {
    Session session(fakeProgram(kModel));
    auto slots = contiguousSlots(session, {kFakeVocab, kModel.maxPositions}, 2, 64);
    auto failing = std::make_unique<SlotsThatFail>(std::move(slots), 0, false);
    SlotsThatFail& model = *failing;
    BatchEngine engine(std::move(failing), std::nullopt, {});
    Ended ended;
    auto submit = [&](int name, const std::vector<int>& prompt) {
      engine.submit({.prompt = prompt, .options = {.newTokens = 4}, .onEnd = ended.at(name)});
    };
    auto finish = [&] {
      while (engine.step()) {
      }
    };
    for (int name : {0, 1}) submit(name, prompts[name]);
    finish();
    submit(2, prompts[again]);
    finish();
    EXPECT_EQ(ended.ends[2].reusedTokens, 29);
    model.failsToRead = true;
    submit(3, {2});
    finish();
    ASSERT_TRUE(ended.ends[3].error);
    model.failsToRead = false;
    submit(4, prompts[again]);
    finish();
    EXPECT_EQ(ended.ends[4].reusedTokens, 0) << again;
    EXPECT_EQ(ended.ends[4].text.ids(), ended.ends[again].text.ids()) << again;
  }
}

// Who cannot begin ends with the error, and makes room in the queue for those behind.
TEST(BatchEngine, ATextThatCannotBeginEnds) {
  for (const bool outOfMemory : {false, true}) {
    Session session(fakeProgram(kModel));
    auto slots = contiguousSlots(session, {kFakeVocab, kModel.maxPositions}, 2, 64);
    BatchEngine engine(std::make_unique<SlotsThatFail>(std::move(slots), 2, outOfMemory),
                       std::nullopt, {});
    Ended ended;
    for (int name = 0; name < 3; ++name)
      engine.submit({.prompt = {1, 2}, .options = {.newTokens = 3}, .onEnd = ended.at(name)});
    for (int steps = 0; steps < 20; ++steps) engine.step();
    ASSERT_EQ(ended.ends.size(), 3u) << engine.counts().waiting << " wait";
    for (int name : {0, 1}) {
      ASSERT_TRUE(ended.ends[name].error);
      EXPECT_THAT(ended.ends[name].error->what(),
                  ::testing::HasSubstr(outOfMemory ? "no memory for the next token" : "no copy"));
    }
    EXPECT_FALSE(ended.ends[2].error);
    EXPECT_EQ(ended.ends[2].text.ids(), alone({1, 2}, {.newTokens = 3}).ids());
    EXPECT_EQ(engine.counts().failed, 2);
    EXPECT_EQ(engine.counts().finished, 1);
  }
}

// Logits that are no numbers end the texts that have them, with what they had by then; who shares
// their steps goes on, and who comes later takes their slots.
TEST(BatchEngine, LogitsThatAreNoNumbersEndTheirTextsAlone) {
  constexpr int64_t kStrange = 9;  // the text has one token more by then
  FakeModel model = kModel;
  model.strangeAt = kStrange;
  Session session(fakeProgram(model));
  BatchEngine engine(contiguousSlots(session, {kFakeVocab, kModel.maxPositions}, 3, 64),
                     std::nullopt, {});
  Ended ended;
  const std::vector<std::vector<int>> prompts{{1, 2}, {3}, {4, 5, 6, 0}, {6}};
  const std::vector<int64_t> wanted{20, 4, 30, 5};
  for (size_t i = 0; i < prompts.size(); ++i)
    engine.submit(
        {.prompt = prompts[i], .options = {.newTokens = wanted[i]}, .onEnd = ended.at(int(i))});
  for (int steps = 0; steps < 200 && ended.ends.size() < prompts.size(); ++steps) engine.step();
  ASSERT_EQ(ended.ends.size(), prompts.size());
  for (size_t i = 0; i < prompts.size(); ++i) {
    SCOPED_TRACE(i);
    const TextEnd& end = ended.ends[int(i)];
    std::vector<int> ids = alone(prompts[i], {.newTokens = wanted[i]}).ids();
    const bool meets = int64_t(prompts[i].size()) + wanted[i] > kStrange + 1;
    EXPECT_EQ(end.error.has_value(), meets);
    if (meets) {
      EXPECT_THAT(end.error->what(), ::testing::HasSubstr("NaN"));
      ids.resize(size_t(kStrange) + 1 - prompts[i].size());
    }
    EXPECT_EQ(end.text.ids(), ids);
  }
  EXPECT_EQ(engine.counts().failed, 2);
  EXPECT_EQ(engine.counts().finished, 2);
  int64_t generated = 0;
  for (const auto& [name, end] : ended.ends) generated += int64_t(end.text.ids().size());
  EXPECT_EQ(engine.counts().generatedTokens, generated) << "those of texts that failed, too";
}

TEST(BatchEngine, StopLetsTextsFinishAndCutsThemAtTheDeadline) {
  for (const bool cut : {false, true}) {
    EngineOfFake e(1);
    Ended ended;
    for (int name = 0; name < 3; ++name)
      e.engine.submit({.prompt = {1}, .options = {.newTokens = 5}, .onEnd = ended.at(name)});
    e.engine.step();
    e.engine.stop(cut ? 0 : 1000);
    Refusal why{};
    EXPECT_FALSE(e.engine.submit({.prompt = {1}}, &why));
    EXPECT_EQ(why, Refusal::Stopping);
    EXPECT_EQ(e.engine.counts().refused, 1);
    e.engine.run();
    ASSERT_EQ(ended.ends.size(), 3u);
    for (auto& [name, end] : ended.ends)
      EXPECT_EQ(end.text.stopped, cut ? StopReason::Cancelled : StopReason::Length);
  }
}

// Who stops a second time may cut the texts sooner, and gives them no more time.
TEST(BatchEngine, OfSeveralStopsTheEarliestDeadlineHolds) {
  for (const auto& [first, second] : {std::pair(1000.0, 0.0), {0.0, 1000.0}}) {
    EngineOfFake e(1);
    Ended ended;
    e.engine.submit({.prompt = {1}, .options = {.newTokens = 5}, .onEnd = ended.at(0)});
    e.engine.step();
    e.engine.stop(first);
    e.engine.stop(second);
    e.engine.run();
    ASSERT_EQ(ended.ends.size(), 1u);
    EXPECT_EQ(ended.ends[0].text.stopped, StopReason::Cancelled) << first;
  }
}

TEST(BatchEngine, ManyThreadsAskOneThatSteps) {
  EngineOfFake e(4, {.maxWaiting = 1000});
  std::thread stepper([&] { e.engine.run(); });
  std::mutex mutex;
  std::map<int, TextGeneration> texts;
  std::vector<std::thread> askers;
  for (int t = 0; t < 4; ++t)
    askers.emplace_back([&, t] {
      RandomGenerator random{uint64_t(t)};
      for (int i = 0; i < 50; ++i) {
        const int name = t * 50 + i;
        TextRequest request{.prompt = {name % 7, t}, .options = {.newTokens = 7}};
        request.onEnd = [&, name](TextEnd end) {
          std::lock_guard lock(mutex);
          texts[name] = std::move(end.text);
        };
        const auto id = e.engine.submit(request);
        if (random.next() % 10 == 0) e.engine.cancel(*id);
      }
    });
  for (std::thread& asker : askers) asker.join();
  e.engine.stop(1000);
  stepper.join();
  ASSERT_EQ(texts.size(), 200u);
  for (auto& [name, text] : texts) {
    std::vector<int> expected = alone({name % 7, name / 50}, {.newTokens = 7}).ids();
    if (text.stopped == StopReason::Cancelled) expected.resize(text.tokens.size());
    EXPECT_EQ(text.ids(), expected);
  }
}

}  // namespace
}  // namespace lathe
