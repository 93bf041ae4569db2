// SPDX-License-Identifier: Apache-2.0
// The `lathe` command: streams, exit statuses, flags and results of every verb.
#include <cmath>
#include <fstream>
#include <map>

#include <gmock/gmock.h>

#include "lathe/runtime/checkpoint.h"
#include "lathe/runtime/json_reader.h"
#include "lathe/runtime/npy.h"
#include "lathe/runtime/program.h"
#include "lathe/runtime/safetensors.h"
#include "tests/unit/compiler/cli_runner.h"

namespace lathe {
namespace {

using test::CliResult;
using test::expectFailure;
using test::outputOf;
using test::runLathe;
using test::TemporaryFolder;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

const std::string kModel = LATHE_TEST_DATA "/golden/llama_tiny_v5";
const std::string kExpected = kModel + "/expected.safetensors";

JsonValue jsonOf(const std::string& arguments) {
  return JsonValue::parse(outputOf(arguments), arguments);
}

std::vector<int64_t> intsOf(const JsonValue& list) {
  std::vector<int64_t> values;
  for (size_t i = 0; i < list.size(); ++i) values.push_back(list.at(i).asInt());
  return values;
}

void expectNear(const Array& got, const Array& expected, double tolerance) {
  ASSERT_EQ(got.shape(), expected.shape());
  for (int64_t i = 0; i < got.size(); ++i)
    ASSERT_NEAR(got.at(i), expected.at(i), tolerance) << "element " << i;
}

// One program, compiled once, and a copy of the model with a tokenizer of letters: a = 3 ... z
// = 28.
class CliTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new test::TemporaryFolder;
    CliResult r = runLathe("compile " + kModel + " -o " + artifact());
    ASSERT_EQ(r.status, 0) << r.err;
    std::filesystem::create_directory(letters());
    for (const char* name : {"config.json", "model.safetensors"})
      std::filesystem::copy_file(kModel + "/" + name, letters() + "/" + name);
    std::string vocab = R"("<s>": 1, "</s>": 2)";
    for (int c = 'a'; c <= 'z'; ++c)
      vocab += ", \"" + std::string(1, char(c)) + "\": " + std::to_string(c - 'a' + 3);
    for (int id = 29; id < 97; ++id)
      vocab += ", \"t" + std::to_string(id) + "\": " + std::to_string(id);
    std::ofstream(letters() + "/tokenizer.json") << R"({"version": "1.0", "added_tokens": [],
      "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "use_regex": true},
      "decoder": {"type": "ByteLevel"},
      "model": {"type": "BPE", "vocab": {"<unk>": 0, )"
                                                 << vocab << R"(}, "merges": []}})";
  }
  static void TearDownTestSuite() { delete folder_; }
  static std::string artifact() { return *folder_ / "tiny.lathe"; }
  static std::string letters() { return *folder_ / "letters"; }
  static std::string file(const std::string& name) { return *folder_ / name; }

