// SPDX-License-Identifier: Apache-2.0
// Candidates of a small model, written by the compiler and measured by host execution.
#include "backends/cuda/device/tuning_measure.h"

#include <cmath>
#include <set>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backends/cuda/device/program_code.h"
#include "backends/cuda/lowering/matmul/gemm_kernels.h"
#include "lathe/frontend/compile.h"
#include "lathe/frontend/graph.h"
#include "lathe/ir/ops.h"
#include "lathe/runtime/error.h"
#include "tests/cuda_mocks/mock_library.h"
#include "tests/unit/cuda/tuning_records.h"

namespace lathe::cuda {
namespace {

using ::testing::HasSubstr;

constexpr TuningEffort kLittle{1, 2, 0, 0};

// A product with a residual and a norm, for 1 to 20 rows.
Program candidates(const std::string& only = "", int64_t most = 20) {
  Graph g;
  Dim rows = g.dim("rows", 1, most);
  Tensor x = g.input("x", DType::BF16, {rows, 128});
  Tensor w = g.weight("w", DType::BF16, {96, 128});
  Tensor y = matmul(x, transpose(w, {1, 0}));
  g.output("y", y);
  g.output("sum", reduceSum(y, {1}));
  return compile(g, {.backend = "cuda", .backendOptions = {.target = "candidates" + only}});
}

TEST(TuningMeasure, EveryProblemIsThereOnceWithSizesThatAskForIt) {
  const Program program = candidates();
  const std::vector<TuningProblem> problems = tuningProblemsOf(program);
  std::set<std::string> seen;
  std::map<int64_t, std::string> products;
  for (const TuningProblem& p : problems) {
    EXPECT_TRUE(seen.insert(p.problem).second) << p.problem;
    EXPECT_GE(p.choices.size(), 1u);
    EXPECT_LE(p.choices.size(), 12u);
    EXPECT_EQ(std::set(p.choices.begin(), p.choices.end()).size(), p.choices.size());
    if (p.problem.starts_with("product")) products[p.symbols.at("rows")] = p.problem;
  }
  // Ranges end at 1, 4, 8, 16, 32 rows; there are no more than 20.
  ASSERT_EQ(products.size(), 5u);
  EXPECT_THAT(products.at(1), HasSubstr(" m=1 n=96 k=128 "));
  EXPECT_THAT(products.at(16), HasSubstr(" m=16 "));
  EXPECT_THAT(products.at(20), HasSubstr(" m=32 "));
}

// A norm in front makes one kernel for few rows: the parts' own product is never asked for there.
TEST(TuningMeasure, ProblemsThatAnotherKernelSolvesAreLeftOut) {
  Graph g;
  Dim rows = g.dim("rows", 1, 128);
  Tensor x = g.input("x", DType::BF16, {rows, 128});
  Tensor gain = g.weight("gain", DType::BF16, {128});
  Tensor w = g.weight("w", DType::BF16, {96, 128});
  g.output("y", matmul(fused::rmsNorm(x, gain, 1e-5), transpose(w, {1, 0})));
  const Program program =
      compile(g, {.backend = "cuda", .backendOptions = {.target = "candidates:product"}});
  std::set<int64_t> staged, parts;
  for (const TuningProblem& p : tuningProblemsOf(program)) {
    EXPECT_GE(p.choices.size(), 2u);
    (p.problem.find("staged") != std::string::npos ? staged : parts).insert(p.symbols.at("rows"));
  }
  EXPECT_EQ(staged, (std::set<int64_t>{1, 4, 8, 16, 32, 64}));
  EXPECT_EQ(parts, (std::set<int64_t>{128}));
}

TEST(TuningMeasure, ATargetCanNameProblems) {
  for (const TuningProblem& p : tuningProblemsOf(candidates(":region,m=4 ")))
    EXPECT_TRUE(p.problem.starts_with("region") || p.problem.find("m=4 ") != std::string::npos);
  EXPECT_EQ(tuningProblemsOf(candidates(":m=4 ,m=8 ")).size(), 2u);
  EXPECT_TRUE(tuningProblemsOf(candidates(":nothing")).empty());
  EXPECT_THROW(candidates("x"), Error);
}

// A size that no question asks for has room, as a cache does: the most of its multiples.
TEST(TuningMeasure, SizesThatNobodyAsksForHaveRoom) {
  Graph g;
  const Dim keys = g.dim("keys", 48, 9600, 48), few = g.dim("few", 1, 100);
  g.output("keys", reduceMax(g.input("x", DType::F32, {2, keys}), {1}));
  g.output("few", reduceMin(g.input("z", DType::F32, {2, few}), {1}));
  const std::vector<TuningProblem> problems = tuningProblemsOf(
      compile(g, {.backend = "cuda", .backendOptions = {.target = "candidates:region"}}));
  ASSERT_EQ(problems.size(), 2u);
  for (const TuningProblem& p : problems) {
    EXPECT_EQ(p.symbols.at("keys"), 4080);
    EXPECT_EQ(p.symbols.at("few"), 100);
  }
}

// Of many candidates the model's best are measured, and what was measured to be the best before.
TEST(TuningMeasure, WhatARecordSaysIsMeasuredAgain) {
  MatmulKernel product;
  product.m = DimExpr::symbol("rows");
  product.n = 96;
  product.k = 128;
  product.hooks = linearHooks(product, 2);
  const std::string last = textOf(matmulCandidates(product, {4, 96, 128, 1}).back());
  const TuningProblem before = tuningProblemsOf(candidates(":m=4 ")).at(0);
  EXPECT_THAT(before.choices, ::testing::Not(::testing::Contains(last)));
  LocalRecords local({record(before.problem, last, 0)});
  const TuningProblem now = tuningProblemsOf(candidates(":m=4 ")).at(0);
  EXPECT_EQ(now.choices.size(), before.choices.size());
  EXPECT_EQ(now.choices.back(), last);
}

TEST(TuningMeasure, ChoicesAgreeAndAWrongOneIsFound) {
  Program program = candidates();
  std::vector<TuningProblem> problems = tuningProblemsOf(program);
  const TuningProblem* chosen = nullptr;
  for (const TuningProblem& p : problems)
    if (p.problem.starts_with("product") && p.symbols.at("rows") == 4) chosen = &p;
  ASSERT_NE(chosen, nullptr);
  // Three of them; the last launches nothing.
  TuningProblem problem = *chosen;
  problem.choices.resize(3);
  for (EntryPoint& e : program.entries)
    if (e.name == problem.entry) e.calls.resize(3);
  KernelTable table = kernelTableOf(program);
  const EntryPoint& entry = program.entry(problem.entry);
  table.at(entry.calls[2].callee)[0].launches[0].grid[0].count = 0;
  storeKernels(program, table, {});

  const std::vector<MeasuredChoice> measured = measureChoices(program, problem, "host", kLittle);
  ASSERT_EQ(measured.size(), 3u);
  for (size_t i : {0, 1}) {
    EXPECT_EQ(measured[i].error, "");
    EXPECT_GT(measured[i].microseconds, 0);
    EXPECT_LE(measured[i].apart, 1);
  }
  EXPECT_THAT(measured[2].error, HasSubstr("not that of the first choice"));
  EXPECT_LT(winnerOf(measured), 2u);
}

TEST(TuningMeasure, ALibraryThatIsMissingHasNoTime) {
  const Program program = candidates(":m=512", 130);
  const std::vector<TuningProblem> problems = tuningProblemsOf(program);
  ASSERT_EQ(problems.size(), 1u);
  const std::vector<MeasuredChoice> measured =
      measureChoices(program, problems[0], "host", kLittle);
  ASSERT_EQ(measured.size(), problems[0].choices.size());
  size_t libraries = 0;
  for (size_t i = 0; i < measured.size(); ++i) {
    const bool library = problems[0].choices[i].starts_with("library");
    libraries += library;
    if (library) EXPECT_THAT(measured[i].error, HasSubstr("cuBLASLt, which is missing"));
    EXPECT_EQ(measured[i].error.empty(), !library) << measured[i].error;
  }
  EXPECT_EQ(libraries, 8u);
}

TEST(TuningMeasure, RegionsAreMeasuredToo) {
  const Program program = candidates();
  for (const TuningProblem& p : tuningProblemsOf(program)) {
    if (!p.problem.starts_with("region")) continue;
    for (const MeasuredChoice& m : measureChoices(program, p, "host", kLittle))
      EXPECT_EQ(m.error, "") << p.problem;
    return;
  }
  FAIL() << "no region among the problems";
}

// On a GPU of host memory, whose kernels do nothing and take a microsecond a launch.
TEST(TuningMeasure, AllChoicesOfAProblemAreLaunchedEquallyOften) {
  test::Variable library("LATHE_LIBCUDA", test::mockPath("mock_cuda"));
  Program program = candidates(":product");
  const KernelTable table = kernelTableOf(program);
  std::vector<KernelCode> codes = kernelCodeOf(program);
  for (KernelCode& k : codes) k.cubin = "cubin " + k.name;
  storeKernels(program, table, codes);
  const TuningProblem problem = tuningProblemsOf(program).front();
  ASSERT_GE(problem.choices.size(), 2u);
  std::vector<double> launchesOfARun;
  for (const Call& call : program.entry(problem.entry).calls)
    launchesOfARun.push_back(double(table.at(call.callee)[0].launches.size()));

  test::mockFunction<void()>("mock_cuda", "mockReset")();
  const std::vector<MeasuredChoice> measured =
      measureChoices(program, problem, "gpu", {2, 5, 0, 100e-6});
  ASSERT_EQ(measured.size(), problem.choices.size());
  for (size_t i = 0; i < measured.size(); ++i) {
    EXPECT_EQ(measured[i].error, "");
    EXPECT_NEAR(measured[i].microseconds, launchesOfARun[i], 1e-3) << problem.choices[i];
    EXPECT_NEAR(measured[i].spread, 0, 1e-3);
  }
  // Recordings: two sets of operands to find the count, then as many runs as fill the time.
  std::vector<double> recorded;
  std::istringstream log(test::mockFunction<const char*()>("mock_cuda", "mockLog")());
  for (std::string word; log >> word;)
    if (word == "cuStreamEndCapture") log >> recorded.emplace_back();
  std::vector<double> expected{2 * launchesOfARun[0]};
  for (double launches : launchesOfARun)
    expected.push_back(launches * std::ceil(100 / launchesOfARun[0]));
  EXPECT_EQ(recorded, expected);
}

TEST(TuningMeasure, ASwitchNeedsTwoPercent) {
  auto of = [](double microseconds, const char* error = "") {
    MeasuredChoice m;
    m.microseconds = microseconds;
    m.error = error;
    return m;
  };
  EXPECT_EQ(winnerOf({of(100)}), 0u);
  EXPECT_EQ(winnerOf({of(100), of(98.5)}), 0u);
  EXPECT_EQ(winnerOf({of(100), of(97.5)}), 1u);
  EXPECT_EQ(winnerOf({of(100), of(97.5), of(97), of(99)}), 2u);
  EXPECT_EQ(winnerOf({of(100), of(10, "wrong"), of(90)}), 2u);
}

TEST(TuningMeasure, OtherProgramsHoldNoCandidates) {
  Program program;
  try {
    tuningProblemsOf(program);
    ADD_FAILURE() << "no error";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::InvalidFile);
    EXPECT_THAT(e.what(), HasSubstr("lathe tune"));
  }
}

}  // namespace
}  // namespace lathe::cuda
