// SPDX-License-Identifier: Apache-2.0
// An engine over a cache in blocks: texts that come and go are what they are alone, beginnings are
// shared, and who finds no room waits. The model is a function of its cache.
#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <set>
#include <thread>

#include <gmock/gmock.h>

#include "lathe/runtime/batch_engine.h"
#include "lathe/runtime/communicator.h"
#include "tests/unit/fake_language_model.h"
#include "tests/unit/runtime/slots_that_fail.h"
#include "tests/unit/test_files.h"

namespace lathe {
namespace {

using test::expectError;
using test::FakeModel;
using test::fakeProgram;
using test::kFakeVocab;
using ::testing::ElementsAre;

constexpr int64_t kPositions = 64;
constexpr GeneratorLimits kLimits{kFakeVocab, kPositions};

FakeModel modelOf(int64_t block) {
  return {.seed = 22, .maxPositions = kPositions, .block = block};
}

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

struct PagedEngine {
  PagedEngine(int64_t block, int64_t slots, int64_t tokens = 0,
              const BatchEngineOptions& options = {})
      : session(fakeProgram(modelOf(block))),
        engine(pagedSlots(session, kLimits, slots, kPositions, tokens), std::nullopt, options) {}
  void finish() {
    while (engine.step()) {
    }
  }
  Session session;
  BatchEngine engine;
};

std::vector<int> alone(const std::vector<int>& prompt, const TextGenerationOptions& options) {
  Session session(fakeProgram(modelOf(0)));
  Generator generator(session, kLimits);
  return generateText(generator, std::nullopt, prompt, options).ids();
}

std::vector<int> someText(int64_t length) {
  std::vector<int> text;
  for (int64_t i = 0; i < length; ++i) text.push_back(int(i * i % 7));
  return text;
}

// A block has as many tokens as the program says, and not more than positions can be counted by.
TEST(PagedSlots, BlocksHaveAKnownNumberOfTokens) {
  for (const DimExpr& tokens : {DimExpr::symbol("seq"), DimExpr(kMostBlockTokens + 1)}) {
    Program program = fakeProgram(modelOf(4));
    program.states[0].shape[2] = tokens;
    Session session(std::move(program));
    expectError(ErrorCode::InvalidArgument,
                "expected states [blocks, heads, tokens of a block, depth]",
                [&] { pagedSlots(session, kLimits, 2, kPositions, 0); });
  }
}

TEST(PagedSlots, TextsThatComeAndGoAreWhatTheyAreAlone) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    RandomGenerator random(seed);
    const int64_t block = std::vector<int64_t>{1, 3, 4, 16}[seed % 4];
    // Room for one whole text at least, and for less than all of them at the end.
    const int64_t tokens = seed % 2 ? 0 : 80 + int64_t(random.next() % 80);
    PagedEngine e(block, 1 + int64_t(seed % 5), tokens,
                  {.maxWaiting = 100, .chunkWhileRunning = 3});
    Ended ended;
    std::vector<TextRequest> asked;
    std::vector<int> cancelled;
    std::map<int, uint64_t> ids;
    for (int name = 0; name < 40; ++name) {
      TextRequest request;
      if (name > 3 && random.next() % 2 == 0) {
        request.prompt = asked[random.next() % asked.size()].prompt;
        if (random.next() % 2) request.prompt.push_back(int(random.next() % kFakeVocab));
      } else {
        request.prompt.resize(1 + size_t(random.next() % 40));
        for (int& id : request.prompt) id = int(random.next() % kFakeVocab);
      }
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
      std::vector<int> expected = alone(asked[size_t(name)].prompt, asked[size_t(name)].options);
      EXPECT_FALSE(end.error);
      if (end.text.stopped == StopReason::Cancelled) {
        EXPECT_THAT(cancelled, ::testing::Contains(name));
        expected.resize(end.text.tokens.size());
      }
      EXPECT_EQ(end.text.ids(), expected) << "seed " << seed << ", text " << name;
    }
    const BatchEngineCounts counts = e.engine.counts();
    EXPECT_EQ(counts.finished + counts.cancelled, 40);
    EXPECT_EQ(counts.running + counts.waiting + counts.failed + counts.refused, 0);
    EXPECT_EQ(counts.blocks.set, 0);
    EXPECT_LE(counts.blocks.used, counts.blocks.all);
    EXPECT_EQ(e.session.memory().states, counts.blocks.all * block * int64_t(sizeof(float)));
  }
}

