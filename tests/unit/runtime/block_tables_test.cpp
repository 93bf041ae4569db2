// SPDX-License-Identifier: Apache-2.0
// Blocks of texts against a memory: whatever begins, goes on, shares and ends, the blocks of a text
// hold its tokens, and nobody writes where another one reads.
#include "runtime/block_tables.h"

#include <algorithm>
#include <map>
#include <set>

#include <gmock/gmock.h>

#include "lathe/runtime/sampler.h"
#include "tests/unit/test_files.h"

namespace lathe {
namespace {

using test::expectError;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

constexpr int64_t kTokens = 4;

// Tables and what a session would hold.
struct Memory {
  Memory(int64_t slots, int64_t blocks)
      : tables(slots, blocks, kTokens), cells(size_t(blocks * kTokens), -1) {}

  bool begin(int64_t slot, int64_t from, int64_t count, int64_t tokens) {
    const auto begun = tables.begin(slot, from, count, tokens);
    if (begun.copy)
      std::copy_n(cells.begin() + begun.copy->from * kTokens, kTokens,
                  cells.begin() + begun.copy->to * kTokens);
    return begun.hasRoom;
  }
  int& cell(int64_t slot, int64_t place) {
    return cells[size_t(tables.blocks(slot)[size_t(place / kTokens)] * kTokens + place % kTokens)];
  }
  void append(int64_t slot, const std::vector<int>& ids) {
    tables.grow(slot, int64_t(ids.size()));
    const int64_t held = int64_t(tables.ids(slot).size());
    for (size_t i = 0; i < ids.size(); ++i) cell(slot, held + int64_t(i)) = ids[i];
    tables.append(slot, ids);
  }
  std::vector<int> read(int64_t slot) {
    std::vector<int> ids;
    for (int64_t i = 0; i < int64_t(tables.ids(slot).size()); ++i) ids.push_back(cell(slot, i));
    return ids;
  }

