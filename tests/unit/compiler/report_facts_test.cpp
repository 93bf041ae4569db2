// SPDX-License-Identifier: Apache-2.0
// The report's data of a program at given sizes, key by key; its page; its excerpts of sources.
#include "inspect/report/program_facts.h"

#include <functional>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "inspect/report/page.h"
#include "lathe/inspect/report.h"
#include "lathe/lathe.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"
#include "tests/unit/test_files.h"

namespace lathe {
namespace {

using Json = nlohmann::json;
using test::expectError;
using test::TemporaryFolder;

DimExpr expr(const char* text) { return DimExpr::parse(text).value(); }

Json written(const std::function<void(llvm::json::OStream&)>& write) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  llvm::json::OStream out(stream);
  out.object([&] { write(out); });
  return Json::parse(text);
}

// Two calls over a temporary of [n, 4] f32, the second of them on the temporary seen as [4*n]; of
// the second nobody knows what it costs. A function that lays out a weight.
Program program() {
  Program p;
  p.backend = "cpu";
  p.symbols = {{"n", 1, 64, 1}, {"batch", 2, 8, 2}};
  p.weights = {{"w", DType::F32, {5}}};
  p.derived = {{"d", DType::BF16, {3}}};
  p.states = {{"s", DType::F16, {expr("n"), 7}}};
  const SymbolicShape shape{expr("n"), 4};
  EntryPoint e;
  e.name = "forward";
  e.inputs = {{"x", 0}};
  e.outputs = {{"y", 2}};
  e.statesIn = e.statesOut = {{"s", 4}};
  e.slots = {{SlotKind::Argument, DType::F32, shape, 0},
             {SlotKind::Arena, DType::F32, shape},
             {SlotKind::Result, DType::I8, {expr("n")}, 0},
             {SlotKind::Weight, DType::F32, {5}, 0},
             {SlotKind::State, DType::F16, {expr("n"), 7}, 0},
             {SlotKind::Arena, DType::F32, {expr("4*n")}, 0, 1},
             {SlotKind::Constant, DType::I64, {}, 3}};
  e.calls = {{"linear", "", "{\"a\": 1}", {0, 3}, {1}, "a.py:1"},
             {"region", "region_0", "{}", {5, 6}, {2}, "b.py:2"}};
  p.entries = {e};
  p.load = std::make_unique<EntryPoint>();
  p.load->name = "load";
  p.load->slots = {{SlotKind::Weight, DType::F32, {5}, 0}, {SlotKind::Result, DType::BF16, {3}, 0}};
  p.load->outputs = {{"d", 1}};
  p.load->calls = {{"pack", "", "{}", {0}, {1}, ""}};
  return p;
}
const std::map<std::string, CallCosts> kCosts{
    {"forward", {Cost{expr("1000*n"), expr("10*n"), expr("20*n"), 5, true}, std::nullopt}}};

TEST(ReportFacts, AProgramIsItsTensorsAndItsCalls) {
  const Json all = written([](auto& out) { writeProgram(out, program(), {}, kCosts, nullptr); });
  EXPECT_EQ(all["settings"], Json::array());
  const Json& p = all["program"];
  EXPECT_EQ(p["symbols"], Json::parse(R"([["n", 1, 64, 1], ["batch", 2, 8, 2]])"));
  EXPECT_EQ(p["weights"], Json::parse(R"([["w", "f32", [5]]])"));
  EXPECT_EQ(p["derived"], Json::parse(R"([["d", "bf16", [3]]])"));
  EXPECT_EQ(p["states"], Json::parse(R"([["s", "f16", ["n", 7]]])"));
  ASSERT_EQ(p["entries"].size(), 2u);
  EXPECT_EQ(p["entries"][1]["name"], "load");
  EXPECT_EQ(p["entries"][1]["outputs"], Json::parse(R"([["d", 1]])"));
  const Json& e = p["entries"][0];
  EXPECT_EQ(e["name"], "forward");
  EXPECT_EQ(e["inputs"], Json::parse(R"([["x", 0]])"));
  EXPECT_EQ(e["outputs"], Json::parse(R"([["y", 2]])"));
  EXPECT_EQ(e["calls"], Json::parse(R"([["linear", "", "{\"a\": 1}", [0, 3], [1], "a.py:1"],
                                        ["region", "region_0", "{}", [5, 6], [2], "b.py:2"]])"));
  // Kind, dtype, shape, index, the slot whose storage it shares; then from and to which call.
  const Json slots = Json::parse(R"([["argument", "f32", ["n", 4], 0, -1],
      ["arena", "f32", ["n", 4], 0, -1], ["result", "i8", ["n"], 0, -1], ["weight", "f32", [5], 0, -1],
      ["state", "f16", ["n", 7], 0, -1], ["arena", "f32", ["4*n"], 0, 1],
      ["constant", "i64", [], 3, -1]])");
  ASSERT_EQ(e["slots"].size(), slots.size());
  for (size_t i = 0; i < slots.size(); ++i) {
    Json slot = e["slots"][i];
    ASSERT_EQ(slot.size(), 7u);
    if (i == 1) {
      EXPECT_EQ(slot[5], 0);
      EXPECT_EQ(slot[6], 1);
    }
    slot.erase(6);
    slot.erase(5);
    EXPECT_EQ(slot, slots[i]) << i;
  }
}

