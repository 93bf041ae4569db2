// SPDX-License-Identifier: Apache-2.0
// What ranks send each other of 16-bit sums: f32, so that they are rounded once.
#include "gtest/gtest.h"
#include "lathe/frontend/compile.h"
#include "tests/unit/compiler/ranks_runs.h"

namespace lathe {
namespace {

using namespace ranks;

// Weights whose rows are 256, 1, -256, 0 behind those that hand values on: 257 has no bf16 of its
// own.
WeightSource sumsThatRoundingLoses(DType dtype) {
  return [=](const std::string& name) {
    const bool isOut = name.starts_with("out");
    Array w(dtype, isOut ? Shape{8, 4} : Shape{4, 4});
    const double row[] = {256, 1, -256, 0};
    for (int64_t i = 0; i < w.size(); ++i) w.set(i, isOut ? row[i % 4] : double(i % 4 == i / 4));
    return w;
  };
}

Array ones(DType dtype, Shape shape) {
  Array values(dtype, shape);
  for (int64_t i = 0; i < values.size(); ++i) values.set(i, 1);
  return values;
}

// On threads and simulated, in which nothing is lost.
void expectOnes(const Graph& g, const Arrays& inputs, const WeightSource& weights) {
  Session simulated(compile(g, {.pipeline = {.mesh = {.ranks = 2, .simulate = true}}}));
  simulated.bindWeights(weights);
  const Array inOne = simulated.run("forward", inputs).at("y").clone();
  const Array sums = runAsThreads(g, 2, inputs, {.ranks = 2}, weights).at("y");
  for (int64_t i = 0; i < sums.size(); ++i) {
    EXPECT_EQ(sums.at(i), 1) << i;
    EXPECT_EQ(inOne.at(i), 1) << i;
  }
}

// Bias and residual are added before the one rounding, as on one rank.
TEST(SumsOfBf16, WithBiasAndResidualAreRoundedOnce) {
  Graph g;
  const Tensor x = g.input("x", DType::BF16, {2, 4}), r = g.input("r", DType::BF16, {2, 8});
  const Tensor h = fused::linear(x, g.weight("in", DType::BF16, {4, 4}));
  g.output("y", fused::linear(h, g.weight("out", DType::BF16, {8, 4}),
                              {.bias = g.weight("bias", DType::BF16, {8}), .residual = r}));
  auto weights = [](const std::string& name) {
    if (name != "bias") return sumsThatRoundingLoses(DType::BF16)(name);
    Array bias(DType::BF16, {8});
    for (int64_t i = 0; i < 8; ++i) bias.set(i, -256.0);
    return bias;
  };
  Array residual(DType::BF16, {2, 8});
  for (int64_t i = 0; i < 16; ++i) residual.set(i, 256.0);
  expectOnes(g, {{"x", ones(DType::BF16, {2, 4})}, {"r", residual}}, weights);
}

// Norms' and other sums over a cut axis.
TEST(SumsOfBf16, OfElementsAreRoundedOnce) {
  Graph g;
  const Tensor x = g.input("x", DType::BF16, {2, 4});
  const Tensor w = g.weight("out0", DType::BF16, {8, 4});
  g.shard("out0", 0);
  g.output("y", reduceSum(fused::linear(x, w), {1}));
  const std::string ir = sharded(g, {.ranks = 2});
  EXPECT_EQ(occurrences(ir, "lathe.all_gather"), 0) << ir;
  // The rows of one rank sum to 257, of the other to -256.
  auto weights = [](const std::string&) {
    Array out(DType::BF16, {8, 4});
    for (int64_t i = 0; i < 32; ++i)
      out.set(i, i % 4 ? 0.0 : i == 0 ? 256.0 : i == 4 ? 1.0 : i == 16 ? -256.0 : 0.0);
    return out;
  };
  expectOnes(g, {{"x", ones(DType::BF16, {2, 4})}}, weights);
}

// Of 16-bit layers the addends are f32 until they are summed.
TEST(SumsOfBf16, AreRoundedOnceBehindThem) {
  Graph g;
  Tensor x = g.input("x", DType::BF16, {2, 4});
  Tensor h = fused::linear(x, g.weight("in", DType::BF16, {4, 4}));
  g.output("y", fused::linear(h, g.weight("out", DType::BF16, {8, 4})));
  const WeightSource weights = sumsThatRoundingLoses(DType::BF16);
  const std::string ir = sharded(g, {.ranks = 2});
  expectIn(ir, "unrounded true");
  expectIn(ir, "lathe.all_reduce sum %");
  expectOnes(g, {{"x", ones(DType::BF16, {2, 4})}}, weights);
  // Half the bytes, for those who allow it.
  const std::string narrow = sharded(g, {.ranks = 2}, NumericsMode::Fast);
  EXPECT_EQ(occurrences(narrow, "unrounded"), 0) << narrow;
  Session rounded(compile(
      g, {.pipeline = {.mode = NumericsMode::Fast, .mesh = {.ranks = 2, .simulate = true}}}));
  rounded.bindWeights(weights);
  EXPECT_EQ(rounded.run("forward", {{"x", ones(DType::BF16, {2, 4})}}).at("y").at(0), 0);
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
