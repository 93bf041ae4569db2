// SPDX-License-Identifier: Apache-2.0
// The small parts of serving, number for number: sizes of passes and caches, the slot of a text,
// turns of who waits, stop texts, guesses by repetition, and what encoding may cost.
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "lathe/runtime/draft.h"
#include "lathe/runtime/kv_slots.h"
#include "runtime/block_tables.h"
#include "runtime/fair_queue.h"
#include "runtime/language_program.h"
#include "runtime/slot_choice.h"
#include "runtime/stop_finder.h"
#include "runtime/text_budget.h"
#include "tests/unit/test_files.h"

namespace lathe {
namespace {

using test::messageOf;
using Ids = std::vector<int>;
using Names = std::vector<std::string>;

//===--- sizes ------------------------------------------------------------------------------===//

TEST(PassSizes, RowsShareAPass) {
  const struct {
    int64_t chunk, rows, each;
  } sizes[] = {{512, 1, 512}, {512, 2, 256}, {512, 3, 170}, {512, 8, 64},
               {512, 9, 64},  {512, 0, 512}, {64, 4, 64},   {65, 1, 65},
               {65, 2, 64},   {32, 1, 32},   {32, 8, 32},   {1, 5, 1}};
  for (const auto& s : sizes)
    EXPECT_EQ(chunkOfRows(s.chunk, s.rows), s.each) << s.chunk << " of " << s.rows;
}

// Multiples of 64, or of what the program asks for where that does not divide 64.
TEST(PassSizes, CachesHaveRoom) {
  const struct {
    int64_t positions, most, step, capacity;
  } sizes[] = {{1, 256, 1, 64},    {64, 256, 1, 64},  {65, 256, 1, 128},   {256, 256, 1, 256},
               {193, 200, 1, 200}, {1, 10, 1, 10},    {65, 256, 32, 128},  {65, 256, 64, 128},
               {1, 256, 48, 48},   {49, 256, 48, 96}, {240, 256, 48, 240}, {65, 256, 128, 128},
               {1, 100, 16, 64},   {96, 100, 16, 96}};
  for (const auto& s : sizes)
    EXPECT_EQ(capacityFor(s.positions, s.most, s.step), s.capacity)
        << s.positions << " of " << s.most << " by " << s.step;
  for (int64_t positions : {0, 257})
    EXPECT_EQ(
        messageOf([&] { capacityFor(positions, 256, 1); }),
        "expected from 1 to 256 positions, the model's maximum, got " + std::to_string(positions));
  EXPECT_EQ(messageOf([] { capacityFor(241, 256, 48); }),
            "expected at most 240 positions, got 241");
}

TEST(PassSizes, MistakesAreToldWithTheirNumbers) {
  EXPECT_EQ(expectedIn("tokens", 1, 4), 1);
  EXPECT_EQ(expectedIn("tokens", 4, 4), 4);
  EXPECT_EQ(messageOf([] { expectedIn("tokens", 0, 4); }), "expected from 1 to 4 tokens, got 0");
  EXPECT_EQ(messageOf([] { expectedIn("rows", 5, 4); }), "expected from 1 to 4 rows, got 5");
  const std::vector<int64_t> slots{3, 1};
  EXPECT_NO_THROW(checkOneEach(slots, Ids{7, 7}));
  EXPECT_EQ(messageOf([&] { checkOneEach(slots, Ids{7}); }),
            "expected a token for each of 2 slots, got 1");
  EXPECT_EQ(messageOf([&] { checkOneEach({}, {}); }),
            "expected a token for each of 0 slots, got 0");
  EXPECT_NO_THROW(checkRoom(2, 6, 4, 10));
  EXPECT_EQ(messageOf([] { checkRoom(2, 7, 4, 10); }),
            "slot 2: 4 tokens at position 7 end past the 10 positions that it has");
  EXPECT_NO_THROW(checkIds(Ids{0, 9}, 10));
  EXPECT_EQ(messageOf([] { checkIds(Ids{0, 10}, 10); }),
            "token 1: expected an id from 0 to 9, got 10");
  EXPECT_EQ(messageOf([] { checkIds(Ids{-1}, 10); }),
            "token 0: expected an id from 0 to 9, got -1");
}

//===--- the slot of a text -----------------------------------------------------------------===//

class HeldSlots final : public KvSlots {
 public:
  explicit HeldSlots(std::vector<Ids> held, int64_t blockTokens = 0)
      : held_(std::move(held)), blocks_{.tokens = blockTokens} {}
  int64_t slots() const override { return int64_t(held_.size()); }
  int64_t vocab() const override { return 100; }
  int64_t positions() const override { return 100; }
  int64_t maxChunk() const override { return 100; }
  std::span<const int> ids(int64_t slot) const override { return held_[size_t(slot)]; }
  bool begin(int64_t, int64_t, int64_t, int64_t) override { return true; }
  void end(int64_t) override {}
  void clear(int64_t) override {}
  std::span<const float> prefill(int64_t, std::span<const int>) override { return {}; }
  std::span<const float> next(std::span<const int64_t>, std::span<const int>) override {
    return {};
  }
  KvBlocks blocks() const override { return blocks_; }