 private:
  static test::TemporaryFolder* folder_;
};
test::TemporaryFolder* CliTest::folder_ = nullptr;

// --- the command itself

TEST_F(CliTest, HelpOfEveryVerbHasAnExampleOnStandardOutput) {
  for (const char* verb :
       {"inspect", "compile", "run", "generate", "bench", "explain", "selftest", "env"}) {
    CliResult r = runLathe(std::string(verb) + " --help");
    EXPECT_EQ(r.status, 0) << verb;
    EXPECT_THAT(r.out, HasSubstr("Usage: lathe " + std::string(verb)));
    EXPECT_THAT(r.out, HasSubstr("Example:\n  lathe " + std::string(verb)));
    EXPECT_EQ(r.err, "") << verb;
  }
  EXPECT_THAT(outputOf("--help"), HasSubstr("Usage: lathe VERB"));
}

TEST_F(CliTest, VersionIsOneLine) { EXPECT_THAT(outputOf("--version"), StartsWith("lathe 0.")); }

TEST_F(CliTest, UsageMistakesNameTheNearestWord) {
  expectFailure(2, "expected a verb", "");
  expectFailure(2, "unknown verb 'genrate'; did you mean 'generate'?", "genrate");
  expectFailure(2, "unknown verb 'rnu'; did you mean 'run'?", "rnu");
  expectFailure(2, "unknown verb 'xyzzy'; see `lathe --help`", "xyzzy");
  expectFailure(2, "unknown flag '--thread'; did you mean '--threads'?", "run --thread 2");
  expectFailure(2, "unknown flag '--jsno'; did you mean '--json'?", "env --jsno");
  expectFailure(2, "unknown flag '--verson'; did you mean '--version'?", "--verson");
  expectFailure(2, "got 'fuse'; did you mean 'fused'?", "inspect " + kModel + " --stop-after fuse");
  expectFailure(2, "unexpected argument 'extra'", "env extra");
  expectFailure(2, "--output or --report is required", "compile " + kModel);
  expectFailure(2, "MODEL is required", "run");
}

TEST_F(CliTest, FlagsOfTheCudaBackendGoWithIt) {
  const std::string output = " -o " + testing::TempDir() + "flags.lathe";
  expectFailure(2, "--target is of the cuda backend, got backend cpu",
                "compile " + kModel + " --target sm_90a" + output);
  expectFailure(2, "target 'sm_80' is not known; the cuda backend has sm_90a",
                "compile " + kModel + " --backend cuda --target sm_80" + output);
  expectFailure(2, "--device is of the cuda backend, the program is for cpu",
                "run " + kModel + " --device host --input input_ids=1x1xi64=1");
}

TEST_F(CliTest, ColourOnlyWhereItWasAskedFor) {
  EXPECT_THAT(runLathe("nope").err, Not(HasSubstr("\033")));
  EXPECT_THAT(runLathe("env --nope --color=always").err, HasSubstr("\033[1;31merror:\033[0m"));
  EXPECT_THAT(runLathe("nope", "CLICOLOR_FORCE=1").err, HasSubstr("\033"));
  EXPECT_THAT(runLathe("nope", "NO_COLOR=1 CLICOLOR_FORCE=1").err, Not(HasSubstr("\033")));
  EXPECT_THAT(runLathe("env --nope --color=never", "CLICOLOR_FORCE=1").err, Not(HasSubstr("\033")));
  expectFailure(2, "--color", "env --color=maybe");
}

TEST_F(CliTest, EnvDescribesTheMachine) {
  JsonValue env = jsonOf("env --json");
  EXPECT_EQ(env.at("schema_version").asInt(), 1);
  EXPECT_GE(env.at("threads").asInt(), 1);
  EXPECT_GT(env.at("memory_bytes").asInt(), 0);
  EXPECT_TRUE(env.at("compiler_library").asBool());
  const std::string text = outputOf("env");
  EXPECT_THAT(text, HasSubstr("cpu cuda reference"));
  // Of the units that there are, each has its rate.
  const JsonValue rates = env.at("cpu_rates");
  for (auto [key, name] : {std::pair("f32_fma_flops", " f32 fma "),
                           {"bf16_dot_flops", " bf16 dot "},
                           {"amx_bf16_flops", " amx bf16 "}})
    EXPECT_EQ(text.find(name) != text.npos, rates.at(key).asDouble() > 0) << name << "in " << text;
  EXPECT_THAT(text, HasSubstr("bf16 by " + rates.at("bf16").asString() + ";"));
  EXPECT_EQ(
      JsonValue::parse(outputOf("env --json", "LATHE_NUM_THREADS=1"), "env").at("threads").asInt(),
      1);
  for (const char* text : {"no", "4x", "0", "4097"})
    expectFailure(2,
                  "expected LATHE_NUM_THREADS to be a whole number from 1 to 4096, got \"" +
                      std::string(text) + "\"",
                  "env", std::string("LATHE_NUM_THREADS=") + text);
}

TEST_F(CliTest, EnvListsCachesAndToolsOfTheCudaBackend) {
  TemporaryFolder cache;
  std::filesystem::create_directories(cache / "cuda/ab");
  cache.write("cuda/ab/kernel.cubin", std::string(1000, 'x'));
  cache.write("cuda/kernel.cubin", std::string(500, 'x'));
  std::filesystem::create_hard_link(cache / "cuda/kernel.cubin", cache / "cuda/twin.cubin");
  const std::string own = "LATHE_CACHE_DIR=" + cache.path();
  const std::string broken =
      own + " LATHE_HOST_CXX=/no/such/compiler LATHE_CUBLASLT=/no/such.so LATHE_CUDNN=/no/such.so";
  const JsonValue env = JsonValue::parse(outputOf("env --json", broken), "env");
  // None is listed that holds nothing: beside the kernels only the rates of the processor, which
  // are kept where the machine was quiet enough to measure them.
  const size_t count = env.at("caches").size();
  ASSERT_GE(count, 1u);
  ASSERT_LE(count, 2u);
  for (size_t i = 0; i + 1 < count; ++i)
    EXPECT_THAT(env.at("caches").at(i).at("path").asString(), StartsWith(cache / "cpu"));
  const JsonValue& kernels = env.at("caches").at(count - 1);
  EXPECT_EQ(kernels.at("path").asString(), cache / "cuda");
  EXPECT_EQ(kernels.at("bytes").asInt(), 1500);
  EXPECT_TRUE(kernels.at("complete").asBool());
  EXPECT_EQ(env.at("host_compiler").asString(),
            "none: LATHE_HOST_CXX names no program: /no/such/compiler");
  EXPECT_EQ(env.at("cublaslt").asString(), "none: cuBLASLt was not found");
  EXPECT_EQ(env.at("cudnn").asString(), "none: cuDNN was not found");
  EXPECT_THAT(outputOf("env", own), AllOf(HasSubstr("host compiler:"), HasSubstr(cache / "cuda ("),
                                          HasSubstr("cublaslt:")));
  // A folder that nobody can make is told and fails nothing.
  EXPECT_THAT(outputOf("env", "LATHE_CACHE_DIR=/proc/none"), HasSubstr("cannot create"));
}

TEST_F(CliTest, NumbersOutsideTheirRangeAreErrors) {
  const std::string generate = "generate " + kModel + " --ids 1 ";
  expectFailure(2, "--new-tokens: expected a whole number of at least 1, got '0'",
                generate + "-n 0");
  expectFailure(2, "--new-tokens: expected a whole number from 1 to 9223372036854775807",
                generate + "-n 99999999999999999999");
  expectFailure(2, "--temp: expected a number of at least 0, got '-1'", generate + "--temp -1");
  expectFailure(2, "--top-p: expected a number from 0 to 1, got '2'", generate + "--top-p 2");
  expectFailure(2, "--threads: expected a whole number from 1 to 4096, got '0'", generate + "-t 0");
  expectFailure(2, "--rank-threads is of several ranks, the program is for one",
                generate + "--rank-threads");
  expectFailure(4, "--save-cache and --load-cache: each of several ranks has its own piece",
                generate + "--ranks 2 --rank-threads --save-cache " + file("c.safetensors"));
  for (const char* seed : {"-1", "18446744073709551616", "1.5"})
    expectFailure(2,
                  "--seed: expected a whole number from 0 to 18446744073709551615, got '" +
                      std::string(seed) + "'",
                  generate + "--seed " + seed);
}

TEST_F(CliTest, OutputThatCannotBeWrittenIsAFailure) {
  expectFailure(1, "No space left on device", "env --json >/dev/full");
  expectFailure(1, "No space left on device",
                "generate " LATHE_SOURCE_DIR "/examples/models/stories -q -p a -n 3 >/dev/full");
  expectFailure(
      2, "cannot write /nonexistent/x.safetensors",
      "run " + artifact() + " --input input_ids=1x2xi64=1 --output /nonexistent/x.safetensors");
}

// --- models and files

TEST_F(CliTest, BadFilesAreStatusThree) {
  expectFailure(3, "found nothing there", "inspect /nonexistent");
  std::ofstream(file("junk.lathe")) << "not a program";
  expectFailure(3, "junk.lathe", "run " + file("junk.lathe"));
  std::ofstream(file("junk.bin")) << "x";
  expectFailure(3, "expected a Hugging Face folder, a .gguf, .onnx or .mlir file",
                "inspect " + file("junk.bin"));
  std::filesystem::create_directory(file("empty"));
  expectFailure(3, "found no config.json in it", "inspect " + file("empty"));
  std::ofstream(file("junk.mlir")) << "module { nonsense }";
  expectFailure(3, "junk.mlir", "inspect " + file("junk.mlir"));
  std::ofstream(file("junk.npy")) << "x";
  expectFailure(3, "junk.npy", "run " + artifact() + " --input input_ids=@" + file("junk.npy"));
}

TEST_F(CliTest, AnInputOfAnOnnxFileCanBeAKnownValue) {
  const std::string model = LATHE_TEST_DATA "/onnx/cases/known_branch/model.onnx";
  EXPECT_THAT(outputOf("run " + model + " --constant x=4xf32=1,-2,3,-4"),
              HasSubstr("-1, 2, -3, 4"));
  expectFailure(2, "input 'x'", "run " + model + " --constant x=4xf32=1 --input x=4xf32=1");
  expectFailure(2, "--constant: ", "run " + kModel + " --constant x=4xf32=1");
}

TEST_F(CliTest, BlocksAreOfModelsWithACache) {
  const std::string model = LATHE_TEST_DATA "/onnx/cases/known_branch/model.onnx";
  expectFailure(2, "--cache-block: " + model + " is an ONNX file",
                "compile " + model + " --cache-block 16 -o " + file("x.lathe"));
}

TEST_F(CliTest, UnsupportedIsStatusFour) {
  std::filesystem::create_directory(file("novel"));
  std::ofstream(file("novel/config.json"))
      << R"({"architectures": ["NovelForCausalLM"], "vocab_size": 9})";
  expectFailure(4, "NovelForCausalLM", "generate " + file("novel") + " --ids 1 -n 1");
  expectFailure(4, "nope", "run " + kModel + " --backend nope --input input_ids=1x1xi64=1");
  expectFailure(4, "nope", "run " + kModel + " --input input_ids=1x1xi64=1", "LATHE_BACKEND=nope");
}

TEST_F(CliTest, WeightsThatDoNotFitAreListedAtOnce) {
  std::filesystem::create_directory(file("wrong"));
  std::filesystem::copy_file(kModel + "/config.json", file("wrong/config.json"));
  saveSafetensors(file("wrong/model.safetensors"),
                  {{"model.norm.weight", Array(DType::BF16, {63})},
                   {"model.embed_tokens.weight", Array(DType::BF16, {97, 64})},
                   {"other", Array(DType::BF16, {1})}});
  CliResult r = runLathe("inspect " + file("wrong"));
  EXPECT_EQ(r.status, 3) << r.err;
  EXPECT_THAT(r.err, HasSubstr("missing"));
  EXPECT_THAT(r.err, HasSubstr("model.layers.0.mlp.up_proj.weight bf16[72, 64]"));
  EXPECT_THAT(r.err, HasSubstr("\"other\""));
  EXPECT_THAT(r.err, HasSubstr("model.norm.weight: expected bf16[64], got bf16[63]"));
}

// --- inspect and compile

TEST_F(CliTest, InspectShowsTheInterface) {
  std::string text = outputOf("inspect " + kModel + " --tensors 'model.norm*'");
  EXPECT_THAT(text, HasSubstr("entry forward\n  in  input_ids: i64[batch, seq]"));
  EXPECT_THAT(text, HasSubstr("out logits: f32[batch, seq, 97]"));
  EXPECT_THAT(text, HasSubstr("model.norm.weight: bf16[64]"));
  EXPECT_THAT(text, Not(HasSubstr("layernorm")));
  EXPECT_THAT(text, HasSubstr("seq: 1 to 128"));
}

TEST_F(CliTest, InspectJsonIsTheSameForFolderAndProgram) {
  JsonValue folder = jsonOf("inspect " + kModel + " --json");
  JsonValue program = jsonOf("inspect " + artifact() + " --json");
  EXPECT_EQ(folder.at("schema_version").asInt(), 1);
  EXPECT_EQ(folder.at("parameters").asInt(), program.at("parameters").asInt());
  EXPECT_EQ(folder.at("weights").size(), program.at("weights").size());
  ASSERT_EQ(folder.at("entries").size(), 3u);
  EXPECT_EQ(program.at("entries").at(size_t(0)).at("name").asString(), "forward");
  EXPECT_EQ(program.at("config").at("layers").asInt(), 2);
  EXPECT_EQ(program.at("kind").asString(), "program");
}

TEST_F(CliTest, StopAfterPrintsTheIrOfAStage) {
  EXPECT_THAT(outputOf("inspect " + kModel + " --stop-after recorded"), HasSubstr("lathe.matmul"));
  EXPECT_THAT(outputOf("run " + kModel + " --stop-after fused"), HasSubstr("lathe.attention"));
  std::string never = file("never.lathe");
  EXPECT_THAT(outputOf("compile " + kModel + " -o " + never + " --stop-after lowered"),
              HasSubstr("lathe.kernel"));
  EXPECT_FALSE(std::filesystem::exists(never));
  expectFailure(2, "is a compiled program without IR",
                "inspect " + artifact() + " --stop-after recorded");
}

TEST_F(CliTest, SaveIrWritesEveryStage) {
  outputOf("run " + kModel + " --input input_ids=1x1xi64=1 --save-ir " + file("ir"));
  int count = 0;
  for (auto& entry : std::filesystem::directory_iterator(file("ir")))
    count += entry.path().extension() == ".mlir";
  EXPECT_GE(count, 5);
}

TEST_F(CliTest, CompileRefusesWhatIsNoModelOrNoProgramName) {
  expectFailure(2, "expected a name that ends in .lathe", "compile " + kModel + " -o x.bin");
  expectFailure(2, "is compiled already", "compile " + artifact() + " -o " + file("again.lathe"));
  expectFailure(2, "--all-tiers", "compile " + kModel + " -o x.lathe --all-tiers --host-only");
}

// Published checkpoints keep vectors in f32 beside matrices in bf16, and compute in bf16.
TEST_F(CliTest, ArithmeticIsThatOfMostOfTheWeights) {
  std::filesystem::create_directory(file("wide_vectors"));
  std::filesystem::copy_file(kModel + "/config.json", file("wide_vectors/config.json"));
  const SafetensorsFile stored = SafetensorsFile::open(kModel + "/model.safetensors");
  std::map<std::string, Array> tensors;
  for (const SafetensorsEntry& entry : stored.tensors()) {
    const Array array = stored.array(entry.name);
    tensors[entry.name] = entry.shape.size() > 1 ? array : array.to(DType::F32);
  }
  saveSafetensors(file("wide_vectors/model.safetensors"), tensors);
  const std::string inspect = "inspect " + file("wide_vectors") + " --stop-after recorded";
  EXPECT_EQ(outputOf(inspect), outputOf(inspect + " --dtype bf16"));
  EXPECT_NE(outputOf(inspect), outputOf(inspect + " --dtype f32"));
}

// --- run

TEST_F(CliTest, RunGivesTheGoldenLogits) {
  std::string out = file("out.safetensors");
  std::string input = " --input input_ids=@" + kExpected + ":input_ids";
  outputOf("run " + kModel + " --dtype f32" + input + " --output " + out);
  Array expected = SafetensorsFile::open(kExpected).array("logits");
  expectNear(SafetensorsFile::open(out).array("logits"), expected, 1e-4);
  outputOf("compile " + kModel + " --dtype f32 -o " + file("f32.lathe"));
  outputOf("run " + file("f32.lathe") + input + " --output " + file("out.npy"));
  expectNear(loadNpy(file("out.npy")), expected, 1e-4);
  outputOf("run " + kModel + input + " --dtype f32 --backend reference --output " +
           file("ref.npy"));
  expectNear(loadNpy(file("ref.npy")), expected, 1e-4);
}

TEST_F(CliTest, TheOnlyEntryPointNeedsNoName) {
  std::ofstream(file("only.mlir"))
      << "func.func @twice(%x: tensor<2xf32> {lathe.name = \"x\"})"
         " -> (tensor<2xf32> {lathe.name = \"y\"}) {\n"
         "  %y = lathe.add %x, %x : tensor<2xf32>, tensor<2xf32>\n  return %y : tensor<2xf32>\n}\n";
  EXPECT_THAT(outputOf("run " + file("only.mlir") + " --input x=2xf32=1,2"),
              StartsWith("y: f32[2]"));
}

TEST_F(CliTest, IrTextRunsWithItsWeights) {
  std::ofstream(file("model.mlir"))
      << outputOf("inspect " + kModel + " --dtype f32 --stop-after recorded");
  std::string run = "run " + file("model.mlir") + " --input input_ids=@" + kExpected + ":input_ids";
  expectFailure(2, "needs weights; give them with --weights", run);
  outputOf(run + " --weights " + kModel + "/model.safetensors --output " + file("ir.npy"));
  expectNear(loadNpy(file("ir.npy")), SafetensorsFile::open(kExpected).array("logits"), 1e-4);
  expectFailure(2, "--dtype: ", run + " --dtype bf16");
}

TEST_F(CliTest, ProgramsRunWithoutTheCompiler) {
  CliResult r = runLathe("run " + artifact() + " --input input_ids=1x2xi64=1", "LD_DEBUG=files");
  EXPECT_EQ(r.status, 0);
  EXPECT_THAT(r.err, HasSubstr("liblathe_runtime"));
  EXPECT_THAT(r.err, Not(HasSubstr("libMLIR")));
  EXPECT_THAT(r.err, Not(HasSubstr("libLLVM")));
}

TEST_F(CliTest, ProgramsTellWhereTheirWeightsWere) {
  std::filesystem::copy(kModel, file("moved"));
  outputOf("compile " + file("moved") + " -o " + file("moved.lathe"));
  std::filesystem::remove_all(file("moved"));
  std::string run = "run " + file("moved.lathe") + " --input input_ids=1x2xi64=1";
  expectFailure(2, "its weights are no longer at moved, seen from the program", run);
  EXPECT_THAT(outputOf(run + " --weights " + kModel), StartsWith("logits: f32[1, 2, 97]"));
}

// All of them, and in their order: the second is added to what the first has replaced.
TEST_F(CliTest, ProgramsTellWhereTheirAdaptersWere) {
  const std::string model = LATHE_TEST_DATA "/golden/checkpoints/lora",
                    expected = model + "/expected.safetensors",
                    input = " --input input_ids=@" + expected + ":input_ids --output ";
  const Array logits = SafetensorsFile::open(expected).array("logits");
  const auto recursive = std::filesystem::copy_options::recursive;
  std::filesystem::copy(model, file("adapted"), recursive);
  std::filesystem::copy(model + "/lora", file("second"), recursive);
  const std::string one = " --lora " + file("adapted/lora"),
                    two = one + " --lora " + file("second");
  outputOf("compile " + file("adapted") + " --dtype f32" + one + " -o " + file("one.lathe"));
  outputOf("run " + file("one.lathe") + input + file("one.npy"));
  expectNear(loadNpy(file("one.npy")), logits, 1e-4);
  outputOf("compile " + file("adapted") + " --dtype f32" + two + " -o " + file("two.lathe"));
  outputOf("run " + file("two.lathe") + input + file("two.npy"));
  outputOf("run " + file("adapted") + " --dtype f32" + two + input + file("folder.npy"));
  expectNear(loadNpy(file("two.npy")), loadNpy(file("folder.npy")), 1e-4);
  EXPECT_GT(std::abs(loadNpy(file("two.npy")).at(0) - logits.at(0)), 1e-3);

  std::filesystem::remove_all(file("adapted/lora"));
  const std::string run = "run " + file("one.lathe") + input + file("given.npy");
  expectFailure(2,
                "its LoRA folders are no longer at adapted/lora, seen from the program; say where "
                "they are with --lora",
                run);
  outputOf(run + " --lora " + file("second"));
  expectNear(loadNpy(file("given.npy")), logits, 1e-4);
  auto noted = [&](const std::string& list) {
    // Nobody else has it.
    const auto program = std::const_pointer_cast<Program>(Program::open(file("one.lathe")));
    program->metadata["lora_paths"] = list;
    program->save(file("noted.lathe"));
    return "run " + file("noted.lathe") + input + file("given.npy");
  };
  expectFailure(2,
                "its LoRA folders are named by the absolute path /lora, which is not followed; "
                "give them with --lora",
                noted(R"(["/lora"])"));
  expectFailure(3, "noted.lathe: lora_paths: expected an array, got an object", noted("{}"));
}

TEST_F(CliTest, InputsMayBeListedOrRepeatedAndNarrow) {
  std::string prefill = "run " + artifact() + " --entry prefill ";
  std::string first = outputOf(prefill + "--input input_ids=1x3xi64=4,5,6 positions=1xi64=0");
  EXPECT_THAT(first, StartsWith("logits: f32[1, 97]"));
  EXPECT_EQ(outputOf(prefill + "--input input_ids=1x3xi32=4,5,6 --input positions=1xi32=0"), first);
  EXPECT_EQ(outputOf("run --entry prefill --input positions=1xi64=0 input_ids=1x3xi64=4,5,6 " +
                     artifact()),
            first);
}

TEST_F(CliTest, SizesOfStatesMayBeGiven) {
  std::string prefill =
      "run " + artifact() + " --entry prefill --input input_ids=1x3xi64=4,5,6 positions=1xi64=0";
  EXPECT_EQ(outputOf(prefill + " --symbol cache=3"), outputOf(prefill));
  expectFailure(2, "position 0 of batch 0 with 3 new elements", prefill + " --symbol cache=2");
  expectFailure(2, "'cache' = 129 is outside its range 1 to 128", prefill + " --symbol cache=129");
  expectFailure(2, "the inputs' shapes already give 'seq'", prefill + " --symbol seq=3");
  expectFailure(2, "has no symbol 'nope'", prefill + " --symbol nope=3");
  expectFailure(2, "expected a whole number of at least 0, got 'x'", prefill + " --symbol cache=x");
}

// A size that only states have is the largest that it may be, which need not be the end of its
// range.
TEST_F(CliTest, SizesOfStatesKeepToTheirMultiple) {
  std::ofstream(file("kept.mlir")) << R"(
    lathe.dim @capacity 4 to 10 multiple 4
    lathe.state @kept : tensor<?xf32, #lathe.dims<capacity>>
    func.func @forward(%k: tensor<?xf32, #lathe.dims<capacity>> {lathe.state = @kept})
        -> (tensor<?xf32, #lathe.dims<capacity>> {lathe.state = @kept},
            tensor<?xf32, #lathe.dims<capacity>> {lathe.name = "y"}) {
      return %k, %k : tensor<?xf32, #lathe.dims<capacity>>, tensor<?xf32, #lathe.dims<capacity>>
    })";
  EXPECT_THAT(outputOf("run " + file("kept.mlir")), HasSubstr("y: f32[8]\n"));
}

TEST_F(CliTest, RunJsonSummarizesOutputs) {
  JsonValue out = jsonOf("run " + artifact() + " --input input_ids=2x3xi64=1 --json");
  JsonValue logits = out.at("outputs").at(size_t(0));
  EXPECT_EQ(logits.at("name").asString(), "logits");
  EXPECT_EQ(intsOf(logits.at("shape")), (std::vector<int64_t>{2, 3, 97}));
  EXPECT_EQ(logits.at("first_values").size(), 8u);
  EXPECT_LT(logits.at("min").asDouble(), logits.at("max").asDouble());
}

TEST_F(CliTest, TruthValuesAreWordsOrNumbers) {
  std::ofstream(file("same.mlir")) << R"(
    func.func @forward(%x: tensor<4xi1> {lathe.name = "x"}) -> (tensor<4xi1> {lathe.name = "y"}) {
      return %x : tensor<4xi1>
    })";
  const std::string run = "run " + file("same.mlir") + " --input x=4xbool=";
  EXPECT_THAT(outputOf(run + "true,false,1,0"), HasSubstr("\n  1, 0, 1, 0\n"));
  expectFailure(2, "expected a whole number from 0 to 1 for bool, got 'yes'", run + "yes");
}

