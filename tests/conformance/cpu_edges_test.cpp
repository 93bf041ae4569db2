// SPDX-License-Identifier: Apache-2.0
// Values at the edges that the cpu backend once took for others.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "backends/cpu/device/matmul.h"
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

// A NaN whose upper bits alone would be an infinity stays one, in vectors of any width.
TEST(CpuEdges, NansOfLowBitsStayNanInSixteenBits) {
  for (int64_t size : {1, 3, 8, 13, 40})
    for (DType dtype : {DType::BF16, DType::F16}) {
      Graph g;
      g.output("y", cast(g.input("x", DType::F32, {2, size}), dtype));
      Session session(compile(g));
      Array x(DType::F32, {2, size});
      for (float& v : x.as<float>()) v = std::bit_cast<float>(0x7f800001u);
      x.as<float>()[0] = std::bit_cast<float>(0xff800001u);
      const Array y = session.run("forward", {{"x", x}}).at("y");
      for (int64_t i = 0; i < y.size(); ++i)
        EXPECT_TRUE(std::isnan(y.at(i))) << nameOf(dtype) << " " << size << ": " << y.at(i);
    }
}

// Down to the smallest numbers that f32 has, and up to what rounds to 1.
TEST(CpuEdges, ExponentialsAndTangentsToTheirEnds) {
  for (int64_t size : {5, 64}) {
    Graph g;
    const Tensor x = g.input("x", DType::F32, {size});
    g.output("exp", exp(x));
    g.output("tanh", tanh(x));
    Session session(compile(g));
    for (double first : {-103.9, -100., -95., -90., -87.5, -80., 3., 7.5, 8.25, 8.75, 9.5, 85.})
      for (double step : {0.01, 0.17}) {
        Array in(DType::F32, {size});
        for (int64_t i = 0; i < size; ++i) in.set(i, first + step * double(i % 5));
        const Arrays got = session.run("forward", {{"x", in}});
        for (int64_t i = 0; i < size; ++i) {
          const double e = std::exp(in.at(i)), t = std::tanh(in.at(i));
          EXPECT_NEAR(got.at("exp").at(i), e, 2e-7 * e + 0x1p-149) << in.at(i);
          EXPECT_NEAR(got.at("tanh").at(i), t, 0x1p-23) << in.at(i);
        }
      }
  }
}

// A mask of a dtype that the kernel does not read.
TEST(CpuEdges, MasksOfEveryFloat) {
  for (DType dtype : {DType::F32, DType::BF16, DType::F16, DType::F64}) {
    Graph g;
    const Tensor q = g.input("q", DType::F32, {1, 2, 3, 8}),
                 k = g.input("k", DType::F32, {1, 2, 5, 8});
    g.output("y", fused::attention(q, k, k, {.mask = g.input("m", dtype, {3, 5}), .scale = 0.3}));
    Arrays inputs{{"q", Array(DType::F32, {1, 2, 3, 8})},
                  {"k", Array(DType::F32, {1, 2, 5, 8})},
                  {"m", Array(dtype, {3, 5})}};
    for (auto& [name, array] : inputs)
      for (int64_t i = 0; i < array.size(); ++i) array.set(i, double(i * 37 % 19) / 4 - 2);
    Session cpu(compile(g)), reference(compile(g, {.backend = "reference"}));
    const Array got = cpu.run("forward", inputs).at("y"),
                want = reference.run("forward", inputs).at("y");
    for (int64_t i = 0; i < got.size(); ++i)
      EXPECT_NEAR(got.at(i), want.at(i), 1e-5) << nameOf(dtype) << " " << i;
  }
}

// As many axes in front of a product as its kernel counts, of both operands or of one.
TEST(CpuEdges, ProductsOfAsManyAxesAsThereMayBe) {
  constexpr int64_t kMost = cpu::kMaxBatchDims;
  for (int64_t lead = 0; lead <= kMost + 1; ++lead)
    for (bool both : {true, false}) {
      SCOPED_TRACE(std::to_string(lead) + " axes");
      auto product = [&](const std::string& backend) {
        Graph g;
        Dims a, b;
        for (int64_t i = 0; i < lead; ++i) a.push_back(1 + i % 2), b.push_back(1 + i % 2);
        if (!both) b.clear();
        a.insert(a.end(), {3, 4}), b.insert(b.end(), {4, 5});
        const Tensor x = g.input("x", DType::F32, a), y = g.input("y", DType::F32, b);
        g.output("z", matmul(x, y));
        Arrays inputs;
        for (auto& [name, dims] : {std::pair("x", a), std::pair("y", b)}) {
          Shape shape;
          for (const Dim& d : dims) shape.push_back(*d.asConstant());
          Array values(DType::F32, shape);
          for (int64_t i = 0; i < values.size(); ++i) values.set(i, double(i * 7 % 11) - 5);
          inputs[name] = values;
        }
        Session session(compile(g, {.backend = backend}));
        return session.run("forward", inputs).at("z");
      };
      const Array want = product("reference");
      if (lead > kMost) {
        EXPECT_THROW(product("cpu"), Error);
        continue;
      }
      const Array got = product("cpu");
      ASSERT_EQ(got.shape(), want.shape());
      for (int64_t i = 0; i < got.size(); ++i) EXPECT_EQ(got.at(i), want.at(i)) << i;
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
