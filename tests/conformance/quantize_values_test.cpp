// SPDX-License-Identifier: Apache-2.0
// The ends of what quantization does, on every backend: the lowest and the highest integer, blocks
// of zeros.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "lathe/lathe.h"

namespace lathe {
namespace {

class QuantizeValues : public ::testing::TestWithParam<const char*> {
 protected:
  Arrays run(const Graph& g, const Arrays& inputs) const {
    Session session(compile(g, {.backend = GetParam()}), {.threads = 1, .device = "host"});
    return session.run("forward", inputs);
  }
};
INSTANTIATE_TEST_SUITE_P(Backends, QuantizeValues, ::testing::Values("cpu", "cuda", "reference"),
                         [](const auto& info) { return std::string(info.param); });

struct Case {
  DType dtype;
  int64_t lowest, highest;
};
const Case kCases[] = {
    {DType::I8, -128, 127}, {DType::U8, 0, 255}, {DType::I4, -8, 7}, {DType::U4, 0, 15}};

// 4-bit elements are read as bytes.
Tensor readable(const Tensor& q) {
  return q.dtype() == DType::I4   ? cast(q, DType::I8)
         : q.dtype() == DType::U4 ? cast(q, DType::U8)
                                  : q;
}

TEST_P(QuantizeValues, EndAtTheIntegersOfTheDType) {
  const std::vector<float> values{-1000, -129, -128, -127, -9, -8,  -7,  0,
                                  6,     7,    8,    15,   16, 127, 255, 1000};
  const int64_t count = int64_t(values.size());
  Graph g;
  Tensor x = g.input("x", DType::F32, {1, count}), scale = g.input("scale", DType::F32, {1, 1});
  for (const Case& c : kCases)
    g.output(std::string(nameOf(c.dtype)), readable(quantize(x, scale, {}, 1, count, c.dtype)));
  const Arrays got = run(g, {{"x", Array::fromFloats(values, {1, count})},
                             {"scale", Array::fromFloats(std::vector<float>{1}, {1, 1})}});
  for (const Case& c : kCases)
    for (int64_t i = 0; i < count; ++i)
      EXPECT_EQ(got.at(std::string(nameOf(c.dtype))).at(i),
                std::clamp(int64_t(values[size_t(i)]), c.lowest, c.highest))
          << nameOf(c.dtype) << " of " << values[size_t(i)];
}

// Two blocks: one of zeros, whose scale is 0, and one of ones.
TEST_P(QuantizeValues, GiveTheZeroPointWhereTheScaleIsZero) {
  Graph g;
  Tensor x = g.input("x", DType::F32, {1, 4}), scale = g.input("scale", DType::F32, {1, 2});
  Tensor zero = g.input("zero", DType::U8, {1, 2});
  for (const Case& c : kCases) {
    const std::string name(nameOf(c.dtype));
    g.output(name, readable(quantize(x, scale, {}, 1, 2, c.dtype)));
    g.output(name + "_zero", readable(quantize(x, scale, zero, 1, 2, c.dtype)));
  }
  Array zeros(DType::U8, {1, 2});
  zeros.set(0, 5), zeros.set(1, 3);
  const Arrays got = run(g, {{"x", Array::fromFloats(std::vector<float>{0, 0, 1, 1}, {1, 4})},
                             {"scale", Array::fromFloats(std::vector<float>{0, 0.5}, {1, 2})},
                             {"zero", zeros}});
  for (const Case& c : kCases) {
    const std::string name(nameOf(c.dtype));
    const double plain[] = {0, 0, 2, 2}, moved[] = {5, 5, 5, 5};
    for (int64_t i = 0; i < 4; ++i) {
      EXPECT_EQ(got.at(name).at(i), plain[i]) << name << " " << i;
      EXPECT_EQ(got.at(name + "_zero").at(i), moved[i]) << name << " " << i;
    }
  }
}

// Quotients are rounded to the even number beside a tie before the zero point is added.
TEST_P(QuantizeValues, RoundBeforeTheZeroPointIsAdded) {
  Graph g;
  Tensor x = g.input("x", DType::F32, {1, 4}), scale = g.input("scale", DType::F32, {1, 1});
  g.output("q", quantize(x, scale, g.input("zero", DType::U8, {1, 1}), 1, 4, DType::U8));
  Array zero(DType::U8, {1, 1});
  zero.set(0, 3);
  const Array q = run(g, {{"x", Array::fromFloats(std::vector<float>{0.5, 1.5, 2.5, -0.5}, {1, 4})},
                          {"scale", Array::fromFloats(std::vector<float>{1}, {1, 1})},
                          {"zero", zero}})
                      .at("q");
  const double expected[] = {3, 5, 5, 3};
  for (int64_t i = 0; i < 4; ++i) EXPECT_EQ(q.at(i), expected[i]) << i;
}

// Weights with a row of zeros are zeros there, whatever their format.
TEST_P(QuantizeValues, OfARowOfZerosAreZeros) {
  constexpr int64_t kIn = 64, kOut = 3;
  Array w(DType::F32, {kOut, kIn}), x(DType::F32, {2, kIn});
  for (int64_t i = 0; i < w.size(); ++i) w.set(i, i / kIn == 1 ? 0 : double(i % 13) - 6);
  for (int64_t i = 0; i < x.size(); ++i) x.set(i, double(i % 7) - 3);
  for (const char* format : {"int8", "int8:32:asymmetric", "int4", "int4:32:asymmetric"}) {
    SCOPED_TRACE(format);
    Graph g;
    g.output("y",
             nn::Linear(g, "fc", kIn, kOut, {.bias = false})(g.input("x", DType::F32, {2, kIn})));
    Session session(compile(g, {.backend = GetParam(),
                                .backendOptions = {.weights = parseWeightFormats(format)}}),
                    {.threads = 1, .device = "host"});
    session.bindWeights({{"fc.weight", w}});
    const Array y = session.run("forward", {{"x", x}}).at("y");
    for (int64_t row = 0; row < 2; ++row) {
      EXPECT_EQ(y.at(row * kOut + 1), 0);
      EXPECT_NE(y.at(row * kOut), 0);
      EXPECT_NE(y.at(row * kOut + 2), 0);
    }
  }
}

// Rows in 8 bits, of any size: whole multiples of the 127th part of their largest magnitude, or of
// 2^-100 where that is smaller. The scales bring the results back to numbers of a usual size.
TEST_P(QuantizeValues, RowsInEightBitsHaveAStepOfTheirOwn) {
  constexpr int64_t kIn = 32, kOut = 3;
  Array q(DType::I8, {kOut, kIn});
  for (int64_t i = 0; i < q.size(); ++i) q.set(i, double(i * 37 % 255) - 127);
  for (const double unit : {1.0, 0x1p-10, 0x1p-21, 0x1p-40, 0x1p-70, 0x1p-99, 0x1p-104, 0.0})
    for (int64_t rows : {1, 7, 20}) {
      SCOPED_TRACE(std::to_string(rows) + " rows of " + std::to_string(std::log2(unit)));
      Array x(DType::F32, {rows, kIn}), scale(DType::F32, {kOut, 1});
      for (int64_t i = 0; i < x.size(); ++i) x.set(i, (double(i * 29 % 61) - 30) / 32 * unit);
      const float factor = unit == 0 ? 1 : float(1 / unit);
      for (int64_t j = 0; j < kOut; ++j) scale.set(j, double(factor) * double(j + 1));
      Graph g;
      g.output("y", fused::quantizedLinear(g.input("x", DType::F32, {rows, kIn}),
                                           g.weight("q", DType::I8, {kOut, kIn}),
                                           g.weight("scale", DType::F32, {kOut, 1}), kIn,
                                           {.quantizesX = true}));
      Session session(compile(g, {.backend = GetParam()}), {.threads = 1, .device = "host"});
      session.bindWeights({{"q", q}, {"scale", scale}});
      const Array y = session.run("forward", {{"x", x}}).at("y");
      for (int64_t row = 0; row < rows; ++row) {
        float largest = 0x1p-100f;
        for (int64_t k = 0; k < kIn; ++k)
          largest = std::max(largest, std::abs(float(x.at(row * kIn + k))));
        const float steps = 127 / largest, size = largest / 127;
        for (int64_t j = 0; j < kOut; ++j) {
          double sum = 0;
          for (int64_t k = 0; k < kIn; ++k)
            sum += double(std::nearbyint(float(x.at(row * kIn + k)) * steps)) * q.at(j * kIn + k);
          const double expected = sum * size * double(factor) * double(j + 1);
          EXPECT_NEAR(y.at(row * kOut + j), expected, 1e-5 * (100 + std::abs(expected)))
              << row << " " << j;
        }
      }
    }
}

}  // namespace
}  // namespace lathe