// A system prompt of 32 tokens and four questions: its blocks are there once.
TEST(PagedSlots, ACommonBeginningIsStoredOnce) {
  PagedEngine e(4, 4);
  EXPECT_GT(e.engine.counts().blocks.all, 0) << "they are there before the first step";
  Ended ended;
  std::vector<std::vector<int>> prompts;
  for (int name = 0; name < 4; ++name) {
    std::vector<int> prompt = someText(32);
    for (int i = 0; i < 3; ++i) prompt.push_back((name + i) % 7);
    e.engine.submit({.prompt = prompt, .options = {.newTokens = 20}, .onEnd = ended.at(name)});
    e.engine.step();
    prompts.push_back(prompt);
  }
  const BatchEngineCounts counts = e.engine.counts();
  EXPECT_EQ(counts.running, 4);
  EXPECT_EQ(counts.reusedTokens, 3 * 32);
  // Eight in common, and two or fewer of each text's own: 35 tokens of the prompt, and a few more.
  EXPECT_GE(counts.blocks.used, 8 + 4);
  EXPECT_LE(counts.blocks.used, 8 + 4 * 2);
  e.finish();
  for (int name = 0; name < 4; ++name)
    EXPECT_EQ(ended.ends[name].text.ids(), alone(prompts[size_t(name)], {.newTokens = 20}));
}

// A beginning that ends inside of a block is copied where the new text goes on in it.
TEST(PagedSlots, AnotherWayOnLeavesTheFirstTextAsItIs) {
  PagedEngine e(16, 2);
  Ended ended;
  std::vector<int> first = someText(30), second = first;
  second.resize(24);
  second.push_back(6);
  e.engine.submit({.prompt = first, .options = {.newTokens = 30}, .onEnd = ended.at(0)});
  for (int i = 0; i < 5; ++i) e.engine.step();
  e.engine.submit({.prompt = second, .options = {.newTokens = 20}, .onEnd = ended.at(1)});
  e.finish();
  EXPECT_EQ(ended.ends[1].reusedTokens, 24);
  EXPECT_EQ(ended.ends[0].text.ids(), alone(first, {.newTokens = 30}));
  EXPECT_EQ(ended.ends[1].text.ids(), alone(second, {.newTokens = 20}));
}

// A short beginning in common does not cost the text that has it: there are other slots.
TEST(PagedSlots, ATextStaysWhereAnotherBeginsAsItDoes) {
  constexpr FakeModel kLong{.seed = 22, .maxPositions = 512, .block = 16};
  Session session(fakeProgram(kLong));
  BatchEngine engine(pagedSlots(session, {kFakeVocab, 512}, 4, 512), std::nullopt, {});
  Ended ended;
  const std::vector<int> a = someText(440);
  std::vector<int> b(a.begin(), a.begin() + 40);
  b.resize(100, 6);
  int name = 0;
  for (const std::vector<int>& prompt : {a, b, a}) {
    engine.submit({.prompt = prompt, .options = {.newTokens = 4}, .onEnd = ended.at(name++)});
    while (engine.step()) {
    }
  }
  EXPECT_EQ(ended.ends[1].reusedTokens, 40);
  EXPECT_EQ(ended.ends[2].reusedTokens, 439);
  EXPECT_EQ(ended.ends[2].text.ids(), ended.ends[0].text.ids());
}

// A text that goes on does so in its slot; one that begins anew takes that of the oldest.
TEST(PagedSlots, TheSlotThatLosesLeastIsTaken) {
  PagedEngine e(4, 2);
  Ended ended;
  int name = 0;
  auto ask = [&](const std::vector<int>& prompt) {
    e.engine.submit({.prompt = prompt, .options = {.newTokens = 4}, .onEnd = ended.at(name)});
    e.finish();
    EXPECT_EQ(ended.ends[name].text.ids(), alone(prompt, {.newTokens = 4})) << name;
    return ended.ends[name++].reusedTokens;
  };
  const std::vector<int> a = someText(30), b(30, 3);
  EXPECT_EQ(ask(a), 0);
  EXPECT_EQ(ask(b), 0);
  // A goes on twice: where it took B's slot the first time, B would be gone.
  std::vector<int> more = a;
  for (int64_t held : {33, 37}) {
    for (int id : ended.ends[name == 2 ? 0 : 2].text.ids()) more.push_back(id);
    EXPECT_EQ(ask(more), held);
  }
  EXPECT_EQ(ask(b), 29);
  // Both slots hold texts, and that of B is the younger one.
  EXPECT_EQ(ask(std::vector<int>(20, 5)), 0);
  EXPECT_EQ(ask(b), 29);
}