TEST(ReportFacts, ASettingHasPlansAndCosts) {
  const std::vector<SymbolValues> settings{{{"batch", 2}, {"n", 3}}, {{"batch", 4}, {"n", 64}}};
  const MachineRoofs machine{"m", 1e6, 1e9, 1e3};
  const Json with = written(
      [&](auto& out) { writeProgram(out, program(), settings, kCosts, &machine); })["settings"];
  ASSERT_EQ(with.size(), 2u);
  EXPECT_EQ(with[0]["symbols"], Json::parse(R"({"batch": 2, "n": 3})"));
  EXPECT_EQ(with[1]["symbols"], Json::parse(R"({"batch": 4, "n": 64})"));
  const Json& forward = with[0]["entries"]["forward"];
  const int64_t bytes[] = {48, 48, 3, 20, 42, 48, 8};
  for (size_t i = 0; i < std::size(bytes); ++i) EXPECT_EQ(forward["slots"][i][1], bytes[i]) << i;
  EXPECT_EQ(forward["slots"][1][0], 0);
  EXPECT_GE(forward["arena"].get<int64_t>(), 48);
  EXPECT_GE(with[1]["entries"]["forward"]["arena"].get<int64_t>(), 64 * 16);
  // 3,000 FLOPs at the peak of 16 bits take 3 ms, 90 bytes 90 ms.
  EXPECT_EQ(forward["calls"], Json::parse("[[3000.0, 30.0, 60.0, 1, 0.09, 0], null]"));
  EXPECT_EQ(with[0]["entries"]["load"]["calls"], Json::parse("[null]"));
  const MachineRoofs slow{"m", 1e4, 1e9, 1e3};
  const Json bound =
      written([&](auto& out) { writeProgram(out, program(), settings, kCosts, &slow); });
  EXPECT_EQ(bound["settings"][0]["entries"]["forward"]["calls"][0],
            Json::parse("[3000.0, 30.0, 60.0, 1, 0.3, 1]"));
  const Json without =
      written([&](auto& out) { writeProgram(out, program(), settings, kCosts, nullptr); });
  EXPECT_EQ(without["settings"][1]["entries"]["forward"]["calls"],
            Json::parse("[[64000.0, 640.0, 1280.0, 1], null]"));
}

TEST(ReportFacts, RunsNameTheirSetting) {
  const std::vector<SymbolValues> settings{{{"batch", 2}, {"n", 3}}, {{"batch", 2}, {"n", 64}}};
  const std::vector<ReportRun> runs{
      {"forward", {{"n", 64}}, {{"linear", "a", 3, 4}, {"region", "b", 0, 0}}},
      {"forward", {{"batch", 2}, {"n", 3}}, {{"linear", "a", 1, 2}, {"region", "b", 2, 1}}}};
  EXPECT_EQ(written([&](auto& out) { writeRuns(out, program(), runs, settings); })["runs"],
            Json::parse(R"([{"entry": "forward", "setting": 1, "calls": [[4, 0.75], [0, 0.0]]},
                            {"entry": "forward", "setting": 0, "calls": [[2, 0.5], [1, 2.0]]}])"));
  EXPECT_NO_THROW(checkRuns(program(), runs));
  expectError(ErrorCode::InvalidArgument,
              "report: expected times of 2 calls of 'forward', got 1; open the session with "
              "SessionOptions::profile",
              [] { checkRuns(program(), {{"forward", {}, {{"linear", "a", 1, 1}}}}); });
  expectError(ErrorCode::InvalidArgument, "'other'",
              [] { checkRuns(program(), {{"other", {}, {}}}); });
}

