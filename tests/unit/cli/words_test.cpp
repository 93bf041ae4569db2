// SPDX-License-Identifier: Apache-2.0
// Words of the `lathe` command: amounts, places, shapes, nearest words, lines, links.
#include <cmath>
#include <limits>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/unit/cli/printed.h"
#include "tests/unit/test_files.h"
#include "tools/lathe/console.h"
#include "tools/lathe/json_output.h"
#include "tools/lathe/nearest.h"
#include "tools/lathe/places.h"
#include "tools/lathe/rank_links.h"
#include "tools/lathe/text_lines.h"

namespace lathe::cli {
namespace {

using test::expectError;
using test::printed;
using test::TemporaryFolder;

TEST(Words, AmountsAreDecimal) {
  for (auto [bytes, text] : {std::pair(0.0, "0 B"),
                             {1.0, "1 B"},
                             {999.0, "999 B"},
                             {1000.0, "1 kB"},
                             {1024.0, "1.02 kB"},
                             {1536e3, "1.54 MB"},
                             {999'499.0, "999 kB"},
                             {999'500.0, "1 MB"},  // which "1e+03 kB" would be, too
                             {999.6e6, "1 GB"},
                             {2e9, "2 GB"},
                             {3e12, "3 TB"},
                             {4e15, "4e+03 TB"}})
    EXPECT_EQ(byteText(bytes), text);
  for (auto [count, text] : {std::pair(0.0, "0"),
                             {999.0, "999"},
                             {1000.0, "1 k"},
                             {1234567.0, "1.23 M"},
                             {999'999.0, "1 M"},
                             {8e9, "8 G"},
                             {1e12, "1 T"}})
    EXPECT_EQ(countText(count), text);
  for (auto [seconds, text] : {std::pair(0.0, "0 ns"),
                               {9.994e-7, "999 ns"},
                               {1e-6, "1.00 us"},
                               {9.996e-7, "1.00 us"},
                               {1.5e-4, "150.00 us"},
                               {9.99994e-4, "999.99 us"},
                               {9.99996e-4, "1.00 ms"},
                               {0.999996, "1.00 s"},
                               {1e-3, "1.00 ms"},
                               {0.25, "250.00 ms"},
                               {1.0, "1.00 s"},
                               {90.0, "90.00 s"}})
    EXPECT_EQ(timeText(seconds), text);
}

TEST(Words, NumbersThatJsonLacksAreText) {
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(numberOrText(1.5), Json(1.5));
  EXPECT_EQ(numberOrText(infinity), Json("Infinity"));
  EXPECT_EQ(numberOrText(-infinity), Json("-Infinity"));
  EXPECT_EQ(numberOrText(std::nan("")), Json("NaN"));
}

TEST(Words, ShapesHaveNumbersAndSizes) {
  const SymbolicShape shape{DimExpr::symbol("seq"), 8, DimExpr::parse("seq+1").value()};
  EXPECT_EQ(cli::describe(DType::BF16, shape), "bf16[seq, 8, seq+1]");
  EXPECT_EQ(cli::describe(DType::F32, {}), "f32[]");
  EXPECT_EQ(shapeJson(shape).dump(), R"(["seq",8,"seq+1"])");
  EXPECT_EQ(shapeJson({}).dump(), "[]");
}

TEST(Words, DocumentsAreIndentedAndOfUtf8) {
  EXPECT_EQ(document("run").dump(), R"({"schema_version":1,"verb":"run"})");
  EXPECT_EQ(printed([] { printJson({{"a", "x\xff"}, {"b", 1}}); }),
            "{\n  \"a\": \"x\xef\xbf\xbd\",\n  \"b\": 1\n}\n");
  EXPECT_TRUE(hasPrintedJson());
  EXPECT_EQ(printed([] { printGraphText("inspect", "fused", "mlir", "a", false); }), "a\n");
  EXPECT_EQ(printed([] { printGraphText("inspect", "fused", "mlir", "a\n", false); }), "a\n");
  EXPECT_EQ(nlohmann::json::parse(
                printed([] { printGraphText("compile", "fused", "dot", "a\n", true); })),
            nlohmann::json::parse(
                R"({"schema_version": 1, "verb": "compile", "stage": "fused", "dot": "a\n"})"));
}

TEST(Words, PlacesAreThoseOfAllLayers) {
  for (auto [origin, place] : {std::pair("blocks.3.attn model.cpp:41", "blocks.*.attn"),
                               {"blocks.31.attn", "blocks.*.attn"},
                               {"7 a.py:1", "*"},
                               {"a1b22 x 3", "a*b*"},
                               {"", ""}})
    EXPECT_EQ(placeOf(origin), place);
  for (auto [kernel, kind] : {std::pair("region_12", "region"),
                              {"gemv_4x", "gemv_4x"},
                              {"conv2", "conv"},
                              {"12", "12"},
                              {"all_reduce", "all_reduce"},
                              {"x__7", "x_"}})
    EXPECT_EQ(kindOf(kernel), kind);
}

TEST(Words, DistancesCountOneLetterEach) {
  for (auto [from, to, distance] : {std::tuple("run", "run", 0u),
                                    {"", "abc", 3u},
                                    {"abc", "", 3u},
                                    {"abc", "abd", 1u},
                                    {"abc", "ac", 1u},
                                    {"abc", "abxc", 1u},
                                    {"rnu", "run", 1u},
                                    {"kitten", "sitting", 3u},
                                    {"ca", "abc", 3u}})
    EXPECT_EQ(editDistance(from, to), distance) << from << " " << to;
}

// Of six letters two may be wrong, of three one; of equally near words the first counts.
TEST(Words, TheNearestWordIsWithinAThird) {
  const std::vector<std::string> words{"tokens", "run", "runs"};
  EXPECT_EQ(nearest("tokexy", words), "tokens");
  EXPECT_EQ(nearest("tokxyz", words), "");
  EXPECT_EQ(nearest("rxn", words), "run");
  EXPECT_EQ(nearest("xyn", words), "");
  EXPECT_EQ(nearest("r", std::vector<std::string>{"rs", "rt"}), "rs");
  EXPECT_EQ(nearest("runx", words), "run");
  EXPECT_EQ(didYouMean("rnu", words), "; did you mean 'run'?");
  EXPECT_EQ(didYouMean("nothing", words), "");
}

TEST(Words, BarsAreTwentyWide) {
  EXPECT_EQ(progressBar(0, 0), "[--------------------] 0/0");
  EXPECT_EQ(progressBar(1, 40), "[--------------------] 1/40");
  EXPECT_EQ(progressBar(2, 40), "[#-------------------] 2/40");
  EXPECT_EQ(progressBar(39, 40), "[###################-] 39/40");
  EXPECT_EQ(progressBar(40, 40), "[####################] 40/40");
  EXPECT_EQ(progressBar(41, 40), "[####################] 41/40");
}

TEST(Words, ColourIsOfTerminalsUnlessTheUserSays) {
  auto set = [](const char* name, const char* value) {
    value ? setenv(name, value, 1) : unsetenv(name);
  };
  struct Case {
    const char *noColor, *force, *term;
    bool isTerminal, wants;
  };
  for (const Case& c : {Case{nullptr, nullptr, "xterm", true, true},
                        {nullptr, nullptr, "xterm", false, false},
                        {nullptr, nullptr, nullptr, true, true},
                        {nullptr, nullptr, "dumb", true, false},
                        {"1", nullptr, "xterm", true, false},
                        {"", nullptr, "xterm", true, true},
                        {nullptr, "1", "dumb", false, true},
                        {nullptr, "0", "xterm", false, false},
                        {nullptr, "", "xterm", false, false},
                        {"1", "1", "xterm", true, false}}) {
    set("NO_COLOR", c.noColor);
    set("CLICOLOR_FORCE", c.force);
    set("TERM", c.term);
    EXPECT_EQ(wantsColor(ColorMode::Auto, c.isTerminal), c.wants)
        << (c.noColor ? c.noColor : "-") << " " << (c.force ? c.force : "-") << " "
        << (c.term ? c.term : "-") << " " << c.isTerminal;
    EXPECT_TRUE(wantsColor(ColorMode::Always, c.isTerminal));
    EXPECT_FALSE(wantsColor(ColorMode::Never, c.isTerminal));
  }
  set("NO_COLOR", nullptr);
  set("CLICOLOR_FORCE", nullptr);
}

TEST(Words, HowMuchIsSaid) {
  auto said = [](int verbosity) {
    Console console;
    console.setVerbosity(verbosity);
    testing::internal::CaptureStderr();
    console.error("e");
    console.note("n");
    console.detail("d");
    console.echo("t");
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_EQ(said(-1), "error: e\n");
  EXPECT_EQ(said(0), "error: e\nnote: n\nt");
  EXPECT_EQ(said(1), "error: e\nnote: n\ndetail: d\nt");
  Console colored;
  colored.setColor(ColorMode::Always);
  colored.setVerbosity(1);
  testing::internal::CaptureStderr();
  colored.error("e");
  colored.note("n");
  colored.detail("d");
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "\033[1;31merror:\033[0m e\n\033[1;36mnote:\033[0m n\n\033[2mdetail:\033[0m d\n");
}

TEST(Words, LinesOfFiles) {
  TemporaryFolder folder;
  auto lines = [&](const char* text) { return linesOf(folder.write("a.txt", text)); };
  using Lines = std::vector<std::string>;
  EXPECT_EQ(lines("a\nb"), (Lines{"a", "b"}));
  EXPECT_EQ(lines("a\r\n\r\nb\n"), (Lines{"a", "", "b"}));
  EXPECT_EQ(lines("a\rb\n\n"), (Lines{"a\rb", ""}));
  EXPECT_EQ(lines("\xef\xbb\xbf\xef\xbb\xbfx"), (Lines{"\xef\xbb\xbfx"}));
  EXPECT_EQ(textOf(folder / "a.txt"), "\xef\xbb\xbfx");
  expectError(ErrorCode::InvalidArgument, "a.txt: expected a text in each line, got no line",
              [&] { lines(""); });
}

TEST(Words, LinksAreALatencyAndABandwidth) {
  const Link usual = sharedMemoryLink();
  EXPECT_DOUBLE_EQ(usual.latency, 3e-6);
  EXPECT_DOUBLE_EQ(usual.bytesPerSecond, 2.5e9);
  for (auto [text, latency, bandwidth] : {std::tuple("2s,3kB/s", 2.0, 3e3),
                                          {"2.5ms,4MB/s", 2.5e-3, 4e6},
                                          {"7us,0.5GB/s", 7e-6, 5e8},
                                          {"9ns,1GB/s", 9e-9, 1e9}}) {
    const Link link = parseLink(text);
    EXPECT_EQ(link.name, text);
    EXPECT_DOUBLE_EQ(link.latency, latency);
    EXPECT_DOUBLE_EQ(link.bytesPerSecond, bandwidth);
  }
  for (const char* text : {"", "1us", "1us,", ",1GB/s", "0us,1GB/s", "-1us,1GB/s", "1us,1GB",
                           "1,1GB/s", "1us,1TB/s", "1us,1GB/s,2", "xus,1GB/s", "1min,1GB/s"})
    expectError(ErrorCode::InvalidArgument,
                "--link: expected a latency and a bandwidth such as 25us,2.8GB/s, got '" +
                    std::string(text) + "'",
                [&] { parseLink(text); });
}

TEST(Words, MeshesAreRanksInStages) {
  for (auto [text, ranks, stages] : {std::tuple("tp=8", 8, 1),
                                     {"pp=4", 4, 4},
                                     {"tp=2,pp=4", 8, 4},
                                     {"pp=64,tp=16", 1024, 64},
                                     {"tp=1", 1, 1},
                                     {"tp=1024", 1024, 1}}) {
    EXPECT_EQ(parseMesh(text).ranks, ranks) << text;
    EXPECT_EQ(parseMesh(text).stages, stages) << text;
  }
  for (const char* text :
       {"", "8", "tp=", "tp=0", "tp=1025", "pp=65", "tp=2,tp=2", "pp=2,pp=2", "tp=2x", "dp=2",
        "tp=32,pp=64", "tp=-1", "tp=2,,pp=2", "tp=2,", ",tp=2", ","})
    expectError(ErrorCode::InvalidArgument,
                "--mesh: expected tp=N, pp=N or tp=N,pp=N with from 1 to 1024 ranks in at most 64 "
                "stages, got '" +
                    std::string(text) + "'",
                [&] { parseMesh(text); });
}

// Rows are split between the ranks of a layer, where there are several.
TEST(Words, AMeshOfAnotherSizeSplitsRowsWhereItCan) {
  for (const bool split : {false, true})
    for (auto [ranks, stages] : {std::pair<int64_t, int64_t>{1, 1}, {1, 4}, {2, 1}, {4, 2}}) {
      const Mesh mesh = resized({.axis = "a", .ranks = 8, .splitRows = split}, ranks, stages);
      EXPECT_EQ(mesh.axis, "a");
      EXPECT_EQ(mesh.ranks, ranks * stages);
      EXPECT_EQ(mesh.stages, stages);
      EXPECT_EQ(mesh.splitRows, split && ranks > 1) << ranks << " in " << stages;
    }
}

// Of a cost that reads 800 bytes and writes 400, on five ranks: log2 rounds up to three steps.
TEST(Words, WhatCollectivesTell) {
  const CostValues cost{0, 800, 400, 0};
  const Link link{"l", 1, 100};
  struct Case {
    const char* kind;
    int exchanges;
    double bytes, seconds;
  };
  for (const Case& c : {Case{"all_reduce", 2, 2 * 0.8 * 400, 2 * 3 + 6.4},
                        {"all_gather", 1, 0.8 * 400, 3 + 3.2},
                        {"all_to_all", 1, 0.8 * 400, 3 + 3.2},
                        {"reduce_scatter", 1, 0.8 * 800, 3 + 6.4},
                        {"send", 1, 800, 1 + 8},
                        {"receive", 1, 0, 0}}) {
    const Call call{c.kind, "", "{}", {}, {}, ""};
    EXPECT_EQ(exchangesOf(call), c.exchanges) << c.kind;
    EXPECT_DOUBLE_EQ(collectiveBytes(call, cost, 5), c.bytes) << c.kind;
    EXPECT_DOUBLE_EQ(collectiveSeconds(call, cost, 5, link).value(), c.seconds) << c.kind;
  }
  const Call gather{"all_gather", "", "{}", {}, {}, ""}, other{"linear", "", "{}", {}, {}, ""};
  EXPECT_DOUBLE_EQ(collectiveSeconds(gather, cost, 4, link).value(), 2 + 3) << "two steps";
  EXPECT_DOUBLE_EQ(collectiveSeconds(gather, cost, 2, link).value(), 1 + 2);
  EXPECT_EQ(exchangesOf(other), 0);
  EXPECT_FALSE(collectiveSeconds(other, cost, 5, link));
}

}  // namespace
}  // namespace lathe::cli