TEST_F(CliTest, RunRefusesIntegersThatTheirDtypeDoesNotHold) {
  for (auto [type, low, high] :
       {std::tuple{"i16", "-32768", "32767"}, {"i8", "-128", "127"}, {"ui8", "0", "255"}}) {
    const std::string t = std::string("tensor<1x") + type + ">",
                      name = std::string(type) == "ui8" ? "u8" : type;
    std::ofstream(file("same.mlir"))
        << "func.func @forward(%x: " << t << " {lathe.name = \"x\"}) -> (" << t
        << " {lathe.name = \"y\"}) {\n  return %x : " << t << "\n}";
    const std::string run = "run " + file("same.mlir") + " --input x=1x" + name + "=";
    EXPECT_THAT(outputOf(run + low), HasSubstr(std::string("\n  ") + low + "\n"));
    EXPECT_THAT(outputOf(run + high), HasSubstr(std::string("\n  ") + high + "\n"));
    for (const std::string& past : {low + std::string("0"), high + std::string("0")})
      if (past != "00")
        expectFailure(2,
                      std::string("expected a whole number from ") + low + " to " + high + " for " +
                          name + ", got '" + past + "'",
                      run + past);
  }
}

TEST_F(CliTest, RunCountsNansAndShowsNothingOfNothing) {
  std::ofstream(file("abs.mlir")) << R"(func.func @forward(
    %x: tensor<3xf32> {lathe.name = "x"}, %e: tensor<0xf32> {lathe.name = "e"})
    -> (tensor<0xf32> {lathe.name = "empty"}, tensor<3xf32> {lathe.name = "y"}) {
  %0 = lathe.abs %e : tensor<0xf32>
  %1 = lathe.abs %x : tensor<3xf32>
  return %0, %1 : tensor<0xf32>, tensor<3xf32>
})";
  const std::string run = "run " + file("abs.mlir") + " --input e=0xf32=1 --input x=3xf32=";
  EXPECT_EQ(outputOf(run + "-1,nan,2"),
            "empty: f32[0]\ny: f32[3]\n  1, nan, 2\n  min 1, max 2, 1 NaN\n");
  EXPECT_EQ(outputOf(run + "nan"), "empty: f32[0]\ny: f32[3]\n  nan, nan, nan\n  all NaN\n");
  std::ofstream(file("neg.mlir")) << R"(func.func @forward(%x: tensor<2xf32> {lathe.name = "x"})
    -> (tensor<2xf32> {lathe.name = "y"}) {
  %0 = lathe.neg %x : tensor<2xf32>
  return %0 : tensor<2xf32>
})";
  for (const char* value : {"nan", "-nan"})  // the sign of a NaN says nothing
    EXPECT_EQ(outputOf("run " + file("neg.mlir") + " --input x=2xf32=" + value),
              "y: f32[2]\n  nan, nan\n  all NaN\n");
  EXPECT_EQ(outputOf("run " + file("neg.mlir") + " --input x=2xf32=1,3"),
            "y: f32[2]\n  -1, -3\n  min -3, max -1\n");
  const JsonValue outputs = jsonOf(run + "-1,nan,2 --json").at("outputs");
  EXPECT_FALSE(outputs.at(size_t(0)).has("min"));
  EXPECT_EQ(outputs.at(size_t(0)).at("nan_count").asInt(), 0);
  EXPECT_EQ(outputs.at(size_t(1)).at("min").asDouble(), 1);
  EXPECT_EQ(outputs.at(size_t(1)).at("nan_count").asInt(), 1);
}

