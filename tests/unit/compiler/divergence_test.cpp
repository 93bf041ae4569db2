// SPDX-License-Identifier: Apache-2.0
#include "inspect/questions/divergence.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "lathe/ir/context.h"

namespace lathe {
namespace {

// A choice at line 2, its negative at line 3. Where `condition` holds the choice is x + 1.
std::string form(const std::string& condition) {
  return "func.func @forward(%x: tensor<1114112xf32> {lathe.name = \"x\"}) "
         "-> (tensor<1114112xf32> {lathe.name = \"y\"}) {\n"
         "  %one = lathe.constant dense<1.0> : tensor<f32>\n"
         "  %place = lathe.constant dense<" +
         condition +
         "> : tensor<i64>\n"
         "  %i = lathe.iota <1114112> axis 0 dtype i64\n"
         "  %c = lathe.compare eq %i, %place : tensor<1114112xi64>, tensor<i64>\n"
         "  %more = lathe.add %x, %one : tensor<1114112xf32>, tensor<f32> loc(\"m\":1:1)\n"
         "  %t = lathe.select %c, %more, %x : tensor<1114112xi1>, tensor<1114112xf32>, "
         "tensor<1114112xf32> loc(\"m\":2:1)\n"
         "  %y = lathe.neg %t : tensor<1114112xf32> loc(\"m\":3:1)\n"
         "  return %y : tensor<1114112xf32>\n"
         "}\n";
}

// Of a value of more than 2^20 elements some are kept: that the others differ is seen, too.
TEST(Divergence, OfLargeValuesIsFoundInEveryElement) {
  auto context = createContext();
  auto before = parseModule(*context, form("-1"), "before");
  const Trial trial(*before, {.seed = 1});
  const TrialResults was = trial.run(*before, Precision::Float64);
  for (const char* place : {"1", "17", "1114111"}) {
    auto now = parseModule(*context, form(place), "now");
    const TrialResults is = trial.run(*now, Precision::Float64);
    const auto d = firstDivergence({*before, was}, {*now, is}, trial, false);
    ASSERT_TRUE(d) << place;
    EXPECT_EQ(d->op, "lathe.select") << place;
    EXPECT_EQ(d->was, "lathe.select") << place;
    EXPECT_EQ(d->at, "m:2:1");
  }
}

std::optional<Divergence> between(const std::string& before, const std::string& now) {
  auto context = createContext();
  auto form = [&](const std::string& body) {
    return parseModule(*context,
                       "func.func @forward(%x: tensor<4xf32> {lathe.name = \"x\"}) -> "
                       "(tensor<4xf32> {lathe.name = \"y\"}) {\n" +
                           body + "\nreturn %y : tensor<4xf32> }",
                       "form");
  };
  auto was = form(before), is = form(now);
  const Trial trial(*was, {.seed = 1});
  return firstDivergence({*was, trial.run(*was, Precision::Float64)},
                         {*is, trial.run(*is, Precision::Float64)}, trial, false);
}

// What a region computes from is looked for at the operand that it is.
TEST(Divergence, IsFollowedThroughEveryInputOfARegion) {
  const std::string exp = "%a = lathe.exp %x : tensor<4xf32> loc(\"m\":1:1)\n";
  const auto d =
      between(exp +
                  "%b = lathe.neg %x : tensor<4xf32> loc(\"m\":2:1)\n"
                  "%y = lathe.sub %a, %b : tensor<4xf32>, tensor<4xf32> loc(\"m\":3:1)",
              exp +
                  "%b = lathe.abs %x : tensor<4xf32> loc(\"m\":2:1)\n"
                  "%y = lathe.region(%a, %b) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> {\n"
                  "^bb0(%p: tensor<4xf32>, %q: tensor<4xf32>):\n"
                  "%s = lathe.sub %p, %q : tensor<4xf32>, tensor<4xf32> loc(\"m\":3:1)\n"
                  "lathe.yield %s : tensor<4xf32>\n} loc(\"m\":3:1)");
  ASSERT_TRUE(d);
  EXPECT_EQ(d->op, "lathe.abs");
  EXPECT_EQ(d->was, "lathe.neg");
  EXPECT_EQ(d->at, "m:2:1");
}

// Of several ops that a line had, the one whose value comes nearest is what the op was.
TEST(Divergence, ComparesWithTheNearestOfALine) {
  const std::string two = "%two = lathe.constant dense<2.0> : tensor<f32>\n",
                    types = " : tensor<4xf32>, tensor<f32>";
  const auto d =
      between(two + "%one = lathe.constant dense<1.0> : tensor<f32>\n%p = lathe.add %x, %one" +
                  types + " loc(\"m\":1:1)\n%q = lathe.mul %p, %two" + types +
                  " loc(\"m\":1:1)\n%y = lathe.neg %q : tensor<4xf32> loc(\"m\":2:1)",
              two + "%more = lathe.constant dense<2.001> : tensor<f32>\n%p = lathe.mul %x, %two" +
                  types + " loc(\"m\":9:1)\n%q = lathe.add %p, %more" + types +
                  " loc(\"m\":1:1)\n%y = lathe.neg %q : tensor<4xf32> loc(\"m\":2:1)");
  ASSERT_TRUE(d);
  EXPECT_EQ(d->op, "lathe.add");
  EXPECT_EQ(d->was, "lathe.mul");
}

}  // namespace
}  // namespace lathe
