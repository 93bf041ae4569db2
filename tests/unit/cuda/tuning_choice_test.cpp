// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/lowering/tuning/tuning_choice.h"

#include <algorithm>
#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backends/cuda/lowering/attention/attention_kernels.h"
#include "backends/cuda/lowering/matmul/gemm_kernels.h"
#include "backends/cuda/lowering/tuning/tuning_database.h"
#include "lathe/runtime/error.h"
#include "tests/unit/cuda/tuning_records.h"

namespace lathe::cuda {
namespace {

using ::testing::HasSubstr;

TuningQuestion question() {
  TuningQuestion q;
  q.problem = "problem one";
  q.version = 1;
  q.kernel = "kernel";
  q.candidates = {"first", "second", "third"};
  return q;
}

TEST(TuningChoice, SizesUpToSixteenAreExact) {
  for (int64_t size : {0, 1, 2, 15, 16}) EXPECT_EQ(sizeBucket(size), size);
  EXPECT_EQ(sizeBucket(17), 32);
  EXPECT_EQ(sizeBucket(32), 32);
  EXPECT_EQ(sizeBucket(33), 64);
  EXPECT_EQ(sizeBucket(4096), 4096);
  EXPECT_EQ(sizeBucket(4097), 8192);
}

TEST(TuningChoice, TheModelDecidesWithoutRecord) {
  EXPECT_EQ(chosenCandidate(question()), 0u);
  LocalRecords other({record("problem two", "third")});
  EXPECT_EQ(chosenCandidate(question()), 0u);
}

TEST(TuningChoice, ARecordComesBeforeTheModel) {
  LocalRecords local({record("problem one", "third")});
  EXPECT_EQ(chosenCandidate(question()), 2u);
}

TEST(TuningChoice, TheLastRecordCounts) {
  LocalRecords local({record("problem one", "third"), record("problem one", "second")});
  EXPECT_EQ(chosenCandidate(question()), 1u);
}

TEST(TuningChoice, OldVersionsAndUnknownChoicesAreLeftToTheModel) {
  {
    LocalRecords old({record("problem one", "third", 0)});
    EXPECT_EQ(chosenCandidate(question()), 0u);
  }
  LocalRecords gone({record("problem one", "fourth")});
  EXPECT_EQ(chosenCandidate(question()), 0u);
}

TEST(TuningChoice, RecordsOfOtherArchitecturesAreLeftOut) {
  for (const auto [major, minor] : {std::pair(10, 0), {9, 1}, {8, 9}, {8, 0}}) {
    TuningRecord r = record("problem one", "third");
    r.major = major;
    r.minor = minor;
    LocalRecords local({r});
    EXPECT_EQ(chosenCandidate(question()), 0u) << major << "." << minor;
  }
}

TEST(TuningChoice, FilesThatCannotBeReadAreErrors) {
  setenv("LATHE_TUNING", "/nowhere/records.txt", 1);
  try {
    chosenCandidate(question());
    ADD_FAILURE() << "no error";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::Io);
    EXPECT_THAT(e.what(), HasSubstr("LATHE_TUNING: /nowhere/records.txt: cannot open"));
  }
  unsetenv("LATHE_TUNING");
}

TEST(TuningChoice, AScopeSeesAndAnswers) {
  LocalRecords local({record("problem one", "third")});
  TuningScope scope;
  EXPECT_EQ(chosenCandidate(question()), 2u);
  ASSERT_EQ(scope.asked.size(), 1u);
  EXPECT_EQ(scope.asked[0].answer, 2u);
  EXPECT_EQ(scope.asked[0].question.kernel, "kernel");
  {
    TuningScope inner;
    inner.answers["problem one"] = 1;
    EXPECT_EQ(chosenCandidate(question()), 1u);
    inner.answers["problem one"] = 17;
    EXPECT_EQ(chosenCandidate(question()), 2u);  // no more than there are
  }
  EXPECT_EQ(scope.asked.size(), 1u);
  EXPECT_EQ(chosenCandidate(question()), 2u);
}

TEST(TuningChoice, RejectedCandidatesGiveWayUntilOneIsLeft) {
  LocalRecords local({record("problem one", "second")});
  TuningScope scope;
  EXPECT_FALSE(scope.reject("kernel"));  // nothing was asked
  EXPECT_EQ(chosenCandidate(question()), 1u);
  EXPECT_FALSE(scope.reject("another kernel"));
  EXPECT_TRUE(scope.reject("kernel"));
  scope.asked.clear();
  EXPECT_EQ(chosenCandidate(question()), 0u);
  EXPECT_TRUE(scope.reject("kernel"));
  scope.asked.clear();
  EXPECT_EQ(chosenCandidate(question()), 2u);
  EXPECT_FALSE(scope.reject("kernel"));
}

// What has no text of its own stays chosen when the text that stands in for it is rejected.
TEST(TuningChoice, AStandInGivesWayAlone) {
  TuningScope scope;
  TuningQuestion asked = question();
  asked.withoutText = {0};
  EXPECT_EQ(chosenCandidate(asked), 0u);
  EXPECT_EQ(standInFor(asked, 0), 1u);
  EXPECT_TRUE(scope.reject("kernel"));
  scope.asked.clear();
  EXPECT_EQ(chosenCandidate(asked), 0u);
  EXPECT_EQ(standInFor(asked, 0), 2u);
  EXPECT_FALSE(scope.reject("kernel"));  // one is left
  EXPECT_EQ(scope.asked.back().printed, 2u);
}

MatmulKernel matmul(const DimExpr& m) {
  MatmulKernel p;
  p.name = "product";
  p.m = m;
  p.n = 4864;
  p.k = 896;
  p.hooks = linearHooks(p, 2);
  return p;
}

TEST(TuningChoice, AProductIsPrintedAsTheRecordSays) {
  const MatmulKernel p = matmul(8);
  std::string problem, wanted;
  {
    TuningScope scope;
    kernelsOf(p);
    ASSERT_EQ(scope.asked.size(), 1u);
    problem = scope.asked[0].question.problem;
    ASSERT_GT(scope.asked[0].question.candidates.size(), 8u);
    wanted = scope.asked[0].question.candidates[8];
  }
  EXPECT_THAT(problem, HasSubstr("product bf16 m=8 n=4864 k=896 layout=nk epilogue="));
  const std::string byModel = kernelsOf(p).kernels.at(0).source;
  LocalRecords local({record(problem, wanted, kMatmulVersion)});
  EXPECT_NE(kernelsOf(p).kernels.at(0).source, byModel);
  TuningScope scope;
  scope.answers[problem] = 8;
  const std::string forced = kernelsOf(p).kernels.at(0).source;
  scope.answers.clear();
  EXPECT_EQ(kernelsOf(p).kernels.at(0).source, forced);
}

TEST(TuningChoice, ALibraryIsACandidateForManyRowsOfAPlainProduct) {
  MatmulKernel p = matmul(2048);
  p.k = 4096;
  auto asked = [&] {
    TuningScope scope;
    const KernelSet set = kernelsOf(p);
    return std::pair(scope.asked.at(0).question, set.variants.at(0));
  };
  EXPECT_THAT(asked().first.candidates, ::testing::Not(::testing::Contains("library")));
  auto buffer = [](int i) { return Argument{Argument::Kind::Buffer, i, 0}; };
  p.plain = PlainMatmul{p.dtype, p.m, p.n, p.k, buffer(0), buffer(1), buffer(2), {}, {}};
  auto [question, variant] = asked();
  EXPECT_EQ(question.candidates.at(0), "library");
  EXPECT_TRUE(variant.launches.at(0).matmul);
  EXPECT_THAT(variant.what, HasSubstr("library, else tiled"));
  EXPECT_EQ(variant.launches.at(0).matmul->rank, 0);
  // Each algorithm that the library proposes is one of its own.
  EXPECT_THAT(question.candidates, ::testing::IsSupersetOf({"library rank=1", "library rank=7"}));
  {
    LocalRecords local({record(question.problem, "library rank=3", kMatmulVersion)});
    const Variant third = asked().second;
    EXPECT_EQ(third.launches.at(0).matmul->rank, 3);
    EXPECT_THAT(third.what, HasSubstr("library's choice 3, else tiled"));
  }
  const auto own = std::ranges::find_if(
      question.candidates, [](const std::string& c) { return !c.starts_with("library"); });
  ASSERT_NE(own, question.candidates.end());
  {
    LocalRecords local({record(question.problem, *own, kMatmulVersion)});
    EXPECT_FALSE(asked().second.launches.at(0).matmul);
  }
  p.m = 16;
  EXPECT_THAT(asked().first.candidates, ::testing::Not(::testing::Contains("library")));
}

TEST(TuningChoice, EpiloguesAndLayoutsAreOtherProblems) {
  auto problemOf = [](const MatmulKernel& p) {
    TuningScope scope;
    kernelsOf(p);
    return scope.asked.at(0).question.problem;
  };
  MatmulKernel gelu = matmul(8), across = matmul(8), named = matmul(8), computed = matmul(8);
  gelu.hooks = linearHooks(gelu, 2, Activation::gelu);
  across.transposedB = true;
  named.name = "another";
  computed.constantB = false;
  EXPECT_NE(problemOf(matmul(8)), problemOf(gelu));
  EXPECT_NE(problemOf(matmul(8)), problemOf(computed));
  EXPECT_NE(problemOf(matmul(8)), problemOf(across));
  EXPECT_EQ(problemOf(matmul(8)), problemOf(named));
}

// The lines of a model's source stand in the text as comments, and a norm in front is no epilogue.
TEST(TuningChoice, ARecordHoldsWhereverItsModelIsWritten) {
  auto problemOf = [](const std::string& epilogue, const std::string& definition) {
    MatmulKernel p = matmul(8);
    p.hooks.epilogue = epilogue;
    p.hooks.definition = definition;
    return questionOf(p, {8, 4864, 896, 1}, {}, "kernel", 8, 8).problem;
  };
  const std::string one = problemOf("a(x);  // model llama.cpp:26\nb();\n", "norm(1)");
  EXPECT_EQ(one, problemOf("a(x);  // model user.cpp:7\nb();\n", "norm(2)"));
  EXPECT_NE(one, problemOf("a(y);  // model llama.cpp:26\nb();\n", "norm(1)"));
  EXPECT_NE(problemOf("", "a();"), problemOf("", "b();"));
}

TEST(TuningChoice, AProductOfAnyRowsAsksForEveryRange) {
  TuningScope scope;
  kernelsOf(matmul(DimExpr::symbol("rows")));
  std::vector<int64_t> highs;
  for (const TuningScope::Asked& a : scope.asked) highs.push_back(a.question.sizes.at(0).high);
  EXPECT_THAT(highs, ::testing::ElementsAre(1, 4, 8, 16, 32, 64, 128, 512, 2048, 4096));
}

TEST(TuningChoice, AttentionIsPrintedAsTheRecordSays) {
  AttentionKernel a;
  a.name = "attention";
  a.queryHeads = 32;
  a.keyHeads = 8;
  a.keys = DimExpr::symbol("keys");
  const DimExpr depth = 64;
  a.q = a.y = AttentionView::dense(32, 1, depth);
  a.k = a.v = AttentionView::dense(8, a.keys, depth);
  a.maskStrides = {0, 0, 0, 0};
  TuningScope scope;
  const KernelSet byModel = attentionKernels(a);
  ASSERT_EQ(scope.asked.size(), 1u);
  const TuningQuestion q = scope.asked[0].question;
  EXPECT_THAT(q.problem, HasSubstr("attention bf16 batch=1 queries=1 keys=4096 heads=32/8"));
  ASSERT_GT(q.candidates.size(), 3u);
  for (size_t i = 1; i < q.candidates.size(); ++i) {
    EXPECT_NE(q.candidates[i], q.candidates[0]);
    LocalRecords local({record(q.problem, q.candidates[i], kAttentionVersion)});
    const KernelSet set = attentionKernels(a);
    const Launch &l = set.variants.at(0).launches.at(0),
                 &first = byModel.variants.at(0).launches.at(0);
    EXPECT_TRUE(l.grid[2].per != first.grid[2].per || l.grid[2].most != first.grid[2].most ||
                l.threads != first.threads);
    // A text that is another has another name.
    EXPECT_EQ(set.kernels.at(0).source == byModel.kernels.at(0).source, l.kernel == first.kernel)
        << q.candidates[i];
  }
}

}  // namespace
}  // namespace lathe::cuda
