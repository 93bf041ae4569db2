// SPDX-License-Identifier: Apache-2.0
// Verbs and flags of the `lathe` command that ask about a compilation.
#include <fstream>

#include <gmock/gmock.h>

#include "lathe/runtime/json_reader.h"
#include "tests/unit/compiler/cli_runner.h"

namespace lathe {
namespace {

using test::CliResult;
using test::expectFailure;
using test::outputOf;
using test::runLathe;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kModel = LATHE_TEST_DATA "/golden/llama_tiny_v5";

JsonValue jsonOf(const std::string& arguments) {
  return JsonValue::parse(outputOf(arguments), arguments);
}

// y = f(x) where f is one op, with a weight-free matmul in front of it.
class QuestionsCli : public ::testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& op) {
    std::string path = folder_ / name;
    std::ofstream(path) << R"(module {
  lathe.dim @n 1 to 64
  func.func @forward(%x: tensor<?x8xf32, #lathe.dims<n, 8>> {lathe.name = "x"})
      -> (tensor<?x8xf32, #lathe.dims<n, 8>> {lathe.name = "y"}) {
    %0 = lathe.exp %x : tensor<?x8xf32, #lathe.dims<n, 8>>
    %1 = lathe.)" << op << R"( %0 : tensor<?x8xf32, #lathe.dims<n, 8>>
    return %1 : tensor<?x8xf32, #lathe.dims<n, 8>>
  }
})";
    return path;
  }
  test::TemporaryFolder folder_;
};

TEST_F(QuestionsCli, ListsRewritesAndStopsAfterOne) {
  JsonValue all = jsonOf("inspect " + kModel + " --rewrites --json");
  const JsonValue& rewrites = all.at("rewrites");
  ASSERT_GT(rewrites.size(), 10u);
  for (size_t i = 0; i < rewrites.size(); ++i)
    ASSERT_EQ(rewrites.at(i).at("number").asInt(), int64_t(i) + 1);
  for (const char* key : {"attempt", "step", "pattern", "at", "weakened"})
    EXPECT_TRUE(rewrites.at(0).has(key)) << key;
  JsonValue three = jsonOf("inspect " + kModel + " --rewrites --stop-after-rewrite 3 --json");
  EXPECT_EQ(three.at("rewrites").size(), 3u);
}

// What is done to a graph asks for no weights: a config.json is answered as its folder is.
TEST_F(QuestionsCli, ABareConfigIsAskedAsItsFolderIs) {
  const std::string config = folder_ / "config.json", asked = " --rewrites --json";
  std::filesystem::copy_file(kModel + "/config.json", config);
  EXPECT_EQ(jsonOf("inspect " + config + asked).at("rewrites").size(),
            jsonOf("inspect " + kModel + asked).at("rewrites").size());
}

TEST_F(QuestionsCli, PrintsRewritesAsATable) {
  std::string text = outputOf("inspect " + kModel + " --rewrites");
  EXPECT_THAT(text, HasSubstr("number  attempt  step"));
  EXPECT_THAT(text, HasSubstr("rms_norm"));
}

TEST_F(QuestionsCli, RunsCudaKernelsOnTheCpu) {
  const std::string path = write("a.mlir", "tanh");
  const std::string flags = path + " --backend cuda --device host";
  EXPECT_THAT(outputOf("bisect " + flags), HasSubstr("nothing is wrong"));
  EXPECT_THAT(outputOf("inspect --check-numerics " + flags), HasSubstr("program"));
  for (const char* question : {"bisect ", "inspect --check-numerics "})
    expectFailure(2, "--device is of the cuda backend, this call is for cpu; add --backend cuda",
                  question + path + " --backend cpu --device host");
  expectFailure(2, "--device", "inspect " + path + " --device host");
}

TEST_F(QuestionsCli, StopsAfterNoRewriteAtAll) {
  const std::string at = "inspect " + kModel + " --stop-after fused --stop-after-rewrite ";
  EXPECT_THAT(outputOf(at + "0"), Not(HasSubstr("lathe.rms_norm")));
  EXPECT_THAT(outputOf(at + "100000"), HasSubstr("lathe.rms_norm"));
}

