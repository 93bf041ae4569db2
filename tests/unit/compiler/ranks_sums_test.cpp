// SPDX-License-Identifier: Apache-2.0
// What ranks send each other of 16-bit sums: f32, so that they are rounded once.
#include "gtest/gtest.h"
#include "lathe/frontend/compile.h"
#include "tests/unit/compiler/ranks_runs.h"

namespace lathe {
namespace {

using namespace ranks;

// Of 16-bit layers the addends are f32 until they are summed: 257 has no bf16 of its own.
TEST(SumsOfBf16, AreRoundedOnceBehindThem) {
  Graph g;
  Tensor x = g.input("x", DType::BF16, {2, 4});
  Tensor h = fused::linear(x, g.weight("in", DType::BF16, {4, 4}));
  g.output("y", fused::linear(h, g.weight("out", DType::BF16, {8, 4})));
  const WeightSource weights = [](const std::string& name) {
    Array w(DType::BF16, name == "in" ? Shape{4, 4} : Shape{8, 4});
    const double row[] = {256, 1, -256, 0};
    for (int64_t i = 0; i < w.size(); ++i)
      w.set(i, name == "out" ? row[i % 4] : double(i % 4 == i / 4));
    return w;
  };
  Array ones(DType::BF16, {2, 4});
  for (int64_t i = 0; i < ones.size(); ++i) ones.set(i, 1);
  const std::string ir = sharded(g, {.ranks = 2});
  expectIn(ir, "unrounded true");
  expectIn(ir, "lathe.all_reduce sum %");
  const Arrays sums = runAsThreads(g, 2, {{"x", ones}}, {.ranks = 2}, weights);
  Session simulated(compile(g, {.pipeline = {.mesh = {.ranks = 2, .simulate = true}}}));
  simulated.bindWeights(weights);
  const Array& inOne = simulated.run("forward", {{"x", ones}}).at("y");
  for (int64_t i = 0; i < 16; ++i) {
    EXPECT_EQ(sums.at("y").at(i), 1) << i;
    EXPECT_EQ(inOne.at(i), 1) << i;
  }
  // Half the bytes, for those who allow it.
  const std::string narrow = sharded(g, {.ranks = 2}, NumericsMode::Fast);
  EXPECT_EQ(occurrences(narrow, "unrounded"), 0) << narrow;
  Session rounded(compile(
      g, {.pipeline = {.mode = NumericsMode::Fast, .mesh = {.ranks = 2, .simulate = true}}}));
  rounded.bindWeights(weights);
  EXPECT_EQ(rounded.run("forward", {{"x", ones}}).at("y").at(0), 0);
}

TEST(SumsOfBf16, OfWeightsInFewBitsAreOfRoundedAddends) {
  Mlps m(3, DType::BF16);
  m.g.output("y", m.y);
  CompileOptions options{.pipeline = {.mesh = {.ranks = 2, .simulate = true}}};
  options.backendOptions.weights = parseWeightFormats("int8");
  const Arrays in{{"x", numbers(DType::BF16, {3, 16})}};
  const Arrays split = runAlone(compile(m.g, options), in), whole = runAlone(compile(m.g), in);
  EXPECT_LE(apart(split, whole), 0.1);
}

}  // namespace
}  // namespace lathe
