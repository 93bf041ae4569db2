// SPDX-License-Identifier: Apache-2.0
// Regions that do the same to other values become one where that is asked for.
#include <gtest/gtest.h>

#include <string>

#include "lathe/ir/context.h"
#include "lathe/passes/region_ops.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Verifier.h"
#include "passes/regions/form_regions.h"

using namespace mlir;

namespace lathe {
namespace {

// How many regions a function of %x and %y, f32[4, 4], has; `T` stands for their type.
int regionsOf(const std::string& body, bool joinsTwins = true) {
  auto context = createContext();
  const std::string type = "tensor<4x4xf32>";
  std::string text = "func.func @f(%x: T, %y: T) -> (T, T) {\n" + body + "\nreturn %a, %b : T, T }";
  for (size_t at = 0; (at = text.find('T', at)) != text.npos; at += type.size())
    text.replace(at, 1, type);
  auto module = parseModule(*context, text, "test");
  formRegions(*module, {.joinsTwins = joinsTwins,
                        .canEmit = [](Operation* op) { return !hasOwnKernel(op); }});
  EXPECT_TRUE(succeeded(verify(*module))) << body;
  int count = 0;
  module->walk([&](RegionOp) { ++count; });
  return count;
}

std::string chain(const std::string& from, const std::string& to, int ops) {
  std::string text, last = from;
  for (int i = 1; i <= ops; ++i) {
    const std::string name = i == ops ? to : to + std::to_string(i);
    text += "%" + name + " = lathe.exp %" + last + " : T\n";
    last = name;
  }
  return text;
}

TEST(RegionTwins, SmallOnesOfOneTextAreJoined) {
  for (int ops = 1; ops <= 6; ++ops) {
    const std::string both = chain("x", "a", ops) + chain("y", "b", ops);
    EXPECT_EQ(regionsOf(both), ops <= 4 ? 1 : 2) << ops << " ops";
    EXPECT_EQ(regionsOf(both, false), 2) << ops << " ops";
  }
  EXPECT_EQ(regionsOf("%a = lathe.exp %x : T\n%b = lathe.neg %y : T"), 2);
}

TEST(RegionTwins, PairsMayLieBetweenEachOther) {
  EXPECT_EQ(regionsOf("%p = lathe.exp %x : T\n%q = lathe.neg %y : T\n"
                      "%r = lathe.exp %y : T\n%s = lathe.neg %x : T\n"
                      "%a = lathe.matmul %p, %q : T, T\n%b = lathe.matmul %r, %s : T, T"),
            2);
}

TEST(RegionTwins, WhatTheSecondReadsIsThereWhenTheFirstBegins) {
  EXPECT_EQ(regionsOf("%a = lathe.exp %x : T\n%m = lathe.matmul %y, %y : T, T\n"
                      "%b = lathe.exp %m : T"),
            2);
  EXPECT_EQ(regionsOf("%m = lathe.matmul %y, %y : T, T\n%a = lathe.exp %x : T\n"
                      "%b = lathe.exp %m : T"),
            1);
  // The first region's own result, and a weight, which may stand anywhere.
  EXPECT_EQ(regionsOf("%a = lathe.exp %x : T\n%m = lathe.matmul %a, %y : T, T\n"
                      "%b = lathe.exp %m : T"),
            2);
  EXPECT_EQ(regionsOf("%v = lathe.weight \"v\" : T\n%a = lathe.add %x, %v : T, T\n"
                      "%w = lathe.weight \"w\" : T\n%b = lathe.add %y, %w : T, T"),
            1);
}

}  // namespace
}  // namespace lathe