TEST_F(CliTest, RunOfStatesAloneListsNoOutputs) {
  std::ofstream(file("state.mlir")) << R"(lathe.state @s : tensor<2xf32>
func.func @forward(%s: tensor<2xf32> {lathe.state = @s}) -> (tensor<2xf32> {lathe.state = @s}) {
  %0 = lathe.exp %s : tensor<2xf32>
  return %0 : tensor<2xf32>
})";
  const std::string run = "run " + file("state.mlir");
  EXPECT_EQ(outputOf(run), "");
  EXPECT_EQ(jsonOf(run + " --json").at("outputs").size(), 0u);
}

TEST_F(CliTest, RunShowsEveryI64AsItIs) {
  std::ofstream(file("not.mlir")) << R"(func.func @forward(%x: tensor<3xi64> {lathe.name = "x"})
    -> (tensor<3xi64> {lathe.name = "y"}) {
  %y = lathe.neg %x : tensor<3xi64>
  return %y : tensor<3xi64>
})";
  const std::string run =
      "run " + file("not.mlir") + " --input x=3xi64=-9007199254740993,5,9007199254740995";
  EXPECT_EQ(outputOf(run),
            "y: i64[3]\n  9007199254740993, -5, -9007199254740995\n"
            "  min -9007199254740995, max 9007199254740993\n");
  const JsonValue y = jsonOf(run + " --json").at("outputs").at(size_t(0));
  EXPECT_EQ(intsOf(y.at("first_values")),
            (std::vector<int64_t>{9007199254740993, -5, -9007199254740995}));
  EXPECT_EQ(y.at("min").asInt(), -9007199254740995);
  EXPECT_EQ(y.at("max").asInt(), 9007199254740993);
}