TEST_F(QuestionsCli, ChecksNumericsOfEveryStep) {
  JsonValue out = jsonOf("inspect " + kModel + " --check-numerics --set seq=4 --json");
  EXPECT_TRUE(out.at("within_contract").asBool());
  EXPECT_EQ(out.at("sizes").at("seq").asInt(), 4);
  const JsonValue& steps = out.at("steps");
  EXPECT_EQ(steps.at(0).at("step").asString(), "canonicalize");
  EXPECT_EQ(steps.at(steps.size() - 1).at("stage").asString(), "program");
  // Results that are the same bits are asked for in the dtypes of the graph.
  EXPECT_EQ(out.at("precision").asString(), "float64");
  const std::string strict = "inspect " + kModel + " --check-numerics --mode strict --json";
  EXPECT_EQ(jsonOf(strict).at("precision").asString(), "own");
  EXPECT_EQ(jsonOf(strict + " --precision float64").at("precision").asString(), "float64");
}

TEST_F(QuestionsCli, TellsBeyondTheContractByTheExitStatus) {
  CliResult r = runLathe("inspect " + kModel + " --check-numerics --tolerance 1e-30");
  EXPECT_EQ(r.status, 5);
  EXPECT_THAT(r.out, HasSubstr("beyond the contract: "));
  EXPECT_THAT(r.err, HasSubstr("this names the rewrite: lathe bisect " + kModel));
}

// The runtime is in the same process: a type of either that had the name of another's would take
// its memory for its own.
TEST_F(QuestionsCli, AGraphThatChoosesOftenIsRun) {
  const std::string path = folder_ / "choices.mlir";
  std::ofstream(path) << R"(func.func @forward(%x: tensor<3x8xf32> {lathe.name = "x"})
    -> (tensor<3x8xf32> {lathe.name = "y"}, tensor<3x2xi64> {lathe.name = "best"}) {
  %0 = lathe.floor %x : tensor<3x8xf32>
  %1 = lathe.round %x : tensor<3x8xf32>
  %2 = lathe.ceil %x : tensor<3x8xf32>
  %3 = lathe.add %0, %1 : tensor<3x8xf32>, tensor<3x8xf32>
  %4 = lathe.add %3, %2 : tensor<3x8xf32>, tensor<3x8xf32>
  %values, %indices = lathe.top_k %x k 2 : tensor<3x8xf32>
  return %4, %indices : tensor<3x8xf32>, tensor<3x2xi64>
})";
  EXPECT_THAT(outputOf("inspect " + path + " --check-numerics"), HasSubstr("program"));
  EXPECT_THAT(outputOf("bisect " + path), HasSubstr("nothing is wrong"));
}

// What --check-numerics says to run next asks about the same compilation and the same data.
TEST_F(QuestionsCli, CheckNumericsNamesTheBisectionWithAllFlagsOfTheCall) {
  const std::string pattern = folder_ / "wrong one.pdl.mlir", graph = write("a.mlir", "tanh");
  std::ofstream(pattern) << test::kWrongPattern;
  const std::string compile =
      " --backend cuda --mode fast --weight-format int8:channel,embedding=stored,head=stored"
      " --patterns '" +
      pattern + "' --load-pass-plugin " +
      LATHE_BINARY_DIR "/lib/round_weights_plugin.so --passes cse --skip-attempt 99999";
  const std::string trial =
      " --set n=9 --input x=9x8xf32=0.5 --seed 3 --precision own --tolerance 0.001"
      " --entry forward --device host";
  CliResult r = runLathe("inspect --check-numerics " + graph + compile + trial);
  EXPECT_EQ(r.status, 5) << r.err;
  const std::string command = "lathe bisect " + graph + compile + trial;
  ASSERT_THAT(r.err, HasSubstr(command));
  CliResult found =
      runLathe(command.substr(command.find(' ') + 1) + " --json -o " + (folder_ / "out"));
  ASSERT_EQ(found.status, 5) << found.err;
  const JsonValue json = JsonValue::parse(found.out, "bisect");
  EXPECT_EQ(json.at("rewrite").at("pattern").asString(), "wrong");
  const JsonValue& commands = json.at("reproducer").at("commands");
  EXPECT_THAT(commands.at(1).asString(),
              HasSubstr(" --weight-format int8:channel,embedding=stored,head=stored"));
  const std::string opt = commands.at(2).asString();
  CliResult passes = runLathe(opt.substr(opt.find(' ') + 1), "", LATHE_BINARY_DIR "/bin/lathe-opt");
  EXPECT_EQ(passes.status, 0) << passes.err;
  EXPECT_THAT(passes.out, HasSubstr("lathe.sigmoid"));
}

