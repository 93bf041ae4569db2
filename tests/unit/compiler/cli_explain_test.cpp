// SPDX-License-Identifier: Apache-2.0
// lathe explain and env, and what run prints, as a user's shell runs them.
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>

#include "lathe/runtime/json_reader.h"
#include "tests/unit/compiler/cli_runner.h"

namespace lathe {
namespace {

using test::expectFailure;
using test::outputOf;
using test::runLathe;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kModel = LATHE_TEST_DATA "/golden/llama_tiny_v5";
const std::string kSizes = " --set batch=1,seq=16,cache=32 --device h100 ";

TEST(CliExplain, NumbersWithSizesAndPolynomialsWithout) {
  const std::string numbers = outputOf("explain " + kModel + kSizes + "--entry prefill");
  EXPECT_THAT(numbers, HasSubstr("entry prefill: batch=1, seq=16, cache=32"));
  EXPECT_THAT(numbers, HasSubstr("| attention | model.layers.*.self_attn | 2 |"));
  // A layer's product that took in the block's residual sum is the layer's.
  EXPECT_THAT(numbers, HasSubstr("| linear | model.layers.*.self_attn.o_proj | 2 |"));
  EXPECT_THAT(numbers, HasSubstr("| linear | model.layers.*.mlp.down_proj | 2 |"));
  EXPECT_THAT(numbers, Not(HasSubstr("| model.layers.* |")));
  EXPECT_THAT(numbers, HasSubstr("peak memory "));
  const std::string polynomials = outputOf("explain " + kModel + " --entry forward --stage fused");
  EXPECT_THAT(polynomials, HasSubstr("entry forward: batch 1 to 64, seq 1 to 128"));
  EXPECT_THAT(polynomials, HasSubstr("*batch*seq*seq"));
  EXPECT_THAT(polynomials, HasSubstr("memory in bytes: weights "));
  EXPECT_THAT(polynomials, Not(HasSubstr("device")));
}

TEST(CliExplain, JsonAddsUp) {
  JsonValue out =
      JsonValue::parse(outputOf("explain " + kModel + kSizes + "--entry decode --json"), "explain");
  EXPECT_EQ(out.at("verb").asString(), "explain");
  JsonValue entry = out.at("entries").at(0), ops = entry.at("ops"), memory = entry.at("memory");
  double flops = 0, seconds = 0, share = 0;
  for (size_t i = 0; i < ops.size(); ++i) {
    flops += ops.at(i).at("flops").asDouble();
    seconds += ops.at(i).at("time_s").asDouble();
    share += ops.at(i).at("share").asDouble();
  }
  EXPECT_NEAR(flops, entry.at("total").at("flops").asDouble(), 1);
  EXPECT_NEAR(seconds, entry.at("total").at("time_s").asDouble(), seconds * 1e-9);
  EXPECT_NEAR(share, 1, 1e-9);
  EXPECT_EQ(entry.at("total").at("calls_without_cost").asInt(), 0);
  double parts = 0;
  for (const char* part : {"weights", "states", "inputs", "outputs", "temporaries"})
    parts += memory.at(std::string(part) + "_bytes").asDouble();
  EXPECT_EQ(memory.at("peak_bytes").asDouble(), parts);
}

// What binds a step is memory, a link or arithmetic: their shares are those of one time.
TEST(CliExplain, TimeOnTheLinkIsNoTimeOnTheMemory) {
  const std::string out =
      outputOf("explain " + kModel + kSizes + "--entry decode --ranks 2 --link 1us,1GB/s");
  const size_t at = out.find("| total |");
  ASSERT_NE(at, out.npos) << out;
  const std::string total = out.substr(at, out.find('\n', at) - at);
  EXPECT_THAT(total, HasSubstr("| 0 % memory, 100 % link |"));
}

// A place stands for the layers of a model, however many digits their numbers have: each row counts
// them all.
TEST(CliExplain, LayersOfOneAndOfTwoDigitsAreOnePlace) {
  test::TemporaryFolder folder;
  std::string config = test::readFile(kModel + "/config.json");
  const std::string two = "\"num_hidden_layers\": 2";
  ASSERT_NE(config.find(two), config.npos);
  std::ofstream(folder / "config.json")
      << config.replace(config.find(two), two.size(), "\"num_hidden_layers\": 12");
  const std::string numbers = outputOf("explain " + (folder / "config.json") +
                                       " --set batch=1,seq=16 --device h100 --entry forward");
  for (const char* place :
       {"attention | model.layers.*.self_attn", "linear | model.layers.*.mlp.down_proj"})
    EXPECT_THAT(numbers, HasSubstr("| " + std::string(place) + " | 12 |"));
  EXPECT_THAT(numbers, Not(HasSubstr(".**.")));
}

// What is bound by arithmetic in one layer and by memory in another is two rows.
TEST(CliExplain, RowsHoldOneBound) {
  test::TemporaryFolder folder;
  const std::string many = "tensor<4096x4096xbf16>", one = "tensor<1x4096xbf16>";
  auto product = [&](const std::string& y, const std::string& x, const std::string& type,
                     int layer) {
    return "  %" + y + " = lathe.linear %" + x + ", %w : " + type + ", " + many + " loc(\"layers." +
           std::to_string(layer) + ".proj\"(\"m.py\":1:1))\n";
  };
  std::ofstream(folder / "two.mlir")
      << "func.func @forward(%x: " + many + " {lathe.name = \"x\"}, %r: " + one +
             " {lathe.name = \"r\"}) -> (" + many + ", " + many + ", " + one + ") {\n" +
             "  %w = lathe.weight \"w\" : " + many + "\n" + product("a", "x", many, 9) +
             product("b", "a", many, 10) + product("c", "r", one, 11) +
             "  return %a, %b, %c : " + many + ", " + many + ", " + one + "\n}\n";
  const std::string rows = outputOf("explain " + (folder / "two.mlir") + " --device h100");
  EXPECT_THAT(rows,
              ContainsRegex("\\| linear \\| layers\\.\\*\\.proj \\| 2 \\|[^\n]*\\| compute \\|"));
  EXPECT_THAT(rows,
              ContainsRegex("\\| linear \\| layers\\.\\*\\.proj \\| 1 \\|[^\n]*\\| memory \\|"));
}

TEST(CliExplain, ABareConfigNeedsNoWeights) {
  EXPECT_THAT(outputOf("explain " + kModel + "/config.json" + kSizes), HasSubstr("entry decode"));
}

TEST(CliExplain, ACompiledProgramIsExplainedWithoutTheCompiler) {
  test::TemporaryFolder folder;
  const std::string program = folder / "tiny.lathe";
  ASSERT_EQ(runLathe("compile " + kModel + " -o " + program).status, 0);
  EXPECT_EQ(outputOf("explain " + program + kSizes + "--entry decode --json").size() > 100, true);
  expectFailure(2, "has the kernel calls of stage lowered alone",
                "explain " + program + " --stage fused");
}

TEST(CliExplain, EntryPointsThatLackASizeAreNamed) {
  test::CliResult r = runLathe("explain " + kModel + " --set batch=1,seq=16 --device a100");
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_THAT(r.out, HasSubstr("entry forward"));
  EXPECT_THAT(r.out, Not(HasSubstr("entry prefill")));
  EXPECT_THAT(r.err, HasSubstr("left out: entry point 'prefill' needs cache (1 to 128)"));
  expectFailure(2, "entry point 'decode' needs cache (1 to 128)",
                "explain " + kModel + " --set batch=1 --entry decode --device a100");
}

TEST(CliExplain, MistakesAreUsageErrors) {
  expectFailure(2, "symbol 'seq': expected 1 to 128, got 8192",
                "explain " + kModel + " --set batch=1,seq=8192 --device h100");
  expectFailure(2, "no symbol 'sqe'; the model has batch, seq, cache",
                "explain " + kModel + " --set sqe=1 --device h100");
  expectFailure(2, "expected host, h100, h200, a100", "explain " + kModel + " --device gtx");
  expectFailure(2, "no entry point 'train'", "explain " + kModel + " --entry train");
}

TEST(CliExplain, TheHostIsMeasuredOnce) {
  test::TemporaryFolder folder;
  const std::string cache = "LATHE_CACHE_DIR=" + folder.path(),
                    run = "explain " + kModel + " --set batch=1,seq=16 --entry forward --json";
  JsonValue first = JsonValue::parse(outputOf(run, cache), "first");
  JsonValue again = JsonValue::parse(outputOf(run, cache), "again");
  EXPECT_GT(first.at("device").at("bytes_per_second").asDouble(), 0);
  EXPECT_EQ(first.at("device").at("bytes_per_second").asDouble(),
            again.at("device").at("bytes_per_second").asDouble());
  EXPECT_THAT(outputOf("env", cache), HasSubstr("roofs.json"));
  // A damaged file is told about and replaced.
  std::ofstream(folder / "roofs.json") << "{";
  test::CliResult r = runLathe(run, cache);
  EXPECT_EQ(r.status, 0);
  EXPECT_THAT(r.err, HasSubstr("measuring again"));
}

TEST(CliEnv, TellsHowEachKindOfWeightsIsRead) {
  test::TemporaryFolder cache;
  const std::string own = "LATHE_CACHE_DIR=" + cache.path();
  outputOf("env", own);  // measures and keeps it
  const std::filesystem::path kept = std::filesystem::directory_iterator(cache / "cpu")->path();
  std::string text = test::readFile(kept);
  // GB/s of every way in one round, the default first.
  for (auto [kind, rates] : {std::pair("f32", "5, 20, 5, 5, 5, 5"),
                             {"bf16", "45, 5, 5, 5, 5, 5"},
                             {"int8", "5, 5, 5, 30, 5, 5"},
                             {"int4", "5, 5, 5, 5, 5, 10"}}) {
    const std::string before = "\"" + std::string(kind) + "\": [[";
    ASSERT_NE(text.find(before), std::string::npos) << text;
    const size_t from = text.find(before) + before.size();
    text.replace(from, text.find("]]", from) - from, rates);
  }
  std::ofstream(kept) << text;
  EXPECT_THAT(
      outputOf("env", own),
      HasSubstr("reads f32 in 1 stream, bf16 in 4 streams with prefetch 1 KiB ahead, int8 in 4 "
                "streams, int4 in 2 streams with prefetch 4 KiB ahead, up to 45.0 GB/s"));
  const JsonValue reads =
      JsonValue::parse(outputOf("env --json", own), "env").at("cpu_rates").at("reads");
  EXPECT_EQ(reads.at("f32").at("streams").asInt(), 1);
  EXPECT_EQ(reads.at("int4").at("prefetch_bytes").asInt(), 4096);
  EXPECT_EQ(reads.at("f32").at("bytes_per_second").asDouble(), 2e10);
  EXPECT_EQ(reads.at("int8").at("bytes_per_second").asDouble(), 3e10);
}

TEST(CliRun, ShowsTheFirstEightValues) {
  test::TemporaryFolder folder;
  std::ofstream(folder / "any.mlir") << R"(module {
  lathe.dim @n 1 to 16
  func.func @forward(%x: tensor<?xf32, #lathe.dims<n>> {lathe.name = "x"})
      -> (tensor<?xf32, #lathe.dims<n>> {lathe.name = "y"}) {
    %y = lathe.neg %x : tensor<?xf32, #lathe.dims<n>>
    return %y : tensor<?xf32, #lathe.dims<n>>
  }
})";
  const std::string run = "run " + (folder / "any.mlir") + " --input x=";
  EXPECT_EQ(outputOf(run + "8xf32=1,2,3,4,5,6,7,8"),
            "y: f32[8]\n  -1, -2, -3, -4, -5, -6, -7, -8\n  min -8, max -1\n");
  EXPECT_EQ(outputOf(run + "9xf32=1,2,3,4,5,6,7,8,9"),
            "y: f32[9]\n  -1, -2, -3, -4, -5, -6, -7, -8, ...\n  min -9, max -1\n");
}

}  // namespace
}  // namespace lathe
