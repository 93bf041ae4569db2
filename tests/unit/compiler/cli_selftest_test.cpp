// SPDX-License-Identifier: Apache-2.0
// lathe selftest as a user's shell runs it.
#include <gmock/gmock.h>

#include "lathe/runtime/json_reader.h"
#include "tests/unit/compiler/cli_runner.h"

namespace lathe {
namespace {

namespace fs = std::filesystem;
using test::CliResult;
using test::expectFailure;
using test::outputOf;
using test::runLathe;
using ::testing::HasSubstr;

JsonValue jsonOf(const std::string& arguments, const std::string& before = "") {
  return JsonValue::parse(outputOf(arguments + " --json", before), "selftest");
}

TEST(CliSelftest, SupportSaysWhatIsExpandedAndWhy) {
  const std::string out = outputOf("selftest --mode support --op 'softm*' --backend cpu");
  EXPECT_THAT(out, HasSubstr("backend cpu\n\n| op | f64 | f32 | bf16 | f16 | i64 |"));
  EXPECT_THAT(out,
              HasSubstr("| softmax | expanded | expanded | expanded | expanded | - | - | - | - |"));
  EXPECT_THAT(out, HasSubstr("\ncpu softmax f64, f32, bf16, f16 expanded: "));
  JsonValue json = jsonOf("selftest --mode support --op lathe.neg --backend cpu");
  EXPECT_EQ(json.at("mode").asString(), "support");
  ASSERT_EQ(json.at("ops").size(), 9u);
  EXPECT_EQ(json.at("ops").at(1).at("dtype").asString(), "f32");
  EXPECT_EQ(json.at("ops").at(1).at("result").asString(), "yes");
}

TEST(CliSelftest, TestRunsTheSamples) {
  CliResult r = runLathe("selftest --mode test --op add --backend cpu");
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_THAT(r.out, HasSubstr("| add | ok | ok | ok | ok | ok | ok | ok | ok | ok | - |"));
  EXPECT_THAT(r.err, HasSubstr("9 tests agree with the reference in float64"));
  JsonValue json = jsonOf("selftest --mode test --op add --backend reference");
  ASSERT_EQ(json.at("ops").size(), 9u);
  EXPECT_EQ(json.at("ops").at(8).at("backend").asString(), "reference");
  EXPECT_EQ(json.at("ops").at(8).at("result").asString(), "ok");
}

TEST(CliSelftest, PerfHoldsKernelsAgainstTheRoofs) {
  test::TemporaryFolder cache;
  JsonValue json =
      jsonOf("selftest --mode perf --op rms_norm -t 1", "LATHE_CACHE_DIR=" + cache.path());
  EXPECT_EQ(json.at("threads").asInt(), 1);
  ASSERT_EQ(json.at("kernels").size(), 2u);
  JsonValue kernel = json.at("kernels").at(0);
  EXPECT_EQ(kernel.at("size").asString(), "512 x 2048");
  EXPECT_EQ(kernel.at("bytes").asDouble(), 4 * (2 * 512 + 1) * 2048);
  EXPECT_EQ(kernel.at("bound").asString(), "memory");
  EXPECT_NEAR(kernel.at("roof_share").asDouble() * kernel.at("time_s").asDouble(),
              kernel.at("bytes").asDouble() / json.at("device").at("bytes_per_second").asDouble(),
              1e-9);
  EXPECT_GE(kernel.at("repetitions_s").size(), 5u);
}

TEST(CliSelftest, MistakesAreUsageErrors) {
  expectFailure(2, "--op: no op matches 'sofmax'; did you mean 'softmax'?",
                "selftest --mode support --op sofmax");
  expectFailure(2, "--op: no op matches 'cumsum'; expected a glob over linear, attention, rms_norm",
                "selftest --mode perf --op cumsum");
  expectFailure(4, "no backend 'tpu'; this build has cpu, cuda, reference",
                "selftest --mode support --backend tpu");
  expectFailure(2, "the reference backend interprets", "selftest --mode perf --backend reference");
  expectFailure(2, "on a GPU bench/gpu/run does", "selftest --mode perf --backend cuda");
  expectFailure(2, "--threads goes with --mode perf, got --mode test",
                "selftest --mode test --threads 2");
  expectFailure(2, "--mode", "selftest");
  expectFailure(2, "--mode", "selftest --mode speed");
}

// A copy of the program beside another module.
class OtherModule : public ::testing::Test {
 protected:
  OtherModule() {
    fs::create_directories(folder_ / "bin");
    fs::create_directories(folder_ / "lib");
    fs::copy(LATHE_BINARY_DIR "/bin/lathe", folder_ / "bin/lathe");
  }
  void plant() {
    fs::copy(LATHE_BINARY_DIR "/lib/failing_selftest.so", folder_ / "lib/liblathe_selftest.so");
  }
  CliResult run(const std::string& arguments) {
    return runLathe(arguments, "LATHE_CACHE_DIR=" + folder_.path(), folder_ / "bin/lathe");
  }

  test::TemporaryFolder folder_;
};

TEST_F(OtherModule, AMismatchIsNamedAndFails) {
  plant();
  CliResult r = run("selftest --mode test");
  EXPECT_EQ(r.status, 5) << r.err;
  EXPECT_EQ(r.out,
            "backend wrong\n\n| op | f32 | bf16 | f16 | i64 |\n|---|---|---|---|---|\n"
            "| planted | FAIL | ok | - | no |\n\n"
            "wrong planted f32 FAIL:\n"
            "  sample 0.out0: element 7 is 1, want 2\n"
            "  sample 1.out0: element 7 is 1, want 2\n"
            "  sample 2.out0: element 7 is 1, want 2\n"
            "  sample 3.out0: element 7 is 1, want 2\n"
            "  and 2 more; --json has all\n"
            "wrong planted i64 no: another reason\n");
  EXPECT_EQ(r.err, "error: 1 of 2 tests differ from the reference: wrong planted f32\n");
  r = run("selftest --mode test --json");
  EXPECT_EQ(r.status, 5);
  JsonValue first = JsonValue::parse(r.out, "selftest").at("ops").at(0);
  EXPECT_EQ(first.at("result").asString(), "FAIL");
  EXPECT_THAT(first.at("detail").asString(), HasSubstr("sample 5.out0: element 7 is 1, want 2"));
}

TEST_F(OtherModule, TheMedianIsReportedAndARefusalNamed) {
  plant();
  CliResult r = run("selftest --mode perf");
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_THAT(r.out, HasSubstr("| wrong | planted | 2 x 3 | f32 | 2.00 ms | 2 G | 1 GB | "));
  EXPECT_THAT(r.out, HasSubstr("| wrong | planted | 4 | bf16 | no | - | - | - | - |"));
  EXPECT_THAT(r.out, HasSubstr("\nwrong planted bf16 no: a refusal\n"));
}

TEST_F(OtherModule, AModuleThatDoesNotLoadIsNamed) {
  folder_.write("lib/liblathe_selftest.so", "no library");
  CliResult r = run("selftest --mode support");
  EXPECT_EQ(r.status, 4);
  EXPECT_EQ(r.out, "");
  EXPECT_THAT(r.err, HasSubstr("lib/liblathe_selftest.so: "));
  EXPECT_THAT(r.err, HasSubstr("install liblathe_selftest.so beside liblathe.so"));
}

}  // namespace
}  // namespace lathe
