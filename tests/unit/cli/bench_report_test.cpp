// SPDX-License-Identifier: Apache-2.0
// What `lathe bench` says of what it measured, figure by figure.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/unit/cli/printed.h"
#include "tools/lathe/bench_report.h"

namespace lathe::cli {
namespace {

using nlohmann::json;
using test::printed;

BenchReport measured() {
  BenchReport r;
  r.model = "m.json";
  r.dtype = "bf16";
  r.backend = "cpu";
  r.isa = "avx2";
  r.parameters = 1'234'567;
  r.threads = 4;
  r.peakFlops = 2e12;
  r.roofs.tried = {{8, true, 5e10}, {1, false, 2e10}};
  r.memory = {1000, 2000, 3000, 4000};
  r.tests = {{.name = "prefill",
              .tokens = 100,
              .seconds = {0.5, 0.2, 0.25},
              .flops = 1e11,
              .cpuSeconds = {1, 3, 2}},
             {.name = "decode",
              .tokens = 10,
              .seconds = {1, 2, 4, 3},
              .flops = 5e9,
              .bytes = 5e10,
              .cpuSeconds = {2, 4, 7, 6}}};
  return r;
}

// Two texts on four ranks, whose collectives were timed in one test alone.
BenchReport onRanks() {
  BenchReport r = measured();
  r.isa.clear();
  r.roofs.tried.clear();
  r.peakFlops = 0;
  r.batch = r.tests[0].batch = r.tests[1].batch = 2;
  r.ranks = 4;
  r.device = {"device: two"};
  r.tests[0].collectives = {.calls = 6, .bytes = 3000, .seconds = 0.19};
  r.tests[1].collectives = {.calls = 40, .bytes = 1.5e6};
  return r;
}

constexpr char kHead[] =
    "| test | tokens/s | spread | FLOP/s | of peak | bytes/s | of bandwidth |\n"
    "|---|--:|--:|--:|--:|--:|--:|\n";

TEST(BenchReport, TheMiddleOfTheRepetitionsCounts) {
  const BenchReport r = measured();
  EXPECT_EQ(r.tests[0].medianSeconds(), 0.25);
  EXPECT_EQ(r.tests[1].medianSeconds(), 2.5);
  EXPECT_EQ(r.tests[0].medianCpuSeconds(), 2);
  EXPECT_EQ(r.tests[1].medianCpuSeconds(), 5);
  EXPECT_EQ(r.tests[0].tokensPerSecond(), 400);
  EXPECT_EQ(onRanks().tests[0].tokensPerSecond(), 800);
  EXPECT_EQ(*r.peakShare(r.tests[0]), 0.2);
  EXPECT_FALSE(r.bandwidthShare(r.tests[0]));
  EXPECT_EQ(*r.bandwidthShare(r.tests[1]), 0.4);
  EXPECT_FALSE(onRanks().peakShare(r.tests[0])) << "nobody measured the machine";
  EXPECT_FALSE(onRanks().bandwidthShare(r.tests[1]));
  EXPECT_NEAR(*onRanks().tests[0].collectiveShare(), 0.2, 1e-12);
  EXPECT_FALSE(onRanks().tests[1].collectiveShare());
}

TEST(BenchReport, Markdown) {
  EXPECT_EQ(printed([] { printReport(measured(), "md"); }),
            "m.json: 1.23 M parameters, bf16, backend cpu (avx2), 4 threads\n\n"
            "matrix peak 2 TFLOP/s, read bandwidth 50 GB/s (8 streams per thread, prefetch)\n\n" +
                std::string(kHead) +
                "| prefill 100 | 400.0 | 200.0 to 500.0 | 400 G | 20.0 % | - | - |\n"
                "| decode 10 | 4.0 | 2.5 to 10.0 | 2 G | 0.1 % | 20 GB | 40.0 % |\n");
}

TEST(BenchReport, MarkdownOfSeveralTextsAndRanks) {
  EXPECT_EQ(
      printed([] { printReport(onRanks(), "md"); }),
      "m.json: 1.23 M parameters, bf16, backend cpu, 4 threads, batch 2\n\n" + std::string(kHead) +
          "| prefill 100 | 800.0 | 400.0 to 1000.0 | 400 G | - | - | - |\n"
          "| decode 10 | 8.0 | 5.0 to 20.0 | 2 G | - | 20 GB | - |\n"
          "\n| test of one of 4 ranks | processor time ms | collectives | sent | ms | share |\n"
          "|---|--:|--:|--:|--:|--:|\n"
          "| prefill 100 | 2000.0 | 6 | 3 kB | 63.3 | 20.0 % |\n"
          "| decode 10 | 5000.0 | 40 | 1.5 MB | - | - |\n");
}

// Shares are those of one entry point.
TEST(BenchReport, MarkdownOfAProfile) {
  BenchReport r = measured();
  r.tests.clear();
  r.roofs.tried[0] = {1, false, 3e9};
  r.profile = {{"prefill", "linear", "layers.*.mlp", 0.03, 12, 0.015},
               {"prefill", "region", "", 0.01, 4, 0},
               {"decode", "attention", "layers.*.attn", 0.06, 5, 0.001},
               {"decode", "gather", "embed", 0, 5, 0.001}};
  EXPECT_EQ(printed([&] { printReport(r, "md"); }),
            "m.json: 1.23 M parameters, bf16, backend cpu (avx2), 4 threads\n\n"
            "matrix peak 2 TFLOP/s, read bandwidth 3 GB/s (1 streams per thread)\n\n" +
                std::string(kHead) +
                "\n| entry | kernel | where | runs | ms | share | predicted ms | of roof |\n"
                "|---|---|---|--:|--:|--:|--:|--:|\n"
                "| prefill | linear | layers.*.mlp | 12 | 30.00 | 75.0 % | 15.00 | 50.0 % |\n"
                "| prefill | region |  | 4 | 10.00 | 25.0 % | - | - |\n"
                "| decode | attention | layers.*.attn | 5 | 60.00 | 100.0 % | 1.00 | 1.7 % |\n"
                "| decode | gather | embed | 5 | 0.00 | 0.0 % | - | - |\n");
}

TEST(BenchReport, Csv) {
  const std::string head =
      "test,tokens,threads,dtype,tokens_per_second,tokens_per_second_min,tokens_per_second_max,"
      "flops_per_second,peak_share,bytes_per_second,bandwidth_share,batch,ranks,cpu_seconds,"
      "collective_bytes,collective_share\n";
  EXPECT_EQ(printed([] { printReport(measured(), "csv"); }),
            head + "prefill,100,4,bf16,400,200,500,4e+11,0.2,,,1,1,2,0,\n" +
                "decode,10,4,bf16,4,2.5,10,2e+09,0.001,2e+10,0.4,1,1,5,0,\n");
  EXPECT_EQ(printed([] { printReport(onRanks(), "csv"); }),
            head + "prefill,100,4,bf16,800,400,1000,4e+11,,,,2,4,2,3000,0.2\n" +
                "decode,10,4,bf16,8,5,20,2e+09,,2e+10,,2,4,5,1.5e+06,\n");
}

TEST(BenchReport, Json) {
  BenchReport r = measured();
  r.profile = {{"decode", "linear", "layers.*.mlp", 0.03, 12, 0.015}};
  EXPECT_EQ(json::parse(printed([&] { printReport(r, "json"); })), json::parse(R"({
    "schema_version": 1, "verb": "bench", "model": "m.json", "parameters": 1234567,
    "dtype": "bf16", "backend": "cpu", "cpu_isa": "avx2", "threads": 4, "batch": 1, "ranks": 1,
    "peak_flops_per_second": 2e12, "read_bytes_per_second": 5e10,
    "read_roofs": [{"streams": 8, "prefetch": true, "bytes_per_second": 5e10},
                   {"streams": 1, "prefetch": false, "bytes_per_second": 2e10}],
    "memory": {"arena_bytes": 1000, "states_bytes": 2000, "scratch_bytes": 3000,
               "derived_weights_bytes": 4000},
    "tests": [
      {"name": "prefill", "tokens": 100, "tokens_per_second": 400.0,
       "tokens_per_second_min": 200.0, "tokens_per_second_max": 500.0,
       "repetitions_s": [0.5, 0.2, 0.25], "flops_per_second": 4e11, "peak_share": 0.2,
       "bytes_per_second": null, "bandwidth_share": null, "cpu_s": 2.0},
      {"name": "decode", "tokens": 10, "tokens_per_second": 4.0,
       "tokens_per_second_min": 2.5, "tokens_per_second_max": 10.0,
       "repetitions_s": [1.0, 2.0, 4.0, 3.0], "flops_per_second": 2e9, "peak_share": 0.001,
       "bytes_per_second": 2e10, "bandwidth_share": 0.4, "cpu_s": 5.0}],
    "profile": [{"entry": "decode", "kernel": "linear", "origin": "layers.*.mlp", "runs": 12,
                 "time_s": 0.03, "predicted_s": 0.015}]})"));
}

TEST(BenchReport, JsonOfRanks) {
  json out = json::parse(printed([] { printReport(onRanks(), "json"); }));
  EXPECT_EQ(out["device"], json::parse(R"(["device: two"])"));
  for (const char* key :
       {"cpu_isa", "peak_flops_per_second", "read_bytes_per_second", "read_roofs", "profile"})
    EXPECT_FALSE(out.contains(key)) << key;
  EXPECT_EQ(out["batch"], 2);
  EXPECT_EQ(out["ranks"], 4);
  json first = out["tests"][0]["collectives"];
  EXPECT_NEAR(first["time_s"].get<double>(), 0.19 / 3, 1e-12) << "of one repetition";
  EXPECT_NEAR(first["share"].get<double>(), 0.2, 1e-12);
  EXPECT_EQ(first["calls"], 6);
  EXPECT_EQ(first["sent_bytes"], 3000.0);
  EXPECT_EQ(out["tests"][1]["collectives"],
            json::parse(R"({"calls": 40, "sent_bytes": 1.5e6, "time_s": null, "share": null})"));
}

// A share of exactly the roof is one that may be; the first that cannot be is told.
TEST(BenchReport, ContradictionsAreSharesAboveTheRoof) {
  BenchReport r = measured();
  EXPECT_EQ(r.contradiction(), "");
  r.peakFlops = 4e11;
  r.roofs.tried[0].bytesPerSecond = 2e10;
  EXPECT_EQ(r.contradiction(), "");
  r.roofs.tried[0].bytesPerSecond = 1.6e10;
  EXPECT_EQ(r.contradiction(), "decode: 125.0 % of the measured read bandwidth");
  r.peakFlops = 1e9;
  EXPECT_EQ(r.contradiction(), "prefill: 40000.0 % of the measured matrix peak");
  r.tests.erase(r.tests.begin());
  EXPECT_EQ(r.contradiction(), "decode: 200.0 % of the measured matrix peak");
  r.peakFlops = 0;
  EXPECT_EQ(r.contradiction(), "decode: 125.0 % of the measured read bandwidth");
}

}  // namespace
}  // namespace lathe::cli