  BlockTables tables;
  std::vector<int> cells;
};

TEST(BlockTables, ABeginningIsStoredOnce) {
  Memory m(4, 20);
  ASSERT_TRUE(m.begin(0, 0, 0, 20));
  m.append(0, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
  EXPECT_EQ(m.tables.counts().used, 3);
  // Two whole blocks in common; the third, which each goes on in, is each one's own.
  for (int64_t slot : {1, 2, 3}) ASSERT_TRUE(m.begin(slot, 0, 10, 12));
  EXPECT_EQ(m.tables.counts().used, 3 + 3);
  for (int64_t slot : {1, 2, 3}) {
    EXPECT_THAT(m.tables.blocks(slot).first(2), ElementsAreArray(m.tables.blocks(0).first(2)));
    m.append(slot, {int(100 + slot)});
  }
  m.append(0, {11});
  EXPECT_THAT(m.read(0), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11));
  EXPECT_THAT(m.read(2), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 102));
  // At the end of a block nothing is copied.
  m.tables.end(3);
  ASSERT_TRUE(m.begin(3, 0, 8, 8));
  EXPECT_EQ(m.tables.counts().used, 3 + 2);
}

TEST(BlockTables, RoomIsSetAsideForWholeTexts) {
  Memory m(3, 5);
  ASSERT_TRUE(m.begin(0, 0, 0, 9));  // three blocks, none of them used yet
  EXPECT_EQ(m.tables.counts().used, 0);
  EXPECT_EQ(m.tables.counts().set, 3);
  EXPECT_FALSE(m.begin(1, 1, 0, 9));
  EXPECT_TRUE(m.begin(1, 1, 0, 8));
  EXPECT_FALSE(m.begin(2, 2, 0, 1));
  m.append(0, {1, 2, 3, 4, 5, 6, 7, 8, 9});
  m.append(1, {1, 2, 3, 4, 5, 6, 7, 8});
  EXPECT_EQ(m.tables.room(0), 12);
  m.tables.end(1);
  // What it left serves others until its room is needed, and goes from the end.
  EXPECT_TRUE(m.begin(2, 2, 0, 4));
  EXPECT_EQ(m.tables.counts().used, 5);
  m.append(2, {7});
  EXPECT_THAT(m.read(1), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(m.read(2), ElementsAre(7));
}

TEST(BlockTables, WhatAnEndedTextDidNotUseIsSetAsideNoMore) {
  Memory m(2, 5);
  ASSERT_TRUE(m.begin(0, 0, 0, 12));
  m.append(0, {1, 2, 3, 4, 5});
  EXPECT_EQ(m.tables.counts().set, 1);
  m.tables.end(0);
  EXPECT_EQ(m.tables.counts().set, 0);
  EXPECT_EQ(m.tables.counts().used, 2) << "its beginning serves others";
  EXPECT_TRUE(m.begin(1, 1, 0, 20)) << "all blocks are to be had";
}

TEST(BlockTables, ATextGoesOnInItsOwnBlocks) {
  Memory m(2, 3);
  ASSERT_TRUE(m.begin(0, 0, 0, 12));
  m.append(0, {1, 2, 3, 4, 5, 6});
  m.tables.end(0);
  const std::vector<int64_t> before(m.tables.blocks(0).begin(), m.tables.blocks(0).end());
  // All three blocks are needed: without a copy of the second there is room.
  ASSERT_TRUE(m.begin(0, 0, 5, 12));
  EXPECT_THAT(m.tables.blocks(0), ElementsAreArray(before));
  m.append(0, {9});
  EXPECT_THAT(m.read(0), ElementsAre(1, 2, 3, 4, 5, 9));
}

TEST(BlockTables, WhatEndedFirstIsGivenUpFirst) {
  for (int64_t first : {0, 1}) {
    Memory m(3, 4);
    for (int64_t slot : {0, 1}) {
      ASSERT_TRUE(m.begin(slot, 0, 0, 8));
      m.append(slot, {1, 2, 3, 4, 5, 6, 7, int(8 + slot)});
    }
    m.tables.end(first);
    m.tables.end(1 - first);
    ASSERT_TRUE(m.begin(2, 2, 0, 4));
    m.append(2, {9});
    EXPECT_THAT(m.read(first), ElementsAre(1, 2, 3, 4));
    EXPECT_THAT(m.read(1 - first), ElementsAre(1, 2, 3, 4, 5, 6, 7, int(8 + 1 - first)));
  }
}

TEST(BlockTables, Mistakes) {
  Memory m(2, 4);
  ASSERT_TRUE(m.begin(0, 0, 0, 4));
  expectError(ErrorCode::InvalidArgument, "slot 0: expected one without a running text",
              [&] { m.begin(0, 0, 0, 4); });
  expectError(ErrorCode::InvalidArgument, "expected from 0 to 0 tokens to go on from",
              [&] { m.begin(1, 0, 1, 4); });
  expectError(ErrorCode::InvalidArgument, "got 0 and room for -1", [&] { m.begin(1, 0, 0, -1); });
  expectError(ErrorCode::InvalidArgument, "got -1 and room for 4", [&] { m.begin(1, 0, -1, 4); });
}

TEST(BlockTables, AnyOrderOfTextsKeepsEveryText) {
  int refused = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    RandomGenerator random(seed);
    const auto below = [&](int64_t n) { return int64_t(random.next() % uint64_t(n)); };
    const int64_t slots = 1 + below(5), blocks = 2 + below(12);
    Memory m(slots, blocks);
    std::map<int64_t, std::vector<int>> running;  // by slot
    std::map<int64_t, int64_t> room;
    int next = 0;
    for (int step = 0; step < 300; ++step) {
      const int64_t slot = below(slots);
      if (!running.contains(slot)) {
        const int64_t from = below(slots);
        const int64_t count = below(int64_t(m.tables.ids(from).size()) + 1);
        const int64_t tokens = std::min(count + below(20), blocks * kTokens);
        std::vector<int> text = m.read(from);
        text.resize(size_t(count));
        if (!m.begin(slot, from, count, tokens)) {
          ++refused;
          EXPECT_FALSE(running.empty()) << "alone every text has room";
          continue;
        }
        running[slot] = text;
        room[slot] = tokens;
      } else if (std::vector<int>& text = running[slot];
                 int64_t(text.size()) < room[slot] && random.next() % 8) {
        const int64_t left = room[slot] - int64_t(text.size());
        std::vector<int> more(size_t(1 + below(std::min<int64_t>(left, 6))));
        for (int& id : more) id = next++;
        m.append(slot, more);
        text.insert(text.end(), more.begin(), more.end());
      } else {
        m.tables.end(slot);
        running.erase(slot);
      }
      for (auto& [other, text] : running) {
        ASSERT_THAT(m.read(other), ElementsAreArray(text)) << "seed " << seed;
        ASSERT_GE(m.tables.room(other), room[other]);
      }
      // What rests is what it was, or the beginning of it: numbers are used once.
      for (int64_t other = 0; other < slots; ++other)
        ASSERT_THAT(m.read(other), ElementsAreArray(m.tables.ids(other)));
      const KvBlocks counts = m.tables.counts();
      ASSERT_LE(counts.used, blocks);
      std::set<int64_t> held;
      for (int64_t other = 0; other < slots; ++other)
        held.insert(m.tables.blocks(other).begin(), m.tables.blocks(other).end());
      ASSERT_EQ(counts.used, int64_t(held.size()));
    }
    for (int64_t slot = 0; slot < slots; ++slot) {
      m.tables.end(slot);
      m.tables.clear(slot);
    }
    EXPECT_EQ(m.tables.counts().used, 0) << "seed " << seed;
  }
  EXPECT_GT(refused, 100) << "blocks were scarce";
}

}  // namespace
}  // namespace lathe