TEST_F(QuestionsCli, BisectFindsNothingWrong) {
  CliResult r = runLathe("bisect " + kModel + " --set seq=4");
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_THAT(r.out, HasSubstr("nothing is wrong"));
}

TEST_F(QuestionsCli, BisectNamesAWrongPatternAndWritesAReproducer) {
  const std::string pattern = folder_ / "wrong.pdl.mlir", out = folder_ / "out";
  std::ofstream(pattern) << test::kWrongPattern;
  CliResult r = runLathe("bisect " + write("a.mlir", "tanh") + " --patterns " + pattern +
                         " --json -o " + out);
  EXPECT_EQ(r.status, 5) << r.err;
  JsonValue json = JsonValue::parse(r.out, "bisect");
  EXPECT_EQ(json.at("culprit").asString(), "rewrite");
  EXPECT_EQ(json.at("rewrite").at("pattern").asString(), "wrong");
  EXPECT_EQ(json.at("step").asString(), "user-fusions");
  EXPECT_EQ(json.at("reproducer").at("ops").asInt(), 1);
  EXPECT_TRUE(json.at("reproducer").at("shows_the_mistake").asBool());
  EXPECT_TRUE(std::filesystem::exists(json.at("reproducer").at("graph").asString()));
}

// The commands that bisect prints for a fusion from a file, run as they are.
TEST_F(QuestionsCli, BisectsReproducerRunsWithTheFlagsOfTheCall) {
  const std::string pattern = folder_ / "wrong.pdl.mlir", out = folder_ / "out put";
  std::ofstream(pattern) << test::kWrongPattern;
  CliResult r = runLathe("bisect " + write("a.mlir", "tanh") + " --mode fast --passes cse" +
                         " --patterns " + pattern + " --json -o '" + out + "'");
  ASSERT_EQ(r.status, 5) << r.err;
  const JsonValue json = JsonValue::parse(r.out, "bisect");
  const JsonValue& commands = json.at("reproducer").at("commands");
  const std::string right = commands.at(0).asString(), wrong = commands.at(1).asString(),
                    opt = commands.at(2).asString();
  for (const std::string& flag : {std::string(" --mode fast"), std::string(" --passes cse"),
                                  " --patterns " + pattern, std::string(" --backend cpu")})
    EXPECT_THAT(wrong, HasSubstr(flag));
  EXPECT_THAT(opt, HasSubstr("lathe-fuse{patterns=" + pattern + "},cse)"));
  auto rest = [](const std::string& command) { return command.substr(command.find(' ') + 1); };
  EXPECT_NE(outputOf(rest(right)), outputOf(rest(wrong)));
}

// A wrong pass of a plug-in has no numbered rewrites: the step is named, and every command loads
// it.
TEST_F(QuestionsCli, BisectsReproducerLoadsThePluginOfTheCall) {
  const std::string graph = folder_ / "weight.mlir", out = folder_ / "out";
  std::ofstream(graph) << R"(module {
  func.func @forward(%x: tensor<3x8xf32> {lathe.name = "x"})
      -> (tensor<3x4xf32> {lathe.name = "y"}) {
    %w = lathe.weight "w" : tensor<8x4xf32>
    %0 = lathe.matmul %x, %w : tensor<3x8xf32>, tensor<8x4xf32>
    return %0 : tensor<3x4xf32>
  }
})";
  const std::string plugin = LATHE_BINARY_DIR "/lib/round_weights_plugin.so";
  CliResult r = runLathe("bisect " + graph + " --load-pass-plugin " + plugin +
                         " --passes example-round-weights --json -o " + out);
  ASSERT_EQ(r.status, 5) << r.err;
  const JsonValue json = JsonValue::parse(r.out, "bisect");
  EXPECT_EQ(json.at("culprit").asString(), "rewrite");
  EXPECT_TRUE(json.at("reproducer").at("shows_the_mistake").asBool());
  const JsonValue& commands = json.at("reproducer").at("commands");
  const std::string right = commands.at(0).asString(), wrong = commands.at(1).asString(),
                    opt = commands.at(2).asString();
  EXPECT_THAT(wrong,
              HasSubstr(" --load-pass-plugin " + plugin + " --passes example-round-weights"));
  auto rest = [](const std::string& command) { return command.substr(command.find(' ') + 1); };
  EXPECT_NE(outputOf(rest(right)), outputOf(rest(wrong)));
  CliResult passes = runLathe(rest(opt), "", LATHE_BINARY_DIR "/bin/lathe-opt");
  EXPECT_EQ(passes.status, 0) << passes.err;
}