 private:
  std::vector<Ids> held_;
  KvBlocks blocks_;
};

// The first `count` numbers, and then others.
Ids numbers(int count, int others = 0) {
  Ids ids;
  for (int i = 0; i < count; ++i) ids.push_back(i + 1);
  for (int i = 0; i < others; ++i) ids.push_back(90);
  return ids;
}

TEST(SlotChoices, OfRowsTakeWhatHoldsMostOfThePrompt) {
  const Ids prompt = numbers(40);
  HeldSlots slots({numbers(15), numbers(16, 4), numbers(17, 4), {}});
  SlotChoice choice(slots);
  EXPECT_EQ(choice.choose(prompt, {}, -1), 2);
  EXPECT_EQ(choice.choose(prompt, {}, 2), 1) << "16 tokens are worth it";
  EXPECT_EQ(choice.choose(prompt, std::vector<int64_t>{1, 2}, -1), 0) << "15 are not";
  EXPECT_EQ(choice.choose(prompt, std::vector<int64_t>{1, 2}, 0), 3);
  EXPECT_EQ(choice.choose(prompt, std::vector<int64_t>{0, 1, 2}, 3), -1);
  HeldSlots few({{}, numbers(15)});
  EXPECT_EQ(SlotChoice(few).choose(prompt, {}, -1), 0) << "fifteen are as good as none";
  // Nothing is held: near those that run, then the one that has rested longest.
  HeldSlots empty(std::vector<Ids>(6));
  SlotChoice rest(empty);
  EXPECT_EQ(rest.choose(prompt, {}, -1), 0);
  rest.noteUse(0);
  rest.noteUse(1);
  EXPECT_EQ(rest.choose(prompt, {}, -1), 2);
  EXPECT_EQ(rest.choose(prompt, std::vector<int64_t>{4}, -1), 3);
  rest.noteUse(3);
  EXPECT_EQ(rest.choose(prompt, std::vector<int64_t>{4}, -1), 5);
  EXPECT_EQ(rest.choose(prompt, std::vector<int64_t>{2, 4}, -1), 3) << "between them";
}

TEST(SlotChoices, OfBlocksLoseLeast) {
  const Ids prompt = numbers(40);
  HeldSlots slots({numbers(5, 1), numbers(3), numbers(7), {}, numbers(41)}, 4);
  SlotChoice choice(slots);
  // Slot 2 goes on from all of its seven tokens; slot 4 holds one more than the prompt.
  EXPECT_EQ(choice.choose(prompt, {}, -1), 2);
  EXPECT_EQ(choice.choose(prompt, {}, 2), 1);
  EXPECT_EQ(choice.choose(prompt, std::vector<int64_t>{1, 2}, -1), 3) << "the empty one";
  choice.noteUse(0);
  EXPECT_EQ(choice.choose(prompt, std::vector<int64_t>{1, 2, 3}, -1), 4);
  choice.noteUse(4);
  EXPECT_EQ(choice.choose(prompt, std::vector<int64_t>{1, 2, 3}, -1), 0);
}

TEST(SlotChoices, OfEmptyBlocksRestLongest) {
  HeldSlots slots(std::vector<Ids>(2), 4);
  SlotChoice choice(slots);
  choice.noteUse(0);
  EXPECT_EQ(choice.choose(numbers(40), {}, -1), 1);
}

TEST(SlotChoices, BeginningsAreCopiedWhereTheyAreLongerBySixteen) {
  const Ids prompt = numbers(40);
  auto beginning = [&](std::vector<Ids> held, int64_t slot, const Ids& of) {
    HeldSlots slots(std::move(held));
    const SlotChoice::Beginning b = SlotChoice(slots).beginning(of, slot);
    return std::pair(b.slot, b.length);
  };
  using Pair = std::pair<int64_t, int64_t>;
  EXPECT_EQ(beginning({numbers(4, 1), numbers(19)}, 0, prompt), Pair(0, 4));
  EXPECT_EQ(beginning({numbers(4, 1), numbers(20)}, 0, prompt), Pair(1, 20));
  EXPECT_EQ(beginning({{}, numbers(20), numbers(35)}, 0, prompt), Pair(1, 20));
  EXPECT_EQ(beginning({{}, numbers(20), numbers(36)}, 0, prompt), Pair(2, 36));
  // The last token is read for its logits.
  EXPECT_EQ(beginning({numbers(40)}, 0, prompt), Pair(0, 39));
  EXPECT_EQ(beginning({{}, numbers(50)}, 0, prompt), Pair(1, 39));
  EXPECT_EQ(beginning({numbers(5)}, 0, Ids{1}), Pair(0, 0));
}

//===--- blocks -----------------------------------------------------------------------------===//

TEST(BlockCounts, AreUsedOrSetAside) {
  BlockTables tables(2, 5, 4);
  auto counts = [&] {
    const KvBlocks b = tables.counts();
    return std::vector<int64_t>{b.tokens, b.all, b.used, b.set};
  };
  EXPECT_EQ(counts(), (std::vector<int64_t>{4, 5, 0, 0}));
  EXPECT_TRUE(tables.begin(0, 0, 0, 9).hasRoom);
  EXPECT_EQ(counts(), (std::vector<int64_t>{4, 5, 0, 3}));
  EXPECT_EQ(tables.room(0), 12);
  tables.grow(0, 4);
  EXPECT_EQ(counts(), (std::vector<int64_t>{4, 5, 1, 2}));
  tables.append(0, numbers(4));
  tables.grow(0, 1);
  EXPECT_EQ(counts(), (std::vector<int64_t>{4, 5, 2, 1}));
  EXPECT_FALSE(tables.begin(1, 1, 0, 9).hasRoom) << "two of five are left";
  EXPECT_TRUE(tables.begin(1, 1, 0, 8).hasRoom);
  EXPECT_EQ(messageOf([&] { tables.begin(1, 1, 0, 4); }),
            "slot 1: expected one without a running text");
  tables.end(1);
  EXPECT_EQ(counts(), (std::vector<int64_t>{4, 5, 2, 1}));
  // A block that is copied is one of those that were set aside.
  ASSERT_TRUE(tables.begin(1, 0, 3, 7).copy);
  EXPECT_EQ(counts(), (std::vector<int64_t>{4, 5, 3, 2}));
  EXPECT_EQ(tables.room(1), 8);
  tables.end(1);
  EXPECT_EQ(messageOf([&] { tables.begin(1, 0, 5, 8); }),
            "expected from 0 to 4 tokens to go on from, and room for them, got 5 and room for 8");
  EXPECT_EQ(messageOf([&] { tables.begin(1, 0, 4, 3); }),
            "expected from 0 to 4 tokens to go on from, and room for them, got 4 and room for 3");
}

//===--- turns ------------------------------------------------------------------------------===//

TEST(FairQueues, NamesOfEachLevelTakeTurns) {
  FairQueue<int> queue;
  EXPECT_TRUE(queue.empty());
  const Names a1{"a", "1"}, a2{"a", "2"}, b1{"b", "1"};
  for (int i : {11, 12, 13}) queue.push(a1, i);
  queue.push(a2, 21);
  for (int i : {31, 32}) queue.push(b1, i);
  EXPECT_EQ(queue.size(), 6u);
  Ids order;
  while (!queue.empty()) {
    const int front = queue.front();
    order.push_back(queue.pop());
    EXPECT_EQ(front, order.back());
  }
  EXPECT_EQ(order, (Ids{11, 31, 21, 32, 12, 13}));
  EXPECT_EQ(queue.size(), 0u);
}

TEST(FairQueues, PlacesAreKeptForWhoComesNext) {
  FairQueue<int> queue;
  const Names a{"a", "x"}, b{"b", "x"};
  // Of eight places one name has at most half.
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(queue.crowded(a, 8), i < 3 ? std::nullopt : std::optional<size_t>(2)) << i;
    queue.push(a, i);
  }
  EXPECT_EQ(queue.crowded(a, 8), 1u);
  EXPECT_EQ(queue.crowded(b, 8), std::nullopt);
  queue.push(b, 5);
  queue.push(b, 6);
  EXPECT_EQ(queue.crowded(b, 8), 1u) << "as many as are free";
  queue.push({}, 7);
  EXPECT_EQ(queue.crowded({}, 8), std::nullopt);
  queue.push({}, 8);
  EXPECT_EQ(queue.crowded({}, 8), 0u);
  EXPECT_EQ(queue.crowded(Names{"new"}, 8), 0u);
  EXPECT_EQ(queue.extract([](int i) { return i % 2 == 1; }), (Ids{1, 3, 5, 7}));
  EXPECT_EQ(queue.size(), 4u);
}

//===--- stops ------------------------------------------------------------------------------===//

TEST(StopFinders, HoldBackNoMoreThanMayBeginAStop) {
  StopFinder finder({"abc", "bcd"});
  EXPECT_EQ(finder.push("xab"), "x");
  EXPECT_EQ(finder.push("bc"), "ab");
  EXPECT_FALSE(finder.found());
  EXPECT_EQ(finder.push("xa"), "bcx");
  EXPECT_EQ(finder.push("bcd"), "");
  EXPECT_TRUE(finder.found());
  EXPECT_EQ(finder.push("more"), "");
  EXPECT_EQ(finder.finish(), "");
  StopFinder open({"ab"});
  EXPECT_EQ(open.push("a"), "");
  EXPECT_EQ(open.finish(), "a");
  EXPECT_EQ(open.finish(), "");
  EXPECT_EQ(StopFinder({}).push("abc"), "abc");
  EXPECT_EQ(messageOf([] { StopFinder({"a", ""}); }), "expected a stop text, got an empty one");
}

//===--- guesses ----------------------------------------------------------------------------===//

TEST(NgramDrafters, GoOnAsTheTextDidBefore) {
  auto propose = [](int64_t longest, const Ids& prompt, int64_t count) {
    NgramDrafter drafter(longest);
    drafter.start(prompt, 100, 1);
    Ids ids;
    for (const Draft& draft : drafter.propose(count)) {
      ids.push_back(draft.id);
      EXPECT_TRUE(draft.from.empty());
    }
    return ids;
  };
  EXPECT_EQ(propose(2, {1, 2, 3, 4, 1, 2}, 3), (Ids{3, 4, 1}));
  EXPECT_EQ(propose(2, {1, 2, 3, 4, 1, 2}, 9), (Ids{3, 4, 1, 2}));
  EXPECT_EQ(propose(2, {1, 2, 3}, 3), Ids());
  EXPECT_EQ(propose(2, {1, 2, 3}, 0), Ids());
  EXPECT_EQ(propose(2, {}, 3), Ids());
  // The longest end that came before, and of its places the last.
  EXPECT_EQ(propose(2, {1, 2, 7, 5, 2, 8, 1, 2}, 1), Ids{7});
  EXPECT_EQ(propose(1, {1, 2, 7, 5, 2, 8, 1, 2}, 1), Ids{8});
  EXPECT_EQ(propose(3, {9, 2, 7, 5, 2, 8, 1, 2}, 1), Ids{8});
  // Ids that are as small as lengths of ends are told from them.
  NgramDrafter drafter(2);
  drafter.start(Ids{1, 2}, 9, 1);
  drafter.accept(1);
  ASSERT_EQ(drafter.propose(5).size(), 2u);
  EXPECT_EQ(drafter.propose(5)[0].id, 2);
  drafter.start(Ids{5}, 9, 1);
  EXPECT_TRUE(drafter.propose(5).empty()) << "another text";
  drafter.start(Ids{5, 6, 7, 1}, 9, 1);
  EXPECT_TRUE(drafter.propose(5).empty()) << "places of an earlier text";
  for (int64_t longest : {0, 9})
    EXPECT_EQ(messageOf([&] { NgramDrafter made(longest); }),
              "NgramDrafter: expected from 1 to 8 tokens, got " + std::to_string(longest));
  EXPECT_NO_THROW(NgramDrafter(8));
}

//===--- what encoding may cost -------------------------------------------------------------===//

TEST(TextBudgets, AreLinearInTheText) {
  TextBudget budget(10);
  EXPECT_EQ(budget.textBytes(), 10u);
  const size_t bytes = (1 << 20) + 640;
  EXPECT_NO_THROW(budget.makeBytes(bytes - 1, "f: x"));
  EXPECT_NO_THROW(budget.makeBytes(1, "f: x"));
  EXPECT_EQ(messageOf([&] { budget.makeBytes(1, "f: x"); }),
            "f: x: makes more than 1 MiB and 64 bytes for each byte out of a text of 10 bytes");
  EXPECT_TRUE(budget.retry(10'000'000));
  EXPECT_TRUE(budget.retry(640));
  EXPECT_FALSE(budget.retry(1));
  TextBudget other(0);
  EXPECT_FALSE(other.retry(10'000'001));
  EXPECT_FALSE(other.retry(1)) << "spent";
  EXPECT_FALSE(other.isLate());
}

}  // namespace
}  // namespace lathe
