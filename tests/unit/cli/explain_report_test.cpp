// SPDX-License-Identifier: Apache-2.0
// What `lathe explain` prints of a program's costs, figure by figure.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/unit/cli/printed.h"
#include "tools/lathe/explain_report.h"

namespace lathe::cli {
namespace {

using nlohmann::json;
using test::printed;

DimExpr expr(const char* text) { return DimExpr::parse(text).value(); }

const Cost kProduct{expr("1000000*n"), expr("100*n"), expr("20*n"), 40, true},
    kRegion{expr("n"), expr("3000000*n"), expr("1000000*n"), 0},
    kSum{expr("n"), expr("1000*n"), expr("2000*n"), 0};
using Costs = std::vector<std::optional<Cost>>;

// Products of two layers, a region that is bound by memory, a sum over ranks and a call of which
// nobody knows what it costs. The temporary t is [n, 4] f32, from the first to the fourth call.
std::shared_ptr<Program> program(const Costs& costs = {kProduct, kProduct, kRegion, kSum, {}}) {
  auto p = std::make_shared<Program>();
  p->backend = "cpu";
  p->symbols = {{"n", 1, 64}, {"m", 2, 8}};
  p->weights = {{"w", DType::F32, {5}}};
  p->states = {{"s", DType::BF16, {7}}};
  EntryPoint e;
  e.name = "forward";
  const SymbolicShape shape{expr("n"), 4};
  e.slots = {{SlotKind::Argument, DType::F32, shape},
             {SlotKind::Arena, DType::F32, shape},
             {SlotKind::Result, DType::F32, {expr("n")}},
             {SlotKind::Weight, DType::F32, {5}},
             {SlotKind::State, DType::BF16, {7}}};
  e.inputs = {{"x", 0}};
  e.outputs = {{"y", 2}};
  e.statesIn = {{"s", 4}};
  e.statesOut = {{"s", 4}};
  e.calls = {{"linear", "", "{}", {0, 3}, {1}, "layers.0.proj a.py:1"},
             {"linear", "", "{}", {1}, {1}, "layers.12.proj a.py:1"},
             {"region", "region_7", "{}", {1}, {1}, "layers.0.norm a.py:2"},
             {"all_reduce", "", "{}", {1}, {2}, "sum a.py:3"},
             {"other", "", "{}", {0}, {2}, "end a.py:4"}};
  p->entries = {e};
  storeCosts(*p, {{"forward", costs}});
  return p;
}

ExplainReport report() {
  ExplainReport r;
  r.model = "m.mlir";
  r.program = program();
  r.stage = "lowered";
  r.entries = {&r.program->entries[0]};
  return r;
}

// Of n = 10: a product takes 1 ms, the region 4 ms, on one machine. Temporaries take multiples of
// 64 bytes.
ExplainReport withSizes() {
  ExplainReport r = report();
  r.values = {{"n", 10}};
  r.machine = MachineRoofs{"dev", 1e10, 2e9, 1e10};
  return r;
}

ExplainReport onRanks() {
  ExplainReport r = withSizes();
  r.ranks = 4;
  r.stages = 1;
  r.link = Link{"wire", 1e-3, 1e7};
  return r;
}

TEST(ExplainReport, Polynomials) {
  EXPECT_EQ(printed([] { printExplanation(report(), {}); }),
            "m.mlir: backend cpu, stage lowered\n\nentry forward: n 1 to 64\n\n"
            "| op | where | count | FLOPs | bytes read | bytes written |\n"
            "|---|---|--:|---|---|---|\n"
            "| linear | layers.*.proj | 2 | 2000000*n | 200*n | 40*n |\n"
            "| region | layers.*.norm | 1 | n | 3000000*n | 1000000*n |\n"
            "| all_reduce | sum | 1 | n | 1000*n | 2000*n |\n"
            "| other | end | 1 | ? | ? | ? |\n"
            "| total | | 5 | 2000002*n | 3001200*n | 1002040*n |\n"
            "\n1 calls have no cost: the backend did not note it\n"
            "\nmemory in bytes: weights 20, states 14, inputs 16*n, outputs 4*n, temporaries "
            "16*n\n");
}

TEST(ExplainReport, Numbers) {
  EXPECT_EQ(printed([] { printExplanation(withSizes(), {}); }),
            "m.mlir: backend cpu, stage lowered\n"
            "device dev: 10 GFLOP/s in 16 bits, 2 GFLOP/s in f32, 10 GB/s\n"
            "\nentry forward: n=10\n\n"
            "| op | where | count | FLOPs | read | written | live | time | bound | share |\n"
            "|---|---|--:|--:|--:|--:|--:|--:|---|--:|\n"
            "| linear | layers.*.proj | 2 | 20 M | 2 kB | 400 B | 160 B | 2.00 ms | compute | "
            "33.3 % |\n"
            "| region | layers.*.norm | 1 | 10 | 30 MB | 10 MB | 160 B | 4.00 ms | memory | "
            "66.6 % |\n"
            "| all_reduce | sum | 1 | 10 | 10 kB | 20 kB | 160 B | 3.00 us | memory | 0.0 % |\n"
            "| other | end | 1 | ? | ? | ? | 0 B | ? | ? | ? |\n"
            "| total | | 5 | 20 M | 30 MB | 10 MB | | 6.00 ms | 67 % memory | 100.0 % |\n"
            "\n1 calls have no cost: the backend did not note it\n"
            "\npeak memory 426 B: weights 20 B, states 14 B, inputs 160 B, outputs 40 B, "
            "temporaries 192 B\n");
}

// Two exchanges of two steps each and 3/4 of the result: 4 ms + 3 ms.
TEST(ExplainReport, TimeOnALink) {
  const std::string text = printed([] { printExplanation(onRanks(), {}); });
  EXPECT_NE(text.find("one of 4 ranks, link wire: 1.00 ms and 10 MB/s\n"), text.npos) << text;
  EXPECT_NE(text.find("| all_reduce | sum | 1 | 10 | 10 kB | 20 kB | 160 B | 7.00 ms | link | "
                      "53.8 % |\n"),
            text.npos)
      << text;
  EXPECT_NE(text.find("| 13.00 ms | 31 % memory, 54 % link | 100.0 % |\n"), text.npos) << text;
  ExplainReport stages = onRanks();
  stages.stages = 2;
  EXPECT_NE(printed([&] {
              printExplanation(stages, {});
            }).find("one of 8 ranks in 2 stages, the first, link wire: 1.00 ms and 10 MB/s\n"),
            text.npos);
}

TEST(ExplainReport, EveryOpIsARow) {
  ExplainReport r = report();
  r.everyOp = true;
  const std::string text = printed([&] { printExplanation(r, {}); });
  EXPECT_NE(text.find("| linear | layers.0.proj a.py:1 | 1 | 1000000*n | 100*n | 20*n |\n"
                      "| linear | layers.12.proj a.py:1 | 1 | 1000000*n | 100*n | 20*n |\n"
                      "| region_7 | layers.0.norm a.py:2 | 1 | n | 3000000*n | 1000000*n |\n"),
            text.npos)
      << text;
}

// Of the layers of a place the one in which most is alive, wherever it stands.
TEST(ExplainReport, LiveBytesOfAPlaceAreTheMost) {
  ExplainReport r = withSizes();
  auto p = program();
  EntryPoint& e = p->entries[0];
  e.slots.push_back({SlotKind::Arena, DType::F32, {expr("n"), 8}});
  e.calls[0].results.push_back(int(e.slots.size()) - 1);
  r.program = p;
  r.entries = {&e};
  const std::string text = printed([&] { printExplanation(r, {}); });
  EXPECT_NE(text.find("| linear | layers.*.proj | 2 | 20 M | 2 kB | 400 B | 480 B |"), text.npos)
      << text;
}

// What one layer has and another has not is no sum.
TEST(ExplainReport, LayersThatDifferAreRowsOfTheirOwn) {
  ExplainReport r = report();
  r.program = program({kProduct, {}, kRegion, kSum, {}});
  r.entries = {&r.program->entries[0]};
  std::string text = printed([&] { printExplanation(r, {}); });
  EXPECT_NE(text.find("| linear | layers.*.proj | 1 | 1000000*n | 100*n | 20*n |\n"
                      "| linear | layers.*.proj | 1 | ? | ? | ? |\n"),
            text.npos)
      << text;
  r = withSizes();
  r.program = program({kProduct, kRegion, kRegion, kSum, {}});
  r.entries = {&r.program->entries[0]};
  text = printed([&] { printExplanation(r, {}); });
  EXPECT_NE(text.find("| 1.00 ms | compute | 11.1 % |\n"
                      "| linear | layers.*.proj | 1 | 10 | 30 MB | 10 MB | 160 B | 4.00 ms | "
                      "memory | 44.4 % |\n"),
            text.npos)
      << text;
}

// The bytes of a later call are never fewer than those of the first: theirs alone are told.
TEST(ExplainReport, TemporariesAreTheMostOfAnyCall) {
  ExplainReport r = report();
  auto p = program();
  EntryPoint& e = p->entries[0];
  e.slots.push_back({SlotKind::Arena, DType::F32, {expr("n"), 8}});
  e.calls[2].results.push_back(int(e.slots.size()) - 1);
  r.program = p;
  r.entries = {&e};
  const std::string text = printed([&] { printExplanation(r, {}); });
  EXPECT_TRUE(text.ends_with(" temporaries 48*n\n")) << text;
}

TEST(ExplainReport, SymbolsOfOtherEntryPointsAreNotMissed) {
  ExplainReport r = report();
  const EntryPoint& e = *r.entries[0];
  EXPECT_EQ(r.missing(e), "n (1 to 64)");
  EXPECT_FALSE(r.isKnown(e));
  EXPECT_TRUE(withSizes().isKnown(e));
}

TEST(ExplainReport, ARankOfSeveral) {
  const ExplainReport r = onRanks();
  const RankPrediction p = predictOnRanks(r, *r.entries[0]);
  EXPECT_EQ(p.ranks, 4);
  EXPECT_DOUBLE_EQ(p.seconds, 13e-3);
  EXPECT_DOUBLE_EQ(p.linkSeconds, 7e-3);
  EXPECT_EQ(p.memory, 426);
  EXPECT_DOUBLE_EQ(p.interval, 13e-3);
  const RankPrediction all =
      predictOnStages({{4, 3, 1, 500, 3}, {4, 2, 0.5, 700, 2.5}, {4, 1, 0, 600, 1}});
  EXPECT_EQ(all.ranks, 12);
  EXPECT_EQ(all.seconds, 6);
  EXPECT_EQ(all.linkSeconds, 1.5);
  EXPECT_EQ(all.memory, 700);
  EXPECT_EQ(all.interval, 3);
}

TEST(ExplainReport, StagesAndScaling) {
  RankPredictions p;
  p.stages["forward"] = {{2, 0.5, 0.1, 1000, 0.5}, {2, 0.25, 0, 3000, 0.25}};
  p.scaling["forward"] = {{1, 1, 0, 4000, 1}, {2, 0.4, 0.1, 2000, 0.4}, {4, 0.5, 0.3, 1000, 0.5}};
  const std::string text = printed([&] { printExplanation(withSizes(), p); });
  const std::string wanted =
      "\n| stage | time | in messages and collectives | memory of a rank |\n"
      "|--:|--:|--:|--:|\n"
      "| 0 | 500.00 ms | 20.0 % | 1 kB |\n"
      "| 1 | 250.00 ms | 0.0 % | 3 kB |\n"
      "\none run takes 750.00 ms; of several, such as chunks of a prompt, one ends every 500.00 "
      "ms\n"
      "\n| ranks | time | speed-up | in collectives | memory of a rank |\n"
      "|--:|--:|--:|--:|--:|\n"
      "| 1 | 1.00 s | 1.00 | 0.0 % | 4 kB |\n"
      "| 2 | 400.00 ms | 2.50 | 25.0 % | 2 kB |\n"
      "| 4 | 500.00 ms | 2.00 | 60.0 % | 1 kB |\n"
      "\nmore than 2 ranks lose\n";
  EXPECT_TRUE(text.ends_with(wanted)) << text;
  p.scaling["forward"].pop_back();
  EXPECT_EQ(printed([&] { printExplanation(withSizes(), p); }).find("ranks lose"), text.npos);
}

TEST(ExplainReport, JsonOfPolynomials) {
  const json out = json::parse(printed([] { printExplanationJson(report(), {}); }));
  EXPECT_EQ(out["model"], "m.mlir");
  EXPECT_EQ(out["backend"], "cpu");
  EXPECT_EQ(out["stage"], "lowered");
  EXPECT_EQ(out["values"], json::object());
  EXPECT_FALSE(out.contains("device"));
  EXPECT_FALSE(out.contains("link"));
  const json entry = out["entries"][0];
  EXPECT_EQ(entry["name"], "forward");
  ASSERT_EQ(entry["ops"].size(), 5u);
  EXPECT_EQ(entry["ops"][0], json::parse(R"({"op": "linear", "origin": "layers.0.proj a.py:1",
    "live_bytes": "16*n", "flops": "1000000*n", "read_bytes": "100*n", "written_bytes": "20*n",
    "held_bytes": "40"})"));
  EXPECT_EQ(entry["ops"][4],
            json::parse(R"({"op": "other", "origin": "end a.py:4", "live_bytes": "0"})"));
  EXPECT_EQ(entry["total"], json::parse(R"({"flops": "2000002*n", "read_bytes": "3001200*n",
    "written_bytes": "1002040*n", "held_bytes": "80", "calls_without_cost": 1})"));
  EXPECT_EQ(entry["memory"],
            json::parse(R"({"weights_bytes": "20", "states_bytes": "14", "inputs_bytes": "16*n",
              "outputs_bytes": "4*n", "temporaries_bytes": ["16*n"]})"));
}

TEST(ExplainReport, JsonOfNumbers) {
  RankPredictions p;
  p.stages["forward"] = {{2, 0.5, 0.1, 1000, 0.25}};
  p.scaling["forward"] = {{1, 1, 0, 4000, 1}};
  p.scaling["elsewhere"] = {{1, 1, 0, 4000, 1}};
  ExplainReport r = onRanks();
  r.stages = 2;
  const json out = json::parse(printed([&] { printExplanationJson(r, p); }));
  EXPECT_EQ(out["values"], json::parse(R"({"n": 10})"));
  EXPECT_EQ(out["device"], json::parse(R"({"name": "dev", "narrow_flops_per_second": 1e10,
    "wide_flops_per_second": 2e9, "bytes_per_second": 1e10})"));
  EXPECT_EQ(out["link"], json::parse(R"({"ranks": 8, "stages": 2, "latency_s": 1e-3,
    "bytes_per_second": 1e7})"));
  const json entry = out["entries"][0];
  const json product = entry["ops"][0], sum = entry["ops"][3];
  EXPECT_EQ(product["flops"], 1e7);
  EXPECT_EQ(product["read_bytes"], 1000.0);
  EXPECT_EQ(product["written_bytes"], 200.0);
  EXPECT_EQ(product["held_bytes"], 40.0);
  EXPECT_EQ(product["live_bytes"], 160.0);
  EXPECT_DOUBLE_EQ(product["time_s"].get<double>(), 1e-3);
  EXPECT_EQ(product["bound"], "compute");
  EXPECT_DOUBLE_EQ(product["share"].get<double>(), 1.0 / 13);
  EXPECT_EQ(sum["bound"], "link");
  EXPECT_DOUBLE_EQ(sum["time_s"].get<double>(), 7e-3);
  EXPECT_EQ(entry["ops"][4].size(), 3u) << "no time of what has no cost";
  EXPECT_DOUBLE_EQ(entry["total"]["time_s"].get<double>(), 13e-3);
  EXPECT_DOUBLE_EQ(entry["total"]["link_s"].get<double>(), 7e-3);
  EXPECT_EQ(entry["memory"]["peak_bytes"], 426.0);
  EXPECT_EQ(entry["memory"]["temporaries_bytes"], 192.0);
  EXPECT_EQ(entry["stages"], json::parse(R"([{"ranks": 2, "time_s": 0.5, "link_s": 0.1,
    "interval_s": 0.25, "peak_bytes": 1000.0}])"));
  EXPECT_EQ(entry["scaling"], json::parse(R"([{"ranks": 1, "time_s": 1.0, "link_s": 0.0,
    "interval_s": 1.0, "peak_bytes": 4000.0}])"));
  EXPECT_FALSE(
      json::parse(printed([] { printExplanationJson(withSizes(), {}); }))["entries"][0]["total"]
          .contains("link_s"));
}

}  // namespace
}  // namespace lathe::cli
