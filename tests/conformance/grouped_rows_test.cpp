// SPDX-License-Identifier: Apache-2.0
// Rows that choose their weights, on every backend: one program for every number of rows and every
// choice, no number of a weight that nobody chooses in any result, and choices outside of the
// weights refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "lathe/lathe.h"
#include "lathe/runtime/error.h"

namespace lathe::conformance {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kGroups = 6, kIn = 40, kOut = 72;

class GroupedRows : public ::testing::TestWithParam<const char*> {
 protected:
  Session open(const Graph& g, uint64_t rewrites = ~uint64_t(0)) const {
    auto program = std::make_shared<const Program>(
        compile(g, {.backend = GetParam(), .stopAfterRewrite = rewrites}));
    return Session(program, {.threads = 2, .device = "host"});
  }
};

Array random(DType dtype, Shape shape, unsigned seed) {
  std::mt19937 next(seed);
  std::normal_distribution<double> normal;
  Array a(dtype, std::move(shape));
  for (int64_t i = 0; i < a.size(); ++i) a.set(i, normal(next));
  return a;
}

// Two weights for each of any number of tokens, chosen in 32 or 64 bits.
Graph twoOfSix(DType dtype, DType index) {
  Graph g;
  const Dim tokens = g.dim("tokens", 0, 4096);
  const Tensor x = g.input("x", dtype, {tokens, 1, kIn}),
               chosen = g.input("chosen", index, {tokens, 2});
  g.output("y", fused::groupedLinear(x, g.weight("w", dtype, {kGroups, kOut, kIn}), chosen));
  return g;
}

// Weights that `chosen` does not name hold NaN and infinity.
Array spoiled(const Array& weights, const Array& chosen) {
  Array all(weights.dtype(), weights.shape());
  std::vector<bool> isChosen(kGroups, false);
  for (int64_t i = 0; i < chosen.size(); ++i) isChosen[size_t(chosen.at(i))] = true;
  const double bad[] = {std::nan(""), std::numeric_limits<double>::infinity()};
  for (int64_t i = 0; i < all.size(); ++i)
    all.set(i, isChosen[size_t(i / (kIn * kOut))] ? weights.at(i) : bad[i % 2]);
  return all;
}

TEST_P(GroupedRows, OneProgramServesEveryChoice) {
  for (DType dtype : {DType::F32, DType::BF16})
    for (DType index : {DType::I32, DType::I64}) {
      Session s = open(twoOfSix(dtype, index));
      const Array w = random(dtype, {kGroups, kOut, kIn}, 1);
      std::mt19937 next(5);
      const std::vector<std::pair<std::string, std::function<int64_t(int64_t)>>> choices{
          {"all the last", [](int64_t) { return kGroups - 1; }},
          {"in turn", [](int64_t i) { return i % kGroups; }},
          {"two of them", [](int64_t i) { return i % 3 ? 1 : 4; }},
          {"by chance", [&](int64_t) { return int64_t(next() % kGroups); }}};
      for (int64_t tokens : {1, 0, 2, 33, 150})
        for (const auto& [name, choose] : choices) {
          SCOPED_TRACE(std::string(nameOf(dtype)) + " " + std::string(nameOf(index)) + " " +
                       std::to_string(tokens) + " tokens, " + name);
          Array chosen(index, {tokens, 2});
          for (int64_t i = 0; i < chosen.size(); ++i) chosen.set(i, double(choose(i)));
          const Array x = random(dtype, {tokens, 1, kIn}, 2);
          s.bindWeights({{"w", spoiled(w, chosen)}});
          const Array y = s.run("forward", {{"x", x}, {"chosen", chosen}}).at("y");
          ASSERT_EQ(y.shape(), (Shape{tokens, 2, kOut}));
          int64_t wrong = 0;
          for (int64_t r = 0; r < 2 * tokens; ++r)
            for (int64_t j = 0; j < kOut; ++j) {
              double sum = 0;
              for (int64_t k = 0; k < kIn; ++k)
                sum += x.at(r / 2 * kIn + k) * w.at((int64_t(chosen.at(r)) * kOut + j) * kIn + k);
              const double bound = 2e-5 + (dtype == DType::BF16 ? 0x1p-8 : 2e-6) * std::abs(sum);
              wrong += !(std::abs(y.at(r * kOut + j) - sum) <= bound);
            }
          EXPECT_EQ(wrong, 0);
        }
    }
}

// Rows of a weight begin anywhere where its last axis is no multiple of a vector, and the sums of a
// row where the other is none.
TEST_P(GroupedRows, SizesAreAnyInBothLayouts) {
  for (DType dtype : {DType::F32, DType::BF16})
    for (WeightLayout layout : {WeightLayout::out_in, WeightLayout::in_out})
      for (auto [in, out] : {std::pair<int64_t, int64_t>{40, 71}, {37, 72}}) {
        SCOPED_TRACE(std::string(nameOf(dtype)) + " " + std::string(nameOf(layout)) + " " +
                     std::to_string(in) + " to " + std::to_string(out));
        const bool inOut = layout == WeightLayout::in_out;
        const Shape shape{kGroups, inOut ? in : out, inOut ? out : in};
        Graph g;
        g.output("y",
                 fused::groupedLinear(g.input("x", dtype, {3, 1, in}), g.weight("w", dtype, shape),
                                      g.input("chosen", DType::I64, {3, 2}), layout));
        Session s = open(g);
        const Array w = random(dtype, shape, 1), x = random(dtype, {3, 1, in}, 2);
        s.bindWeights({{"w", w}});
        Array chosen(DType::I64, {3, 2});
        for (int64_t i = 0; i < 6; ++i) chosen.set(i, double(5 - i));
        const Array y = s.run("forward", {{"x", x}, {"chosen", chosen}}).at("y");
        ASSERT_EQ(y.shape(), (Shape{3, 2, out}));
        for (int64_t r = 0; r < 6; ++r)
          for (int64_t j = 0; j < out; ++j) {
            double sum = 0;
            for (int64_t k = 0; k < in; ++k)
              sum += x.at(r / 2 * in + k) *
                     w.at((5 - r) * in * out + (inOut ? k * out + j : j * in + k));
            const double bound = 2e-5 + (dtype == DType::BF16 ? 0x1p-8 : 2e-6) * std::abs(sum);
            EXPECT_NEAR(y.at(r * out + j), sum, bound) << r << " " << j;
          }
      }
}

// Kernels change with the rows that a weight has on average: none may be missing in between.
TEST_P(GroupedRows, EveryNumberOfRowsHasAKernel) {
  constexpr int64_t kSize = 16;
  for (DType dtype : {DType::F32, DType::BF16}) {
    Graph g;
    const Dim rows = g.dim("rows", 0, 4096);
    g.output("y", fused::groupedLinear(g.input("x", dtype, {rows, kSize}),
                                       g.weight("w", dtype, {kGroups, kSize, kSize}),
                                       g.input("chosen", DType::I64, {rows})));
    Session s = open(g);
    // Multiples of the identity: every sum is one product.
    Array w(dtype, {kGroups, kSize, kSize});
    for (int64_t i = 0; i < kGroups * kSize; ++i)
      w.set(i * kSize + i % kSize, double(i / kSize + 1));
    s.bindWeights({{"w", w}});
    for (int64_t perWeight : {8, 24, 64})
      for (int64_t more : {-1, 0, 1, 2}) {
        const int64_t count = perWeight * kGroups + more;
        SCOPED_TRACE(std::string(nameOf(dtype)) + " " + std::to_string(count) + " rows");
        Array x(dtype, {count, kSize}), chosen(DType::I64, {count});
        for (int64_t i = 0; i < x.size(); ++i) x.set(i, double(i % 13) - 6);
        for (int64_t i = 0; i < count; ++i) chosen.set(i, double(i * 5 % kGroups));
        const Array y = s.run("forward", {{"x", x}, {"chosen", chosen}}).at("y");
        int64_t wrong = 0;
        for (int64_t i = 0; i < x.size(); ++i)
          wrong += y.at(i) != x.at(i) * (double(i / kSize * 5 % kGroups) + 1);
        EXPECT_EQ(wrong, 0);
      }
  }
}

TEST_P(GroupedRows, AChoiceOutsideIsRefused) {
  Session s = open(twoOfSix(DType::F32, DType::I64));
  s.bindWeights({{"w", random(DType::F32, {kGroups, kOut, kIn}, 1)}});
  const Array x = random(DType::F32, {3, 1, kIn}, 2);
  auto step = [&](double last) {
    Array chosen(DType::I64, {3, 2});
    chosen.set(5, last);
    return s.run("forward", {{"x", x}, {"chosen", chosen}}).at("y").at(0);
  };
  const double good = step(5);
  for (double bad : {6.0, -1.0, 1e15}) {
    try {
      step(bad);
      ADD_FAILURE() << bad;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::InvalidArgument);
      EXPECT_THAT(e.what(), HasSubstr(std::to_string(int64_t(bad))));
      EXPECT_THAT(e.what(), HasSubstr("grouped_rows_test.cpp:"));
    }
    EXPECT_EQ(step(5), good);
  }
}

