// SPDX-License-Identifier: Apache-2.0
// Values at the edges that the cpu backend once took for others.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "lathe/lathe.h"

namespace lathe::conformance {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST(CpuEdges, ANanConstantIsLargestAndSmallest) {
  for (DType dtype : {DType::F32, DType::BF16, DType::F16, DType::F64}) {
    Graph g;
    Tensor x = g.input("x", dtype, {3, 8});
    Tensor nan = g.constant(kNan, dtype), number = g.constant(2, dtype);
    g.output("max", max(x, nan));
    g.output("min", min(nan, x));
    g.output("plain", max(number, x));
    Session session(compile(g));
    Array input(dtype, {3, 8});
    input.set(5, kNan);
    Arrays got = session.run("forward", {{"x", input}});
    for (int64_t i = 0; i < input.size(); ++i) {
      EXPECT_TRUE(std::isnan(got.at("max").at(i))) << nameOf(dtype);
      EXPECT_TRUE(std::isnan(got.at("min").at(i))) << nameOf(dtype);
      EXPECT_EQ(std::isnan(got.at("plain").at(i)), i == 5) << nameOf(dtype);
    }
  }
}

TEST(CpuEdges, NansAndEqualsComeInTheOrderOfTheirIndices) {
  for (const char* backend : {"cpu", "reference"})
    for (int64_t k : {1, 5, 40}) {
      Graph g;
      auto [values, indices] = topK(g.input("x", DType::F32, {3, 40}), k);
      g.output("values", values);
      g.output("indices", indices);
      Session session(compile(g, {.backend = backend}));
      Array x(DType::F32, {3, 40});  // NaN everywhere, at every second place, and zeros
      for (int64_t i = 0; i < x.size(); ++i)
        if (i < 40 || (i < 80 && i % 2)) x.set(i, kNan);
      const Arrays got = session.run("forward", {{"x", x}});
      for (int64_t row = 0; row < 3; ++row)
        for (int64_t i = 0; i < k; ++i) {
          const int64_t want = row == 1 ? (i < 20 ? 2 * i + 1 : 2 * (i - 20)) : i;
          EXPECT_EQ(got.at("indices").at(row * k + i), want) << backend << " " << row;
          EXPECT_EQ(std::isnan(got.at("values").at(row * k + i)), row == 0 || (row == 1 && i < 20));
        }
    }
}

TEST(CpuEdges, AttentionWithoutKeysIsASumOfNothing) {
  for (const char* backend : {"cpu", "reference"}) {
    Graph g;
    Dim keys = g.dim("keys", 0, 8);
    Tensor q = g.input("q", DType::F32, {1, 2, 3, 8});
    Tensor k = g.input("k", DType::F32, {1, 2, keys, 8});
    g.output("y", fused::attention(q, k, k, {.scale = 0.5}));
    Session session(compile(g, {.backend = backend}));
    Array some(DType::F32, {1, 2, 3, 8}), none(DType::F32, {1, 2, 0, 8});
    Array y = session.run("forward", {{"q", some}, {"k", none}}).at("y");
    for (int64_t i = 0; i < y.size(); ++i) EXPECT_EQ(y.at(i), 0) << backend;
  }
}

// The transposition is read through strides three times, and goes once.
TEST(CpuEdges, QueriesKeysAndValuesMayBeOneTransposedTensor) {
  Array x(DType::F32, {1, 5, 2, 8});
  for (int64_t i = 0; i < x.size(); ++i) x.set(i, std::sin(double(i)));
  std::vector<Array> results;
  for (const char* backend : {"reference", "cpu"}) {
    Graph g;
    Tensor heads = transpose(g.input("x", DType::F32, {1, 5, 2, 8}), {0, 2, 1, 3});
    Tensor keys = sliceAxis(heads, 2, 0, 4);
    g.output("one", fused::attention(heads, heads, heads, {.scale = 0.5}));
    g.output("part", fused::attention(heads, keys, keys, {.scale = 0.5}));
    Session session(compile(g, {.backend = backend}));
    const Arrays got = session.run("forward", {{"x", x}});
    for (const char* name : {"one", "part"}) results.push_back(got.at(name).clone());
  }
  for (size_t n : {0, 1})
    for (int64_t i = 0; i < results[n].size(); ++i)
      EXPECT_NEAR(results[n + 2].at(i), results[n].at(i), 1e-6);
}

}  // namespace
}  // namespace lathe::conformance
