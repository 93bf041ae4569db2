// SPDX-License-Identifier: Apache-2.0
#include "runtime/dim_expr.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

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

}  // namespace
}  // namespace lathe
