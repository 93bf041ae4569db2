// SPDX-License-Identifier: Apache-2.0
// What `lathe bench` holds its times against: the runs of a repetition, their work, their calls.
#include <gtest/gtest.h>

#include "tools/lathe/bench_profile.h"
#include "tools/lathe/bench_work.h"

namespace lathe::cli {
namespace {

DimExpr expr(const char* text) { return DimExpr::parse(text).value(); }
using Runs = std::vector<SymbolValues>;

// A decoder as far as its sizes and costs go, of a backend without a device here: a call of its
// prompts takes kPromptTokens, or as many as the range of seq has.
Program decoder(int64_t mostTokens) {
  Program p;
  p.backend = "none";
  p.symbols = {{"other", 3, 9}, {"batch", 1, 8}, {"seq", 1, mostTokens}, {"cache", 1, 4096}};
  EntryPoint prefill;
  prefill.name = "prefill";
  prefill.slots = {{SlotKind::Argument, DType::I64, {expr("batch")}},
                   {SlotKind::Argument, DType::I64, {expr("batch"), expr("seq")}}};
  prefill.inputs = {{"positions", 0}, {"input_ids", 1}};
  prefill.calls = {{"linear", "", "{}", {}, {}, "layers.0.mlp a.py:1"},
                   {"all_reduce", "", "{}", {}, {}, "layers.0 a.py:2"},
                   {"linear", "", "{}", {}, {}, "layers.1.mlp a.py:1"}};
  EntryPoint decode = prefill;
  decode.name = "decode";
  p.entries = {prefill, decode};
  const Cost product{expr("10*seq*batch"), expr("cache"), 3, 2},
      sum{expr("seq"), expr("4*seq"), expr("8*seq"), 0};
  storeCosts(p,
             {{"prefill", {product, sum, product}}, {"decode", {product, std::nullopt, product}}});
  return p;
}

TEST(BenchWork, APromptIsReadInChunks) {
  EXPECT_EQ(prefillRuns(decoder(100), 250, 1),
            (Runs{{{"other", 3}, {"batch", 1}, {"seq", 100}, {"cache", 100}},
                  {{"other", 3}, {"batch", 1}, {"seq", 100}, {"cache", 200}},
                  {{"other", 3}, {"batch", 1}, {"seq", 50}, {"cache", 250}}}));
  // Several prompts share a call's tokens, down to 64 of each.
  EXPECT_EQ(prefillRuns(decoder(100), 100, 2),
            (Runs{{{"other", 3}, {"batch", 2}, {"seq", 64}, {"cache", 64}},
                  {{"other", 3}, {"batch", 2}, {"seq", 36}, {"cache", 100}}}));
  EXPECT_EQ(prefillRuns(decoder(4096), 512, 1).size(), 1u);
  EXPECT_EQ(prefillRuns(decoder(4096), 513, 1).size(), 2u);
  EXPECT_EQ(prefillRuns(decoder(4096), 512, 4).size(), 4u);
  EXPECT_EQ(prefillRuns(decoder(100), 0, 1), Runs{});
}

TEST(BenchWork, ACallWithoutTokensOfItsOwnHasTheLeastSizes) {
  Program p = decoder(100);
  p.entries[0].slots[1].shape = {expr("batch"), 1};
  EXPECT_EQ(prefillRuns(p, 600, 1),
            (Runs{{{"other", 3}, {"batch", 1}, {"seq", 1}, {"cache", 512}},
                  {{"other", 3}, {"batch", 1}, {"seq", 1}, {"cache", 600}}}));
}

// Ids alone have [rows, tokens]; what else comes in says nothing of either, whatever its dims.
TEST(BenchWork, SizesOfOtherInputsStayTheLeast) {
  Program p = decoder(100);
  for (EntryPoint& entry : p.entries) {
    entry.slots[0].shape = {expr("other"), expr("other"), 4};
    entry.slots.push_back({SlotKind::Argument, DType::F32, {expr("other")}});
    entry.inputs.push_back({"scale", 2});
  }
  EXPECT_EQ(prefillRuns(p, 50, 2),
            (Runs{{{"other", 3}, {"batch", 2}, {"seq", 50}, {"cache", 50}}}));
  EXPECT_EQ(decodeRuns(p, 10, 1, 2),
            (Runs{{{"other", 3}, {"batch", 2}, {"seq", 1}, {"cache", 11}}}));
}

// A part of a size is that of the run's size, not of the least.
TEST(BenchWork, PartsOfSizesGoWithThem) {
  Program p = decoder(100);
  p.sizeParts = {{"part", expr("seq*batch"), 4}};
  EXPECT_EQ(prefillRuns(p, 50, 2),
            (Runs{{{"other", 3}, {"batch", 2}, {"seq", 50}, {"cache", 50}, {"part", 25}}}));
  EXPECT_EQ(decodeRuns(p, 10, 1, 8),
            (Runs{{{"other", 3}, {"batch", 8}, {"seq", 1}, {"cache", 11}, {"part", 2}}}));
}

TEST(BenchWork, AStepReadsWhatIsFilledThen) {
  EXPECT_EQ(decodeRuns(decoder(100), 10, 2, 3),
            (Runs{{{"other", 3}, {"batch", 3}, {"seq", 1}, {"cache", 11}},
                  {{"other", 3}, {"batch", 3}, {"seq", 1}, {"cache", 12}}}));
  EXPECT_EQ(decodeRuns(decoder(100), 10, 0, 3), Runs{});
}

TEST(BenchWork, WorkIsThatOfAllCallsInAllRuns) {
  const Program p = decoder(100);
  const Runs runs = prefillRuns(p, 150, 1);  // 100 tokens, then 50
  const auto work = workOf(p, "prefill", runs);
  ASSERT_TRUE(work);
  EXPECT_EQ(work->flops, (20 + 1) * 150);
  EXPECT_EQ(work->read, 2 * (100 + 150) + 4 * 150);
  EXPECT_EQ(work->written, 2 * 2 * 3 + 8 * 150);
  EXPECT_EQ(work->held, 2 * 2 * 2);
  EXPECT_FALSE(workOf(p, "decode", decodeRuns(p, 1, 1, 1))) << "a call has no cost";
  EXPECT_EQ(workOf(p, "prefill", {})->flops, 0);
}

TEST(BenchWork, WhatARankTells) {
  Program p = decoder(100);
  const Runs runs = prefillRuns(p, 150, 1);
  EXPECT_EQ(collectivesOf(p, "prefill", runs).calls, 0) << "of one rank";
  p.ranks = 4;
  const CollectiveWork work = collectivesOf(p, "prefill", runs);
  EXPECT_EQ(work.calls, 2);
  EXPECT_EQ(work.bytes, 2 * 3.0 / 4 * 8 * 150) << "two exchanges of 3/4 of the result";
  EXPECT_FALSE(work.seconds);
  EXPECT_EQ(collectivesOf(p, "decode", decodeRuns(p, 1, 3, 1)).calls, 0) << "it has no cost";
}

TEST(BenchWork, TimesAtTheRoofsAreByCall) {
  const Program p = decoder(100);
  const MachineRoofs machine{"m", 1e3, 1e3, 1e6};
  auto expectTimes = [&](const char* entry, const Runs& runs, const std::vector<double>& wanted) {
    const std::vector<double> got = predictedSeconds(p, entry, runs, machine);
    ASSERT_EQ(got.size(), wanted.size());
    for (size_t i = 0; i < got.size(); ++i) EXPECT_DOUBLE_EQ(got[i], wanted[i]) << entry << i;
  };
  expectTimes("prefill", prefillRuns(p, 150, 1), {1.5, 0.15, 1.5});
  expectTimes("decode", decodeRuns(p, 1, 3, 1), {0.03, 0, 0.03});
}

TEST(BenchProfile, CollectivesTookWhatWasAddedToThem) {
  const Program p = decoder(100);
  const Profiles before{{"prefill", {{"", "", 1, 1}, {"", "", 2, 1}, {"", "", 3, 1}}}},
      after{{"prefill", {{"", "", 9, 2}, {"", "", 2.5, 2}, {"", "", 9, 2}}}};
  EXPECT_EQ(cli::collectiveSeconds(p, "prefill", before, after), 0.5);
}

TEST(BenchProfile, RowsAreKernelsAtAPlaceLongestFirst) {
  const Profiles before{{"prefill", {{"linear", "layers.0.mlp a.py:1", 1, 2}}},
                        {"decode",
                         {{"region_1", "layers.0.norm a.py:3", 1, 1},
                          {"linear", "layers.0.mlp a.py:1", 1, 1},
                          {"region_22", "layers.11.norm a.py:3", 1, 1},
                          {"linear", "layers.11.mlp a.py:1", 1, 1},
                          {"gather", "embed a.py:9", 5, 7}}}},
      after{{"prefill", {{"linear", "layers.0.mlp a.py:1", 1, 2}}},
            {"decode",
             {{"region_1", "layers.0.norm a.py:3", 1.5, 3},
              {"linear", "layers.0.mlp a.py:1", 2, 3},
              {"region_22", "layers.11.norm a.py:3", 2.25, 3},
              {"linear", "layers.11.mlp a.py:1", 3, 3},
              {"gather", "embed a.py:9", 5, 7}}}};
  const std::vector<ProfileRow> rows =
      profileRows(before, after, {{"prefill", {1}}, {"decode", {1, 2, 4, 8, 16}}});
  ASSERT_EQ(rows.size(), 2u) << "what did not run is no row";
  EXPECT_EQ(rows[0].entry, "decode");
  EXPECT_EQ(rows[0].kernel, "linear");
  EXPECT_EQ(rows[0].origin, "layers.*.mlp");
  EXPECT_EQ(rows[0].seconds, 3);
  EXPECT_EQ(rows[0].runs, 4);
  EXPECT_EQ(rows[0].predictedSeconds, 10);
  EXPECT_EQ(rows[1].kernel, "region");
  EXPECT_EQ(rows[1].origin, "layers.*.norm");
  EXPECT_EQ(rows[1].seconds, 1.75);
  EXPECT_EQ(rows[1].predictedSeconds, 5);
}

// 24 rows, and one for the shorter ones.
TEST(BenchProfile, ALongTableAddsUp) {
  auto profiles = [](int places, double seconds, int64_t runs) {
    std::vector<CallProfile> calls;
    for (int i = 0; i < places; ++i)
      calls.push_back({"linear", std::string(1, char('a' + i)), seconds * (i + 1), runs});
    return Profiles{{"prefill", calls}, {"decode", {}}};
  };
  auto rowsOf = [&](int places) {
    return profileRows(profiles(places, 0, 0), profiles(places, 1, 2),
                       {{"prefill", std::vector<double>(size_t(places), 0.5)}, {"decode", {}}});
  };
  const std::vector<ProfileRow> all = rowsOf(24), cut = rowsOf(26);
  ASSERT_EQ(all.size(), 24u);
  EXPECT_EQ(all.front().origin, "x");
  EXPECT_EQ(all.back().origin, "a");
  ASSERT_EQ(cut.size(), 25u);
  EXPECT_EQ(cut[0].origin, "z");
  EXPECT_EQ(cut[23].origin, "c");
  EXPECT_EQ(cut[24].kernel, "others");
  EXPECT_EQ(cut[24].entry, "prefill");
  EXPECT_EQ(cut[24].origin, "2 places");
  EXPECT_EQ(cut[24].seconds, 1 + 2);
  EXPECT_EQ(cut[24].runs, 4);
  EXPECT_EQ(cut[24].predictedSeconds, 1);
}

}  // namespace
}  // namespace lathe::cli
