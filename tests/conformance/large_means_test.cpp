// SPDX-License-Identifier: Apache-2.0
// Rows whose mean is far above their spread: what a norm keeps of the spread.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "lathe/lathe.h"
#include "tests/conformance/support.h"

namespace lathe::conformance {
namespace {

constexpr double kMean = 1e4, kEpsilon = 1e-5;
// A mean that is rounded to f32 costs 5e-4 by itself; 1.1e-6 were measured, on rows of 4,096.
constexpr double kTolerance = 2.2e-6;

// Rows of f32 around kMean with a spread of 1.
Array offsetRows(int64_t length) {
  Array x(DType::F32, {3, length});
  std::mt19937 random(9);
  std::normal_distribution<double> normal(kMean, 1);
  for (int64_t i = 0; i < x.size(); ++i) x.set(i, normal(random));
  return x;
}

// The largest difference from the definition in float64, by which results of a spread of 1 are off.
double worstOf(const Array& got, const Array& x) {
  const int64_t length = x.shape()[1];
  double worst = 0;
  for (int64_t row = 0; row < x.shape()[0]; ++row) {
    double mean = 0, squares = 0;
    for (int64_t i = 0; i < length; ++i) mean += x.at(row * length + i) / double(length);
    for (int64_t i = 0; i < length; ++i)
      squares += std::pow(x.at(row * length + i) - mean, 2) / double(length);
    for (int64_t i = 0; i < length; ++i) {
      const double want = (x.at(row * length + i) - mean) / std::sqrt(squares + kEpsilon);
      const double error = std::abs(got.at(row * length + i) - want);
      if (!(error <= worst)) worst = error;
    }
  }
  return worst;
}

class LargeMeans : public ::testing::TestWithParam<std::string> {};

TEST_P(LargeMeans, LayerNormKeepsTheSpread) {
  for (int64_t length : {1, 31, 257, 4096})
    for (bool symbolic : {false, true}) {
      Graph g;
      const Dims shape{3, symbolic ? g.dim("n", 1, 8192) : Dim(length)};
      Tensor x = g.input("x", DType::F32, shape), zero = g.input("zero", DType::F32, shape);
      Tensor one = g.input("one", DType::F32, {shape[1]}), none = g.input("none", DType::F32, {1});
      g.output("layer_norm", fused::layerNorm(x, {}, {}, kEpsilon));
      const Tensor centered = x - reduceMean(x, {-1}, true);
      const Tensor variance = reduceMean(centered * centered, {-1}, true);
      g.output("spelled_out", centered * rsqrt(variance + kEpsilon));
      g.output("gain_bias", fused::layerNorm(x, one, one - 1.0, kEpsilon));
      g.output("modulated", fused::adalnModulate(x, none, none, kEpsilon));
      g.output("add_norm",
               fused::addNorm(x, zero, {.norm = Norm::layer, .epsilon = kEpsilon}).second);
      Session session(compile(g, {.backend = GetParam()}), {.threads = 2, .device = "host"});
      const Array rows = offsetRows(length);
      Array ones(DType::F32, {length});
      for (int64_t i = 0; i < length; ++i) ones.set(i, 1);
      const Arrays got = session.run("forward", {{"x", rows},
                                                 {"zero", Array(DType::F32, {3, length})},
                                                 {"one", ones},
                                                 {"none", Array(DType::F32, {1})}});
      for (const auto& [name, value] : got) {
        EXPECT_LE(worstOf(value, rows), kTolerance) << name << " of " << length;
      }
    }
}

// The variance is a difference of squares of rounding errors, and never below 0; squares that
// overflow are infinite and give zeros.
TEST_P(LargeMeans, RowsOfOneValueAndOfHugeValuesStayNumbers) {
  for (double value : {1e4, 1e8, 0.1, -3e30}) {
    Graph g;
    g.output("y", fused::layerNorm(g.input("x", DType::F32, {1, 37}), {}, {}, 1e-12));
    Session session(compile(g, {.backend = GetParam()}), {.threads = 1, .device = "host"});
    Array x(DType::F32, {1, 37});
    for (int64_t i = 0; i < 37; ++i) x.set(i, value);
    const Array y = session.run("forward", {{"x", x}}).at("y");
    for (int64_t i = 0; i < 37; ++i) EXPECT_LE(std::abs(y.at(i)), 1) << value;
    for (int64_t i = 0; i < 37; i += 2) x.set(i, value < 0 ? 1e30 : -value);
    const Array mixed = session.run("forward", {{"x", x}}).at("y");
    for (int64_t i = 0; i < 37; ++i) {
      const double want =
          value < 0 ? 0 : (i % 2 ? 1.0 : -1.0) * std::sqrt(i % 2 ? 19. / 18 : 18. / 19);
      EXPECT_NEAR(mixed.at(i), want, 1e-5) << value;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, LargeMeans, ::testing::ValuesIn(testedBackends()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace lathe::conformance
