// SPDX-License-Identifier: Apache-2.0
// What a graph's author says of ranks: the mesh, and which weights and values they hold in pieces.
// It goes before the plan that is found, changes no value, and is nothing on one rank.
#include <source_location>

#include "gtest/gtest.h"
#include "lathe/frontend/compile.h"
#include "tests/unit/compiler/ranks_runs.h"

namespace lathe {
namespace {

using namespace ranks;

//===--- the mesh ---------------------------------------------------------------------------===//

TEST(MeshByHand, TheGraphsIsTakenAndThatOfCompileGoesBeforeIt) {
  Mlps m(3);
  m.g.output("y", m.y);
  m.g.mesh("model", 4);
  expectIn(sharded(m.g), "over \"model\" of 4");
  EXPECT_EQ(compile(m.g).ranks, 4);
  EXPECT_EQ(compile(m.g, {.pipeline = {.mesh = {.ranks = 2}}}).ranks, 2);
  expectIn(sharded(m.g, {.ranks = 2}), "over \"model\" of 2");
  EXPECT_EQ(compile(m.g, {.pipeline = {.mesh = {.ranks = 1}}}).ranks, 1);
  m.g.mesh("tp", 2);  // the last word counts
  EXPECT_EQ(compile(m.g).ranks, 2);
}

TEST(MeshByHand, MistakesAreNamedAtTheirLine) {
  Graph g;
  expectIn(errorOf([&] { g.mesh("tp", 0); }), "mesh: expected at least one rank along 'tp', got 0");
  expectIn(errorOf([&] { g.mesh("", 2); }), "the mesh axis's name is empty");
  const std::string two = R"(
    lathe.mesh "tp" of 2
    lathe.mesh "tp" of 4
    func.func @forward(%x: tensor<3xf32>) -> tensor<3xf32> {
      %y = lathe.neg %x : tensor<3xf32>
      return %y : tensor<3xf32>
    })";
  const std::string said = errorOf([&] { compile(Graph::parse(two, "two.mlir")); });
  expectIn(said, "the graph is for 2 ranks at two.mlir:2");
  expectIn(said, "and for 4 at two.mlir:3");
}

TEST(MeshByHand, TheGraphsRanksAreThoseOfEachStage) {
  Mlps m(4);
  m.g.output("y", m.y);
  m.g.mesh("tp", 2);
  expectIn(sharded(m.g, {.stages = 2}), "gate_proj.weight\" axis 0 parts 2");
  EXPECT_EQ(compile(m.g, {.pipeline = {.mesh = {.stages = 2}}}).allRanks(), 4);
  // One device has no stages: it simulates the ranks of one.
  EXPECT_EQ(sharded(m.g, {.ranks = 4, .simulate = true, .stages = 2}),
            sharded(m.g, {.ranks = 2, .simulate = true}));
}

TEST(MeshByHand, StagesThatThereAreNotAreTold) {
  Mlps m(4);
  m.g.output("y", m.y);
  auto with = [&](const Mesh& mesh) { return errorOf([&] { (void)sharded(m.g, mesh); }); };
  expectIn(with({.ranks = 4, .stages = 2, .stage = -1}), "mesh: stage -1 is none of 2");
  expectIn(with({.ranks = 4, .stages = 2, .stage = 2}), "mesh: stage 2 is none of 2");
  EXPECT_EQ(with({.ranks = 4, .stages = 2, .stage = 1}), "");
  // Rows are shared within a stage.
  expectIn(with({.ranks = 2, .splitRows = true, .stages = 2}),
           "split rows are shared between the ranks of a layer, and each layer has one");
  EXPECT_EQ(with({.ranks = 4, .splitRows = true, .stages = 2}), "");
}

TEST(MeshByHand, StagesAreSixtyFourAtMost) {
  Graph g;
  Tensor y = g.input("x", DType::F32, {3, 4});
  const Tensor w = g.weight("w", DType::F32, {4, 4});
  for (int i = 0; i < 65; ++i) y = fused::linear(y, w);
  g.output("y", y);
  auto with = [&](int64_t stages) {
    return errorOf([&] { (void)sharded(g, {.ranks = stages, .stages = stages, .stage = 63}); });
  };
  EXPECT_EQ(with(64), "");
  expectIn(with(65), "mesh: expected from 1 to 64 stages, got 65");
}

//===--- weights ----------------------------------------------------------------------------===//

TEST(WeightsByHand, TheyAreCutWhereTheUserSays) {
  Mlps m(3);
  m.g.output("y", m.y);
  const std::string found = sharded(m.g, {.ranks = 2});
  EXPECT_EQ(occurrences(found, "lathe.all_reduce"), 2);
  // Rows where columns were found: each of the two projections of the first layer is a sum.
  m.g.shard("blocks.0.mlp.*_proj.weight", 1);
  const std::string ir = sharded(m.g, {.ranks = 2});
  for (const char* name : {"gate_proj", "up_proj", "down_proj"})
    expectIn(ir, std::string("\"blocks.0.mlp.") + name + ".weight\" axis 1 parts 2");
  expectIn(ir, "\"blocks.1.mlp.gate_proj.weight\" axis 0 parts 2");
  EXPECT_EQ(occurrences(ir, "lathe.all_reduce"), 4) << ir;
  EXPECT_EQ(occurrences(ir, "lathe.all_gather"), 0) << ir;
  expectNoOtherValues(m.g, {{"x", numbers(DType::F32, {3, 16})}});
}

TEST(WeightsByHand, ColumnsWithoutRowsBehindThemAreGatheredAndTold) {
  Mlps m(3);
  m.g.output("y", m.y);
  m.g.shard("blocks.1.mlp.down_proj.weight", -2);  // counted from the back
  CompileRecord record;
  record.wantMisses = true;
  const std::string ir =
      irAt(m.g, "sharded", {.pipeline = {.mesh = {.ranks = 2}}, .record = &record});
  expectIn(ir, "\"blocks.1.mlp.down_proj.weight\" axis 0 parts 2");
  EXPECT_EQ(occurrences(ir, "lathe.all_gather"), 1) << ir;
  std::string told;
  for (const CompileRecord::Miss& miss : record.misses)
    if (miss.by == "mesh") told += miss.reason + "\n";
  expectIn(told, "the weight 'blocks.1.mlp.down_proj.weight' is cut along axis 0 by hand");
  expectNoOtherValues(m.g, {{"x", numbers(DType::F32, {3, 16})}});
}

TEST(WeightsByHand, WhatIsKeptWholeIsReadWhole) {
  Mlps m(3);
  m.g.output("y", m.y);
  m.g.shard("blocks.*", 0);
  m.g.keepWhole("blocks.*");  // the last word counts
  m.g.keepWhole("blocks.0.mlp.gate_proj.weight");
  const std::string ir = sharded(m.g, {.ranks = 2});
  EXPECT_EQ(occurrences(ir, " parts "), 0) << ir;
  EXPECT_EQ(occurrences(ir, "lathe.all_"), 0) << ir;
  EXPECT_EQ(occurrences(ir, "lathe.shard"), 0) << ir;
}

// Only stars and question marks stand for others: a name may hold what globs have beside them.
TEST(WeightsByHand, BracketsAndBracesAreThemselves) {
  for (const char* word : {"w{0,1}[2]", "w{0,1}[?]", "w{*,1}[2]"}) {
    SCOPED_TRACE(word);
    Graph g;
    const Tensor x = g.input("x", DType::F32, {3, 8});
    g.output("y", fused::linear(x, g.weight("w{0,1}[2]", DType::F32, {6, 8})) +
                      fused::linear(x, g.weight("w02", DType::F32, {6, 8})));
    g.shard(word, 1);
    const std::string ir = sharded(g, {.ranks = 2});
    expectIn(ir, "\"w{0,1}[2]@1/2\" of \"w{0,1}[2]\" axis 1 parts 2");
    EXPECT_EQ(occurrences(ir, "\"w02@"), 0) << ir;
    expectNoOtherValues(g, {{"x", numbers(DType::F32, {3, 8})}});
  }
}

TEST(WeightsByHand, ABackslashIsItself) {
  Graph g;
  const Tensor x = g.input("x", DType::F32, {3, 8});
  g.output("y", fused::linear(x, g.weight("a\\b", DType::F32, {6, 8})) +
                    fused::linear(x, g.weight("ab", DType::F32, {6, 8})));
  g.shard("a\\b", 1);
  const std::string ir = sharded(g, {.ranks = 2});
  expectIn(ir, "of \"a\\\\b\" axis 1 parts 2");
  EXPECT_EQ(occurrences(ir, "\"ab@"), 0) << ir;
}

// What ranks add up behind the products of experts is one sum of each product.
TEST(WeightsByHand, AProductOfTwoSumsIsNoSumOfProducts) {
  Graph g;
  const Tensor x = g.input("x", DType::F32, {3, 1, 8});
  const Tensor chosen = iota(x, {3, 2}, 1, DType::I64);
  auto experts = [&](const char* name) {
    g.shard(name, 2);
    return fused::groupedLinear(x, g.weight(name, DType::F32, {2, 6, 8}), chosen);
  };
  g.output("y", reduceSum(experts("gate") * experts("up"), {1}));
  const std::string ir = sharded(g, {.ranks = 2});
  expectIn(ir, "\"gate@2/2\" of \"gate\" axis 2 parts 2");
  expectIn(ir, "\"up@2/2\" of \"up\" axis 2 parts 2");
  EXPECT_EQ(occurrences(ir, "lathe.all_reduce"), 2) << ir;
  expectNoOtherValues(g, {{"x", numbers(DType::F32, {3, 1, 8})}});
}

TEST(WeightsByHand, AWeightIsCutAsAValue) {
  Graph g;
  Tensor x = g.input("x", DType::F32, {3, 8});
  Tensor w = shard(g.weight("w", DType::F32, {6, 8}), 1);
  g.output("y", fused::linear(x, w, {.bias = g.weight("b", DType::F32, {6})}));
  const std::string ir = sharded(g, {.ranks = 2});
  expectIn(ir, "\"w@1/2\" of \"w\" axis 1 parts 2");
  EXPECT_EQ(occurrences(ir, "lathe.all_reduce"), 1) << ir;
  EXPECT_EQ(occurrences(ir, "lathe.shard"), 0) << ir;
  expectNoOtherValues(g, {{"x", numbers(DType::F32, {3, 8})}});
}

TEST(WeightsByHand, MistakesAreNamedAtTheirLine) {
  auto said = [](const std::function<void(Graph&)>& say, int64_t ranks) {
    Mlps m(3);
    m.g.output("y", m.y);
    return errorOf([&] {
      say(m.g);
      compile(m.g, {.pipeline = {.mesh = {.ranks = ranks}}});
    });
  };
  const unsigned line = std::source_location::current().line() + 1;
  std::string text = said([](Graph& g) { g.shard("blocks.0.mlp.gate_proj.weight", 0); }, 5);
  expectIn(
      text,
      "axis 0 of the weight 'blocks.0.mlp.gate_proj.weight', f32[24, 16], does not divide by 5 "
      "ranks");
  expectIn(text, "ranks_by_hand_test.cpp:" + std::to_string(line));
  text = said([](Graph& g) { g.shard("blocks.0.mlp.gate_proj.weight", 2); }, 2);
  expectIn(text, "the weight 'blocks.0.mlp.gate_proj.weight' is f32[24, 16], which has no axis 2");
  expectIn(text, "ranks_by_hand_test.cpp:");
  text = said([](Graph& g) { g.shard("blocks.0.mlp.gate_proj.weight", -3); }, 2);
  expectIn(text, "is f32[24, 16], which has no axis -3");
  text = said([](Graph& g) { g.shard("blocks.9.*", 0); }, 2);
  expectIn(text, "no weight of the graph has a name like 'blocks.9.*'");
  expectIn(text, "ranks_by_hand_test.cpp:");
  text = said([](Graph& g) { g.shard("blocks.0.mlp.gate_proj.weight", 0, "ep"); }, 2);
  expectIn(text, "the mesh has the axis 'tp', got 'ep'");
  text = said([](Graph& g) { g.shard("", 0); }, 2);
  expectIn(text, "the weight's name is empty");
  // Brackets are letters of a name.
  text = said([](Graph& g) { g.shard("blocks.[01].mlp.gate_proj.weight", 0); }, 2);
  expectIn(text, "no weight of the graph has a name like 'blocks.[01].mlp.gate_proj.weight'");
  // On one rank nothing is cut, nor asked whether it could be.
  EXPECT_EQ(said([](Graph& g) { g.shard("blocks.0.mlp.gate_proj.weight", 0); }, 1), "");
}

//===--- values -----------------------------------------------------------------------------===//

TEST(ValuesByHand, TheProductsBeforeThemAreCutByColumns) {
  Graph g;
  Tensor x = g.input("x", DType::F32, {3, 8});
  // A norm between two products: nothing is found.
  Tensor h = fused::linear(x, g.weight("a", DType::F32, {12, 8}));
  h = shard(h, -1);
  h = fused::rmsNorm(h, {}, 1e-5);
  g.output("y", fused::linear(h, g.weight("b", DType::F32, {6, 12})));
  const std::string ir = sharded(g, {.ranks = 2});
  expectIn(ir, "\"a@0/2\" of \"a\" axis 0 parts 2");
  EXPECT_EQ(occurrences(ir, "lathe.all_gather"), 2) << ir;  // in front of the norm, and the result
  EXPECT_EQ(occurrences(ir, "lathe.shard"), 0) << ir;
  CompileRecord record;
  record.wantMisses = true;
  irAt(g, "sharded", {.pipeline = {.mesh = {.ranks = 2}}, .record = &record});
  std::string told;
  for (const CompileRecord::Miss& miss : record.misses)
    if (miss.by == "mesh") told += miss.op + ": " + miss.reason + "\n";
  expectIn(told, "lathe.rms_norm: it has no rule for these pieces");
  expectNoOtherValues(g, {{"x", numbers(DType::F32, {3, 8})}});
}

TEST(ValuesByHand, AnInputIsTakenInPieces) {
  Graph g;
  Tensor x = shard(g.input("x", DType::F32, {3, 8}), 1);
  g.output("y", exp(x) * 2.0);
  const std::string ir = sharded(g, {.ranks = 2});
  EXPECT_EQ(occurrences(ir, "lathe.all_slice"), 1) << ir;
  EXPECT_EQ(occurrences(ir, "lathe.all_gather"), 1) << ir;
  expectNoOtherValues(g, {{"x", numbers(DType::F32, {3, 8})}});
}

// Two ranks that share a key head would add it twice.
TEST(ValuesByHand, WhatTwoRanksShareIsAddedOnce) {
  Graph g;
  Tensor x = g.input("x", DType::F32, {3, 8});
  auto heads = [&](const char* name, int64_t n) {
    Tensor h = fused::linear(x, g.weight(name, DType::F32, {n * 4, 8}));
    return transpose(reshape(h, {1, 3, n, 4}), {0, 2, 1, 3});
  };
  Tensor q = heads("q", 4), k = heads("k", 2), v = heads("v", 2);
  Tensor a = reshape(transpose(fused::attention(q, k, v), {0, 2, 1, 3}), {3, 16});
  g.output("y", fused::linear(a, g.weight("o", DType::F32, {8, 16})));
  g.output("keys", reduceSum(k, {1}));
  expectIn(sharded(g, {.ranks = 4}), "\"k@0/2\"");
  expectNoOtherValues(g, {{"x", numbers(DType::F32, {3, 8})}});
}

// A sum whose features are wanted in pieces has its bias whole when that is added.
TEST(ValuesByHand, FeaturesOfASumHaveTheirBias) {
  Graph g;
  Tensor x = g.input("x", DType::F32, {3, 8});
  Tensor h = exp(fused::linear(x, g.weight("a", DType::F32, {12, 8})));
  Tensor y = fused::linear(h, g.weight("b", DType::F32, {8, 12}),
                           {.bias = g.weight("bias", DType::F32, {8})});
  g.shard("b", 1);
  g.output("y", exp(shard(y, -1)));
  expectIn(sharded(g, {.ranks = 2}), "\"b@1/2\" of \"b\" axis 1 parts 2");
  expectNoOtherValues(g, {{"x", numbers(DType::F32, {3, 8})}});
}

// Rows of what each rank has a part of every group of: the parts lie apart, and are not exchanged
// as if they were one run.
TEST(ValuesByHand, RowsOfGroupsAreThoseOfTheWhole) {
  Graph g;
  Tensor x = g.input("x", DType::F32, {4, 8}), s = g.input("s", DType::F32, {3, 8});
  Tensor h = fused::linear(x, g.weight("a", DType::F32, {24, 8}));
  h = reshape(exp(reshape(h, {4, 3, 8}) * s), {4, 24});
  g.output("y", fused::linear(h, g.weight("b", DType::F32, {8, 24})));
  g.output("rows", shard(h, 0) * 2.0);
  expectIn(sharded(g, {.ranks = 2}), "\"a@0x3/2\"");
  expectNoOtherValues(g, {{"x", numbers(DType::F32, {4, 8})}, {"s", numbers(DType::F32, {3, 8})}});
}

TEST(ValuesByHand, MistakesAreNamedAtTheirLine) {
  Graph g;
  Tensor x = g.input("x", DType::F32, {g.dim("rows", 1, 8), 6});
  expectIn(errorOf([&] { shard(x, 0); }), "shard: ");
  expectIn(errorOf([&] { shard(x, 2); }), "shard: ");
  expectIn(errorOf([&] { shard(x, 1, ""); }), "shard: expected the name of an axis of the mesh");
  const unsigned line = std::source_location::current().line() + 1;
  g.output("y", exp(shard(x, 1)));
  const std::string said = errorOf([&] { compile(g, {.pipeline = {.mesh = {.ranks = 4}}}); });
  expectIn(said, "axis 1 of the value, f32[rows, 6], does not divide by 4 ranks");
  expectIn(said, "ranks_by_hand_test.cpp:" + std::to_string(line));
}

//===--- one rank ---------------------------------------------------------------------------===//

TEST(RanksByHand, OnOneRankTheGraphIsAsItWereWithout) {
  auto at = [](bool says, std::string_view stage) {
    Graph g;
    Tensor x = g.input("x", DType::F32, {3, 8});
    if (says) {
      g.mesh("tp", 1);
      g.shard("*.weight", 0);
    }
    Tensor w = g.weight("a", DType::F32, {8, 12});
    Tensor h = matmul(x, says ? shard(w, 1) : w);
    if (says) h = shard(h, 1);
    h = h * sigmoid(h);
    if (says) h = shard(h, 1);
    g.output("y", matmul(h, g.weight("b.weight", DType::F32, {12, 6})));
    return irAt(g, stage);
  };
  for (const char* stage : {"canonical", "fused", "sharded", "laid-out", "lowered"})
    EXPECT_EQ(at(true, stage), at(false, stage)) << stage;
  // Who asks for the stage that only ranks have sees the graph as it is then.
  EXPECT_EQ(at(false, "sharded"), at(false, "fused"));
}

TEST(RanksByHand, TheTextSaysIt) {
  Mlps m(3);
  m.g.output("y", shard(m.y, 1));
  m.g.mesh("tp", 2);
  m.g.shard("blocks.0.mlp.gate_proj.weight", 1);
  m.g.keepWhole("blocks.1.*");
  const std::string text = m.g.text();
  expectIn(text, "lathe.mesh \"tp\" of 2");
  expectIn(text, "lathe.shard_weights \"blocks.0.mlp.gate_proj.weight\" axis 1 over \"tp\"");
  expectIn(text, "lathe.shard_weights \"blocks.1.*\"");
  const Graph read = Graph::parse(text, "mlps.mlir");
  EXPECT_EQ(read.text(), text);
  EXPECT_EQ(sharded(read), sharded(m.g));
}

}  // namespace
}  // namespace lathe