TEST_F(CliTest, SymbolsInSumsOfInputsMayBeGiven) {
  std::ofstream(file("past.mlir")) << R"(module {
  lathe.dim @past 1 to 8
  func.func @forward(%x: tensor<?xf32, #lathe.dims<past+2>> {lathe.name = "x"})
      -> (tensor<?xf32, #lathe.dims<past+2>> {lathe.name = "y"}) {
    %y = lathe.neg %x : tensor<?xf32, #lathe.dims<past+2>>
    return %y : tensor<?xf32, #lathe.dims<past+2>>
  }
})";
  const std::string run = "run " + file("past.mlir") + " --input x=5xf32=1";
  expectFailure(2, "'past' has no value", run);
  EXPECT_THAT(outputOf(run + " --symbol past=3"), StartsWith("y: f32[5]"));
  // Also where it is the size of a state, which would be the largest otherwise.
  std::ofstream(file("kept_past.mlir")) << R"(module {
  lathe.dim @past 1 to 8
  lathe.state @kept : tensor<?xf32, #lathe.dims<past>>
  func.func @forward(%x: tensor<?xf32, #lathe.dims<past+2>> {lathe.name = "x"},
                     %k: tensor<?xf32, #lathe.dims<past>> {lathe.state = @kept})
      -> (tensor<?xf32, #lathe.dims<past>> {lathe.state = @kept},
          tensor<?xf32, #lathe.dims<past+2>> {lathe.name = "y"}) {
    %y = lathe.neg %x : tensor<?xf32, #lathe.dims<past+2>>
    return %k, %y : tensor<?xf32, #lathe.dims<past>>, tensor<?xf32, #lathe.dims<past+2>>
  }
})";
  const std::string kept = "run " + file("kept_past.mlir") + " --input x=5xf32=1";
  expectFailure(2, "'past' has no value", kept);
  EXPECT_THAT(outputOf(kept + " --symbol past=3"), HasSubstr("y: f32[5]"));
}

TEST_F(CliTest, AnNpyFileHoldsOneOutput) {
  std::ofstream(file("two.mlir")) << R"(
    func.func @forward(%x: tensor<2xf32> {lathe.name = "x"})
        -> (tensor<2xf32> {lathe.name = "y"}, tensor<2xf32> {lathe.name = "z"}) {
      %y = lathe.neg %x : tensor<2xf32>
      %z = lathe.abs %x : tensor<2xf32>
      return %y, %z : tensor<2xf32>, tensor<2xf32>
    })";
  const std::string run = "run " + file("two.mlir") + " --input x=2xf32=-3,4 --output ";
  expectFailure(2,
                "--output: a .npy file holds one tensor, entry point 'forward' has 2; write a "
                ".safetensors file",
                run + file("two.npy"));
  outputOf(run + file("two.safetensors"));
  const SafetensorsFile both = SafetensorsFile::open(file("two.safetensors"));
  EXPECT_EQ(both.array("y").at(0), 3);
  EXPECT_EQ(both.array("z").at(1), 4);
}

TEST_F(CliTest, BadInputsAreToldPrecisely) {
  std::string run = "run " + artifact() + " --input ";
  expectFailure(2, "expected NAME=SPEC", run + "=1");
  expectFailure(2, "cannot read 'hello'", run + "input_ids=hello");
  expectFailure(2, "expected a dtype such as f32, bf16 or i64, got 'f31'",
                run + "input_ids=2xf31=1");
  expectFailure(2, "expected a size of 0 or more, got '-2'", run + "input_ids=-2xi64=1");
  expectFailure(2, "expected 1 value or 6 for i64[2, 3], got 2", run + "input_ids=2x3xi64=1,2");
  expectFailure(2, "for i64, got '1.5'", run + "input_ids=1x1xi64=1.5");
  expectFailure(2, "from -128 to 127 for i8, got '200'", run + "input_ids=1xi8=200");
  expectFailure(2, "expected @x.npy or @x.safetensors:key", run + "input_ids=@x.txt");
  expectFailure(2, "has no tensor 'nope'; it has input_ids",
                run + "input_ids=@" + kExpected + ":nope");
  expectFailure(2, "given twice", run + "input_ids=1x1xi64=1 input_ids=1x1xi64=1");
  expectFailure(6, "needs 8e+14 bytes, the machine's memory has",
                run + "input_ids=1000000000x100000xi64=1");
  expectFailure(2, "has no input 'x'; it takes input_ids", run + "input_ids=1x1xi64=1 x=1xf32=1");
  expectFailure(2, "input 'input_ids' is missing", "run " + artifact());
  expectFailure(2, "expected i64[batch, seq], got f32[1, 1]", run + "input_ids=1x1xf32=1");
  expectFailure(2, "no entry point 'nope'; the program has forward, prefill, decode",
                run + "input_ids=1x1xi64=1 --entry nope");
  expectFailure(2, "'seq' = 129 is outside its range 1 to 128", run + "input_ids=1x129xi64=1");
  expectFailure(2, "97", run + "input_ids=1x1xi64=97");
  expectFailure(2, "expected a name that ends in .safetensors or .npy",
                run + "input_ids=1x1xi64=1 --output x.txt");
  expectFailure(2, "is a program compiled for cpu",
                run + "input_ids=1x1xi64=1 --backend reference");
}

