// SPDX-License-Identifier: Apache-2.0
// Whatever a record may choose computes the same: every candidate of a product against float64.
#include <algorithm>
#include <functional>
#include <set>

#include "backends/cuda/device/library_matmul.h"
#include "backends/cuda/lowering/attention/attention_kernels.h"
#include "backends/cuda/lowering/matmul/gemm_choices.h"
#include "backends/cuda/lowering/matmul/gemm_kernels.h"
#include "tests/unit/cuda/matmul_cases.h"

namespace lathe::cuda {
namespace {

std::vector<MatmulChoice> candidates(const LinearCase& c, int64_t rows) {
  return matmulCandidates(c.kernel(), {rows, c.n, c.k, 1});
}

TEST(TuningCandidates, EveryTileOnTensorCores) {
  const LinearCase c{DType::BF16, 264, 520, Activation::silu, true, true};
  std::set<std::string> seen;
  for (MatmulChoice choice : candidates(c, 512)) {
    if (choice.method != MatmulMethod::Gemm) continue;
    choice.splits = choice.tileM == 64 ? 2 : 1;
    if (!seen.insert(textOf(choice)).second) continue;
    KernelSetRun run(only(c.kernel(), choice, 512), host::Mode::Fast);
    expectLinear(run, c, 131, schedule("fast"));
  }
  EXPECT_GE(seen.size(), 5u);
}

TEST(TuningCandidates, EveryWayForFewRows) {
  const LinearCase c{DType::BF16, 33, 264, Activation::none, true, false};
  std::vector<MatmulChoice> all = candidates(c, 3);
  // Spread over the list: neighbours differ in one number.
  ASSERT_GE(all.size(), 12u);
  const size_t step = all.size() / 12;
  for (size_t i = 0; i < all.size(); i += step) {
    KernelSetRun run(only(c.kernel(), all[i], 3), host::Mode::Fast);
    expectLinear(run, c, 3, schedule("fast"));
    expectLinear(run, c, 1, schedule("fast"));
  }
}

// Below, the launches of a decode step overlap, which a library's do not.
TEST(TuningCandidates, ALibraryIsAskedAboutMoreThan128Rows) {
  MatmulKernel kernel = LinearCase{DType::BF16, 256, 512}.kernel();
  kernel.plain.emplace();
  for (int64_t rows : {1, 16, 17, 64, 128, 129, 512}) {
    const std::vector<MatmulChoice> all = matmulCandidates(kernel, {rows, 256, 512, 1});
    EXPECT_EQ(std::ranges::count(all, MatmulMethod::Library, &MatmulChoice::method),
              rows > 128 ? kLibraryRanks : 0)
        << rows;
  }
}

// Whatever is chosen of them, its template takes the product: streams read rows of weights that are
// few and dense, for few rows; partial sums have room that is known when compiling.
TEST(TuningCandidates, EveryOneTakesItsProduct) {
  struct Form {
    const char* name;
    std::function<void(MatmulKernel&)> change;
  };
  const Form forms[] = {{"plain", [](auto&) {}},
                        {"turned", [](auto& p) { p.transposedB = true; }},
                        {"a batch",
                         [](auto& p) {
                           p.batch = {DimExpr(3)};
                           p.aStrides = p.bStrides = {DimExpr(8)};
                         }},
                        {"columns of any number", [](auto& p) { p.n = DimExpr::symbol("n"); }},
                        {"pairs", [](auto& p) { p.hooks.pairs = true; }}};
  for (DType dtype : {DType::BF16, DType::F32})
    for (const Form& form : forms)
      for (int64_t k : {1024, 1028, 1023})
        for (int64_t rows : {1, 16, 17, 32, 512, 513, 4096}) {
          const LinearCase c{dtype, 256, k};
          MatmulKernel kernel = c.kernel();
          form.change(kernel);
          const bool streams = kernel.batch.empty() && !kernel.transposedB && kernel.n.asConstant();
          for (const MatmulChoice& choice :
               matmulCandidates(kernel, {rows, c.n, k, kernel.batch.empty() ? 1 : 3})) {
            SCOPED_TRACE(textOf(choice) + " for " + form.name + ", " + std::to_string(rows) +
                         " rows of " + std::to_string(k));
            if (choice.method == MatmulMethod::Simt) EXPECT_FALSE(kernel.hooks.pairs);
            if (choice.method == MatmulMethod::Gemm && choice.splits > 1) {
              EXPECT_TRUE(kernel.batch.empty() && kernel.n.asConstant());
              EXPECT_LE(rows, 512);
            }
            if (choice.method != MatmulMethod::GemvDot && choice.method != MatmulMethod::GemvMma)
              continue;
            EXPECT_TRUE(streams);
            EXPECT_LE(rows, 16);
            if (kernel.hooks.pairs) EXPECT_EQ(choice.columns % 2, 0);
            if (choice.method == MatmulMethod::GemvMma)
              EXPECT_TRUE(dtype == DType::BF16 && k % 8 == 0);
          }
        }
}

// What is measured of one attention is no answer for another.
TEST(TuningQuestions, EveryFactOfAnAttentionIsPartOfItsProblem) {
  using Change = std::function<void(AttentionKernel&, AttentionSizes&)>;
  const std::vector<Change> changes = {[](auto&, auto&) {},
                                       [](auto& a, auto&) { a.dtype = DType::F16; },
                                       [](auto& a, auto&) { a.queryHeads = 4; },
                                       [](auto& a, auto&) { a.keyHeads = 4; },
                                       [](auto& a, auto&) { a.depth = 128; },
                                       [](auto& a, auto&) { a.valueDepth = 128; },
                                       [](auto& a, auto&) { a.causal = Causal::positions; },
                                       [](auto& a, auto&) { a.window = 32; },
                                       [](auto& a, auto&) { a.softcap = 50; },
                                       [](auto& a, auto&) { a.mask = DType::Bool; },
                                       [](auto& a, auto&) { a.mask = DType::F32; },
                                       [](auto& a, auto&) { a.blockKeys = 16; },
                                       [](auto&, auto& s) { s.batch = 2; },
                                       [](auto&, auto& s) { s.queries = 2; },
                                       [](auto&, auto& s) { s.keys = 4096; }};
  std::set<std::string> problems;
  for (const Change& change : changes) {
    AttentionKernel a;
    a.queryHeads = 8;
    a.keyHeads = 2;
    AttentionSizes sizes{1, 1, 1024};
    change(a, sizes);
    problems.insert(questionOf(a, sizes, {}, "attention", {}).problem);
  }
  EXPECT_EQ(problems.size(), changes.size());
}

// The sum of a head's squares is taken inside of a tile or of a cluster of blocks: no tile ends in
// the middle of a head, and no product whose sums meet behind it splits k.
TEST(TuningCandidates, HeadsAreWholeInEveryTile) {
  std::set<int> widths;
  for (int pairs : {16, 32, 64, 96, 128, 256})
    for (int64_t rows : {1, 8, 64, 512}) {
      const LinearCase c{DType::BF16, 6 * 2 * pairs, 1024};
      MatmulKernel kernel = c.kernel();
      kernel.hooks.pairs = true;
      kernel.hooks.sumPairs = pairs;
      int tiles = 0;
      for (const MatmulChoice& choice : matmulCandidates(kernel, {rows, c.n, c.k, 1})) {
        if (choice.method != MatmulMethod::Gemm) {
          EXPECT_EQ(choice.splits, 1) << textOf(choice);
          continue;
        }
        EXPECT_EQ(choice.tileN % pairs, 0) << textOf(choice) << " for heads of " << 2 * pairs;
        if (choice.tileN % pairs == 0) widths.insert(pairs);
        ++tiles;
      }
      EXPECT_EQ(tiles > 0, pairs != 96 && pairs != 256) << pairs << " pairs, " << rows << " rows";
    }
  EXPECT_EQ(widths, (std::set<int>{16, 32, 64, 128}));
}

TEST(TuningCandidates, NoTwoAreTheSame) {
  for (int64_t rows : {1, 16, 64, 512}) {
    std::set<std::string> texts;
    const LinearCase c{DType::F16, 4096, 1024};
    const std::vector<MatmulChoice> all = candidates(c, rows);
    for (const MatmulChoice& choice : all) texts.insert(textOf(choice));
    EXPECT_EQ(texts.size(), all.size()) << rows << " rows";
  }
}

}  // namespace
}  // namespace lathe::cuda
