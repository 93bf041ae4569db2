// SPDX-License-Identifier: Apache-2.0
// Shares of rows whose number is known at run time alone, or that the ranks do not divide: a rank
// has fewer than others, or none, and padding behind them.
#include "gtest/gtest.h"
#include "lathe/frontend/compile.h"
#include "runtime/collective_kernels.h"
#include "runtime/container.h"
#include "tests/unit/compiler/ranks_runs.h"

namespace lathe {
namespace {

using namespace ranks;

const CompileOptions kExact{.backend = "reference", .backendOptions = {.float64 = true}};

// As one rank: all ranks in one graph and as threads in float64, and as threads of the backend cpu.
void expectSameInEachRun(const Graph& g, const std::vector<Arrays>& inputs,
                         std::initializer_list<int64_t> counts = {2, 3, 4}, int64_t stages = 1) {
  auto apartInAll = [&](const std::vector<Arrays>& got, const std::vector<Arrays>& expected) {
    double worst = 0;
    for (size_t i = 0; i < expected.size(); ++i)
      worst = std::max(worst, apart(got.at(i), expected[i]));
    return worst;
  };
  const std::vector<Arrays> whole = runsAlone(compile(g, kExact), inputs);
  for (int64_t ranks : counts) {
    SCOPED_TRACE(std::to_string(ranks) + " ranks");
    Mesh mesh{.ranks = ranks * stages, .splitRows = true, .stages = stages};
    const auto all = int(mesh.ranks);
    EXPECT_LE(apartInAll(runsAsThreads(g, all, inputs, mesh, {}, kExact), whole), 1e-12);
    EXPECT_LE(apartInAll(runsAsThreads(g, all, inputs, mesh), whole), 1e-4);
    mesh.simulate = true;
    CompileOptions options = kExact;
    options.pipeline.mesh = mesh;
    EXPECT_LE(apartInAll(runsAlone(compile(g, options), inputs), whole), 1e-12);
    options = {.pipeline = {.mesh = mesh}};
    EXPECT_LE(apartInAll(runsAlone(compile(g, options), inputs), whole), 1e-4);
  }
}

// An MLP with norm and residual in each.
Tensor layers(Graph& g, Tensor x, int count) {
  for (int i = 0; i < count; ++i) {
    const std::string path = "blocks." + std::to_string(i);
    x = x + nn::SwiGLU(g, path + ".mlp", 16, 24)(nn::RMSNorm(g, path + ".norm", 16)(x));
  }
  return x;
}

std::vector<Arrays> rowsUpTo(int64_t most, DType dtype = DType::F32) {
  std::vector<Arrays> inputs;
  for (int64_t rows = 1; rows <= most; ++rows)
    inputs.push_back({{"x", numbers(dtype, {rows, 16})}});
  return inputs;
}

std::string reasonsOf(const Graph& g, const Mesh& mesh) {
  CompileRecord record;
  record.wantMisses = true;
  irAt(g, "sharded", {.pipeline = {.mesh = mesh}, .record = &record});
  std::string told;
  for (const CompileRecord::Miss& miss : record.misses) told += miss.reason + "\n";
  return told;
}

TEST(PaddedRows, OneForEachRankIsEnough) {
  for (int64_t most : {1, 2, 3}) {
    SCOPED_TRACE(most);
    Graph g;
    g.output("y", layers(g, g.input("x", DType::F32, {g.dim("rows", 1, most), 16}), 1));
    const Mesh mesh{.ranks = 2, .splitRows = true};
    const bool isEnough = most >= 2;
    EXPECT_EQ(occurrences(sharded(g, mesh), "lathe.reduce_scatter"), isEnough ? 1 : 0);
    EXPECT_EQ(occurrences(reasonsOf(g, mesh), "is less than one for each of 2 ranks"),
              isEnough ? 0 : 1);
  }
}

TEST(PaddedRows, AnyNumberOfThemIsShared) {
  Graph g;
  g.output("y", layers(g, g.input("x", DType::F32, {g.dim("rows", 1, 64), 16}), 2));
  const std::string ir = sharded(g, {.ranks = 2, .splitRows = true});
  expectIn(ir, "lathe.dim_part @rows_part of <rows> parts 2");
  EXPECT_EQ(occurrences(ir, "axis 0 part <rows_part> over"), 2) << ir;
  EXPECT_EQ(occurrences(ir, "lathe.all_reduce"), 0) << ir;
  // What the second layer reads, and the result.
  EXPECT_EQ(occurrences(ir, "axis 0 parts 2 whole <rows> over"), 2) << ir;
  EXPECT_EQ(occurrences(ir, "lathe.all_slice"), 1) << ir;  // the input, for the first residual
  expectIn(ir, "lathe.add_norm");
  expectSameInEachRun(g, rowsUpTo(9));
}

TEST(PaddedRows, NumbersThatRanksDoNotDivideAreShared) {
  Graph g;
  g.output("y", layers(g, g.input("x", DType::F32, {7, 16}), 2));
  const std::string ir = sharded(g, {.ranks = 2, .splitRows = true});
  EXPECT_EQ(occurrences(ir, "axis 0 part <4> over"), 2) << ir;
  EXPECT_EQ(occurrences(ir, "axis 0 parts 2 whole <7> over"), 2) << ir;
  EXPECT_EQ(occurrences(ir, "dim_part"), 0) << ir;
  expectSameInEachRun(g, {{{"x", numbers(DType::F32, {7, 16})}}});
}

TEST(PaddedRows, ValuesOfSixteenBitsAreRoundedAsOnOneRank) {
  for (DType dtype : {DType::BF16, DType::F16}) {
    Graph g;
    Tensor x = g.input("x", dtype, {g.dim("rows", 1, 16), 16});
    g.output("y", nn::RMSNorm(g, "norm", 16)(x + nn::SwiGLU(g, "mlp", 16, 24)(x)));
    const std::vector<Arrays> inputs = rowsUpTo(5, dtype);
    const std::vector<Arrays> whole = runsAlone(compile(g), inputs);
    for (int ranks : {2, 4}) {
      const std::vector<Arrays> got =
          runsAsThreads(g, ranks, inputs, {.ranks = ranks, .splitRows = true});
      for (size_t i = 0; i < whole.size(); ++i) EXPECT_LE(apart(got[i], whole[i]), 0.04) << i;
    }
  }
}

// With other axes in front of the rows, whose parts do not lie together.
TEST(PaddedRows, OfEveryTextOfABatchEachRankHasItsRows) {
  Graph g;
  const Dim batch = g.dim("batch", 1, 8), seq = g.dim("seq", 1, 64);
  nn::TransformerLM model(g, "",
                          {.vocabSize = 32,
                           .dModel = 24,
                           .dHidden = 48,
                           .layers = 2,
                           .heads = 4,
                           .kvHeads = 2,
                           .maxPositions = 64});
  g.output("logits", model.forward(g.input("ids", DType::I64, {batch, seq})));
  const std::string ir = sharded(g, {.ranks = 2, .splitRows = true});
  expectIn(ir, "lathe.dim_part @seq_part of <seq> parts 2");
  EXPECT_EQ(occurrences(ir, "lathe.reduce_scatter sum"), 4) << ir;
  std::vector<Arrays> inputs;
  for (int64_t rows : {1, 3})
    for (int64_t length = 1; length <= 9; ++length) {
      Array ids(DType::I64, {rows, length});
      for (int64_t i = 0; i < ids.size(); ++i) ids.set(i, double(i * 7 % 32));
      inputs.push_back({{"ids", ids}});
    }
  expectSameInEachRun(g, inputs);
}

// In padding there are values, too: of a bias, and of what makes no zero of zero.
TEST(PaddedRows, PaddingIsNoAddend) {
  Graph g;
  const Dim rows = g.dim("rows", 1, 16);
  Tensor x = g.input("x", DType::F32, {rows, 16});
  Tensor y = exp(nn::SwiGLU(g, "mlp", 16, 24)(x) + g.weight("bias", DType::F32, {16}));
  g.output("sum", reduceSum(y, {0}));
  g.output("product", matmul(transpose(y, {1, 0}), x));
  g.output("mean", reduceMean(y, {0, 1}));
  g.output("largest", reduceMax(y, {0}));
  g.output("last", sliceAxis(y, 0, rows - 1, 1));
  const std::string ir = sharded(g, {.ranks = 2, .splitRows = true});
  EXPECT_EQ(occurrences(ir, "lathe.all_reduce"), 0) << ir;
  EXPECT_EQ(occurrences(ir, "lathe.all_gather"), 2) << ir;  // as it is, and transposed
  expectSameInEachRun(g, rowsUpTo(5));
}

// A layer that no rank has in pieces computes its rows; a table of the weights is cut like them.
TEST(PaddedRows, WhatReadsThemFollows) {
  Graph g;
  Tensor x = g.input("x", DType::F32, {7, 16});
  Tensor y = nn::SwiGLU(g, "mlp", 16, 24)(x) + g.weight("positions", DType::F32, {7, 16});
  Tensor whole = reshape(fused::linear(y, g.weight("odd", DType::F32, {11, 16})), {7, 11, 1});
  g.output("y", transpose(nn::softmax(whole, 1), {1, 0, 2}));
  const std::string ir = sharded(g, {.ranks = 2, .splitRows = true});
  EXPECT_EQ(occurrences(ir, "lathe.all_gather"), 1) << ir;
  expectIn(ir, "tensor<4x11xf32>");
  expectIn(ir, "tensor<11x4x1xf32>");
  expectSameInEachRun(g, {{{"x", numbers(DType::F32, {7, 16})}}});
}

TEST(PaddedRows, AReshapeThatJoinsThemWithOthersHasThemWhole) {
  Graph g;
  const Dim batch = g.dim("batch", 1, 4), seq = g.dim("seq", 1, 16);
  Tensor x = g.input("x", DType::F32, {batch, seq, 16});
  Tensor y = nn::SwiGLU(g, "mlp", 16, 24)(x) + x;
  g.output("kept", exp(reshape(y, {batch, seq, 4, 4})));
  g.output("joined", exp(reshape(y, {batch * seq, 16})));
  const std::string ir = sharded(g, {.ranks = 2, .splitRows = true});
  expectIn(ir, "#lathe.dims<batch, seq_part, 4, 4>");
  std::vector<Arrays> inputs;
  for (int64_t length : {1, 2, 5}) inputs.push_back({{"x", numbers(DType::F32, {3, length, 16})}});
  expectSameInEachRun(g, inputs, {2, 4});
}

// Experts add up a token's rows before the ranks do theirs.
TEST(PaddedRows, OfExpertsRanksAddTheirs) {
  Graph g;
  nn::Mixture mixture(g, "moe", {.dModel = 24, .dHidden = 36, .experts = 4, .chosen = 2});
  Tensor x = g.input("x", DType::F32, {2, g.dim("seq", 1, 64), 24});
  g.output("y", x + mixture(x));
  const std::string ir = sharded(g, {.ranks = 3, .splitRows = true});
  EXPECT_EQ(occurrences(ir, "lathe.reduce_scatter sum"), 1) << ir;
  EXPECT_EQ(occurrences(ir, "lathe.all_reduce"), 0) << ir;
  std::vector<Arrays> inputs;
  for (int64_t length : {1, 2, 7}) inputs.push_back({{"x", numbers(DType::F32, {2, length, 24})}});
  expectSameInEachRun(g, inputs, {3, 4});
}

// Their number may be a product of sizes, and a name may be taken.
TEST(PaddedRows, OfAProductOfSizes) {
  Graph g;
  const Dim batch = g.dim("batch", 1, 4), seq = g.dim("seq", 1, 16);
  g.dim("batch_seq_part", 1, 4);
  g.output("ids", g.input("ids", DType::F32, {batch, seq}));
  Tensor x = g.input("x", DType::F32, {batch * seq, 16});
  g.output("y", x + nn::SwiGLU(g, "mlp", 16, 24)(x));
  const std::string ir = sharded(g, {.ranks = 2, .splitRows = true});
  expectIn(ir, "lathe.dim_part @batch_seq_part_ of <batch*seq> parts 2");
  std::vector<Arrays> inputs;
  for (auto [rows, length] : {std::pair(1, 1), {1, 4}, {3, 3}})
    inputs.push_back({{"ids", numbers(DType::F32, {rows, length})},
                      {"x", numbers(DType::F32, {rows * length, 16})}});
  expectSameInEachRun(g, inputs, {2, 4});
}

// A step of one token a text pays for messages, of which a share of its rows would take more.
TEST(PaddedRows, FewerThanRanksStayOnEachRank) {
  for (const Dims& shape : {Dims{3, 16}, Dims{1, 16}}) {
    Graph g;
    Tensor x = g.input("x", DType::F32, shape);
    g.output("y", x + nn::SwiGLU(g, "mlp", 16, 24)(x));
    const Mesh mesh{.ranks = 4, .splitRows = true};
    EXPECT_EQ(occurrences(sharded(g, mesh), "lathe.all_reduce"), 1);
    expectIn(reasonsOf(g, mesh),
             "is less than one for each of 4 ranks: each rank has all rows "
             "behind the sum");
  }
  Graph g;
  Tensor x = g.input("x", DType::F32, {g.dim("batch", 1, 64), 1, 16});
  g.output("y", x + nn::SwiGLU(g, "mlp", 16, 24)(x));
  const Mesh mesh{.ranks = 2, .splitRows = true};
  EXPECT_EQ(occurrences(sharded(g, mesh), "lathe.reduce_scatter"), 0);
  expectIn(reasonsOf(g, mesh),
           "1 along axis 1 of f32[batch, 1, 16] is less than one for each of 2 ranks");
}

// What the ranks find of a table in parts of the vocabulary is added whole, and that is told.
TEST(PaddedRows, OfATableEachRankHasAll) {
  Graph g;
  Tensor ids = g.input("ids", DType::I64, {g.dim("rows", 1, 64)});
  g.output("y", layers(g, fused::embedding(ids, g.weight("table", DType::F32, {64, 16})), 1));
  for (const bool split : {false, true}) {
    const Mesh mesh{.ranks = 2, .splitRows = split};
    expectIn(sharded(g, mesh), "of \"table\" axis 0 parts 2");
    EXPECT_EQ(occurrences(reasonsOf(g, mesh),
                          "rows are split behind products alone: each rank has all rows of this "
                          "sum"),
              int(split));
  }
}

// Where a stage of a pipeline ends between a sum and a norm, ranks send each other their rows.
TEST(PaddedRows, TheyCrossBordersOfStages) {
  Graph g;
  g.output("y", layers(g, g.input("x", DType::F32, {g.dim("rows", 1, 64), 16}), 4));
  const std::string ir = sharded(g, {.ranks = 4, .splitRows = true, .stages = 2, .stage = 1});
  expectIn(ir,
           "lathe.receive from 0 over \"pp\" of 2 : tensor<?x16xf32, #lathe.dims<rows_part, 16>>");
  expectSameInEachRun(g, rowsUpTo(5), {2}, 2);
}

TEST(PaddedRows, AnArtifactKnowsTheirSizes) {
  Graph g;
  Tensor x = g.input("x", DType::F32, {g.dim("rows", 1, 64), 16});
  g.output("y", x + nn::SwiGLU(g, "mlp", 16, 24)(x));
  const Program made = compile(g, {.pipeline = {.mesh = {.ranks = 2, .splitRows = true}}});
  ASSERT_EQ(made.sizeParts.size(), 1u);
  SymbolValues values{{"rows", 5}};
  made.addSizeParts(values);
  EXPECT_EQ(values.at("rows_part"), 3);
  const std::string path = testing::TempDir() + "padded_rows.lathe";
  made.save(path);
  const auto read = Program::open(path);
  EXPECT_EQ(read->digest(), made.digest());
  ASSERT_EQ(read->sizeParts.size(), 1u);
  EXPECT_EQ(read->sizeParts[0].name, "rows_part");
  EXPECT_EQ(read->sizeParts[0].of, DimExpr::symbol("rows"));
  EXPECT_EQ(read->sizeParts[0].parts, 2);
  expectIn(Container::open(path).header(), "\"program_version\":6");
  Program other = compile(g, {.pipeline = {.mesh = {.ranks = 2, .splitRows = true}}});
  other.sizeParts[0].of = DimExpr::symbol("rows") + 1;
  const EntryPoint& entry = other.entry("forward");
  const auto end = threadRanks(2, 1s)[0];
  int gathers = 0;
  for (const Call& call : entry.calls) {
    if (call.kind != "all_gather") continue;
    ++gathers;
    EXPECT_NO_THROW(makeCollective(made, made.entry("forward"), call, end.get(), nullptr));
    expectIn(errorOf([&] { makeCollective(other, entry, call, end.get(), nullptr); }),
             "its operand and its result do not differ by its parts");
  }
  EXPECT_EQ(gathers, 1);
  Session session(
      compile(g, {.pipeline = {.mesh = {.ranks = 2, .simulate = true, .splitRows = true}}}));
  expectIn(errorOf([&] { session.setSymbol("rows_part", 3); }),
           "the program has no symbol 'rows_part'; it has rows");
}

}  // namespace
}  // namespace lathe
