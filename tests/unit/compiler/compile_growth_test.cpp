// SPDX-License-Identifier: Apache-2.0
// Values with several users: compilation grows with the ops of a graph, not with the paths through
// it, of which there are 2^40 here.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "lathe/inspect/check_locations.h"
#include "lathe/inspect/why_not.h"
#include "lathe/lathe.h"
#include "lathe/passes/weight_formats.h"
#include "tests/unit/compiler/ranks_runs.h"

namespace lathe {
namespace {

constexpr int kSteps = 40;

TEST(CompileGrowth, WeightArithmeticIsHoistedOnce) {
  Graph g;
  Tensor x = g.input("x", DType::F32, {4}), w = g.weight("w", DType::F32, {4});
  for (int i = 0; i < kSteps; ++i) w = max(w * w, neg(w)) * 0.5;
  g.output("y", x + w);
  Session session(compile(g));
  Array one(DType::F32, {4});
  for (int64_t i = 0; i < 4; ++i) one.set(i, 1);
  session.bindWeights({{"w", one}});
  double expected = 1;
  for (int i = 0; i < kSteps; ++i)
    expected = float(std::max(expected * expected, -expected)) * 0.5f;
  const Array y = session.run("forward", {{"x", Array(DType::F32, {4})}}).at("y");
  for (int64_t i = 0; i < 4; ++i) EXPECT_NEAR(y.at(i), expected, 1e-6);
  EXPECT_EQ(session.memory().derived, 16);
}

// Loading merges two weights by way of their product: memory that no later call needs.
TEST(CompileGrowth, LoadingKeepsNoMemoryOfItsOwn) {
  Graph g;
  Tensor x = g.input("x", DType::F32, {1, 64});
  Tensor a = g.weight("a", DType::F32, {64, 256}), b = g.weight("b", DType::F32, {256, 64});
  g.output("y", matmul(x, matmul(exp(matmul(a, b)), matmul(a, b))));
  Session session(compile(g));
  session.bindRandomWeights(1);
  EXPECT_GT(session.memory().derived, 0);
  EXPECT_EQ(session.memory().arena, 0);
  EXPECT_EQ(session.memory().scratch, 0);
}

TEST(CompileGrowth, ShiftedCopiesAreStoredBeforeTheyMultiply) {
  constexpr int64_t kLength = 64;
  Graph g;
  Tensor x = g.input("x", DType::F32, {kLength});
  for (int i = 0; i < kSteps; ++i)
    x = (x + concat({sliceAxis(x, 0, 1, kLength - 1), sliceAxis(x, 0, 0, 1)}, 0)) * 0.5;
  g.output("y", x);
  Session session(compile(g));
  Array input(DType::F32, {kLength});
  std::vector<double> expected(kLength);
  for (int64_t i = 0; i < kLength; ++i) input.set(i, expected[size_t(i)] = double(i % 7));
  for (int i = 0; i < kSteps; ++i) {
    const std::vector<double> old = expected;
    for (size_t j = 0; j < old.size(); ++j) expected[j] = (old[j] + old[(j + 1) % old.size()]) / 2;
  }
  const Array y = session.run("forward", {{"x", input}}).at("y");
  for (int64_t i = 0; i < kLength; ++i) EXPECT_NEAR(y.at(i), expected[size_t(i)], 1e-4) << i;
}

// The same numbers, by 2^40 paths.
Tensor manyPaths(Tensor x) {
  for (int i = 0; i < kSteps; ++i) x = (x + x) * 0.5;
  return x;
}

// Attention of what `masked` makes of the scores.
Array attended(const std::function<Tensor(const Tensor& scores, const Tensor& bias)>& masked) {
  Graph g;
  Tensor q = g.input("q", DType::F32, {2, 3, 4}), k = g.input("k", DType::F32, {2, 5, 4});
  Tensor bias = g.input("bias", DType::F32, {3, 5});
  g.output("y", matmul(nn::softmax(masked(matmul(q, transpose(k, {0, 2, 1})), bias)), k));
  Session session(compile(g));
  Arrays inputs = {{"q", Array(DType::F32, {2, 3, 4})},
                   {"k", Array(DType::F32, {2, 5, 4})},
                   {"bias", Array(DType::F32, {3, 5})}};
  for (auto& [name, a] : inputs)
    for (int64_t i = 0; i < a.size(); ++i) a.set(i, double(i * 7 % 11) / 8 - 0.5);
  return session.run("forward", inputs).at("y");
}
void expectSame(const Array& a, const Array& b) {
  ASSERT_EQ(a.shape(), b.shape());
  for (int64_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a.at(i), b.at(i), 1e-5) << i;
}

TEST(CompileGrowth, AddedMasksAreFollowedOnce) {
  expectSame(attended([](auto& scores, auto& bias) { return manyPaths(bias) + scores; }),
             attended([](auto& scores, auto& bias) { return bias + scores; }));
}

// How far the ramp stays above the fill is asked of each value once.
TEST(CompileGrowth, BoundsOfMasksAreFoundOnce) {
  auto under = [](const Tensor& scores, const Tensor& bias, const Tensor& ramp) {
    return where(bias < 0, scores + ramp, -1e30);
  };
  expectSame(attended([&](auto& scores, auto& bias) {
               return under(scores, bias, manyPaths(iota(scores, {5}, 0, DType::F32)));
             }),
             attended([&](auto& scores, auto& bias) {
               return under(scores, bias, iota(scores, {5}, 0, DType::F32));
             }));
}

// Query i sees key 0, and all keys from i = 1 on.
TEST(CompileGrowth, ConditionsOfRampsAreReadOnce) {
  const double inf = std::numeric_limits<double>::infinity();
  expectSame(attended([&](auto& scores, auto&) {
               Tensor i = iota(scores, {3, 1}, 0), j = iota(scores, {5}, 0);
               for (int n = 0; n < kSteps; ++n) i = i + i;
               return where(j <= i, scores, -inf);
             }),
             attended([&](auto& scores, auto&) {
               Tensor i = iota(scores, {3, 1}, 0), j = iota(scores, {5}, 0);
               return where(j <= i * 8, scores, -inf);
             }));
}

TEST(CompileGrowth, SignsAreFoundOnce) {
  Graph g;
  Tensor x = g.input("x", DType::F32, {4}), y = abs(x);
  for (int i = 0; i < kSteps; ++i) y = max(y, y * 0.5);
  g.output("y", pow(y, 0.5));
  Session session(compile(g));
  Array nine(DType::F32, {4});
  for (int64_t i = 0; i < 4; ++i) nine.set(i, -9);
  const Array root = session.run("forward", {{"x", nine}}).at("y");
  for (int64_t i = 0; i < 4; ++i) EXPECT_NEAR(root.at(i), 3, 1e-6);
}

TEST(CompileGrowth, WeightsOfFewBitsAreSearchedOnce) {
  Graph g;
  Tensor x = g.input("x", DType::F32, {2, 64}), w = g.weight("w", DType::F32, {64, 64});
  g.output("y", matmul(x, manyPaths(w)));
  Session session(compile(g, {.backendOptions = {.weights = parseWeightFormats("int8")}}));
  session.bindRandomWeights(1);
  EXPECT_GT(session.memory().derived, 0);
}

// What nobody reads any more is noted once.
TEST(CompileGrowth, WhatARewriteLeavesIsNotedOnce) {
  std::string text = R"(
    func.func @forward(%x: tensor<4xf32>) -> tensor<4xf32> {
      %yes = lathe.constant dense<true> : tensor<i1>
      %v0 = lathe.abs %x : tensor<4xf32>
  )";
  for (int i = 0; i < kSteps; ++i) {
    const std::string v = "%v" + std::to_string(i);
    text += "%v" + std::to_string(i + 1) + " = lathe.add " + v + ", " + v +
            " : tensor<4xf32>, tensor<4xf32>\n";
  }
  text += "%y = lathe.select %yes, %x, %v" + std::to_string(kSteps) +
          " : tensor<i1>, tensor<4xf32>, tensor<4xf32>\nreturn %y : tensor<4xf32>\n}\n";
  const std::string ir = irAt(Graph::parse(text, "dead.mlir"), "canonical");
  EXPECT_EQ(ranks::occurrences(ir, "lathe.add"), 0) << ir;
}

TEST(CompileGrowth, WhatIsNotFusedIsExplainedOnce) {
  Graph g;
  Tensor x = g.input("x", DType::F32, {4, 4}), v = x;
  for (int i = 0; i < kSteps; ++i) v = v * v;
  Tensor i = iota(x, {4, 1}, 0, DType::F32), j = iota(x, {4}, 0, DType::F32);
  for (int n = 0; n < kSteps; ++n) i = i * i;
  g.output("y", matmul(v, x));
  Tensor q = reshape(x, {1, 4, 4});
  g.output("z", fused::attention(q, q, q, {.mask = i - j}));
  EXPECT_FALSE(whyNot(g).empty());
}

// Locations of a text that name others twice.
TEST(CompileGrowth, OriginsAreFoundOnce) {
  std::string text = R"(
    func.func @forward(%x: tensor<4xf32>) -> tensor<4xf32> {
      %y = lathe.abs %x : tensor<4xf32> loc(#l40)
      return %y : tensor<4xf32>
    }
    #l0 = loc("model.cpp":3:1)
  )";
  for (int i = 0; i < kSteps; ++i) {
    const std::string l = "#l" + std::to_string(i);
    text += "#l" + std::to_string(i + 1) + " = loc(callsite(" + l + " at " + l + "))\n";
  }
  EXPECT_TRUE(checkLocations(Graph::parse(text, "calls.mlir")).complete);
}

//===--- on ranks ---------------------------------------------------------------------------===//

using namespace ranks;

// Two layers, columns and rows, of weights by many paths.
struct Layers {
  Graph g;
  Tensor x = g.input("x", DType::F32, {3, 8});
  Layers() {
    Tensor h = fused::linear(x, manyPaths(g.weight("up", DType::F32, {16, 8})));
    g.output("y", fused::linear(h, manyPaths(g.weight("down", DType::F32, {8, 16}))));
  }
  std::string onTwo() const { return sharded(g, {.ranks = 2}); }
};
const Arrays kRows{{"x", numbers(DType::F32, {3, 8})}};

TEST(CompileGrowth, PiecesOfWeightsAreMadeOnce) {
  const Layers m;
  const std::string ir = m.onTwo();
  EXPECT_EQ(occurrences(ir, "lathe.all_reduce"), 1);
  EXPECT_EQ(occurrences(ir, " parts 2"), 2);  // a piece of each weight
  EXPECT_EQ(occurrences(ir, "lathe.add"), 2 * kSteps);
  expectNoOtherValues(m.g, kRows);
}

TEST(CompileGrowth, WeightsCutByHandAreFoundOnce) {
  Layers m;
  m.g.shard("up", 0);
  EXPECT_EQ(occurrences(m.onTwo(), "lathe.all_reduce"), 1);
  m.g.shard("down", 0);
  EXPECT_EQ(occurrences(m.onTwo(), "\"down\" axis 0 parts 2"), 1);
  expectNoOtherValues(m.g, kRows);
  m.g.keepWhole("*");  // the last word counts
  EXPECT_EQ(occurrences(m.onTwo(), " parts 2"), 0);
}

TEST(CompileGrowth, WeightsOfSeveralLayersAreSlicedOnce) {
  Graph g;
  const Tensor x = g.input("x", DType::F32, {3, 8});
  const Tensor h = fused::linear(x, manyPaths(g.weight("up", DType::F32, {32, 8})),
                                 {.bias = manyPaths(g.weight("bias", DType::F32, {32}))});
  const Tensor gate = fused::glu(sliceAxis(h, -1, 0, 16), sliceAxis(h, -1, 16, 16));
  g.output("y", fused::linear(gate, g.weight("down", DType::F32, {8, 16})));
  const std::string ir = sharded(g, {.ranks = 2});
  EXPECT_EQ(occurrences(ir, "lathe.all_reduce"), 1);
  EXPECT_EQ(occurrences(ir, "lathe.all_slice"), 0);
  EXPECT_EQ(occurrences(ir, "lathe.add"), 4 * kSteps);  // of both layers' weights and biases
  expectNoOtherValues(g, kRows);
  g.keepWhole("down");  // whether anything was said of the merged weight is asked once, too
  EXPECT_EQ(occurrences(sharded(g, {.ranks = 2}), "lathe.all_reduce"), 0);
}

// Scales of blocks that the ranks would cut are repeated once.
TEST(CompileGrowth, BlocksOfFewBitsAreAlignedOnce) {
  Graph g;
  const Tensor x = g.input("x", DType::F32, {3, 8});
  const Tensor h = fused::linear(x, g.weight("up", DType::F32, {16, 8}));
  const Tensor down = dequantize(g.weight("q", DType::I8, {8, 16}),
                                 g.weight("scale", DType::F32, {8, 1}), {}, 1, 16, DType::F32);
  g.output("y", fused::linear(h, manyPaths(down)));
  const std::string ir = sharded(g, {.ranks = 2});
  EXPECT_EQ(occurrences(ir, "lathe.all_reduce"), 1);
  EXPECT_EQ(occurrences(ir, "lathe.dequantize"), 1);
  expectNoOtherValues(g, kRows);
}

TEST(CompileGrowth, StagesCountTheirWeightsOnce) {
  const Layers m;
  for (int64_t stage : {0, 1}) {
    const std::string ir = sharded(m.g, {.ranks = 2, .stages = 2, .stage = stage});
    EXPECT_EQ(occurrences(ir, "\"up\""), stage == 0) << ir;
    EXPECT_EQ(occurrences(ir, "\"down\""), stage == 1) << ir;
  }
}

}  // namespace
}  // namespace lathe