TEST_F(QuestionsCli, BisectsCommandsSkipWhatTheCallSkips) {
  const std::string pattern = folder_ / "wrong.pdl.mlir";
  std::ofstream(pattern) << test::kWrongPattern;
  CliResult r =
      runLathe("bisect " + write("a.mlir", "tanh") + " --skip-attempt 99999 --patterns " + pattern);
  EXPECT_EQ(r.status, 5) << r.err;
  EXPECT_THAT(r.out, HasSubstr(" --skip-attempt 99999 --stop-after "));
}

// What two elements do not show: the larger sizes of the second trial.
TEST_F(QuestionsCli, BisectTriesLargerSizesWhereItFindsNothing) {
  const std::string path = write("a.mlir", "tanh");
  EXPECT_THAT(outputOf("bisect " + path), HasSubstr("(n = 2, then n = 17)"));
  JsonValue out = jsonOf("bisect " + path + " --json");
  EXPECT_EQ(out.at("sizes").at("n").asInt(), 2);
  EXPECT_EQ(out.at("also_sizes").at("n").asInt(), 17);
}

TEST_F(QuestionsCli, BisectRunsOneEntryPointAndTheDeviceIsOfCuda) {
  CliResult r = runLathe("bisect " + kModel + " --entry decode --set cache=8");
  EXPECT_EQ(r.status, 0) << r.err;
  expectFailure(2, "the graph has no entry point 'decoder'; it has forward, prefill, decode",
                "bisect " + kModel + " --entry decoder");
  expectFailure(2, "--device is of the cuda backend", "bisect " + kModel + " --device host");
}

TEST_F(QuestionsCli, AsksAboutSoManyLayers) {
  auto rewrites = [&](const std::string& flags) {
    return jsonOf("inspect " + kModel + " --rewrites --json" + flags).at("rewrites").size();
  };
  EXPECT_LT(rewrites(" --layers 1"), rewrites(""));
  expectFailure(2, "layers, got 99", "inspect " + kModel + " --rewrites --layers 99");
  expectFailure(2, "is IR text", "inspect " + write("a.mlir", "tanh") + " --rewrites --layers 1");
}

TEST_F(QuestionsCli, DrawsTheGraphOfAStage) {
  const std::string dot = outputOf("inspect " + kModel + " --graphviz --stop-after fused");
  EXPECT_TRUE(dot.starts_with("digraph")) << dot.substr(0, 80);
  EXPECT_THAT(dot, HasSubstr("rms_norm"));
}

TEST_F(QuestionsCli, WhyNotPrintsJson) {
  JsonValue out = jsonOf("why-not " + kModel + " --op mul --json");
  ASSERT_GT(out.at("misses").size(), 0u);
  for (const char* key :
       {"refused_by", "op", "at", "pattern", "matched_ops", "pattern_ops", "constraint", "reason"})
    EXPECT_TRUE(out.at("misses").at(0).has(key)) << key;
}

TEST_F(QuestionsCli, WhyNotSaysSoWhereNothingIsLeft) {
  CliResult r = runLathe("why-not " + write("a.mlir", "tanh") + " --op softmax");
  EXPECT_EQ(r.status, 0);
  EXPECT_EQ(r.out, "");
  EXPECT_THAT(r.err, HasSubstr("no such op is left over"));
}

TEST_F(QuestionsCli, CountsLocations) {
  std::string text = outputOf("inspect " + kModel + " --check-locations");
  EXPECT_THAT(text, HasSubstr("100.0 %"));
  EXPECT_THAT(text, Not(HasSubstr("99.")));
}

