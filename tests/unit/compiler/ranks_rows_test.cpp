// SPDX-License-Identifier: Apache-2.0
// Sums that leave each rank its share of the rows, and what follows of them row by row.
#include "gtest/gtest.h"
#include "lathe/frontend/compile.h"
#include "tests/unit/compiler/ranks_runs.h"

namespace lathe {
namespace {

using namespace ranks;

TEST(ReduceScatter, EveryRankGetsItsShareOfTheSum) {
  constexpr int kRanks = 3;
  constexpr size_t kCount = 1001;
  auto ends = threadRanks(kRanks, 60s);
  std::vector<std::vector<float>> mine(kRanks, std::vector<float>(kCount)),
      largest(kRanks, std::vector<float>(kCount));
  std::vector<std::thread> threads;
  for (int r = 0; r < kRanks; ++r)
    threads.emplace_back([&, r] {
      std::vector<float> all(kCount * kRanks);
      for (size_t i = 0; i < all.size(); ++i) all[i] = float(i % 97) * float(r + 1);
      const std::vector<float> before = all;
      ends[size_t(r)]->reduceScatter(all.data(), mine[size_t(r)].data(), kCount, DType::F32,
                                     Combine::sum);
      ends[size_t(r)]->reduceScatter(all.data(), largest[size_t(r)].data(), kCount, DType::F32,
                                     Combine::max);
      EXPECT_EQ(all, before);
    });
  for (std::thread& t : threads) t.join();
  for (size_t i = 0; i < kCount * kRanks; ++i) {
    EXPECT_EQ(mine[i / kCount][i % kCount], float(i % 97) * 6) << i;
    EXPECT_EQ(largest[i / kCount][i % kCount], float(i % 97) * 3) << i;
  }
}

TEST(AllToAll, EveryRankGetsItsPieceOfAll) {
  constexpr int kRanks = 3;
  constexpr size_t kCount = 1001;
  auto ends = threadRanks(kRanks, 60s);
  std::vector<std::vector<int>> got(kRanks, std::vector<int>(kCount * kRanks));
  std::vector<std::thread> threads;
  for (int r = 0; r < kRanks; ++r)
    threads.emplace_back([&, r] {
      std::vector<int> mine(kCount * kRanks);
      for (size_t i = 0; i < mine.size(); ++i) mine[i] = r * 100000 + int(i);
      const std::vector<int> before = mine;
      ends[size_t(r)]->allToAll(mine.data(), got[size_t(r)].data(), kCount * sizeof(int));
      ends[size_t(r)]->allToAll(nullptr, nullptr, 0);
      EXPECT_EQ(mine, before);
    });
  for (std::thread& t : threads) t.join();
  for (int r = 0; r < kRanks; ++r)
    for (size_t i = 0; i < kCount * kRanks; ++i)
      ASSERT_EQ(got[size_t(r)][i], int(i / kCount) * 100000 + r * int(kCount) + int(i % kCount))
          << r << " " << i;
}

// What lies in pieces along one axis and is wanted in pieces along another is held whole by none.
TEST(AllToAll, PiecesAlongAnotherAxisAreExchanged) {
  for (DType dtype : {DType::F32, DType::BF16, DType::I64})
    for (int64_t from : {0, 1, 2})
      for (int64_t to : {0, 1, 2}) {
        if (from == to) continue;
        Graph g;
        // A fourth axis, of a size that is known at run time alone.
        const Dim n = g.dim("n", 1, 8);
        Tensor x = shard(g.input("x", dtype, {12, 24, 12, n}), from);
        x = shard(x + x, to);
        g.output("y", x * x);
        const std::string ir = sharded(g, {.ranks = 2});
        EXPECT_EQ(occurrences(ir, "lathe.all_to_all"), 1) << ir;
        EXPECT_EQ(occurrences(ir, "lathe.all_gather"), 1) << ir;  // the result
        Array values(dtype, {12, 24, 12, 3});
        for (int64_t i = 0; i < values.size(); ++i) values.set(i, double(i * i / 7 % 8));
        expectNoOtherValues(g, {{"x", values}});
      }
}

// A value that somebody holds whole is cut without asking the others.
TEST(AllToAll, WhatIsWholeAlreadyIsCutInPlace) {
  Graph g;
  Tensor x = exp(shard(g.input("x", DType::F32, {4, 8}), 0));
  g.output("sums", cumsum(x, 0));  // of all rows
  g.output("y", shard(x, 1) * 2.0);
  const std::string ir = sharded(g, {.ranks = 2});
  EXPECT_EQ(occurrences(ir, "lathe.all_to_all"), 0) << ir;
  EXPECT_EQ(occurrences(ir, "lathe.all_slice"), 2) << ir;   // the input, and x
  EXPECT_EQ(occurrences(ir, "lathe.all_gather"), 2) << ir;  // x, and the result
  expectNoOtherValues(g, {{"x", numbers(DType::F32, {4, 8})}});
}

TEST(RowsOfRanks, NormsAndResidualsAreOfAShareOfTheRows) {
  Mlps m(8);
  m.g.output("y", m.y);
  const std::string ir = sharded(m.g, {.ranks = 2, .splitRows = true});
  EXPECT_EQ(occurrences(ir, "lathe.reduce_scatter sum"), 2) << ir;
  EXPECT_EQ(occurrences(ir, "lathe.all_reduce"), 0) << ir;
  // What the second layer reads, and the result.
  EXPECT_EQ(occurrences(ir, "lathe.all_gather"), 2) << ir;
  expectIn(ir, "lathe.add_norm");
  expectNoOtherValues(m.g, {{"x", numbers(DType::F32, {8, 16})}}, {.splitRows = true});
}

// Whichever of the collectives is the only one in a text, and a piece of a weight without any.
TEST(RowsOfRanks, AGraphIsCutAlreadyByAnyOneOfThem) {
  const std::pair<const char*, const char*> lines[] = {
      {"%y = lathe.all_reduce sum %x over \"tp\" of 2 : tensor<4x8xf32>", "4x8"},
      {"%y = lathe.reduce_scatter sum %x axis 0 over \"tp\" of 2 : tensor<4x8xf32>", "2x8"},
      {"%y = lathe.all_gather %x axis 0 parts 2 over \"tp\" of 2 : tensor<4x8xf32>", "8x8"},
      {"%y = lathe.all_to_all %x split 0 concat 1 over \"tp\" of 2 : tensor<4x8xf32>", "2x16"},
      {"%y = lathe.all_slice %x axis 1 parts 2 over \"tp\" of 2 : tensor<4x8xf32>", "4x4"},
      {"%w = lathe.weight \"w@0/2\" of \"w\" axis 0 parts 2 : tensor<4x8xf32>\n"
       "  %y = lathe.add %x, %w : tensor<4x8xf32>, tensor<4x8xf32>",
       "4x8"}};
  for (const auto& [line, result] : lines) {
    const std::string type = "tensor<" + std::string(result) + "xf32>";
    const Graph piece = Graph::parse(
        "func.func @forward(%x: tensor<4x8xf32> {lathe.name = \"x\"}) -> (" + type +
            " {lathe.name = \"y\"}) {\n  " + line + "\n  return %y : " + type + "\n}\n",
        "piece.mlir");
    for (const char* backend : {"reference", "cpu", "cuda"})
      expectIn(errorOf([&] { compile(piece, {.backend = backend}); }),
               "one that holds the pieces of one of several ranks");
  }
}

TEST(RowsOfRanks, ByHandASumLeavesARankItsOwn) {
  Graph g;
  Tensor x = g.input("x", DType::F32, {8, 16});
  Tensor y = nn::SwiGLU(g, "mlp", 16, 24)(x);
  y = shard(y, 0);
  y = fused::rmsNorm(y + x, g.weight("gain", DType::F32, {16}), 1e-5);
  g.output("y", nn::SwiGLU(g, "next", 16, 24)(y));
  const std::string ir = sharded(g, {.ranks = 4});
  EXPECT_EQ(occurrences(ir, "lathe.reduce_scatter sum"), 1) << ir;
  EXPECT_EQ(occurrences(ir, "lathe.all_reduce"), 1) << ir;
  EXPECT_EQ(occurrences(ir, "lathe.all_gather"), 1) << ir;
  expectIn(ir, "tensor<2x16xf32>");
  expectNoOtherValues(g, {{"x", numbers(DType::F32, {8, 16})}});
}

}  // namespace
}  // namespace lathe
