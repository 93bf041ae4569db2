// SPDX-License-Identifier: Apache-2.0
// What the `lathe` command says of itself, and to programs: help, manual page, completion, JSON.
#include <gmock/gmock.h>

#include <map>

#include "lathe/runtime/json_reader.h"
#include "tests/unit/compiler/cli_runner.h"

namespace lathe {
namespace {

using test::CliResult;
using test::expectFailure;
using test::outputOf;
using test::runLathe;
using ::testing::HasSubstr;

const std::string kModel = LATHE_TEST_DATA "/golden/llama_tiny_v5";
const char* const kVerbs[] = {"inspect",  "compile", "run",    "generate", "tokenize",
                              "bench",    "explain", "bisect", "why-not",  "diff",
                              "selftest", "tune",    "env"};

TEST(HelpCli, HelpOfAVerbIsItsOwn) {
  for (const char* verb : kVerbs)
    EXPECT_EQ(outputOf(std::string("help ") + verb), outputOf(std::string(verb) + " --help"));
  expectFailure(2, "unknown verb 'rnu'; did you mean 'run'?", "help rnu");
  EXPECT_EQ(outputOf("help"), outputOf("--help"));
  EXPECT_EQ(outputOf("help help"), outputOf("--help"));
}

TEST(HelpCli, ManualPageAndCompletionHaveEveryFlag) {
  const std::string man = outputOf("describe man"), bash = outputOf("describe bash");
  EXPECT_TRUE(man.starts_with(".TH LATHE 1"));
  for (const char* verb : kVerbs) {
    EXPECT_THAT(outputOf("--help"), HasSubstr(std::string("  ") + verb + " "));
    EXPECT_THAT(bash, HasSubstr(std::string("    ") + verb + ") flags='"));
    const std::string help = outputOf(std::string(verb) + " --help");
    size_t flags = 0;
    for (size_t at = 0; (at = help.find("--", at)) != help.npos; at += 2) {
      const size_t end = help.find_first_not_of("abcdefghijklmnopqrstuvwxyz-", at);
      const std::string flag = help.substr(at, end - at);
      if (flag.size() < 4 || help[at - 1] == '`' || help.rfind("Example", at) != help.npos)
        continue;
      ++flags;
      EXPECT_THAT(bash, HasSubstr(flag)) << verb;
      std::string troff;
      for (char c : flag) troff += c == '-' ? std::string("\\-") : std::string(1, c);
      EXPECT_THAT(man, HasSubstr(troff)) << verb;
    }
    EXPECT_GT(flags, 3u) << verb;
  }
  for (const char* line : {".", "'"})
    for (size_t at = 0; (at = man.find(std::string("\n") + line, at)) != man.npos; ++at)
      EXPECT_TRUE(std::isalpha(uint8_t(man[at + 2]))) << man.substr(at, 40);
  EXPECT_EQ(
      std::system((std::string(LATHE_BINARY_DIR "/bin/lathe describe bash | bash -n")).c_str()), 0);
  expectFailure(2, "expected `lathe describe man` or `lathe describe bash`", "describe");
}

// What bash proposes behind the words, the last of which is being typed.
std::string completed(const std::string& words) {
  const std::string script =
      "source <(" LATHE_BINARY_DIR "/bin/lathe describe bash); compopt() { :; }; COMP_WORDS=(" +
      words + "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _lathe; echo \"${COMPREPLY[*]}\"";
  FILE* pipe = popen(("bash -c '" + script + "'").c_str(), "r");
  std::string text;
  for (int c; pipe && (c = std::fgetc(pipe)) != EOF;) text += char(c);
  if (pipe) pclose(pipe);
  return text;
}

TEST(HelpCli, CompletionKnowsVerbsFlagsAndTheirWords) {
  EXPECT_EQ(completed("lathe tok"), "tokenize\n");
  EXPECT_EQ(completed("lathe help ex"), "explain\n");
  EXPECT_EQ(completed("lathe run --thr"), "--threads\n");
  EXPECT_EQ(completed("lathe inspect model --stop-after la"), "laid-out\n");
  EXPECT_EQ(completed("lathe inspect model --dtype \"\""), "f32 bf16\n");
  EXPECT_EQ(completed("lathe bench -o c"), "csv\n");
  EXPECT_EQ(completed("lathe bench --color n"), "never\n");
  EXPECT_EQ(completed("lathe selftest --mode \"\""), "support test perf\n");
}

// One document on standard output, whatever happens; people read the line on standard error.
TEST(JsonCli, ErrorsAreDocuments) {
  auto expectDocument = [](int status, const char* kind, const std::string& arguments) {
    const CliResult r = runLathe(arguments);
    EXPECT_EQ(r.status, status) << arguments;
    const JsonValue error = JsonValue::parse(r.out, arguments).at("error");
    EXPECT_EQ(error.at("kind").asString(), kind);
    EXPECT_EQ(error.at("exit_status").asInt(), status);
    EXPECT_EQ("error: " + error.at("message").asString() + "\n", r.err);
  };
  expectDocument(2, "invalid_argument", "env --json --wrong");
  expectDocument(2, "invalid_argument", "nosuch --json");
  expectDocument(3, "invalid_file", "inspect /nosuch --json");
  expectDocument(3, "invalid_file", "generate /nosuch --json -p a");
  test::TemporaryFolder folder;
  const std::string other =
      folder.write("config.json", R"({"architectures": ["MambaForCausalLM"]})");
  expectDocument(4, "unsupported", "inspect " + other + " --json");
}

TEST(JsonCli, GraphsAreDocuments) {
  auto document = [](const std::string& arguments) {
    return JsonValue::parse(outputOf(arguments), arguments);
  };
  const std::string inspect = "inspect " + kModel;
  const JsonValue fused = document(inspect + " --stop-after fused --json");
  EXPECT_EQ(fused.at("verb").asString(), "inspect");
  EXPECT_EQ(fused.at("stage").asString(), "fused");
  EXPECT_EQ(fused.at("mlir").asString(), outputOf(inspect + " --stop-after fused"));
  const JsonValue dot = document(inspect + " --graphviz --json");
  EXPECT_EQ(dot.at("stage").asString(), "recorded");
  EXPECT_TRUE(dot.at("dot").asString().starts_with("digraph"));
  EXPECT_EQ(document("compile " + kModel + " --stop-after canonical --json").at("stage").asString(),
            "canonical");
}

// Whatever a verb says without --json, it says as one document with it.
TEST(JsonCli, EveryVerbPrintsADocument) {
  test::TemporaryFolder folder;
  const std::map<std::string, std::string> arguments{
      {"inspect", kModel},
      {"compile", kModel + " -o " + (folder / "m.lathe")},
      {"run", kModel + " --input input_ids=1x2xi64=1,2"},
      {"generate", kModel + " --ids 1,2 -n 2"},
      {"tokenize", LATHE_SOURCE_DIR "/examples/models/stories -p Once"},
      {"bench", kModel + " -p 4 -n 2 -r 1"},
      {"explain", kModel + " --set batch=1,seq=4,cache=8"},
      {"bisect", kModel + " --set seq=3 -o " + (folder / "wrong")},
      {"why-not", kModel},
      {"diff", kModel + " " + kModel},
      {"selftest", "--mode support --op exp"},
      {"tune", kModel + " --texts --only m=1 -o " + (folder / "candidates.lathe")},
      {"env", ""}};
  for (const char* verb : kVerbs) {
    const std::string command = std::string(verb) + " " + arguments.at(verb) + " --json";
    const CliResult r = runLathe(command);
    EXPECT_EQ(r.status, 0) << command << "\n" << r.err;
    const JsonValue document = JsonValue::parse(r.out, command);
    EXPECT_EQ(document.at("verb").asString(), verb);
  }
}

// A field that may change the mathematics is refused by every verb that builds the model.
TEST(ConfigCli, UnknownFieldsAreRefused) {
  test::TemporaryFolder folder;
  for (const char* name : {"config.json", "model.safetensors"})
    std::filesystem::copy_file(kModel + "/" + name, folder / name);
  std::string config = test::readFile(folder / "config.json");
  config.insert(config.find('{') + 1, "\"norm_type\": \"layer\",");
  folder.write("config.json", config);
  const std::string words = "config.json: norm_type: not supported by LlamaForCausalLM";
  for (const std::string& arguments :
       {"compile " + folder.path() + " -o " + (folder / "m.lathe"),
        "run " + folder.path() + " --input input_ids=1x2xi64=1,2", "inspect " + folder.path()}) {
    const CliResult result = runLathe(arguments);
    EXPECT_EQ(result.status, 4) << arguments;
    EXPECT_THAT(result.err, HasSubstr(words)) << arguments;
  }
}

// An op of a folder has the line of its family's file, which is the same wherever Lathe was built.
TEST(ConfigCli, OpsOfAFolderHaveTheirFamilysLines) {
  const std::string ir = outputOf("inspect " + kModel + " --stop-after recorded");
  EXPECT_THAT(ir, HasSubstr("\"frontend/families/llama.cpp\":"));
  EXPECT_EQ(ir.find("compiler_api.cpp"), ir.npos);
  EXPECT_EQ(ir.find(LATHE_SOURCE_DIR), ir.npos);
}

}  // namespace
}  // namespace lathe
