// SPDX-License-Identifier: Apache-2.0
// A backend from a shared library, on both sides: examples/backends/table.
#include <lathe/lathe.h>

#include <gmock/gmock.h>

#include "lathe/backends/backend.h"
#include "tests/unit/compiler/cli_runner.h"

namespace lathe {
namespace {

using test::expectError;
using test::expectFailure;
using test::outputOf;
using ::testing::HasSubstr;

const std::string kBoth = LATHE_BINARY_DIR "/lib/table_backend.so";
const std::string kDevice = LATHE_BINARY_DIR "/lib/table_device.so";
const std::string kLoad = " --load-backend-plugin " + kBoth;

// A norm, a gated MLP and a softmax, with a size that is only known when it runs.
Graph layer() {
  Graph g("layer");
  Dim rows = g.dim("rows", 1, 64);
  Tensor x = g.input("x", DType::F32, {rows, 24});
  Tensor normed = nn::RMSNorm(g, "norm", 24)(x);
  Tensor gate = matmul(normed, g.weight("gate", DType::F32, {24, 40}));
  Tensor up = matmul(normed, transpose(g.weight("up", DType::F32, {40, 24}), {1, 0}));
  Tensor y = matmul(gate * sigmoid(gate) * up, g.weight("down", DType::F32, {40, 24}));
  g.output("y", nn::softmax(x + y));
  return g;
}

Array runOn(const std::string& backend, std::vector<std::string> plugins, int64_t rows) {
  Session session(compile(layer(), {.backend = backend, .backendPlugins = std::move(plugins)}));
  session.bindRandomWeights(7);
  Array x(DType::F32, {rows, 24});
  for (int64_t i = 0; i < x.size(); ++i) x.set(i, double(i % 11) / 4 - 1);
  return session.run("forward", {{"x", x}}).at("y");
}

TEST(BackendPluginsTest, ComputeWhatTheReferenceComputes) {
  for (int64_t rows : {1, 5}) {
    const Array got = runOn("table", {kBoth}, rows), want = runOn("reference", {}, rows);
    ASSERT_EQ(got.shape(), want.shape());
    for (int64_t i = 0; i < want.size(); ++i)
      ASSERT_NEAR(got.at(i), want.at(i), 1e-5 * want.at(i) + 1e-7) << i;
  }
  EXPECT_THAT(backendNames(), ::testing::Contains("table"));
}

TEST(BackendPluginsTest, RefuseWhatTheyHaveNoKernelFor) {
  Graph g;
  g.output("y", cumsum(g.input("x", DType::F32, {4}), 0));
  expectError(ErrorCode::Unsupported, "the table has no function 'cumsum'",
              [&] { compile(g, {.backend = "table", .backendPlugins = {kBoth}}); });
  Graph integers;
  Tensor i = integers.input("i", DType::I64, {4});
  integers.output("y", i + i);
  expectError(ErrorCode::Unsupported, "the table computes on floats and bool, got i64",
              [&] { compile(integers, {.backend = "table", .backendPlugins = {kBoth}}); });
}

// Options of other backends are refused, and the error names who has them.
TEST(BackendPluginsTest, RefuseOptionsThatTheyDoNotHave) {
  struct Refused {
    const char* backend;
    BackendOptions options;
    int64_t ranks;
    const char* said;
  };
  const Refused all[] = {
      {"cpu",
       {.float64 = true},
       1,
       "float64 is not supported on backend 'cpu'; it is an option of the backend reference"},
      {"cpu",
       {.target = "sm_90a"},
       1,
       "the target 'sm_90a' is not supported on backend 'cpu'; it is an option of the backend "
       "cuda"},
      {"table",
       {.weights = parseWeightFormats("int8")},
       1,
       "weights of the format int8:channel,embedding=int8:channel,head=int8:channel are not "
       "supported on backend 'table', which takes them as they are stored"},
      {"table",
       {},
       2,
       "a mesh of 2 ranks is not supported on backend 'table'; cpu, cuda and reference run it, and "
       "every backend a mesh that is simulated"},
  };
  for (const Refused& r : all) {
    CompileOptions options{
        .backend = r.backend, .backendOptions = r.options, .backendPlugins = {kBoth}};
    options.pipeline.mesh.ranks = r.ranks;
    expectError(ErrorCode::Unsupported, r.said, [&] { compile(layer(), options); });
  }
}

TEST(BackendPluginsTest, OneWithoutABackendIsRefusedOnce) {
  const CompileOptions bad{.backend = "cpu",
                           .backendPlugins = {LATHE_BINARY_DIR "/lib/plugin_without_backend.so"}};
  expectError(ErrorCode::InvalidFile, "the backend plugin 'empty' makes none",
              [&] { compile(layer(), bad); });
  EXPECT_EQ(findBackend("cpu").name(), "cpu");
  expectError(ErrorCode::Unsupported, "no backend 'empty'", [] { findBackend("empty"); });
}

class BackendPluginCli : public testing::Test {
 protected:
  test::TemporaryFolder folder_;
  std::string model_ = folder_.write("norm.mlir", R"(
func.func @forward(%x: tensor<2x4xf32> {lathe.name = "x"})
    -> (tensor<2x4xf32> {lathe.name = "y"}) {
  %s = lathe.softmax %x axis 1 : tensor<2x4xf32>
  %y = lathe.mul %s, %x : tensor<2x4xf32>, tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}
)");
  std::string input_ = " --input x=2x4xf32=1,2,3,4,5,6,7,8 ";
};

TEST_F(BackendPluginCli, RunTakesIt) {
  const std::string run = "run " + model_ + input_ + "--json --backend ";
  EXPECT_EQ(outputOf(run + "table" + kLoad), outputOf(run + "reference"));
  expectFailure(4, "no backend 'table'; this build has cpu, cuda, reference; --load-backend-plugin",
                run + "table");
  expectFailure(3, "none.so: expected a backend plugin",
                run + "table --load-backend-plugin " + (folder_ / "none.so"));
  expectFailure(4, "no backend 'table'",
                run + "table --load-backend-plugin " + LATHE_BINARY_DIR "/lib/plugin_echo.so");
}

TEST_F(BackendPluginCli, AnArtifactSaysThatItNeedsOne) {
  const std::string program = folder_ / "norm.lathe";
  outputOf("compile " + model_ + " --backend table -o " + program + kLoad);
  const std::string run = "run " + program + input_ + "--json";
  expectFailure(4,
                "the program is for backend 'table', this process has: cpu, cuda; "
                "--load-backend-plugin",
                run);
  const std::string want = outputOf("run " + model_ + input_ + "--json --backend reference");
  EXPECT_EQ(outputOf(run + kLoad), want);
  EXPECT_EQ(outputOf(run + " --load-backend-plugin " + kDevice), want);
  EXPECT_THAT(outputOf("inspect " + program), HasSubstr("for backend table"));
  EXPECT_THAT(outputOf("run --help"), HasSubstr("--load-backend-plugin"));
}

TEST_F(BackendPluginCli, SelftestJudgesIt) {
  const std::string selftest = "selftest --backend table" + kLoad + " --mode ";
  EXPECT_THAT(outputOf(selftest + "test --op add"),
              HasSubstr("| add | ok | ok | ok | ok | no | no | no | no | no | - |"));
  EXPECT_THAT(outputOf(selftest + "support --op cumsum"),
              HasSubstr("the table has no function 'cumsum'"));
  expectFailure(4, "no backend 'table'", "selftest --mode support --op add --backend table");
}

}  // namespace
}  // namespace lathe
