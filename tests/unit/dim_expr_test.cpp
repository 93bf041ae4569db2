// SPDX-License-Identifier: Apache-2.0
#include "lathe/runtime/dim_expr.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <map>
#include <random>
#include <string>

namespace lathe {
namespace {

DimExpr parsed(const char* text) { return DimExpr::parse(text).value(); }
const DimExpr kSeq = DimExpr::symbol("seq"), kCache = DimExpr::symbol("cache");

TEST(DimExpr, ReadsNoMoreFactorsThanATensorHasDims) {
  std::string text = "n";
  for (int i = 1; i < 64; ++i) text += "*n";
  EXPECT_EQ(DimExpr::parse(text)->text(), text);
  EXPECT_FALSE(DimExpr::parse(text + "*n"));
}

TEST(DimExpr, TextIsCanonical) {
  EXPECT_EQ(DimExpr().text(), "0");
  EXPECT_EQ(DimExpr(-3).text(), "-3");
  EXPECT_EQ((DimExpr(2) * kSeq + kCache - 1).text(), "cache+2*seq-1");
  EXPECT_EQ((kSeq * kCache).text(), "cache*seq");
  EXPECT_EQ((kCache - kSeq).text(), "cache-seq");
  EXPECT_EQ((DimExpr(0) - kSeq).text(), "-seq");
  EXPECT_EQ((kSeq - kSeq).text(), "0");
}

TEST(DimExpr, EqualPolynomialsHaveOneText) {
  for (const char* text : {"2*seq+cache", "cache + 2*seq", "seq+cache+seq", "cache+seq*2"})
    EXPECT_EQ(parsed(text).text(), "cache+2*seq") << text;
  EXPECT_TRUE((kSeq + kCache) * (kSeq - kCache) == kSeq * kSeq - kCache * kCache);
}

TEST(DimExpr, TextParsesBack) {
  for (const char* text : {"0", "-7", "seq", "cache*seq+2*seq-1", "3*seq*seq", "-seq"})
    EXPECT_EQ(parsed(text).text(), text);
}

TEST(DimExpr, BadTextIsNothing) {
  for (const char* text : {"", " ", "+seq", "seq+", "seq cache", "2seq", "seq**2", "*", "seq-",
                           "a+(b)", "99999999999999999999", "1.5", "seq/2"})
    EXPECT_FALSE(DimExpr::parse(text)) << text;
}

TEST(DimExpr, Evaluates) {
  EXPECT_EQ(parsed("cache*seq+2*seq-1").evaluate({{"cache", 10}, {"seq", 3}}), 35);
  EXPECT_EQ(DimExpr(4).evaluate({}), 4);
  EXPECT_FALSE(kSeq.evaluate({{"cache", 1}}));
}

TEST(DimExpr, OverflowHasNoValue) {
  const int64_t big = std::numeric_limits<int64_t>::max();
  EXPECT_FALSE((kSeq * kSeq).evaluate({{"seq", int64_t(1) << 32}}));
  EXPECT_FALSE((kSeq + 1).evaluate({{"seq", big}}));
  EXPECT_EQ(kSeq.evaluate({{"seq", big}}), big);
}

// No size is so large: it is refused where shapes are checked, and until then it is no small one.
TEST(DimExpr, WhatIsTooLargeStaysLarge) {
  const int64_t most = std::numeric_limits<int64_t>::max(),
                least = std::numeric_limits<int64_t>::min();
  EXPECT_EQ((DimExpr(most) + 1).asConstant(), most);
  EXPECT_EQ((DimExpr(least) - 1).asConstant(), least);
  EXPECT_EQ((DimExpr(0) - least).asConstant(), most);
  EXPECT_EQ((DimExpr(most) * 2).asConstant(), most);
  EXPECT_EQ((DimExpr(most) * -2).asConstant(), least);
  EXPECT_EQ((DimExpr(least) * -2).asConstant(), most);
  EXPECT_EQ(parsed("4611686018427387904*4*seq").text(), "9223372036854775807*seq");
}

TEST(DimExpr, NamesMayHaveDotsAndDollars) {
  for (const char* text : {"layer.cache", "tile$0", "_rest", "2*_rest+layer.cache*tile$0"})
    EXPECT_EQ(parsed(text).text(), text);
}

TEST(DimExpr, ConstantsAreKnown) {
  EXPECT_EQ(DimExpr().asConstant(), 0);
  EXPECT_EQ((kSeq - kSeq + 5).asConstant(), 5);
  EXPECT_FALSE(kSeq.asConstant());
}

TEST(DimExpr, NonNegativityUsesTheRanges) {
  EXPECT_TRUE((kSeq - 1).provablyNonNegative());
  EXPECT_FALSE((kSeq - 2).provablyNonNegative());
  EXPECT_TRUE((kSeq - 2).provablyNonNegative({{"seq", 2}}));
  EXPECT_FALSE((kSeq - 1).provablyNonNegative({{"seq", 0}}));
  EXPECT_FALSE((kSeq - kCache).provablyNonNegative());
  EXPECT_TRUE((kSeq * kCache - kSeq).provablyNonNegative());
}

TEST(DimExpr, DividesExactlyOrNotAtAll) {
  EXPECT_EQ((kSeq * 6 * kCache).dividedBy(kCache * 2).value().text(), "3*seq");
  EXPECT_EQ((kSeq * 4 + 8).dividedBy(4).value().text(), "seq+2");
  EXPECT_FALSE((kSeq * 4 + 6).dividedBy(4));
  EXPECT_FALSE(kSeq.dividedBy(kCache));
  EXPECT_FALSE(kSeq.dividedBy(0));
  EXPECT_EQ((kSeq + 1).dividedBy(kSeq + 1).value().text(), "1");
  EXPECT_FALSE(DimExpr(std::numeric_limits<int64_t>::min()).dividedBy(-1));
}

TEST(DimExpr, ListsItsSymbolsOnce) {
  EXPECT_EQ(parsed("seq*seq+cache*seq").symbols(), (std::vector<std::string>{"cache", "seq"}));
}

// Drawn polynomials: what is computed of the expressions is computed of their values.
TEST(DimExpr, AgreesWithItsValues) {
  std::mt19937_64 random(11);
  auto number = [&](int64_t lo, int64_t hi) {
    return lo + int64_t(random() % uint64_t(hi - lo + 1));
  };
  auto term = [&] {
    DimExpr product(number(-4, 4));
    for (int64_t factors = number(0, 3); factors > 0; --factors)
      product = product * DimExpr::symbol(std::string(1, char('a' + number(0, 2))));
    return product;
  };
  auto sum = [&] {
    DimExpr all(number(-3, 3));
    for (int64_t terms = number(0, 3); terms > 0; --terms) all = all + term();
    return all;
  };
  int quotients = 0, proved = 0;
  for (int i = 0; i < 3000; ++i) {
    const DimExpr x = sum(), y = sum(), divisor = number(0, 1) ? term() : sum();
    SCOPED_TRACE(x.text() + " and " + y.text() + " and " + divisor.text());
    ASSERT_EQ(DimExpr::parse(x.text()), x);
    EXPECT_EQ(x.text() == y.text(), x == y);
    EXPECT_EQ((x - y).text() == "0", x == y);
    EXPECT_EQ(x * y, y * x);
    EXPECT_EQ((x + y) * divisor, x * divisor + y * divisor);
    const auto whole = (x * divisor).dividedBy(divisor), part = x.dividedBy(divisor);
    if (divisor.terms().size() == 1) EXPECT_EQ(whole, x);
    if (part) EXPECT_EQ(*part * divisor, x);
    quotients += part.has_value();
    const bool never = x.provablyNonNegative(),
               neverFrom = x.provablyNonNegative({{"a", 0}, {"b", 3}});
    proved += never;
    for (int values = 0; values < 4; ++values) {
      const std::map<std::string, int64_t, std::less<>> at{
          {"a", number(1, 5)}, {"b", number(1, 5)}, {"c", number(1, 5)}};
      const int64_t a = x.evaluate(at).value(), b = y.evaluate(at).value();
      EXPECT_EQ((x + y).evaluate(at), a + b);
      EXPECT_EQ((x - y).evaluate(at), a - b);
      EXPECT_EQ((x * y).evaluate(at), a * b);
      if (auto c = x.asConstant()) EXPECT_EQ(*c, a);
      if (never) EXPECT_GE(a, 0);
      auto from = at;
      from["a"] -= 1;
      from["b"] += 2;
      if (neverFrom) EXPECT_GE(x.evaluate(from).value(), 0);
      for (const std::string& name : x.symbols()) {
        auto less = at;
        less.erase(name);
        EXPECT_FALSE(x.evaluate(less)) << "without " << name;
      }
    }
  }
  EXPECT_GE(quotients, 300);
  EXPECT_GE(proved, 300);
}

}  // namespace
}  // namespace lathe
