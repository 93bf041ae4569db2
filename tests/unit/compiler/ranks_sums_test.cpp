// SPDX-License-Identifier: Apache-2.0
// What ranks send each other of 16-bit sums: f32, so that they are rounded once.
#include "gtest/gtest.h"
#include "lathe/frontend/compile.h"
#include "tests/unit/compiler/ranks_runs.h"

namespace lathe {
namespace {

using namespace ranks;

// Weights whose rows are 256, 1, -256, 0 behind those that hand values on: 257 has no bf16 of its
// own. In f16 they are 2048, 1, -2048, 0.
WeightSource sumsThatRoundingLoses(DType dtype, int64_t experts = 0) {
  return [=](const std::string& name) {
    const bool isOut = name.starts_with("out");
    Shape shape = isOut ? Shape{8, 4} : Shape{4, 4};
    if (experts) shape.insert(shape.begin(), experts);
    Array w(dtype, shape);
    const double large = dtype == DType::F16 ? 2048 : 256, row[] = {large, 1, -large, 0};
    for (int64_t i = 0; i < w.size(); ++i)
      w.set(i, isOut ? row[i % 4] : double(i % 4 == i / 4 % 4));
    return w;
  };
}

Array ones(DType dtype, Shape shape) {
  Array values(dtype, shape);
  for (int64_t i = 0; i < values.size(); ++i) values.set(i, 1);
  return values;
}

// On threads and simulated, in which nothing is lost.
void expectOnes(const Graph& g, const Arrays& inputs, const WeightSource& weights,
                const WeightFormats& formats = {}) {
  CompileOptions rounded;
  rounded.backendOptions.weights = formats;
  CompileOptions options = rounded;
  options.pipeline.mesh = {.ranks = 2, .simulate = true};
  Session simulated(compile(g, options));
  simulated.bindWeights(weights);
  const Array inOne = simulated.run("forward", inputs).at("y").clone();
  const Array sums = runAsThreads(g, 2, inputs, {.ranks = 2}, weights, rounded).at("y");
  for (int64_t i = 0; i < sums.size(); ++i) {
    EXPECT_EQ(sums.at(i), 1) << i;
    EXPECT_EQ(inOne.at(i), 1) << i;
  }
}

TEST(SumsOf16Bits, OfF16AreRoundedOnceToo) {
  for (WeightLayout layout : {WeightLayout::out_in, WeightLayout::in_out}) {
    Graph g;
    const Tensor x = g.input("x", DType::F16, {2, 3, 4});
    const Tensor h = fused::linear(x, g.weight("in", DType::F16, {4, 4}));
    Tensor out = g.weight("out", DType::F16, {8, 4});
    if (layout == WeightLayout::in_out) out = transpose(out, {1, 0});
    g.output("y", fused::linear(h, out, {.layout = layout}));
    expectIn(sharded(g, {.ranks = 2}), "unrounded true");
    expectOnes(g, {{"x", ones(DType::F16, {2, 3, 4})}}, sumsThatRoundingLoses(DType::F16));
  }
}

// Such a sum of f16 is a product of its own on the CPU; with an activation it is none.
TEST(SumsOf16Bits, OfF16HaveTheirActivation) {
  Graph g;
  const Tensor x = g.input("x", DType::F16, {2, 4});
  fused::LinearOptions options;
  options.unrounded = true;
  g.output("sums", fused::linear(x, g.weight("w", DType::F16, {3, 4}), options));
  options.activation = Activation::relu;
  g.output("y", fused::linear(x, g.weight("v", DType::F16, {3, 4}), options));
  Session session(compile(g, {.backend = "cpu"}));
  Array minus(DType::F16, {3, 4}), plus(DType::F16, {2, 4});
  for (int64_t i = 0; i < minus.size(); ++i) minus.set(i, -1);
  for (int64_t i = 0; i < plus.size(); ++i) plus.set(i, 1);
  session.bindWeights({{"w", minus}, {"v", minus}});
  const Arrays out = session.run("forward", {{"x", plus}});
  for (int64_t i = 0; i < 6; ++i) {
    EXPECT_EQ(out.at("sums").at(i), -4) << i;
    EXPECT_EQ(out.at("y").at(i), 0) << i;
  }
}

// Bias and residual are added before the one rounding, as on one rank.
TEST(SumsOf16Bits, WithBiasAndResidualAreRoundedOnce) {
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

// Experts: the addends of all that a token has chosen are added up before anything is rounded.
TEST(SumsOf16Bits, OfExpertsAreRoundedOnce) {
  for (DType dtype : {DType::BF16, DType::F16})
    for (bool isWeighted : {true, false}) {
      Graph g;
      const Tensor x = g.input("x", dtype, {3, 1, 4}), ids = g.input("ids", DType::I64, {3, 2});
      const Tensor h = fused::groupedLinear(x, g.weight("in", dtype, {4, 4, 4}), ids);
      Tensor y = fused::groupedLinear(h, g.weight("out", dtype, {4, 8, 4}), ids);
      if (isWeighted) y = reduceSum(y * g.input("p", dtype, {3, 2, 1}), {1});
      g.output("y", y);
      const std::string ir = sharded(g, {.ranks = 2});
      EXPECT_EQ(occurrences(ir, "unrounded true"), 1) << ir;
      EXPECT_EQ(occurrences(ir, "lathe.all_reduce"), 1) << ir;
      Arrays inputs{{"x", ones(dtype, {3, 1, 4})}, {"ids", Array(DType::I64, {3, 2})}};
      for (int64_t i = 0; i < 6; ++i) inputs.at("ids").set(i, double(i % 4));
      if (isWeighted) {
        inputs["p"] = Array(dtype, {3, 2, 1});
        for (int64_t i = 0; i < 6; ++i) inputs.at("p").set(i, i % 2 ? 0.75 : 0.25);
      }
      expectOnes(g, inputs, sumsThatRoundingLoses(dtype, 4));
    }
}

// Norms' and other sums over a cut axis.
TEST(SumsOf16Bits, OfElementsAreRoundedOnce) {
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

TEST(SumsOfBf16, OfWeightsInFewBitsAreRoundedOnce) {
  Graph g;
  const Tensor x = g.input("x", DType::BF16, {2, 32});
  const Tensor h = fused::linear(x, g.weight("in", DType::BF16, {32, 32}));
  g.output("y", fused::linear(h, g.weight("out", DType::BF16, {8, 32})));
  // What int8 holds: 127 times 2, its half, and as much less again.
  auto weights = [](const std::string& name) {
    Array w(DType::BF16, name == "in" ? Shape{32, 32} : Shape{8, 32});
    for (int64_t i = 0; i < w.size(); ++i)
      w.set(i, name == "in"   ? double(i % 32 == i / 32)
               : i % 32 == 0  ? 254
               : i % 32 == 1  ? 2
               : i % 32 == 2  ? 2
               : i % 32 == 16 ? -254
               : i % 32 == 17 ? -2
               : i % 32 == 18 ? 0
                              : 0);
    return w;
  };
  Array inputs = ones(DType::BF16, {2, 32});
  for (int64_t i = 0; i < 64; ++i)
    if (i % 32 == 2) inputs.set(i, 0.5);
  expectOnes(g, {{"x", inputs}}, weights, parseWeightFormats("int8"));
}

}  // namespace
}  // namespace lathe
