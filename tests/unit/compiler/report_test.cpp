// SPDX-License-Identifier: Apache-2.0
// What the report's page holds: every step, rewrite and kernel, links between them, and no way out
// of the element that holds the data.
#include "lathe/inspect/report.h"

#include <regex>
#include <set>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "lathe/frontend/families/llama.h"
#include "lathe/ir/ops.h"
#include "lathe/runtime/session.h"
#include "tests/unit/test_files.h"

namespace lathe {
namespace {

using Json = nlohmann::json;
using test::expectError;
using test::TemporaryFolder;
using ::testing::HasSubstr;

constexpr char kHole = '\x7f';

// A block of two layers: names, a fusion and a weight in each.
Graph smallGraph(const std::string& scope = "blocks") {
  Graph g("small");
  Dim rows = g.dim("rows", 1, 64);
  Tensor x = g.input("x", DType::F32, {rows, 32});
  for (int i = 0; i < 2; ++i) {
    Scope layer(g.recorder(), scope + "." + std::to_string(i), std::source_location::current());
    Tensor w = g.weight(scope + "." + std::to_string(i) + ".weight", DType::F32, {32, 32});
    Tensor y = matmul(x, w);
    x = y * sigmoid(y) + x;
  }
  g.output("y", exp(x) * 0.5);  // a region of its own
  return g;
}

Graph largeGraph() {
  LlamaConfig config = loadLlamaConfig(LATHE_SOURCE_DIR "/bench/configs/llama-0.5b.json");
  EXPECT_EQ(config.layers, 24);
  FamilyOptions options;
  options.dtype = options.weightDType = DType::BF16;
  return buildLlama(config, options);
}

struct Line {
  std::string text;
  size_t set;  // of its origins
};
// The lines of all steps, as the page puts them together.
std::vector<std::vector<Line>> linesOf(const Json& data) {
  std::vector<std::vector<Line>> steps;
  std::vector<Line> before;
  for (const Json& step : data["steps"]) {
    std::vector<Line> now;
    size_t at = 0;
    for (const Json& edit : step["edits"]) {
      size_t begin = edit[0], removed = edit[1];
      now.insert(now.end(), before.begin() + long(at), before.begin() + long(begin));
      const Json& flat = edit[2];
      for (size_t i = 0; i < flat.size();) {
        std::string text;
        size_t hole = i + 2;
        for (char c : data["forms"][size_t(flat[i])].get<std::string>())
          text += c == kHole ? std::to_string(flat[hole++].get<int>()) : std::string(1, c);
        EXPECT_LT(size_t(flat[i + 1]), data["sets"].size());
        now.push_back({text, size_t(flat[i + 1])});
        i = hole;
      }
      at = begin + removed;
    }
    now.insert(now.end(), before.begin() + long(at), before.end());
    steps.push_back(before = now);
  }
  return steps;
}
std::vector<std::vector<std::string>> textsOf(const Json& data) {
  std::vector<std::vector<std::string>> steps;
  for (const std::vector<Line>& lines : linesOf(data)) {
    steps.emplace_back();
    for (const Line& line : lines) steps.back().push_back(line.text);
  }
  return steps;
}

// A line without locations and without the names of values, which the report keeps stable.
std::string plain(const std::string& line) {
  static const std::regex locations(" loc\\(.*\\)$"), values("%[0-9]+");
  return std::regex_replace(std::regex_replace(line, locations, ""), values, "%");
}
// The ops alone: attribute aliases and braces differ with the locations.
std::vector<std::string> opsOf(const std::vector<std::string>& lines) {
  std::vector<std::string> ops;
  for (const std::string& line : lines)
    if (line.find("lathe.") != line.npos && line.find("func.func") == line.npos &&
        line.find("dense") == line.npos && line.find("^bb") == line.npos)
      ops.push_back(plain(line));
  return ops;
}
std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// Names may hold numbers of any spelling.
TEST(Report, EditsGiveTheTextOfEveryStep) {
  for (const char* scope : {"blocks", "b007.x00f.9999999999999999999999"}) {
    CompileRecord record;
    record.wantSnapshots = true;
    CompileOptions options;
    options.record = &record;
    Report report;
    Program program = report.compile(smallGraph(scope), options);
    auto texts = textsOf(Json::parse(report.json(program, {})));
    ASSERT_EQ(texts.size(), record.snapshots.size() + 1);  // the program is no step
    ASSERT_GT(texts.size(), 8u);
    for (size_t i = 0; i < record.snapshots.size(); ++i)
      EXPECT_EQ(opsOf(texts[i]), opsOf(split(record.snapshots[i].text)))
          << record.snapshots[i].step;
  }
}

TEST(Report, ValueKeepsItsNameWhileItsOpStays) {
  Report report;
  Program program = report.compile(smallGraph());
  Json data = Json::parse(report.json(program, {}));
  auto texts = textsOf(data);
  auto nameOf = [&](const std::vector<std::string>& lines) {
    for (const std::string& line : lines)
      if (line.find("lathe.weight \"blocks.1.weight\"") != line.npos)
        return line.substr(0, line.find(" ="));
    return std::string("none");
  };
  size_t fused = 0;
  while (data["steps"][fused]["stage"] != "fused") ++fused;
  EXPECT_NE(nameOf(texts[0]), "none");
  EXPECT_EQ(nameOf(texts[fused]), nameOf(texts[0]));
}

// IR text leaves out most types of results: the page draws them beside the values.
TEST(Report, LinesHaveTheTypesOfWhatTheyDefine) {
  Report report;
  Program program = report.compile(smallGraph());
  const Json data = Json::parse(report.json(program, {}));
  ASSERT_EQ(data["formTypes"].size(), data["forms"].size());
  auto typesOf = [&](const std::string& part) {
    for (size_t i = 0; i < data["forms"].size(); ++i)
      if (data["forms"][i].get<std::string>().find(part) != std::string::npos)
        return data["formTypes"][i];
    return Json("no such line");
  };
  EXPECT_EQ(typesOf("lathe.matmul"), Json({"f32[rows, 32]"}));
  EXPECT_EQ(typesOf("func.func @forward"), Json({"f32[rows, 32]"}));
  EXPECT_EQ(typesOf("lathe.weight"), Json({"f32[32, 32]"}));
  EXPECT_EQ(typesOf("return"), Json::array());
}

TEST(Report, SaysIfTheMachineWasBusy) {
  Report report;
  Program program = report.compile(smallGraph());
  for (bool busy : {false, true}) {
    ReportOptions options;
    options.machine = parseMachine("epyc:2");
    options.machine->busy = busy;
    EXPECT_EQ(Json::parse(report.json(program, options))["machine"]["busy"], busy);
  }
}

TEST(Report, HoldsEveryRewriteAndKernel) {
  CompileRecord record;
  CompileOptions options;
  options.record = &record;
  Report report;
  Program program = report.compile(smallGraph(), options);
  Json data = Json::parse(report.json(program, {}));
  ASSERT_FALSE(record.rewrites.empty());
  ASSERT_EQ(data["rewrites"].size(), record.rewrites.size());
  for (size_t i = 0; i < record.rewrites.size(); ++i) {
    EXPECT_EQ(data["rewrites"][i][0], record.rewrites[i].number);
    EXPECT_EQ(data["texts"][size_t(data["rewrites"][i][3])], record.rewrites[i].what);
  }
  EXPECT_EQ(data["misses"].size(), record.misses.size());
  int regions = 0;
  for (const EntryPoint& entry : program.entries)
    for (const Call& call : entry.calls) {
      if (call.callee.empty()) continue;
      ++regions;
      for (const char* language : {"vector", "llvm", "asm"}) {
        bool found = false;
        for (const Json& code : data["code"])
          found |= code["kernel"] == call.callee && code["language"] == language &&
                   code["lines"].size() > 3;
        EXPECT_TRUE(found) << call.callee << " " << language;
      }
    }
  EXPECT_GT(regions, 0);
}

TEST(Report, LinesComeFromTheUsersSource) {
  Report report;
  Program program = report.compile(smallGraph());
  Json data = Json::parse(report.json(program, {}));
  size_t file = 0;
  while (!data["files"][file].get<std::string>().ends_with("report_test.cpp")) ++file;
  bool found = false;
  for (const Json& excerpt : data["sources"][file])
    for (size_t i = 1; i < excerpt.size(); ++i)
      found |= excerpt[i].get<std::string>().find("x = y * sigmoid(y) + x;") != std::string::npos;
  EXPECT_TRUE(found);
  bool path = false;
  for (const Json& origin : data["origins"]) path |= origin[3] == "blocks.1";
  EXPECT_TRUE(path);
}

// A line that reads as before while a rewrite gives it another op's origin, too.
TEST(Report, LinesThatStayGetTheOriginsOfWhatTheyReplace) {
  Graph g("twice");
  Tensor x = g.input("x", DType::F32, {3, 32});
  const int first = int(std::source_location::current().line()) + 1;
  Tensor a = exp(x);
  Tensor b = exp(x);
  g.output("y", reduceSum(a, {1}) + reduceMax(b, {1}));
  Report report;
  Program program = report.compile(g);
  Json data = Json::parse(report.json(program, {}));
  const auto steps = linesOf(data);
  // The source lines of what each step calls lathe.exp.
  auto origins = [&](const std::string& name) {
    std::vector<std::set<int>> all;
    for (size_t i = 0; i < steps.size(); ++i)
      for (const Line& line : steps[i]) {
        if (data["steps"][i]["step"] != name || line.text.find("= lathe.exp ") == line.text.npos)
          continue;
        std::set<int>& lines = all.emplace_back();
        for (const Json& id : data["sets"][line.set])
          lines.insert(data["origins"][size_t(id)][1].get<int>());
      }
    return all;
  };
  EXPECT_EQ(origins("recorded"), (std::vector<std::set<int>>{{first}, {first + 1}}));
  EXPECT_EQ(origins("cse"), (std::vector<std::set<int>>{{first, first + 1}}));
  EXPECT_EQ(origins("fuse"), (std::vector<std::set<int>>{{first, first + 1}}));
}

TEST(Report, ReadsNothingButSources) {
  TemporaryFolder folder;
  std::ofstream(folder / "secret.key") << "do not print\n";
  std::ofstream(folder / "model.cc") << "a line of source\n";
  std::string text =
      "module @m {\n  func.func @forward(%arg0: tensor<4xf32> {lathe.name = \"x\"}) -> "
      "(tensor<4xf32> {lathe.name = \"y\"}) {\n"
      "    %0 = lathe.exp %arg0 : tensor<4xf32> loc(\"" +
      (folder / "secret.key") + "\":1:1)\n    %1 = lathe.exp %0 : tensor<4xf32> loc(\"" +
      (folder / "model.cc") + "\":1:1)\n    return %1 : tensor<4xf32>\n  }\n}\n";
  Report report;
  Program program = report.compile(Graph::parse(text));
  std::string json = report.json(program, {});
  EXPECT_THAT(json, HasSubstr("a line of source"));
  EXPECT_EQ(json.find("do not print"), std::string::npos);
}

TEST(Report, NamesCannotLeaveTheData) {
  const std::string hostile = "</script><script>alert(\"1\")</script><!--";
  Report report;
  Program program = report.compile(smallGraph(hostile));
  std::string page = report.page(program, {.title = hostile});
  auto count = [&](const std::string& needle) {
    size_t n = 0;
    for (size_t at = page.find(needle); at != page.npos; at = page.find(needle, at + 1)) ++n;
    return n;
  };
  // The data's element and the script's.
  EXPECT_EQ(count("</script>"), 2u);
  EXPECT_EQ(count("<!--"), 0u);
  size_t begin = page.find("id=\"data\">") + 10;
  Json data = Json::parse(page.substr(begin, page.find("</script>", begin) - begin));
  EXPECT_EQ(data["title"], hostile);
  EXPECT_EQ(data["program"]["weights"][0][0], hostile + ".0.weight");
}

TEST(Report, PageLoadsNothing) {
  Report report;
  Program program = report.compile(smallGraph());
  std::string page = report.page(program, {});
  EXPECT_THAT(page, HasSubstr("default-src 'none'"));
  for (const char* loads : {" src=", "@import", "url(http", "fetch(", "XMLHttpRequest"})
    EXPECT_EQ(page.find(loads), std::string::npos) << loads;
}

TEST(Report, TwentyFourLayersFitInFiveMegabytes) {
  Report report;
  Program program = report.compile(largeGraph());
  ReportOptions options;
  options.machine = parseMachine("epyc:2");
  options.settings = {{{"batch", 1}, {"seq", 512}}, {{"batch", 8}, {"seq", 2048}}};
  std::string page = report.page(program, options);
  EXPECT_LT(page.size(), 5u << 20);
  RecordProperty("bytes", int(page.size()));
}

TEST(Report, RunsStandBesideTheirSizes) {
  Report report;
  auto program = std::make_shared<Program>(report.compile(smallGraph()));
  Session session(program, {.profile = true});
  session.bindRandomWeights(1);
  for (int run = 0; run < 4; ++run) session.run("forward", {{"x", Array(DType::F32, {5, 32})}});
  std::vector<ReportRun> runs{{"forward", {{"rows", 5}}, session.profile("forward")}};
  Json data = Json::parse(report.json(*program, {}, runs));
  ASSERT_EQ(data["settings"].size(), 1u);
  EXPECT_EQ(data["settings"][0]["symbols"]["rows"], 5);
  ASSERT_EQ(data["runs"][0]["calls"].size(), program->entry("forward").calls.size());
  for (size_t i = 0; i < runs[0].calls.size(); ++i) {
    const Json& call = data["runs"][0]["calls"][i];
    EXPECT_EQ(call[0], 4);
    const double ofOne = runs[0].calls[i].seconds / 4;
    EXPECT_GT(ofOne, 0);
    EXPECT_NEAR(call[1].get<double>(), ofOne, 1e-6 * ofOne);
  }
}

// 512, or as near to it as the range and its multiples allow; a batch as small as it may be.
TEST(Report, UsualSizesAreSizesOfTheRange) {
  struct Row {
    const char* name;
    int64_t lo, hi, multiple, usual;
  };
  for (const Row& row : std::vector<Row>{{"rows", 1, 4096, 1, 512},
                                         {"rows", 1, 64, 1, 64},
                                         {"rows", 600, 4096, 1, 600},
                                         {"rows", 0, 0, 1, 0},
                                         {"rows", 1, 100, 8, 96},
                                         {"rows", 1, 515, 100, 500},
                                         {"rows", 1, 512, 512, 512},
                                         {"rows", 600, 4096, 64, 640},
                                         {"rows", 513, 1040, 520, 520},
                                         {"batch", 1, 8, 1, 1},
                                         {"batch", 3, 8, 1, 3},
                                         {"batch", 1, 8, 4, 4}}) {
    Graph g("small");
    const Dim rows = g.dim(row.name, row.lo, row.hi, row.multiple);
    g.output("y", exp(g.input("x", DType::F32, {rows, 4})));
    Report report;
    Program program = report.compile(g);
    Json data = Json::parse(report.json(program, {}));
    ASSERT_EQ(data["settings"].size(), 1u);
    EXPECT_EQ(data["settings"][0]["symbols"][row.name], row.usual)
        << row.name << " from " << row.lo << " to " << row.hi << " by " << row.multiple;
  }
}

TEST(Report, RefusesTimesOfAnotherProgram) {
  Report report;
  Program program = report.compile(smallGraph());
  expectError(ErrorCode::InvalidArgument, "expected times of",
              [&] { report.json(program, {}, {{"forward", {{"rows", 5}}, {}}}); });
}

TEST(Report, TakesOneCompilation) {
  Report report;
  report.compile(smallGraph());
  expectError(ErrorCode::InvalidArgument, "make another", [&] { report.compile(smallGraph()); });
}

TEST(Report, FileAppearsWholeOrNotAtAll) {
  TemporaryFolder folder;
  Report report;
  Program program = report.compile(smallGraph());
  report.write(folder / "out.html", program, {});
  EXPECT_EQ(test::readFile(folder / "out.html"), report.page(program, {}));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder / ""), {}), 1);
  expectError(ErrorCode::Io, "none/out.html",
              [&] { report.write(folder / "none/out.html", program, {}); });
}

}  // namespace
}  // namespace lathe