TEST_F(QuestionsCli, DiffTellsByTheExitStatus) {
  const std::string a = write("a.mlir", "tanh"), b = write("b.mlir", "erf");
  EXPECT_THAT(outputOf("diff " + a + " " + a), HasSubstr("the graphs are equal"));
  CliResult r = runLathe("diff " + a + " " + b);
  EXPECT_EQ(r.status, 1);
  EXPECT_THAT(r.out, HasSubstr("lathe.tanh"));
  EXPECT_THAT(r.out, HasSubstr("lathe.erf"));
  EXPECT_THAT(r.out, HasSubstr("the graphs differ"));
}

TEST_F(QuestionsCli, DiffOfAFolderAndItsOwnText) {
  const std::string text = folder_ / "model.mlir";
  std::ofstream(text) << outputOf("inspect " + kModel + " --stop-after recorded");
  EXPECT_THAT(outputOf("diff " + kModel + " " + text), HasSubstr("the graphs are equal"));
}

// What the backend refuses in every layer is one line.
TEST_F(QuestionsCli, WhyNotCountsOneRefusalOfAllLayers) {
  std::string text = outputOf("why-not " + kModel);
  size_t first = text.find("lathe.rope_append refused by the backend");
  ASSERT_NE(first, text.npos) << text;
  EXPECT_EQ(text.find("lathe.rope_append refused", first + 1), text.npos) << text;
  EXPECT_THAT(text, HasSubstr("model.layers.*.self_attn"));
  EXPECT_THAT(text, HasSubstr(" times)"));
}

TEST_F(QuestionsCli, WhyNotCountsLayersOfOneAndOfTwoDigitsTogether) {
  std::string config = test::readFile(kModel + "/config.json");
  const std::string two = "\"num_hidden_layers\": 2";
  ASSERT_NE(config.find(two), config.npos);
  const std::string path = folder_ / "config.json";
  std::ofstream(path) << config.replace(config.find(two), two.size(), "\"num_hidden_layers\": 12");
  const std::string text = outputOf("why-not " + path);
  const size_t first = text.find("lathe.rope_append refused by the backend");
  ASSERT_NE(first, text.npos) << text;
  EXPECT_EQ(text.find("lathe.rope_append refused", first + 1), text.npos) << text;
}

TEST_F(QuestionsCli, SizesMayBeZeroAndComeFromInputs) {
  const std::string path = folder_ / "empty.mlir";
  std::ofstream(path) << R"(module {
  lathe.dim @n 0 to 64
  func.func @forward(%x: tensor<?x8xf32, #lathe.dims<n, 8>> {lathe.name = "x"},
                     %z: tensor<?x8xf32, #lathe.dims<n, 8>> {lathe.name = "z"})
      -> (tensor<?x8xf32, #lathe.dims<n, 8>> {lathe.name = "y"}) {
    %0 = lathe.div %x, %z : tensor<?x8xf32, #lathe.dims<n, 8>>, tensor<?x8xf32, #lathe.dims<n, 8>>
    return %0 : tensor<?x8xf32, #lathe.dims<n, 8>>
  }
})";
  EXPECT_THAT(outputOf("bisect " + path + " --set n=0"), HasSubstr("(n = 0)"));
  EXPECT_THAT(outputOf("inspect " + path + " --check-numerics --set n=0"), HasSubstr("n = 0"));
  EXPECT_THAT(outputOf("bisect " + path + " --input x=9x8xf32=1"), HasSubstr("(n = 9)"));
  expectFailure(2, "size 'n': input 'z' has 2, another input or --set has 3",
                "bisect " + path + " --input x=3x8xf32=1 --input z=2x8xf32=1");
  expectFailure(2, "size 'n': input 'x' has 3, another input or --set has 4",
                "bisect " + path + " --set n=4 --input x=3x8xf32=1");
  expectFailure(2, "size 'n': expected 0 to 64, got 99",
                "bisect " + path + " --input x=99x8xf32=1");
  // 0 / 0: no smallest and no largest value.
  std::string text = outputOf("run " + path + " --input x=2x8xf32=0 --input z=2x8xf32=0");
  EXPECT_THAT(text, HasSubstr("  all NaN"));
  EXPECT_THAT(text, Not(HasSubstr("inf")));
}

