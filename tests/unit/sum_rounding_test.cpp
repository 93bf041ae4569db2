// SPDX-License-Identifier: Apache-2.0
// The bound on the rounding of sums: no order of f32 sums leaves it, and mistakes do.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <random>
#include <vector>

#include "backends/reference/sum_rounding.h"

namespace lathe::reference {
namespace {

struct Terms {
  std::vector<float> a, b;
  double sum = 0, squares = 0;
  double bound() const { return roundingOfSum(sum, squares, int64_t(a.size()), DType::F32); }
};

// Products of about normal numbers: of mean zero, or all positive as a softmax's are.
Terms draw(size_t count, bool positive, std::mt19937_64& random) {
  std::normal_distribution<float> normal;
  Terms t;
  for (size_t i = 0; i < count; ++i) {
    float a = normal(random), b = normal(random);
    if (positive) a = std::abs(a), b = std::abs(b);
    t.a.push_back(a);
    t.b.push_back(b);
    const double term = double(a) * double(b);
    t.sum += term;
    t.squares += term * term;
  }
  return t;
}

float inOrder(const Terms& t) {
  float sum = 0;
  for (size_t i = 0; i < t.a.size(); ++i) sum += t.a[i] * t.b[i];
  return sum;
}
float backwards(const Terms& t) {
  float sum = 0;
  for (size_t i = t.a.size(); i-- > 0;) sum += t.a[i] * t.b[i];
  return sum;
}
float fusedProducts(const Terms& t) {
  float sum = 0;
  for (size_t i = 0; i < t.a.size(); ++i) sum = std::fma(t.a[i], t.b[i], sum);
  return sum;
}
float sixteenLanes(const Terms& t) {
  float lanes[16] = {}, sum = 0;
  for (size_t i = 0; i < t.a.size(); ++i) lanes[i % 16] = std::fma(t.a[i], t.b[i], lanes[i % 16]);
  for (float lane : lanes) sum += lane;
  return sum;
}
float inBlocks(const Terms& t) {
  float sum = 0;
  for (size_t top = 0; top < t.a.size(); top += 64) {
    float block = 0;
    for (size_t i = top; i < std::min(top + 64, t.a.size()); ++i) block += t.a[i] * t.b[i];
    sum += block;
  }
  return sum;
}

constexpr size_t kCounts[] = {1, 2, 7, 64, 896, 4864, 20000};

TEST(SumRounding, HoldsF32SumsInEveryOrder) {
  const std::function<float(const Terms&)> orders[] = {inOrder, backwards, fusedProducts,
                                                       sixteenLanes, inBlocks};
  std::mt19937_64 random(1);
  for (size_t count : kCounts)
    for (bool positive : {false, true}) {
      double worst = 0;
      for (int round = 0; round < (count > 5000 ? 40 : 200); ++round) {
        const Terms t = draw(count, positive, random);
        for (size_t i = 0; i < std::size(orders); ++i) {
          const double share = std::abs(double(orders[i](t)) - t.sum) / t.bound();
          ASSERT_LE(share, 1) << count << " terms, order " << i;
          worst = std::max(worst, share);
        }
      }
      // A bound of far more than happens would hide mistakes.
      EXPECT_GE(worst, 0.05) << count << " terms, " << (positive ? "positive" : "of either sign");
    }
}

float toBf16(float v) { return bf16ToFloat(floatToBf16(v)); }
// Ten bits of significand behind the point, as tensor cores round f32.
float toTf32(float v) {
  const uint32_t bits = std::bit_cast<uint32_t>(v);
  return std::bit_cast<float>((bits + 0xfff + ((bits >> 13) & 1)) & ~0x1fffu);
}

TEST(SumRounding, IsLeftByInputsOfFewerBits) {
  std::mt19937_64 random(2);
  for (float (*round)(float) : {toBf16, toTf32})
    for (size_t count : {size_t(64), size_t(896), size_t(4864)}) {
      int outside = 0;
      for (int i = 0; i < 100; ++i) {
        Terms t = draw(count, false, random);
        const double bound = t.bound();
        for (float& v : t.a) v = round(v);
        for (float& v : t.b) v = round(v);
        outside += std::abs(double(inOrder(t)) - t.sum) > bound;
      }
      EXPECT_GE(outside, 90) << count;
    }
}

TEST(SumRounding, IsLeftByALostTerm) {
  std::mt19937_64 random(3);
  for (size_t count : kCounts) {
    int outside = 0;
    for (int i = 0; i < 100; ++i) {
      Terms t = draw(count, false, random);
      const double bound = t.bound();
      t.a.pop_back();
      t.b.pop_back();
      outside += std::abs(double(inOrder(t)) - t.sum) > bound;
    }
    EXPECT_GE(outside, 95) << count;
  }
}

TEST(SumRounding, GrowsWithTheRootOfTheTermsAndWithTheRoundoff) {
  const double one = roundingOfSum(100, 100, 1000, DType::F32);
  EXPECT_NEAR(roundingOfSum(100, 100, 4000, DType::F32) / one, 2, 1e-2);
  EXPECT_EQ(roundingOfSum(100, 100, 1000, DType::BF16), one);  // accumulated in f32
  EXPECT_NEAR(roundingOfSum(100, 100, 1000, DType::F64) / one, 0x1p-29, 1e-12);
  // n terms of 1: each partial sum i rounds by at most i * u.
  double partial = 0;
  for (int i = 1; i <= 50; ++i) partial += double(i) * i;
  EXPECT_GE(roundingOfSum(50, 50, 50, DType::F32), 4 * 0x1p-24 * std::sqrt(partial));
}

TEST(SumRounding, LeavesWhatIsNotFinite) {
  std::vector<double> values{1, INFINITY, NAN, -INFINITY};
  addRoundingOfSums(DType::F32, values, {1, INFINITY, NAN, INFINITY}, 3);
  EXPECT_NE(values[0], 1);
  EXPECT_NEAR(values[0], 1, 1e-6);
  EXPECT_EQ(values[1], INFINITY);
  EXPECT_TRUE(std::isnan(values[2]));
  EXPECT_EQ(values[3], -INFINITY);
}

}  // namespace
}  // namespace lathe::reference