// --- generate

TEST_F(CliTest, GenerateIsGreedyOverTheFullPass) {
  JsonValue out = jsonOf("generate " + artifact() + " --ids 5,6,7 -n 8 --ignore-eos --json");
  EXPECT_EQ(intsOf(out.at("prompt_ids")), (std::vector<int64_t>{5, 6, 7}));
  std::vector<int64_t> ids = intsOf(out.at("ids"));
  ASSERT_EQ(ids.size(), 8u);
  EXPECT_GT(out.at("time_to_first_token_s").asDouble(), 0);
  EXPECT_GT(out.at("tokens_per_second").asDouble(), 0);
  EXPECT_EQ(out.at("stopped_by").asString(), "length");
  std::string all = "5,6,7";
  for (size_t i = 0; i + 1 < ids.size(); ++i) all += "," + std::to_string(ids[i]);
  outputOf("run " + artifact() + " --input input_ids=1x10xi64=" + all + " --output " +
           file("g.npy"));
  Array logits = loadNpy(file("g.npy"));
  for (int64_t step = 0; step < 8; ++step) {
    int64_t best = 0;
    auto at = [&](int64_t id) { return logits.at((2 + step) * 97 + id); };
    for (int64_t id = 1; id < 97; ++id)
      if (at(id) > at(best)) best = id;
    EXPECT_EQ(ids[size_t(step)], best) << "step " << step;
  }
}

TEST_F(CliTest, GenerateStreamsTheTextOfJson) {
  std::string words = "generate " + letters() + " -p hello -n 12 --ignore-eos";
  JsonValue out = jsonOf(words + " --json");
  EXPECT_EQ(intsOf(out.at("prompt_ids")), (std::vector<int64_t>{10, 7, 14, 14, 17}));
  // The first token comes from reading the prompt.
  EXPECT_GT(out.at("decode_s").asDouble(), 0);
  EXPECT_NEAR(out.at("tokens_per_second").asDouble() * out.at("decode_s").asDouble(), 11, 1e-6);
  EXPECT_EQ(jsonOf("generate " + letters() + " -p hello -n 1 --ignore-eos --json")
                .at("tokens_per_second")
                .asDouble(),
            0);
  CliResult r = runLathe(words);
  EXPECT_EQ(r.out, out.at("text").asString() + "\n");
  EXPECT_THAT(r.err, StartsWith("hello"));
  EXPECT_THAT(r.err, HasSubstr("tokens/s"));
  CliResult quiet = runLathe(words + " -q");
  EXPECT_EQ(quiet.out, r.out);
  EXPECT_EQ(quiet.err, "");
  std::ofstream(file("prompt.txt")) << "hello";
  EXPECT_EQ(
      runLathe("generate " + letters() + " -f " + file("prompt.txt") + " -n 12 --ignore-eos").out,
      r.out);
}

TEST_F(CliTest, GenerateStopsAtTheEndOfText) {
  JsonValue all = jsonOf("generate " + letters() + " --ids 5,6,7 -n 6 --ignore-eos --json");
  int64_t third = intsOf(all.at("ids"))[2];
  std::ofstream(letters() + "/generation_config.json") << "{\"eos_token_id\": [" << third << "]}";
  JsonValue out = jsonOf("generate " + letters() + " --ids 5,6,7 -n 6 --json");
  EXPECT_EQ(out.at("stopped_by").asString(), "eos");
  EXPECT_EQ(intsOf(out.at("ids")).back(), third);
  EXPECT_LE(out.at("ids").size(), 3u);
  std::filesystem::remove(letters() + "/generation_config.json");
}

// A head that the config ties to the table is not left unread where it is another.
TEST_F(CliTest, ATiedHeadIsTheTable) {
  test::TemporaryFolder folder;
  std::string tied = test::readFile(letters() + "/config.json");
  const std::string untied = "\"tie_word_embeddings\": false";
  ASSERT_NE(tied.find(untied), tied.npos);
  tied.replace(tied.find(untied), untied.size(), "\"tie_word_embeddings\": true");
  folder.write("config.json", tied);
  const Checkpoint checkpoint = Checkpoint::open(letters());
  std::map<std::string, Array> weights;
  for (const std::string& name : checkpoint.names()) weights[name] = *checkpoint.find(name);
  const std::string words = "generate " + folder.path() + " --ids 5,6 -n 3";
  saveSafetensors(folder / "model.safetensors", {weights.begin(), weights.end()});
  expectFailure(3,
                "lm_head.weight has other values than model.embed_tokens.weight, which the model "
                "uses in its place; set tie_word_embeddings to false",
                words);
  weights["lm_head.weight"] = weights.at("model.embed_tokens.weight");
  saveSafetensors(folder / "model.safetensors", {weights.begin(), weights.end()});
  EXPECT_EQ(runLathe(words).status, 0);
}

TEST_F(CliTest, SamplingFollowsFlagsThenTheModelsConfig) {
  auto ids = [&](const std::string& flags) {
    return intsOf(jsonOf("generate " + letters() + " --ids 5,6 -n 20 --ignore-eos --json " + flags)
                      .at("ids"));
  };
  std::vector<int64_t> greedy = ids("");
  EXPECT_EQ(ids("--temp 2 --top-k 1"), greedy);
  EXPECT_EQ(ids("--temp 2 --top-p 0"), greedy);
  EXPECT_EQ(ids("--temp 2 --seed 7"), ids("--temp 2 --seed 7"));
  EXPECT_NE(ids("--temp 2 --seed 7"), ids("--temp 2 --seed 8"));
  EXPECT_NE(ids("--temp 2 --seed 7"), ids("--temp 2 --seed 18446744073709551615"));
  std::vector<int64_t> sampled = ids("--temp 3 --seed 7");
  std::string config = letters() + "/generation_config.json";
  std::ofstream(config) << R"({"do_sample": true, "temperature": 3.0})";
  EXPECT_EQ(ids("--seed 7"), sampled);
  EXPECT_EQ(ids("--seed 7 --temp 0"), greedy);
  // Numbers for sampling, of a model that does not ask for it, count for nothing.
  for (const char* narrow : {"\"top_k\": 1", "\"top_p\": 1e-9"}) {
    std::ofstream(config) << "{\"do_sample\": false, " << narrow << "}";
    EXPECT_EQ(ids("--seed 7 --temp 3"), sampled) << narrow;
    std::ofstream(config) << "{\"do_sample\": true, \"temperature\": 3, " << narrow << "}";
    EXPECT_EQ(ids("--seed 7"), greedy) << narrow;
  }
  std::ofstream(config) << R"({"do_sample": false, "temperature": 3.0})";
  EXPECT_EQ(ids("--seed 7"), greedy);
  // How long a text is, its prompt included, unless a number of new tokens is given.
  auto count = [&](const std::string& flags) {
    return jsonOf("generate " + letters() + " --ids 5,6 --ignore-eos --json " + flags)
        .at("ids")
        .size();
  };
  std::ofstream(config) << R"({"max_length": 12})";
  EXPECT_EQ(count(""), 10u);
  EXPECT_EQ(count("-n 3"), 3u);
  std::ofstream(config) << R"({"max_length": 12, "max_new_tokens": 4})";
  EXPECT_EQ(count(""), 4u);
  std::filesystem::remove(config);
}

