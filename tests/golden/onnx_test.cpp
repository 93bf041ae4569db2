// SPDX-License-Identifier: Apache-2.0
// Small ONNX models with the outputs of ONNX's reference evaluator (scripts/make_onnx_goldens.py).
// tests/onnx/node_suite.py runs all of ONNX's own cases.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "lathe/frontend/onnx.h"
#include "runtime/mapped_file.h"
#include "tests/onnx/onnx_case.h"
#include "tests/onnx/onnx_page.h"

namespace lathe {
namespace {

const std::string kCases = std::string(LATHE_TEST_DATA) + "/onnx/cases/";

std::vector<std::string> caseNames() {
  std::vector<std::string> names;
  for (auto& entry : std::filesystem::directory_iterator(kCases))
    names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  return names;
}

class OnnxCases : public ::testing::TestWithParam<std::string> {};

TEST_P(OnnxCases, GiveWhatOnnxGives) {
  for (const char* backend : {"reference", "cpu"}) {
    const OnnxOutcome outcome = runOnnxCase(kCases + GetParam(), backend);
    EXPECT_EQ(outcome.what, "right") << backend << ": " << outcome.words;
  }
}
INSTANTIATE_TEST_SUITE_P(All, OnnxCases, ::testing::ValuesIn(caseNames()),
                         [](auto& info) { return info.param; });

TEST(Onnx, NamedSizesAreSymbols) {
  const std::string text = loadOnnx(kCases + "computed_shapes/model.onnx").graph.text();
  EXPECT_NE(text.find("#lathe.dims<batch, 3, seq, 4>"), text.npos) << text;
  // What computed the shape is no part of the graph.
  EXPECT_EQ(text.find("lathe.concat"), text.npos) << text;
}

TEST(Onnx, NodesAreTheLinesOfTheirOps) {
  const std::string text = loadOnnx(kCases + "mlp/model.onnx").graph.text(/*withLocations=*/true);
  EXPECT_NE(text.find("model.onnx\":3:0"), text.npos) << text;
  EXPECT_NE(text.find("loc(\"layer.MatMul\""), text.npos) << text;
}

TEST(Onnx, FusionsAreFound) {
  const std::string text = irAt(loadOnnx(kCases + "attention_block/model.onnx").graph, "fused");
  EXPECT_NE(text.find("lathe.attention"), text.npos) << text;
  EXPECT_NE(text.find("causal top_left"), text.npos) << text;
  EXPECT_NE(text.find("lathe.layer_norm"), text.npos) << text;
}

TEST(Onnx, LargeInitializersAreWeights) {
  const OnnxModel model = loadOnnx(kCases + "mlp/model.onnx");
  EXPECT_EQ(model.inputs, std::vector<std::string>{"x"});
  EXPECT_EQ(model.outputs, std::vector<std::string>{"y"});
  // w2 has 64 elements: it is a literal.
  EXPECT_EQ(model.weights.names(), std::vector<std::string>{"w1"});
}

TEST(Onnx, ConstantsAreNoInputs) {
  OnnxOptions options;
  options.constants.emplace("x", Array::fromFloats({1, -2, 3, -4}, {4}));
  const OnnxModel model = loadOnnx(kCases + "known_branch/model.onnx", options);
  EXPECT_TRUE(model.inputs.empty());
  Session session(compile(model.graph, {.backend = "reference"}));
  EXPECT_EQ(session.run("forward", {}).at("y").at(1), 2);
}

TEST(Onnx, ThePageShowsTheTable) {
  const std::string page =
      readWholeFile(std::string(LATHE_SOURCE_DIR) + "/docs/onnx.md", kSourceFile);
  EXPECT_EQ(page, withOnnxTable(page)) << "run scripts/generate_docs";
}

}  // namespace
}  // namespace lathe
