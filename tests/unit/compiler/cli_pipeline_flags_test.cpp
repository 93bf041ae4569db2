// SPDX-License-Identifier: Apache-2.0
// The flags of the `lathe` command that change the pipeline: patterns, plugins, passes, modes.
#include <gmock/gmock.h>

#include "tests/unit/compiler/cli_runner.h"

namespace lathe {
namespace {

using test::expectFailure;
using test::outputOf;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kFusions = LATHE_SOURCE_DIR "/examples/fusions/";
const std::string kPlugin = LATHE_BINARY_DIR "/lib/round_weights_plugin.so";
const std::string kGate = R"(
func.func @forward(%x: tensor<4xf32> {lathe.name = "x"}) -> (tensor<4xf32> {lathe.name = "y"}) {
  %w = lathe.weight "w" : tensor<4xf32>
  %s = lathe.tanh %x : tensor<4xf32>
  %a = lathe.mul %x, %s : tensor<4xf32>, tensor<4xf32>
  %y = lathe.mul %a, %w : tensor<4xf32>, tensor<4xf32>
  return %y : tensor<4xf32>
}
)";
const std::string kTanh = R"(
func.func @forward(%x: tensor<4xf32> {lathe.name = "x"}) -> (tensor<4xf32> {lathe.name = "y"}) {
  %y = lathe.tanh %x : tensor<4xf32>
  return %y : tensor<4xf32>
}
)";
class PipelineFlagsTest : public testing::Test {
 protected:
  std::string fused(const std::string& flags) {
    return outputOf("inspect " + model_ + " --stop-after=fused " + flags);
  }
  test::TemporaryFolder folder_;
  std::string model_ = folder_.write("gate.mlir", kGate);
};

TEST_F(PipelineFlagsTest, PatternsComeFromFilesAndMayBeRepeated) {
  std::string file = folder_.write("p.mlir", test::kWrongPattern);
  EXPECT_THAT(fused(""), HasSubstr("lathe.tanh"));
  EXPECT_THAT(fused("--patterns " + file), Not(HasSubstr("lathe.tanh")));
  EXPECT_THAT(fused("--patterns " + kFusions + "glu.pdl.mlir --patterns " + file),
              HasSubstr("lathe.glu"));
}

TEST_F(PipelineFlagsTest, RunTakesThemToo) {
  std::string file = folder_.write("p.mlir", test::kWrongPattern);
  const std::string run = "run " + folder_.write("tanh.mlir", kTanh) + " --input x=4xf32=1.0";
  EXPECT_NE(outputOf(run), outputOf(run + " --patterns " + file));
}

TEST_F(PipelineFlagsTest, MistakesInPatternsEndTheCommandWithTheirLine) {
  std::string bad = test::kWrongPattern;
  bad.replace(bad.find("lathe.tanh"), 10, "lathe.tank");
  std::string file = folder_.write("bad.mlir", bad);
  expectFailure(3, "bad.mlir:4: pattern 'wrong': unknown op 'lathe.tank'",
                "inspect " + model_ + " --stop-after=fused --patterns " + file);
}

TEST_F(PipelineFlagsTest, PluginsBringPasses) {
  EXPECT_THAT(fused("--load-pass-plugin " + kPlugin + " --passes example-round-weights"),
              HasSubstr("to bf16"));
  expectFailure(2, "'example-round-weights' does not refer to a registered pass",
                "inspect " + model_ + " --stop-after=fused --passes example-round-weights");
  expectFailure(
      3, "none.so: expected a pass plugin",
      "inspect " + model_ + " --stop-after=fused --load-pass-plugin " + (folder_ / "none.so"));
}

TEST_F(PipelineFlagsTest, ModesAreNamed) {
  EXPECT_THAT(fused("--mode strict"), HasSubstr("lathe.tanh"));
  expectFailure(2, "strict, relaxed", "inspect " + model_ + " --stop-after=fused --mode loose");
}

TEST_F(PipelineFlagsTest, AProgramCannotBeChangedAnyMore) {
  std::string program = folder_ / "gate.lathe";
  outputOf("compile " + model_ + " -o " + program);
  for (const char* flag : {"--mode strict", "--weight-format int8", "--patterns p.mlir",
                           "--load-pass-plugin p.so", "--passes cse"})
    expectFailure(2, "is a compiled program; give the model that it was compiled from",
                  "run " + program + " --input x=4xf32=1.0 " + flag);
}

}  // namespace
}  // namespace lathe