TEST_F(CliTest, GenerateEndsAtTheModelsLastPosition) {
  std::string ids = "1";
  for (int i = 0; i < 125; ++i) ids += ",5";
  JsonValue out = jsonOf("generate " + artifact() + " --ids " + ids + " -n 50 --ignore-eos --json");
  EXPECT_EQ(out.at("ids").size(), 3u);  // positions 126 and 127, and the token after them
  EXPECT_EQ(out.at("stopped_by").asString(), "positions");
  expectFailure(2, "the prompt has 129 tokens, the model takes at most 128 positions",
                "generate " + artifact() + " --ids " + ids + ",5,5,5 -n 1");
}

TEST_F(CliTest, GuessesDoNotChangeAGreedyText) {
  const std::string words = "generate " + letters() + " -p hello -n 40 --ignore-eos --json";
  const std::vector<int64_t> plain = intsOf(jsonOf(words).at("ids"));
  for (const std::string& guesses :
       {std::string(" --speculate 3"), " --speculate 5 --draft " + kModel}) {
    JsonValue out = jsonOf(words + guesses);
    EXPECT_EQ(intsOf(out.at("ids")), plain) << guesses;
    EXPECT_GE(out.at("drafted").asInt(), out.at("accepted").asInt());
  }
  expectFailure(2, "no entry point 'verify', which speculative decoding needs; compile it with",
                "generate " + artifact() + " --ids 1 -n 5 --speculate 2");
  expectFailure(2, "--draft requires --speculate", "generate " + kModel + " --ids 1 --draft x");
}

TEST_F(CliTest, ADraftHasTheVocabularyOfTheModel) {
  const std::string stories = LATHE_SOURCE_DIR "/examples/models/stories";
  expectFailure(2,
                "--draft: expected a model with the vocabulary of 97 tokens that " + kModel +
                    " has, " + stories + " has ",
                "generate " + kModel + " --ids 1 -n 2 --speculate 2 --draft " + stories);
}

TEST_F(CliTest, ABatchWritesWhatEachLineDoesAlone) {
  std::ofstream(file("lines.txt")) << "hello\r\na\nlongerthanothers\r\n";
  const std::string flags = " -n 9 --ignore-eos --json";
  JsonValue texts =
      jsonOf("generate " + letters() + " --batch " + file("lines.txt") + flags).at("texts");
  ASSERT_EQ(texts.size(), 3u);
  size_t line = 0;
  for (std::string prompt : {"hello", "a", "longerthanothers"}) {
    JsonValue alone = jsonOf("generate " + letters() + " -p '" + prompt + "'" + flags);
    EXPECT_EQ(intsOf(texts.at(line).at("ids")), intsOf(alone.at("ids"))) << prompt;
    EXPECT_EQ(texts.at(line++).at("text").asString(), alone.at("text").asString());
  }
  expectFailure(2, "--batch takes its prompts from the file",
                "generate " + letters() + " -p a --batch " + file("lines.txt"));
}

TEST_F(CliTest, BeamsAreGivenBestFirst) {
  const std::string words = "generate " + artifact() + " --ids 5,6,7 -n 8 --ignore-eos --json";
  JsonValue beams = jsonOf(words + " --beams 3").at("beams");
  ASSERT_EQ(beams.size(), 3u);
  EXPECT_GE(beams.at(size_t(0)).at("score").asDouble(), beams.at(size_t(1)).at("score").asDouble());
  EXPECT_EQ(intsOf(jsonOf(words + " --beams 1").at("beams").at(size_t(0)).at("ids")),
            intsOf(jsonOf(words).at("ids")));
  expectFailure(2, "--temp excludes --beams", words + " --beams 2 --temp 1");
}

TEST_F(CliTest, ASavedCacheGoesOn) {
  const std::string model = "generate " + artifact() + " --ignore-eos --json --ids ";
  const std::string cache = file("cache.bin");
  JsonValue first = jsonOf(model + "5,6,7 -n 5 --save-cache " + cache);
  std::string ids = "5,6,7";
  for (int64_t id : intsOf(first.at("ids"))) ids += "," + std::to_string(id);
  EXPECT_EQ(intsOf(jsonOf(model + ids + " -n 6 --load-cache " + cache).at("ids")),
            intsOf(jsonOf(model + ids + " -n 6").at("ids")));
  expectFailure(3, "tiny.lathe: ", model + "5 -n 2 --load-cache " + artifact());
}

TEST_F(CliTest, StopsAndLogProbabilitiesAreTold) {
  const std::string words = "generate " + letters() + " -p hello -n 12 --ignore-eos --json";
  JsonValue all = jsonOf(words + " --logprobs 2");
  ASSERT_EQ(all.at("logprobs").size(), 12u);
  JsonValue step = all.at("logprobs").at(size_t(0));
  EXPECT_EQ(step.at("likeliest").size(), 2u);
  EXPECT_EQ(step.at("likeliest").at(size_t(0)).at("id").asInt(), step.at("id").asInt());
  EXPECT_LT(step.at("logprob").asDouble(), 0);
  const std::string text = all.at("text").asString(), stop = text.substr(3, 2);
  JsonValue cut = jsonOf(words + " --stop '" + stop + "'");
  EXPECT_EQ(cut.at("text").asString(), text.substr(0, text.find(stop)));
  EXPECT_EQ(cut.at("stopped_by").asString(), "stop");
}

// What is to be written is asked about before the work that makes it.
TEST_F(CliTest, OutputsThatCannotBeWrittenAreToldBeforeTheWork) {
  const std::string nowhere = file("nowhere") + "/", ids = " --input input_ids=1x2xi64=1,2";
  for (const std::string& command :
       {"generate " + artifact() + " --ids 5,6,7 -n 3 --save-cache " + nowhere + "cache.bin",
        "compile " + kModel + " -o " + nowhere + "m.lathe",
        "compile " + kModel + " --report " + nowhere + "out.html",
        "run " + kModel + ids + " -o " + nowhere + "y.safetensors",
        "tune " + kModel + " --texts -o " + nowhere + "m.lathe"}) {
    const CliResult r = runLathe(command);
    EXPECT_EQ(r.status, 2) << command;
    EXPECT_EQ(r.out, "") << command;
    EXPECT_THAT(r.err, HasSubstr("there is no folder " + file("nowhere") + "; make it first"));
  }
  std::ofstream(file("bf16.mlir")) << R"(
    func.func @forward(%x: tensor<2xbf16> {lathe.name = "x"}) -> (tensor<2xbf16> {lathe.name = "y"}) {
      %0 = lathe.exp %x : tensor<2xbf16>
      return %0 : tensor<2xbf16>
    })";
  expectFailure(4, "NumPy has no bf16, which the output 'y' is; write a .safetensors file",
                "run " + file("bf16.mlir") + " --input x=2xbf16=1 -o " + file("y.npy"));
  std::filesystem::create_directory(file("folder"));
  expectFailure(2, "expected the name of a file, got the folder",
                "generate " + artifact() + " --ids 5 -n 1 --save-cache " + file("folder"));
  const CliResult stop = runLathe("generate " + letters() + " -p hello -n 2 --stop \"\"");
  EXPECT_EQ(stop.status, 2);
  EXPECT_EQ(stop.out, "");
  EXPECT_THAT(stop.err, HasSubstr("--stop: expected a text to end in front of, got an empty one"));
}

