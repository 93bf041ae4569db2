// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/region_kernel.h"

namespace lathe::test {
namespace {

class RegionEmitter : public RegionTest {};

TEST_P(RegionEmitter, AllowsInPlaceOnlyWhereNoOtherElementIsRead) {
  auto pairs = [&](const std::string& text) { return compile(text).inPlace(); };
  using Pairs = std::vector<std::pair<unsigned, unsigned>>;
  EXPECT_EQ(pairs("func.func @f(%a: f32[m, n], %b: f32[n]) -> f32[m, n] { %0 = lathe.add %a, %b : "
                  "f32[m, n], f32[n]\n return %0 : f32[m, n] }"),
            (Pairs{{0, 0}}));
  EXPECT_EQ(pairs("func.func @f(%a: f32[m, n]) -> f32[m, n] { %0 = lathe.reverse %a axes [1] : "
                  "f32[m, n]\n return %0 : f32[m, n] }"),
            Pairs());
  EXPECT_EQ(pairs("func.func @f(%a: f32[m, m]) -> f32[m, m] { %0 = lathe.transpose %a [1, 0] : "
                  "f32[m, m]\n return %0 : f32[m, m] }"),
            Pairs());
  // Where every thread reduces its row alone, others may have stored some of it.
  if (GetParam().name == "cuda_last") return;
  EXPECT_EQ(pairs("func.func @f(%a: f32[m, n]) -> f32[m, n] { %0 = lathe.softmax %a axis 1 : "
                  "f32[m, n]\n return %0 : f32[m, n] }"),
            (Pairs{{0, 0}}));
}

TEST_P(RegionEmitter, RefusesResultsOfDifferentRows) {
  try {
    compile(
        "func.func @f(%a: f32[m, n], %b: f32[k, n]) -> (f32[m, n], f32[k, n]) { %0 = lathe.exp %a "
        ": f32[m, n]\n %1 = lathe.exp %b : f32[k, n]\n return %0, %1 : f32[m, n], f32[k, n] }");
    FAIL() << "expected a diagnostic";
  } catch (const std::runtime_error& e) {
    EXPECT_STREQ(e.what(),
                 "results of one region share their rows: f32[m, n] and f32[k, n] do not\n");
  }
}

TEST_P(RegionEmitter, RefusesOpsThatAreNotRowKernels) {
  try {
    compile(
        "func.func @f(%a: f32[m, n]) -> f32[m, n] { %0 = lathe.cumsum %a axis 1 : f32[m, n]\n "
        "return %0 : f32[m, n] }");
    FAIL() << "expected a diagnostic";
  } catch (const std::runtime_error& e) {
    EXPECT_STREQ(e.what(), "lathe.cumsum is not computed row by row\n");
  }
}

TEST_P(RegionEmitter, RefusesRegionsWithoutResultsOrNamesOfDims) {
  const std::pair<const char*, const char*> all[] = {
      {"func.func @f(%a: f32[m, n]) { return }", "a region has results\n"},
      {"func.func @f(%a: tensor<?x4xf32>) -> f32[4] { %0 = lathe.reduce_sum %a axes [0] : "
       "tensor<?x4xf32>\n return %0 : f32[4] }",
       "lathe.reduce_sum has a dim without a name\n"},
      {"func.func @f(%a: f32[4], %b: tensor<?xf32>) -> f32[4] { %0 = lathe.exp %a : f32[4]\n "
       "return %0 : f32[4] }",
       "an operand has a dim without a name\n"},
  };
  for (const auto& [text, said] : all) {
    try {
      compile(text);
      ADD_FAILURE() << "expected a diagnostic of " << text;
    } catch (const std::runtime_error& e) {
      EXPECT_STREQ(e.what(), said);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, RegionEmitter, ::testing::ValuesIn(regionTargets()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace lathe::test
