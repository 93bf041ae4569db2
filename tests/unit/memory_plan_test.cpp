// SPDX-License-Identifier: Apache-2.0
#include "runtime/memory_plan.h"

#include <gtest/gtest.h>

#include <random>

#include "runtime/error.h"

namespace lathe {
namespace {

// Slots of the given sizes; calls as lists of the slots that they touch (last one is written).
struct Plan {
  EntryPoint entry;
  std::vector<int64_t> bytes;

  int slot(int64_t size, SlotKind kind = SlotKind::Arena, int alias = -1) {
    Slot s;
    s.kind = kind;
    s.alias = alias;
    entry.slots.push_back(s);
    bytes.push_back(size);
    return int(bytes.size()) - 1;
  }
  void call(std::vector<int> operands, int result) {
    Call c;
    c.operands = std::move(operands);
    c.results = {result};
    entry.calls.push_back(c);
  }
  MemoryPlan plan() const { return planArena(entry, bytes); }
};

// Slots whose storage is in use during one call do not overlap, and everything fits.
void expectSound(const Plan& p) {
  const MemoryPlan plan = p.plan();
  const std::vector<Lifetime> lives = lifetimesOf(p.entry);
  for (size_t a = 0; a < p.bytes.size(); ++a) {
    const int64_t at = plan.offsets[a];
    if (at < 0) continue;
    EXPECT_EQ(at % 64, 0);
    EXPECT_LE(at + p.bytes[a], plan.bytes);
    for (size_t b = 0; b < a; ++b) {
      const int64_t other = plan.offsets[b];
      const bool together = lives[a].first <= lives[b].last && lives[b].first <= lives[a].last;
      if (other < 0 || !together) continue;
      EXPECT_TRUE(at + p.bytes[a] <= other || other + p.bytes[b] <= at)
          << "slots " << a << " and " << b << " overlap";
    }
  }
}

TEST(MemoryPlan, BuffersLargerThanAnyMemoryTogetherAreAnError) {
  Plan p;
  const int a = p.slot(int64_t(1) << 62), b = p.slot(int64_t(1) << 62);
  p.call({a}, b);
  try {
    p.plan();
    ADD_FAILURE() << "was planned";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::OutOfMemory);
    EXPECT_NE(std::string(e.what()).find("larger than any memory"), std::string::npos);
  }
}

TEST(MemoryPlan, ReusesWhatIsNoLongerNeeded) {
  Plan p;
  const int x = p.slot(100, SlotKind::Argument), a = p.slot(1000), b = p.slot(1000),
            c = p.slot(1000);
  p.call({x}, a);
  p.call({a}, b);
  p.call({b}, c);
  p.entry.outputs = {{"y", c}};
  expectSound(p);
  const MemoryPlan plan = p.plan();
  EXPECT_EQ(plan.bytes, 2 * 1024);
  EXPECT_EQ(plan.offsets[size_t(a)], plan.offsets[size_t(c)]);
  EXPECT_EQ(plan.offsets[size_t(x)], -1);
}

TEST(MemoryPlan, OperandsAndResultsOfOneCallAreApart) {
  Plan p;
  const int a = p.slot(64), b = p.slot(64);
  p.call({}, a);
  p.call({a}, b);
  EXPECT_NE(p.plan().offsets[0], p.plan().offsets[1]);
}

TEST(MemoryPlan, AViewKeepsItsOwnerAlive) {
  Plan p;
  const int a = p.slot(640), view = p.slot(640, SlotKind::Arena, a), b = p.slot(640),
            c = p.slot(64);
  p.call({}, a);
  p.call({}, b);
  p.call({view, b}, c);
  expectSound(p);
  const MemoryPlan plan = p.plan();
  EXPECT_EQ(ownerOf(p.entry, view), a);
  EXPECT_EQ(plan.offsets[size_t(view)], -1);
  EXPECT_NE(plan.offsets[size_t(a)], plan.offsets[size_t(b)]);
  EXPECT_EQ(lifetimesOf(p.entry)[size_t(a)].last, 2);
}

TEST(MemoryPlan, OutputsLiveBeyondTheLastCall) {
  Plan p;
  const int a = p.slot(64), b = p.slot(64);
  p.call({}, a);
  p.call({}, b);
  p.entry.outputs = {{"y", a}};
  EXPECT_EQ(lifetimesOf(p.entry)[size_t(a)].last, 2);
  expectSound(p);
}

TEST(MemoryPlan, UnusedSlotsTakeNothing) {
  Plan p;
  p.slot(1 << 20);
  EXPECT_EQ(p.plan().bytes, 0);
  EXPECT_EQ(p.plan().offsets[0], -1);
}

TEST(MemoryPlan, EmptySlotsHaveAnAddress) {
  Plan p;
  const int a = p.slot(0), b = p.slot(0);
  p.call({a}, b);
  EXPECT_GE(p.plan().offsets[size_t(a)], 0);
  EXPECT_NE(p.plan().offsets[size_t(a)], p.plan().offsets[size_t(b)]);
}

class RandomLifetimes : public ::testing::TestWithParam<int> {};

TEST_P(RandomLifetimes, NeverOverlap) {
  std::mt19937 random{unsigned(GetParam())};
  auto below = [&](int n) { return int(random() % unsigned(n)); };
  Plan p;
  const int calls = 2 + below(60);
  for (int c = 0; c < calls; ++c) {
    const int size = below(8) ? below(5000) : below(200000);
    const int known = int(p.bytes.size());
    // Some results are views of an earlier slot, some live outside of the arena.
    const int alias = known && below(6) == 0 ? below(known) : -1;
    const SlotKind kind = below(10) == 0 ? SlotKind::State : SlotKind::Arena;
    std::vector<int> operands;
    for (int i = below(4); known && i > 0; --i) operands.push_back(below(known));
    p.call(operands, p.slot(alias < 0 ? size : 0, alias < 0 ? kind : SlotKind::Arena, alias));
  }
  p.entry.outputs = {{"y", below(int(p.bytes.size()))}};
  expectSound(p);
  // No better than all at once is no plan; less than one call needs is impossible.
  int64_t all = 0;
  for (int64_t b : p.bytes) all += (b + 127) / 64 * 64;
  EXPECT_LE(p.plan().bytes, all);
}
INSTANTIATE_TEST_SUITE_P(MemoryPlan, RandomLifetimes, ::testing::Range(0, 200));

}  // namespace
}  // namespace lathe