TEST_F(CliTest, BadPromptsAreToldPrecisely) {
  expectFailure(2, "expected a prompt: -p TEXT, -f FILE, --messages FILE or --ids",
                "generate " + kModel);
  expectFailure(3, "expected a model with tokenizer.json", "generate " + kModel + " -p hi -n 1");
  expectFailure(2, "--ids: item 1: expected an id from 0 to 96, got 97",
                "generate " + kModel + " --ids 1,97 -n 1");
  expectFailure(2, "at item 1", "generate " + kModel + " --ids 1,x -n 1");
  expectFailure(2, "got '99999999999' at item 0", "generate " + kModel + " --ids 99999999999 -n 1");
  expectFailure(2, "the prompt has no tokens", "generate " + letters() + " -p '' -n 1");
  std::ofstream(file("lines.txt")) << "ab\n\xff\n";
  expectFailure(2, "lines.txt: line 2: expected valid UTF-8, got the byte 0xff",
                "generate " + letters() + " --batch " + file("lines.txt") + " -n 1");
  expectFailure(2, "excludes", "generate " + letters() + " -p a --ids 1 -n 1");
  expectFailure(2, "--new-tokens", "generate " + letters() + " -p a -n -1");
  expectFailure(2, "--temp", "generate " + letters() + " -p a -n 1 --temp -1");
  expectFailure(3, "/nonexistent", "generate " + letters() + " -f /nonexistent -n 1");
}

// --- bench

TEST_F(CliTest, BenchRunsABareConfigAndMeasuresTheMachine) {
  const CliResult result =
      runLathe("bench " + kModel +
               "/config.json --random-weights --dtype bf16 -p 20 -n 5 -r 2 -t 2 -o json --profile");
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.err, Not(HasSubstr("host execution")));
  JsonValue out = JsonValue::parse(result.out, "bench");
  EXPECT_EQ(out.at("cpu_isa").asString(), jsonOf("env --json").at("cpu_isa").asString());
  EXPECT_EQ(out.at("threads").asInt(), 2);
  EXPECT_EQ(out.at("dtype").asString(), "bf16");
  EXPECT_GT(out.at("peak_flops_per_second").asDouble(), 0);
  EXPECT_GT(out.at("read_roofs").size(), 4u);
  ASSERT_EQ(out.at("tests").size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    JsonValue test = out.at("tests").at(i);
    EXPECT_EQ(test.at("repetitions_s").size(), 2u);
    EXPECT_GT(test.at("tokens_per_second_min").asDouble(), 0);
    EXPECT_LE(test.at("tokens_per_second_min").asDouble(), test.at("tokens_per_second").asDouble());
    EXPECT_LE(test.at("tokens_per_second").asDouble(), test.at("tokens_per_second_max").asDouble());
    // Per pass: 2 x 64,512 block weights per token, 2 x 6,208 of the head (once per prompt, or per
    // token), 4 x 2 layers x 96 per token and key.
    const double flops[] = {2.0 * 20 * 64512 + 2 * 6208 + 4 * 2 * 96 * 210,
                            5 * 2.0 * (64512 + 6208) + 4 * 2 * 96 * (21 + 22 + 23 + 24 + 25)};
    JsonValue seconds = test.at("repetitions_s");
    double median = (seconds.at(size_t(0)).asDouble() + seconds.at(size_t(1)).asDouble()) / 2;
    // Norms, softmax and activations come on top of the products; a prompt's last layer computes
    // the last token's row alone behind its attention.
    const double ratio = test.at("flops_per_second").asDouble() * median / flops[i];
    EXPECT_GT(ratio, i ? 1 : 0.8);
    EXPECT_LT(ratio, 1.06);
    EXPECT_TRUE(test.at("tokens").asInt() == (i ? 5 : 20));
    EXPECT_GT(test.at("peak_share").asDouble(), 0);
    EXPECT_LE(test.at("peak_share").asDouble(), 1);
  }
  EXPECT_GT(out.at("profile").size(), 4u);
}

// The page's times are those of the repetitions, as the profile's are: none of the warm-up.
TEST_F(CliTest, TheReportOfABenchAddsUpToItsProfile) {
  const JsonValue out = jsonOf(
      "bench " + kModel + " -p 20 -n 5 -r 1 -t 1 -o json --profile --report " + file("bench.html"));
  std::map<std::string, double> profile, page;
  for (const JsonValue& row : out.at("profile").elements())
    profile[row.at("entry").asString()] += row.at("time_s").asDouble();
  const std::string text = test::readFile(file("bench.html")),
                    begin = "<script type=\"application/json\" id=\"data\">";
  const size_t at = text.find(begin) + begin.size();
  const JsonValue data = JsonValue::parse(text.substr(at, text.find("</script>", at) - at), "page");
  for (const JsonValue& run : data.at("runs").elements())
    for (const JsonValue& call : run.at("calls").elements())
      page[run.at("entry").asString()] +=
          double(call.at(size_t(0)).asInt()) * call.at(size_t(1)).asDouble();
  ASSERT_EQ(page.size(), 2u);
  for (const auto& [entry, seconds] : profile)
    EXPECT_NEAR(page.at(entry), seconds, 1e-4 * seconds) << entry;
}

// A long prompt runs in chunks, and each chunk attends to all that stand before it.
TEST_F(CliTest, BenchCountsTheWorkOfALongPromptsChunks) {
  std::string config = test::readFile(kModel + "/config.json");
  const std::string most = "\"max_position_embeddings\": 128";
  ASSERT_NE(config.find(most), config.npos);
  std::filesystem::create_directory(file("long"));
  std::ofstream(file("long/config.json"))
      << config.replace(config.find(most), most.size(), "\"max_position_embeddings\": 2048");
  const JsonValue out = jsonOf("bench " + file("long/config.json") +
                               " --random-weights --dtype f32 -p 1100 -n 0 -r 1 -t 2 -o json");
  const JsonValue test = out.at("tests").at(size_t(0));
  // As above: products with weights, and 4 x 2 layers x 96 per token and key.
  const double pairs = 1100.0 * 1101 / 2, flops = 2.0 * 1100 * 64512 + 4 * 2 * 96 * pairs;
  const double ratio = test.at("flops_per_second").asDouble() *
                       test.at("repetitions_s").at(size_t(0)).asDouble() / flops;
  EXPECT_GT(ratio, 0.8);
  EXPECT_LT(ratio, 1.1);
}

TEST_F(CliTest, BenchSaysWhatHostExecutionIsNot) {
  const std::string bench = "bench " + kModel + " -p 2 -n 1 -r 1 -t 2 --backend cuda ";
  const std::string note = "host execution checks kernels; its times say nothing about a GPU";
  CliResult host = runLathe(bench + "--device host");
  EXPECT_EQ(host.status, 0) << host.err;
  EXPECT_THAT(host.err, HasSubstr(note));
  EXPECT_THAT(host.out, HasSubstr("backend cuda, 2 threads"));
  // Nor are the times held to what this machine could do: it is not measured.
  EXPECT_THAT(host.out, Not(HasSubstr("matrix peak")));
  // The environment may have chosen it.
  host = runLathe(bench + "--json", "LATHE_CUDA_DEVICE=host");
  EXPECT_THAT(host.err, HasSubstr(note));
  const JsonValue out = JsonValue::parse(host.out, "bench");
  for (const char* key : {"cpu_isa", "peak_flops_per_second", "read_roofs"})
    EXPECT_FALSE(out.find(key)) << key << " in " << host.out;
}

TEST_F(CliTest, BenchRefusesWhatItCannotMeasure) {
  expectFailure(2, "--random-weights", "bench " + kModel + "/config.json");
  expectFailure(2, "make 1004 positions, the model takes at most 128",
                "bench " + kModel + " -p 1000 -n 4");
  expectFailure(2, "expected -p or -n above 0", "bench " + kModel + " -p 0 -n 0");
  expectFailure(2, "xml", "bench " + kModel + " -o xml");
}

}  // namespace
}  // namespace lathe
