// SPDX-License-Identifier: Apache-2.0
// Values with several users: compilation grows with the ops of a graph, not with the paths through
// it, of which there are 2^40 here.
#include <gtest/gtest.h>

#include "lathe/lathe.h"

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

}  // namespace
}  // namespace lathe