// Settings of the caller come first, then those of the runs; the same one once.
TEST(ReportFacts, EverySettingOnce) {
  Graph g("small");
  g.output("y", exp(g.input("x", DType::F32, {g.dim("rows", 1, 64), 4})));
  Report report;
  const Program p = report.compile(g, {.backend = "reference"});
  ReportOptions options{.title = "<t>", .settings = {{{"rows", 3}}, {{"rows", 9}}, {{"rows", 3}}}};
  options.machine = MachineRoofs{"m", 1, 2, 3, true};
  const CallProfile call{"graph", "a", 6, 3};
  const Json all = Json::parse(report.json(
      p, options, {{"forward", {{"rows", 9}}, {call}}, {"forward", {{"rows", 5}}, {call}}}));
  ASSERT_EQ(all["settings"].size(), 3u);
  for (auto [i, rows] : {std::pair(0, 3), {1, 9}, {2, 5}})
    EXPECT_EQ(all["settings"][size_t(i)]["symbols"]["rows"], rows);
  EXPECT_EQ(all["runs"][0]["setting"], 1);
  EXPECT_EQ(all["runs"][1]["setting"], 2);
  EXPECT_EQ(all["runs"][1]["calls"][0], Json::parse("[3, 2.0]"));
  EXPECT_EQ(all["machine"], Json::parse(R"({"name": "m", "narrow": 1.0, "wide": 2.0,
                                            "bandwidth": 3.0, "busy": true})"));
  EXPECT_EQ(all["version"], 1);
  EXPECT_EQ(all["title"], "<t>");
  EXPECT_EQ(all["backend"], "reference");
  EXPECT_EQ(all["mode"], "relaxed");
  EXPECT_EQ(all["steps"][0]["stage"], "recorded");
  EXPECT_EQ(all["steps"][0]["step"], "recorded");
  EXPECT_EQ(all["steps"].back()["stage"], "program");
  EXPECT_FALSE(Json::parse(report.json(p, {})).contains("machine"));
}

TEST(ReportPage, TheDataIsInsideOneElement) {
  const std::string page = reportPage("a<b>&c", R"({"x": "</script><!--"})");
  const std::string head =
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
      "style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:\">\n"
      "<link rel=\"icon\" href=\"data:,\">\n<title>a&lt;b&gt;&amp;c - Lathe "
      "report</title>\n<style>\n";
  EXPECT_EQ(page.substr(0, head.size()), head);
  EXPECT_THAT(page,
              testing::HasSubstr(
                  "</style>\n</head>\n<body>\n<noscript>This page needs JavaScript.</noscript>"
                  "\n<script type=\"application/json\" id=\"data\">{\"x\": "
                  "\"\\u003c/script>\\u003c!--\"}</script>\n<script>\n"));
  EXPECT_TRUE(page.ends_with("</script>\n</body>\n</html>\n"));
}

// The excerpts of a file whose ops were recorded at some of its lines.
Json excerptsOf(const std::string& file, const std::vector<int>& lines) {
  std::string text =
      "func.func @forward(%arg0: tensor<4xf32> {lathe.name = \"x\"}) -> (tensor<4xf32> "
      "{lathe.name = \"y\"}) {\n";
  std::string last = "%arg0";
  for (size_t i = 0; i < lines.size(); ++i) {
    const std::string now = "%" + std::to_string(i);
    text += "  " + now + " = lathe.exp " + last + " : tensor<4xf32> loc(\"" + file +
            "\":" + std::to_string(lines[i]) + ":1)\n";
    last = now;
  }
  text += "  return " + last + " : tensor<4xf32>\n}\n";
  Report report;
  const Program p = report.compile(Graph::parse(text), {.backend = "reference"});
  const Json data = Json::parse(report.json(p, {}));
  for (size_t i = 0; i < data["files"].size(); ++i)
    if (data["files"][i] == file) return data["sources"][i];
  return nullptr;
}

TEST(ReportSources, FourLinesAroundEachRecordedOne) {
  TemporaryFolder folder;
  std::string text;
  for (int line = 1; line <= 40; ++line)
    text += line == 3 ? std::string(500, 'x') + "\n" : "line " + std::to_string(line) + "\r\n";
  const std::string file = folder.write("model.cc", text);
  const Json excerpts = excerptsOf(file, {2, 20, 28, 38});
  auto range = [](int first, int last) {
    Json lines{first};
    for (int line = first; line <= last; ++line)
      lines.push_back(line == 3 ? std::string(400, 'x') : "line " + std::to_string(line));
    return lines;
  };
  EXPECT_EQ(excerpts, (Json{range(1, 6), range(16, 32), range(34, 40)}));
}

TEST(ReportSources, ByTheirEnding) {
  TemporaryFolder folder;
  for (const char* ending :
       {".c", ".cc", ".cpp", ".cxx", ".h", ".hh", ".hpp", ".hxx", ".inc", ".cu", ".py", ".mlir"})
    EXPECT_EQ(excerptsOf(folder.write(std::string("a") + ending, "text\n"), {1}),
              Json::parse(R"([[1, "text"]])"))
        << ending;
  for (const char* name : {"a.txt", "a.pyc", "a", ".cc"})
    EXPECT_EQ(excerptsOf(folder.write(name, "text\n"), {1}), Json::array()) << name;
  EXPECT_EQ(excerptsOf(folder / "missing.cc", {1}), Json::array());
}

}  // namespace
}  // namespace lathe