// The last token that is drawn is not read: it needs no place in the cache.
TEST(PagedSlots, RoomIsForTheTokensThatAreRead) {
  for (auto [length, blocks] : {std::pair<int64_t, int64_t>{17, 2}, {18, 3}}) {
    PagedEngine e(16, 2);
    Ended ended;
    const std::vector<int> prompt = someText(length);
    e.engine.submit({.prompt = prompt, .options = {.newTokens = 16}, .onEnd = ended.at(0)});
    e.engine.step();
    EXPECT_EQ(e.engine.counts().blocks.used + e.engine.counts().blocks.set, blocks) << length;
    e.finish();
    EXPECT_EQ(ended.ends[0].text.ids(), alone(prompt, {.newTokens = 16}));
  }
}

TEST(PagedSlots, WhoFindsNoRoomWaits) {
  PagedEngine e(8, 3, 64);
  Ended ended;
  // Five blocks, then four: the second waits, and the third, which would fit, does not pass it.
  e.engine.submit({.prompt = {1}, .options = {.newTokens = 39}, .onEnd = ended.at(0)});
  e.engine.submit({.prompt = {2}, .options = {.newTokens = 31}, .onEnd = ended.at(1)});
  e.engine.submit({.prompt = {3}, .options = {.newTokens = 2}, .onEnd = ended.at(2)});
  e.engine.step();
  EXPECT_EQ(e.engine.counts().running, 1);
  EXPECT_EQ(e.engine.counts().waiting, 2);
  EXPECT_EQ(e.engine.counts().blocks.all, 8);
  EXPECT_EQ(e.engine.counts().blocks.used + e.engine.counts().blocks.set, 5);
  while (ended.ends.empty()) e.engine.step();
  e.engine.step();
  EXPECT_GE(e.engine.counts().finished + e.engine.counts().running, 3);
  e.finish();
  EXPECT_EQ(ended.order.front(), 0);
  EXPECT_EQ(ended.ends[1].text.ids(), alone({2}, {.newTokens = 31}));
  EXPECT_EQ(ended.ends[2].text.ids(), alone({3}, {.newTokens = 2}));
}

// Who waits for room is cancelled, and cut off, as others are.
TEST(PagedSlots, WhoWaitsForRoomCanBeCancelled) {
  for (const bool stops : {false, true}) {
    PagedEngine e(8, 2, 64);
    Ended ended;
    e.engine.submit({.prompt = {1}, .options = {.newTokens = 60}, .onEnd = ended.at(0)});
    const auto id =
        e.engine.submit({.prompt = {2}, .options = {.newTokens = 30}, .onEnd = ended.at(1)});
    e.engine.step();
    if (stops)
      e.engine.stop(0);
    else
      e.engine.cancel(*id);
    e.finish();
    EXPECT_EQ(ended.ends[1].text.stopped, StopReason::Cancelled);
    EXPECT_EQ(ended.ends[0].text.stopped, stops ? StopReason::Cancelled : StopReason::Length);
    EXPECT_EQ(e.engine.counts().blocks.set, 0);
  }
}

// What was left over is given up for a text that needs the room, and the text is right.
TEST(PagedSlots, OldTextsMakeRoom) {
  PagedEngine e(4, 3, 64);
  Ended ended;
  for (int name = 0; name < 12; ++name) {
    const std::vector<int> prompt(size_t(20 + name), name % 7);
    e.engine.submit({.prompt = prompt, .options = {.newTokens = 25}, .onEnd = ended.at(name)});
    e.finish();
    EXPECT_EQ(ended.ends[name].text.ids(), alone(prompt, {.newTokens = 25})) << name;
    EXPECT_LE(e.engine.counts().blocks.used, 16);
  }
}