// Every token's experts in one pass and token by token, and without any rewrite.
TEST_P(GroupedRows, AMixtureOfATextIsThatOfItsTokens) {
  Graph g;
  const Dim batch = g.dim("batch", 1, 8), seq = g.dim("seq", 1, 64);
  nn::Mixture mixture(g, "moe", {.dModel = kIn, .dHidden = 24, .experts = kGroups, .chosen = 2});
  for (auto [entry, length] : {std::pair("text", seq), std::pair("token", Dim(1))}) {
    g.entry(entry);
    g.output("y", mixture(g.input("x", DType::F32, {batch, length, kIn})));
  }
  Session s = open(g);
  Arrays weights;
  unsigned seed = 10;
  for (const TensorInfo& info : s.program().weights) {
    Shape shape;
    for (const DimExpr& size : info.shape) shape.push_back(*size.asConstant());
    weights[info.name] = random(DType::F32, shape, seed++);
  }
  s.bindWeights(weights);
  const Array text = random(DType::F32, {2, 9, kIn}, 3);
  const Array whole = s.run("text", {{"x", text}}).at("y");
  Session plain = open(g, 0);
  plain.bindWeights(weights);
  const Array unfused = plain.run("text", {{"x", text}}).at("y");
  for (int64_t i = 0; i < whole.size(); ++i) EXPECT_NEAR(unfused.at(i), whole.at(i), 2e-3) << i;
  for (int64_t t = 0; t < 9; ++t) {
    Array token(DType::F32, {2, 1, kIn});
    for (int64_t i = 0; i < token.size(); ++i)
      token.set(i, text.at((i / kIn * 9 + t) * kIn + i % kIn));
    const Array y = s.run("token", {{"x", token}}).at("y");
    for (int64_t i = 0; i < y.size(); ++i)
      EXPECT_NEAR(y.at(i), whole.at((i / kIn * 9 + t) * kIn + i % kIn), 2e-3) << t << " " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, GroupedRows, ::testing::Values("reference", "cpu", "cuda"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace lathe::conformance
