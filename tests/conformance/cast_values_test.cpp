// SPDX-License-Identifier: Apache-2.0
// Casts to narrower floats round once, to nearest, ties to even: numbers at ties and a step beside
// them, from every dtype that holds more digits. Casts to integers go toward zero and end at what
// the integers end at. On every backend.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "lathe/lathe.h"
#include "tests/closeness.h"

namespace lathe {
namespace {

struct To {
  DType dtype;
  int digits;   // of a significand
  double most;  // finite
};
const std::vector<To> kTo{{DType::BF16, 8, 3e38}, {DType::F16, 11, 65504}, {DType::F32, 24, 3e38}};

// Nearest of `digits` digits: exact in doubles, for the numbers below are.
double rounded(double value, int digits) {
  int exponent;
  std::frexp(value, &exponent);
  const double step = std::ldexp(1.0, exponent - digits);
  return std::nearbyint(value / step) * step;
}

// Ties of the target's digits in every binade, and what lies just beside them.
std::vector<double> nearTies(const To& to, DType from) {
  std::vector<double> values;
  auto take = [&](double v) {
    for (double s : {v, -v})
      if (std::abs(s) <= to.most && (isFloat(from) || holds(from, s))) values.push_back(s);
  };
  for (int exponent = to.digits; exponent < 52; ++exponent)
    for (int odd : {0, 1}) {
      const double step = std::ldexp(1.0, exponent - to.digits + 1);
      const double tie = std::ldexp(1.0, exponent) + odd * step + step / 2;
      for (int beside : {-1, 0, 1}) take(tie + beside);
      if (from == DType::F64)  // as near as doubles are
        for (double beside : {0.0, 10.0}) take(std::nextafter(tie, beside * 1e300));
    }
  return values;
}

class CastValues : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Backends, CastValues, ::testing::Values("cpu", "cuda", "reference"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(CastValues, RoundOnce) {
  for (DType from : {DType::F64, DType::I64, DType::I32, DType::I16, DType::F32}) {
    Graph g;
    Arrays inputs, wanted;
    for (const To& to : kTo) {
      if (from == to.dtype) continue;
      std::vector<double> values = nearTies(to, from);
      if (from == DType::F32) std::erase_if(values, [](double v) { return double(float(v)) != v; });
      if (values.empty()) continue;
      const std::string name(nameOf(to.dtype));
      const int64_t count = int64_t(values.size());
      g.output(name, cast(g.input("x" + name, from, {count}), to.dtype));
      Array x(from, {count}), y(to.dtype, {count});
      for (int64_t i = 0; i < count; ++i) {
        x.set(i, values[size_t(i)]);
        ASSERT_EQ(x.at(i), values[size_t(i)]);
        y.set(i, rounded(values[size_t(i)], to.digits));
      }
      inputs["x" + name] = x;
      wanted[name] = y;
    }
    ASSERT_FALSE(wanted.empty());
    Session session(compile(g, {.backend = GetParam()}), {.threads = 1, .device = "host"});
    const Arrays got = session.run("forward", inputs);
    for (const auto& [name, want] : wanted) {
      SCOPED_TRACE(std::string(nameOf(from)) + " to " + name);
      for (int64_t i = 0; i < want.size(); ++i)
        EXPECT_EQ(got.at(name).at(i), want.at(i)) << std::to_string(inputs.at("x" + name).at(i));
    }
  }
}

// Integers that doubles do not hold: one bit, at any place below a tie, takes the number to one
// side.
TEST_P(CastValues, RoundIntegersOfManyDigitsOnce) {
  Graph g;
  Arrays inputs, wanted;
  for (const To& to : kTo) {
    std::vector<int64_t> values;
    std::vector<double> rounded;
    auto take = [&](int64_t value, double nearest) {
      for (int sign : {1, -1}) {
        values.push_back(sign * value);
        rounded.push_back(sign * nearest);
      }
    };
    for (int exponent = 53; exponent < 63 && std::ldexp(1, exponent + 1) < to.most; ++exponent)
      for (int64_t odd : {0, 1}) {
        const int64_t half = int64_t(1) << (exponent - to.digits), step = 2 * half;
        const int64_t below = (int64_t(1) << exponent) + odd * step;
        take(below + half, double(below + odd * step));  // to the even one
        for (int64_t bit = 1; bit < half; bit *= 2) {
          take(below + half + bit, double(below + step));
          take(below + half - bit, double(below));
        }
      }
    if (values.empty()) continue;  // f16
    const std::string name(nameOf(to.dtype));
    const int64_t count = int64_t(values.size());
    g.output(name, cast(g.input("x" + name, DType::I64, {count}), to.dtype));
    inputs["x" + name] = Array::fromInts(values, {count});
    Array y(to.dtype, {count});
    for (int64_t i = 0; i < count; ++i) {
      y.set(i, rounded[size_t(i)]);
      ASSERT_EQ(y.at(i), rounded[size_t(i)]);
    }
    wanted[name] = y;
  }
  ASSERT_EQ(wanted.size(), 2u);
  Session session(compile(g, {.backend = GetParam()}), {.threads = 1, .device = "host"});
  const Arrays got = session.run("forward", inputs);
  for (const auto& [name, want] : wanted)
    for (int64_t i = 0; i < want.size(); ++i)
      EXPECT_EQ(got.at(name).at(i), want.at(i))
          << name << " of " << inputs.at("x" + name).as<int64_t>()[size_t(i)];
}

struct Range {
  DType dtype;
  int64_t lowest, highest;
};

// Integers nearest to floats of any size: the ends of the range, what is just inside and outside of
// them, infinities; 0 for NaN.
TEST_P(CastValues, SaturateIntegers) {
  const std::vector<Range> integers{{DType::I64, INT64_MIN, INT64_MAX},
                                    {DType::I32, INT32_MIN, INT32_MAX},
                                    {DType::I16, INT16_MIN, INT16_MAX},
                                    {DType::I8, INT8_MIN, INT8_MAX},
                                    {DType::U8, 0, UINT8_MAX}};
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (DType from : {DType::F64, DType::F32, DType::BF16, DType::F16}) {
    std::vector<double> values{0, -0.0, 0.75, -0.75, kInfinity, -kInfinity, NAN, 1e30, -1e30};
    for (const Range& to : integers)
      for (int64_t end : {to.lowest, to.highest})
        for (double beside : {-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0})
          values.push_back(double(end) + beside);
    const int64_t count = int64_t(values.size());
    Array x(from, {count});
    for (int64_t i = 0; i < count; ++i) x.set(i, values[size_t(i)]);
    Graph g;
    Tensor input = g.input("x", from, {count});
    for (const Range& to : integers) g.output(std::string(nameOf(to.dtype)), cast(input, to.dtype));
    Session session(compile(g, {.backend = GetParam()}), {.threads = 1, .device = "host"});
    const Arrays got = session.run("forward", {{"x", x}});
    for (const Range& to : integers) {
      const Array& y = got.at(std::string(nameOf(to.dtype)));
      for (int64_t i = 0; i < count; ++i) {
        const double v = std::trunc(x.at(i));
        // 2^63 is a double, the highest i64 is not.
        const int64_t want = std::isnan(v)             ? 0
                             : v >= double(to.highest) ? to.highest
                             : v <= double(to.lowest)  ? to.lowest
                                                       : int64_t(v);
        EXPECT_EQ(to.dtype == DType::I64 ? y.as<int64_t>()[size_t(i)] : int64_t(y.at(i)), want)
            << nameOf(from) << " " << x.at(i) << " to " << nameOf(to.dtype);
      }
    }
  }
}

}  // namespace
}  // namespace lathe