// Text of a stage after the fusions is told as such, whoever is asked about it.
TEST_F(QuestionsCli, GraphsThatAreLaidOutAreRefused) {
  for (auto [stage, holds] : {std::pair("lowered", "a backend's kernel calls"),
                              std::pair("laid-out", "laid-out weights")}) {
    const std::string path = folder_ / (std::string(stage) + ".mlir");
    std::ofstream(path) << outputOf("inspect " + kModel + " --stop-after " + stage);
    for (const char* question :
         {"bisect ", "why-not ", "explain ", "inspect --rewrites ", "inspect --check-numerics "})
      expectFailure(
          2,
          std::string("expected a graph as recorded, canonical or fused, got one that holds ") +
              holds,
          question + path);
  }
}

TEST_F(QuestionsCli, TheFirstLostOriginIsToldAndTheOthersCounted) {
  CliResult r =
      runLathe("run " + write("a.mlir", "tanh") + " --passes strip-debuginfo --input x=1x8xf32=1");
  EXPECT_EQ(r.status, 2);
  EXPECT_THAT(r.err, HasSubstr("no recorded line"));
  EXPECT_THAT(r.err, HasSubstr("more ops have none"));
  EXPECT_EQ(std::count(r.err.begin(), r.err.end(), '\n'), 1) << r.err;
}

TEST_F(QuestionsCli, DiffOfOutputsThatOneSideLacks) {
  const std::string a = write("a.mlir", "tanh"), b = folder_ / "b.mlir";
  std::string text = test::readFile(a);
  text.replace(text.find("\"y\""), 3, "\"z\"");
  std::ofstream(b) << text;
  CliResult r = runLathe("diff " + a + " " + b);
  EXPECT_EQ(r.status, 1);
  EXPECT_THAT(r.out, HasSubstr("  B: nothing\n"));
  EXPECT_THAT(r.out, Not(HasSubstr("nothing at")));
}

TEST_F(QuestionsCli, FlagsOfAReportWithoutOne) {
  const std::string a = write("a.mlir", "tanh");
  expectFailure(2, "error: --report-device says what --report shows; give --report FILE.html too",
                "run " + a + " --report-device h100");
  expectFailure(2, "error: --set says what --report shows; give --report FILE.html too",
                "compile " + a + " -o " + (folder_ / "a.lathe") + " --set n=1");
}

TEST_F(QuestionsCli, AFolderForTheIrThatCannotBeMade) {
  const std::string a = write("a.mlir", "tanh");
  expectFailure(3, "cannot be made a folder for the IR",
                "compile " + a + " -o " + (folder_ / "a.lathe") + " --save-ir " + a);
}

// --- bad input

TEST_F(QuestionsCli, RefusesWhatDoesNotFit) {
  const std::string tanh = write("a.mlir", "tanh");
  expectFailure(2, "--set: expected SYMBOL=NUMBER", "bisect " + tanh + " --set n");
  expectFailure(2, "--set n: expected a whole number of at least 0, got 'x'",
                "bisect " + tanh + " --set n=x");
  expectFailure(2, "the graph has no size 'm'; it has n", "bisect " + tanh + " --set m=1");
  expectFailure(2, "size 'n': expected 1 to 64, got 65",
                "inspect " + tanh + " --check-numerics --set n=65");
  expectFailure(2, "--at: expected FILE:LINE, got 'a.cc'", "why-not " + tanh + " --at a.cc");
  expectFailure(2, "no op and no pattern has a name like 'nosuch'",
                "why-not " + tanh + " --op nosuch");
  expectFailure(2, "no op was recorded at 'a.mlir:99'; the graph's are at a.mlir:",
                "why-not " + tanh + " --at a.mlir:99");
  expectFailure(2, "--stop-after-rewrite", "inspect " + tanh + " --stop-after-rewrite -1");
  expectFailure(2, "--set", "inspect " + tanh + " --set n=1");
  expectFailure(2, "expected SYMBOL=NUMBER", "bisect " + tanh + " --set =1");
  expectFailure(2, "given twice", "bisect " + tanh + " --set n=1 --set n=2");
  expectFailure(2, "no entry point has an input 'z'", "bisect " + tanh + " --input z=f32=1");
  expectFailure(3, "found nothing there", "diff " + tanh + " " + (folder_ / "absent.mlir"));
  expectFailure(2, "B is required", "diff " + tanh);
}

}  // namespace
}  // namespace lathe