TEST(PagedSlots, RefusesMistakes) {
  auto slots = [](int64_t count, int64_t positions, int64_t tokens) {
    Session session(fakeProgram(modelOf(4)));
    pagedSlots(session, kLimits, count, positions, tokens);
  };
  using enum ErrorCode;
  expectError(InvalidArgument, "expected from 1 to 8 texts at once, got 9",
              [&] { slots(9, 64, 0); });
  expectError(InvalidArgument, "expected from 1 to 64 positions, got 65", [&] { slots(1, 65, 0); });
  expectError(InvalidArgument, "expected from 1 to 512 tokens in the cache, got 513",
              [&] { slots(1, 64, 513); });
  // Two texts of all positions, where the program has a block too few.
  {
    Program wide = fakeProgram(modelOf(4));
    for (SymbolInfo& symbol : wide.symbols)
      if (symbol.name == "blocks") symbol.hi = 31;
    Session session(std::move(wide));
    expectError(InvalidArgument, "expected from 1 to 31 blocks, got 32",
                [&] { pagedSlots(session, kLimits, 2, 64); });
  }
  Session contiguous(fakeProgram(modelOf(0))), paged(fakeProgram(modelOf(4)));
  EXPECT_FALSE(hasPagedCache(contiguous.program()));
  EXPECT_TRUE(hasPagedCache(paged.program()));
  expectError(InvalidArgument, "block_table i64 [batch, entries]",
              [&] { pagedSlots(contiguous, kLimits, 1, 64); });
  expectError(InvalidArgument, "its cache is in blocks, which `lathe serve` runs",
              [&] { contiguousSlots(paged, kLimits, 1, 64); });
  expectError(InvalidArgument, "its cache is in blocks, which `lathe serve` runs",
              [&] { Generator(paged, kLimits); });
  // A cache of fewer tokens than a text may have: texts are shorter.
  auto small = pagedSlots(paged, kLimits, 2, 64, 20);
  EXPECT_EQ(small->positions(), 20);
  ASSERT_TRUE(small->begin(0, 0, 0, 4));
  const std::vector<int> five(5, 1);
  expectError(InvalidArgument, "slot 0: 5 tokens at position 0 end past the 4 positions",
              [&] { small->prefill(0, five); });
  PagedEngine e(4, 2, 20);
  expectError(InvalidArgument, "the prompt has 21 tokens, the model takes at most 20",
              [&] { e.engine.submit({.prompt = std::vector<int>(21, 1)}); });
}

// Both kinds of caches: ids that belong to no slot would be written past what a run is given.
TEST(PagedSlots, CallsHaveATokenForEachSlotAndAChunkHasTokens) {
  for (int64_t block : {0, 4}) {
    Session session(fakeProgram(modelOf(block)));
    auto slots = block ? pagedSlots(session, kLimits, 2, kPositions)
                       : contiguousSlots(session, kLimits, 2, kPositions);
    for (int64_t slot : {0, 1}) {
      ASSERT_TRUE(slots->begin(slot, slot, 0, kPositions));
      slots->prefill(slot, std::vector<int>{1, 2});
    }
    EXPECT_EQ(slots->maxChunk(), 64);
    for (int64_t tokens : {0, 65})
      expectError(ErrorCode::InvalidArgument,
                  "expected from 1 to 64 tokens, got " + std::to_string(tokens),
                  [&] { slots->prefill(0, std::vector<int>(size_t(tokens), 1)); });
    const std::vector<int64_t> both{0, 1};
    for (size_t tokens : {0, 1, 3, 4})
      expectError(ErrorCode::InvalidArgument,
                  "expected a token for each of 2 slots, got " + std::to_string(tokens),
                  [&] { slots->next(both, std::vector<int>(tokens, 1)); });
    expectError(ErrorCode::InvalidArgument, "expected a token for each of 0 slots, got 0",
                [&] { slots->next({}, {}); });
    for (int64_t slot : both) EXPECT_THAT(slots->ids(slot), ElementsAre(1, 2)) << block;
  }
}

// A table is as wide as a text may be long, not as the model could be.
class WidthDevice final : public Device {
 public:
  explicit WidthDevice(std::set<int64_t>& widths) : widths_(widths) {}
  std::unique_ptr<Kernel> makeKernel(const Program&, const EntryPoint&, const Call&) override {
    return std::make_unique<WidthKernel>(widths_);
  }

 private:
  struct WidthKernel final : Kernel {
    explicit WidthKernel(std::set<int64_t>& widths) : widths(widths) {}
    size_t bind(const KernelShapes& shapes) override {
      widths.insert(shapes.shapes[2][1]);
      return inner.bind(shapes);
    }
    void run(void* const* pointers, std::byte* scratch) override { inner.run(pointers, scratch); }
    std::set<int64_t>& widths;
    test::FakeKernel inner{modelOf(4), false};
  };
  std::set<int64_t>& widths_;
};

TEST(PagedSlots, TablesAreAsWideAsTextsMayBeLong) {
  static std::set<int64_t> widths;
  Program program = fakeProgram(modelOf(4));
  program.backend = "fake-table-widths";
  registerDevice(program.backend, [](std::shared_ptr<const Program>, const DeviceOptions&) {
    return std::make_unique<WidthDevice>(widths);
  });
  const auto shared = std::make_shared<const Program>(std::move(program));
  const std::vector<int> five(5, 1);
  for (auto [positions, tokens, width] :
       {std::array<int64_t, 3>{64, 0, 16}, {30, 0, 8}, {64, 18, 5}, {64, 100, 16}}) {
    widths.clear();
    Session session(shared);
    auto slots = pagedSlots(session, kLimits, 2, positions, tokens);
    ASSERT_TRUE(slots->begin(0, 0, 0, 8));
    slots->prefill(0, five);
    slots->next(std::vector<int64_t>{0}, std::vector<int>{2});
    EXPECT_EQ(widths, std::set<int64_t>{width}) << positions << " positions, " << tokens;
  }
}

