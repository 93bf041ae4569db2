// SPDX-License-Identifier: Apache-2.0
// The measures that the other tests use must see what is no number.
#include "tests/closeness.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace lathe {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

Array arrayOf(const std::vector<double>& values) {
  Array a(DType::F64, {int64_t(values.size())});
  for (size_t i = 0; i < values.size(); ++i) a.set(int64_t(i), values[i]);
  return a;
}

TEST(Closeness, ANumberIsNeverNearToWhatIsNone) {
  const std::vector<std::pair<double, double>> apart{{kNan, 1},         {1, kNan},
                                                     {kInfinity, 1},    {1, kInfinity},
                                                     {1, -kInfinity},   {kInfinity, -kInfinity},
                                                     {kNan, kInfinity}, {kInfinity, kNan}};
  for (const auto& [got, want] : apart) {
    EXPECT_EQ(errorOf(got, want), kInfinity) << got << " " << want;
    for (double allowed : {0.0, 1e300, kInfinity, kNan})
      EXPECT_FALSE(isNear(got, want, allowed)) << got << " " << want << " " << allowed;
  }
}

TEST(Closeness, LikeMeetsItsLikeWhateverIsAllowed) {
  for (double value : {kNan, kInfinity, -kInfinity, 0.0, 1.5})
    for (double allowed : {0.0, 1.0, kNan}) EXPECT_TRUE(isNear(value, value, allowed)) << value;
  EXPECT_TRUE(isNear(0.0, -0.0, 0));
}

TEST(Closeness, FiniteNumbersAreHeldToTheBound) {
  EXPECT_TRUE(isNear(1.5, 1, 0.5));
  EXPECT_FALSE(isNear(1.5, 1, 0.49));
  EXPECT_FALSE(isNear(1.5, 1, kNan));
}

TEST(Closeness, OneNanAmongManyElementsShows) {
  for (size_t at : {0, 1, 2}) {
    std::vector<double> values{1, 2, 3};
    const Array want = arrayOf(values);
    values[at] = kNan;
    EXPECT_EQ(largestError(arrayOf(values), want), kInfinity) << at;
    EXPECT_EQ(typicalError(arrayOf(values), want), kInfinity) << at;
    EXPECT_EQ(largestError(want, arrayOf(values)), kInfinity) << at;
    EXPECT_EQ(typicalError(want, arrayOf(values)), kInfinity) << at;
  }
}

TEST(Closeness, MeasuresOfNumbers) {
  const Array a = arrayOf({1, -4, kInfinity, kNan}), b = arrayOf({4, 0, kInfinity, kNan});
  EXPECT_EQ(largestError(a, b), 4);
  EXPECT_EQ(typicalError(a, b), 2.5);
  EXPECT_EQ(largestValue(a), 4);
  EXPECT_EQ(largestError(a, arrayOf({1})), kInfinity) << "another shape";
  EXPECT_EQ(typicalError(arrayOf({}), arrayOf({})), 0);
  EXPECT_TRUE(isFinite(elements(a, 0, 2)));
  for (int64_t at : {2, 3}) EXPECT_FALSE(isFinite(elements(a, at, 1))) << at;
  EXPECT_EQ(largestError(elements(a, 1, 2), arrayOf({-4, kInfinity})), 0);
}

}  // namespace
}  // namespace lathe
