// SPDX-License-Identifier: Apache-2.0
// The steps before regions are formed: ramps of one element, and products with weights.
#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <string>

#include "backends/cuda/lowering/kernel/steps.h"
#include "lathe/ir/context.h"
#include "lathe/ir/ops.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Verifier.h"

using namespace mlir;

namespace lathe::cuda {
namespace {

using Names = std::multiset<std::string>;

// The ops of a body whose result is %y, after a step.
Names opsAfter(void (*step)(ModuleOp), const std::string& arguments, const std::string& body,
               const std::string& type) {
  auto context = createContext();
  auto module = parseModule(
      *context,
      "func.func @f(" + arguments + ") -> " + type + " {\n" + body + "\nreturn %y : " + type + " }",
      "test");
  step(*module);
  EXPECT_TRUE(succeeded(verify(*module))) << body;
  Names names;
  for (Operation& op : module->lookupSymbol<func::FuncOp>("f").getBody().front())
    if (!op.hasTrait<OpTrait::IsTerminator>() && !op.use_empty())
      names.insert(op.getName().stripDialect().str());
  return names;
}

TEST(SingleRamps, AddNothingWhereTheyStretchNothing) {
  auto sum = [](const std::string& x, const std::string& ramp, const std::string& operands,
                const std::string& type) {
    return opsAfter(dropSingleRamps, "%x: " + x,
                    "%r = lathe.iota " + ramp + "\n%y = lathe.add " + operands, type);
  };
  const std::string column = "tensor<3x1xi64>", one = "tensor<1xi64>";
  EXPECT_EQ(sum(column, "<1> axis 0 dtype i64", "%x, %r : " + column + ", " + one, column),
            Names{});
  EXPECT_EQ(sum(column, "<1> axis 0 dtype i64", "%r, %x : " + one + ", " + column, column),
            Names{});
  EXPECT_EQ(sum(column, "<3, 1> axis 1 dtype i64", "%x, %r : " + column + ", " + column, column),
            Names{});
  EXPECT_EQ(sum(one, "<3, 1> axis 1 dtype i64", "%x, %r : " + one + ", " + column, column),
            (Names{"add", "iota"}));
  EXPECT_EQ(sum(column, "<3, 1> axis 0 dtype i64", "%x, %r : " + column + ", " + column, column),
            (Names{"add", "iota"}));
  EXPECT_EQ(sum("tensor<3x2xi64>", "<2> axis 0 dtype i64",
                "%x, %r : tensor<3x2xi64>, tensor<2xi64>", "tensor<3x2xi64>"),
            (Names{"add", "iota"}));
  EXPECT_EQ(sum("tensor<3x1xf32>", "<1> axis 0 dtype f32",
                "%x, %r : tensor<3x1xf32>, tensor<1xf32>", "tensor<3x1xf32>"),
            (Names{"add", "iota"}))
      << "-0 + 0 is 0";
}

TEST(WeightLayouts, ProductsWithMatricesOfACheckpointAreLayers) {
  auto product = [](const std::string& w, const std::string& a, const std::string& b,
                    const std::string& type) {
    return opsAfter(transposeWeights, "%x: " + a + ", %z: " + b,
                    w + "\n%y = lathe.matmul %l, %r : " + a + ", " + b, type);
  };
  const std::string a = "tensor<4x8xf32>", b = "tensor<8x6xf32>", y = "tensor<4x6xf32>";
  auto weight = [](const std::string& name, const std::string& type) {
    return "%" + name + " = lathe.weight \"" + name + "\" : " + type + "\n";
  };
  auto view = [](const std::string& name, const std::string& of, const std::string& type) {
    return "%" + name + " = lathe.neg %" + of + " : " + type + "\n";
  };
  EXPECT_EQ(product(view("l", "x", a) + weight("r", b), a, b, y),
            (Names{"linear", "neg", "transpose", "weight"}));
  EXPECT_EQ(product(view("l", "x", a) + weight("w", "tensor<6x8xf32>") +
                        "%r = lathe.transpose %w [1, 0] : tensor<6x8xf32>",
                    a, b, y),
            (Names{"linear", "neg", "weight"}));
  EXPECT_EQ(product(view("l", "x", a) + view("r", "z", b), a, b, y),
            (Names{"matmul", "neg", "neg"}));
  EXPECT_EQ(product(weight("l", a) + weight("r", b), a, b, y),
            (Names{"matmul", "weight", "weight"}));
  for (const std::string small : {"bf16", "f16"})
    EXPECT_EQ(
        product(
            view("l", "x", "tensor<4x8x" + small + ">") + weight("r", "tensor<8x6x" + small + ">"),
            "tensor<4x8x" + small + ">", "tensor<8x6x" + small + ">", "tensor<4x6x" + small + ">"),
        (Names{"linear", "neg", "transpose", "weight"}))
        << small;
  EXPECT_EQ(product(view("l", "x", "tensor<4x8xf64>") + weight("r", "tensor<8x6xf64>"),
                    "tensor<4x8xf64>", "tensor<8x6xf64>", "tensor<4x6xf64>"),
            (Names{"matmul", "neg", "weight"}));
  EXPECT_EQ(product(view("l", "x", "tensor<2x4x8xf32>") + weight("r", "tensor<2x8x6xf32>"),
                    "tensor<2x4x8xf32>", "tensor<2x8x6xf32>", "tensor<2x4x6xf32>"),
            (Names{"matmul", "neg", "weight"}));
}

}  // namespace
}  // namespace lathe::cuda