// A text may be shorter than its last block.
TEST(PagedSlots, PositionsAmidABlockAreTheLast) {
  Session session(fakeProgram(modelOf(4)));
  auto slots = pagedSlots(session, kLimits, 2, 6);
  EXPECT_EQ(slots->blocks().all, 4);
  for (int64_t slot : {0, 1}) {
    ASSERT_TRUE(slots->begin(slot, slot, 0, 1000)) << "no more than it may have";
    slots->prefill(slot, std::vector<int>(5, 1));
    expectError(ErrorCode::InvalidArgument, "2 tokens at position 5 end past the 6 positions",
                [&] { slots->prefill(slot, std::vector<int>(2, 1)); });
    slots->next(std::vector<int64_t>{slot}, std::vector<int>{2});
    expectError(ErrorCode::InvalidArgument, "1 tokens at position 6 end past the 6 positions",
                [&] { slots->next(std::vector<int64_t>{slot}, std::vector<int>{2}); });
  }
}

TEST(PagedSlots, LimitsAreThoseOfTheProgram) {
  Session contiguous(fakeProgram(modelOf(0))), paged(fakeProgram(modelOf(10)));
  EXPECT_EQ(kvLimits(contiguous, kLimits).positions, 64);
  EXPECT_EQ(kvLimits(paged, kLimits).positions, 64);
  EXPECT_EQ(kvLimits(paged, {kFakeVocab, 1000}).positions, 70);
  EXPECT_EQ(kvLimits(paged, kLimits).slots, 8);
}

// A block that could not be copied: no text runs in the slot, which has nothing.
TEST(PagedSlots, ACopyThatFailsLeavesTheSlotFree) {
  Session session(fakeProgram(modelOf(16)));
  auto slots = pagedSlots(session, kLimits, 2, kPositions);
  const std::vector<int> text = someText(24);
  ASSERT_TRUE(slots->begin(0, 0, 0, 24));
  slots->prefill(0, text);
  const Array cache = session.state("k");
  session.setState("k", Array(DType::F32, {1, 1, 16, 1}));  // the second block is not there
  expectError(ErrorCode::InvalidArgument, "copyStateBlock: expected one of 1 rows",
              [&] { slots->begin(1, 0, 20, 40); });
  EXPECT_TRUE(slots->ids(1).empty());
  EXPECT_EQ(slots->blocks().used, 2);
  EXPECT_EQ(slots->blocks().set, 0);
  session.setState("k", cache);
  ASSERT_TRUE(slots->begin(1, 0, 20, 40));
  EXPECT_THAT(slots->ids(1), ::testing::ElementsAreArray(std::span(text).first(20)));
  EXPECT_THAT(slots->ids(0), ::testing::ElementsAreArray(text));
}

// A call that failed leaves nothing that is relied on.
TEST(PagedSlots, AFailureEmptiesTheSlots) {
  Session session(fakeProgram(modelOf(4)));
  auto failing =
      std::make_unique<test::SlotsThatFail>(pagedSlots(session, kLimits, 2, kPositions), 0, false);
  test::SlotsThatFail& model = *failing;
  BatchEngine engine(std::move(failing), std::nullopt, {});
  auto finish = [&] {
    while (engine.step()) {
    }
  };
  Ended ended;
  const std::vector<int> prompt(30, 1);
  engine.submit({.prompt = prompt, .options = {.newTokens = 4}, .onEnd = ended.at(0)});
  finish();
  EXPECT_GT(engine.counts().blocks.used, 0);
  model.failsToRead = true;
  engine.submit({.prompt = {2}, .onEnd = ended.at(1)});
  finish();
  ASSERT_TRUE(ended.ends[1].error);
  EXPECT_EQ(engine.counts().blocks.used, 0);
  model.failsToRead = false;
  engine.submit({.prompt = prompt, .options = {.newTokens = 4}, .onEnd = ended.at(2)});
  finish();
  EXPECT_EQ(ended.ends[2].reusedTokens, 0);
  EXPECT_EQ(ended.ends[2].text.ids(), ended.ends[0].text.ids());
}

}  // namespace
}  // namespace lathe
