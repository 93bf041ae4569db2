// SPDX-License-Identifier: Apache-2.0
// Names in kernel texts: whatever a model calls its parts, the text compiles.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "backends/cuda/hostexec/host_compiler.h"
#include "backends/cuda/lowering/kernel/text_names.h"
#include "backends/cuda/lowering/region/region_names.h"
#include "backends/cuda/lowering/region/region_printer.h"
#include "lathe/ir/dialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"

namespace lathe::cuda {
namespace {

TEST(RegionNames, AreIdentifiers) {
  EXPECT_EQ(identifierOf("q_proj"), "q_proj");
  EXPECT_EQ(identifierOf("a-b.c d"), "a_b_c_d");
  EXPECT_EQ(identifierOf("__global__"), "global");
  EXPECT_EQ(identifierOf("_Complex"), "Complex");
  EXPECT_EQ(identifierOf("a__b_"), "a_b");
  EXPECT_EQ(identifierOf("3rd"), "x3rd");
  EXPECT_EQ(identifierOf(""), "x");
  EXPECT_EQ(identifierOf("***"), "x");
  EXPECT_EQ(identifierOf("größe"), "gr_e");
  EXPECT_EQ(identifierOf(std::string(1000, 'n')).size(), 48u);
}

TEST(RegionNames, AreTakenOnce) {
  Names text;
  EXPECT_EQ(text.unique("x"), "x");
  EXPECT_EQ(text.unique("x"), "x2");
  EXPECT_EQ(text.unique("x2"), "x22");
  EXPECT_EQ(text.unique("a b"), "a_b");
  EXPECT_EQ(text.unique("a-b"), "a_b2");
}

// A macro, a type, a template, a function of the headers, a built-in, words of the language.
TEST(RegionNames, HideNothingThatTextsUse) {
  Names text;
  for (const char* word : {"LT_FN",
                           "memcpy",
                           "i64",
                           "bf16",
                           "vec",
                           "arg_pair",
                           "Sum",
                           "element",
                           "convert",
                           "to_f32",
                           "load_vec",
                           "load_vec_nc",
                           "store_f32",
                           "int_add",
                           "math_exp",
                           "fast_exp",
                           "max_nan",
                           "block_reduce",
                           "warp_reduce",
                           "lowest_of",
                           "bit_cast",
                           "philox",
                           "lane_id",
                           "grid_dep_wait",
                           "threadIdx",
                           "blockIdx",
                           "int",
                           "float",
                           "template",
                           "co_await",
                           "gemv",
                           "cluster_rank",
                           "status",
                           "j",
                           "lt_report_index"})
    EXPECT_NE(text.unique(word), word);
}

// One kernel with an operand, a size and an axis of every name.
TEST(RegionNames, CompileWhateverTheModelCallsThem) {
  const std::vector<std::string> words = {
      "float",    "int",     "min",     "max",     "blockIdx", "threadIdx",  "vec",    "class",
      "operator", "new",     "for",     "and",     "xor",      "__global__", "memcpy", "to_f32",
      "load_vec", "row",     "t",       "c",       "lane",     "out",        "x",      "j",
      "3",        "3d",      "",        "a-b",     "ß",        "status",     "i64",    "bf16",
      "requires", "concept", "alignas", "default", "LT_FN",    "linux",      "asm",    "printf"};
  mlir::DialectRegistry registry;
  registry.insert<LatheDialect, mlir::func::FuncDialect>();
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  std::vector<host::KernelText> texts;
  std::set<std::string> names;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string symbol = i % 2 ? "n" : identifierOf(words[i]),
                      type = "tensor<?x5xf32, #lathe.dims<" + symbol + ", 5>>",
                      at = " loc(\"layers.0." + words[i] + "\")";
    auto module = mlir::parseSourceString<mlir::ModuleOp>(
        "func.func @f(%a: " + type + at + ", %b: " + type + at + ") -> " + type +
            " {\n%0 = lathe.add %a, %b : " + type + ", " + type +
            "\n%1 = lathe.softmax %0 axis 1 masked_row nan : " + type + "\nreturn %1 : " + type +
            " }",
        &context);
    ASSERT_TRUE(module) << words[i];
    auto region = *module->getOps<mlir::func::FuncOp>().begin();
    for (const RegionSchedule& schedule : schedulesOf(region)) {
      const std::string name = "region_" + std::to_string(texts.size());
      auto printed = printRegion(region, name, schedule);
      ASSERT_TRUE(llvm::succeeded(printed)) << words[i];
      texts.push_back({name, printed->kernels[0].source});
    }
  }
  host::HostCompiler compiler(host::Mode::Fast);
  EXPECT_EQ(compiler.compile(texts).size(), texts.size());
}

// A merged weight and a cache carry the path of whatever met them first: their part says more.
TEST(RegionNames, AreThoseOfThePartsThatOperandsPlay) {
  mlir::DialectRegistry registry;
  registry.insert<LatheDialect, mlir::func::FuncDialect>();
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  const std::string cache = "tensor<2x9x4xf32>", rows = "tensor<2x1x4xf32>", at = "tensor<2xi64>",
                    path = " loc(\"layers.0.input_layernorm\")";
  const std::string update = "axis 1 : " + cache + ", " + rows + ", " + at;
  auto module = mlir::parseSourceString<mlir::ModuleOp>(
      "func.func @f(%k: " + cache + path + ", %v: " + cache + path + ", %x: " + rows + path +
          ", %p: " + at + path + ") -> (" + cache + ", " + cache +
          ") {\n%0 = lathe.update %k, %x, %p " + update + "\n%1 = lathe.update %v, %x, %p " +
          update + "\nreturn %0, %1 : " + cache + ", " + cache + " }",
      &context);
  ASSERT_TRUE(module);
  EXPECT_EQ(namesOf(*module->getOps<mlir::func::FuncOp>().begin()),
            (std::vector<std::string>{"cache", "cache2", "value", "positions", "out0", "out1"}));
  // Where an operand is left out, the next one has its own name all the same; a number is no `x`.
  const std::string x = "tensor<2x4xf32>", w = "tensor<3x4xf32>", y = "tensor<2x3xf32>",
                    one = "tensor<f32>";
  module = mlir::parseSourceString<mlir::ModuleOp>(
      "func.func @f(%a: " + x + ", %b: " + w + ", %c: " + y + ", %d: " + one + ", %e: " + y +
          ") -> " + y + " {\n%0 = lathe.linear %a, %b residual %c : " + x + ", " + w +
          " residual " + y + "\n%1 = lathe.mul %0, %d : " + y + ", " + one +
          "\n%2 = lathe.add %1, %e : " + y + ", " + y + "\nreturn %2 : " + y + " }",
      &context);
  ASSERT_TRUE(module);
  EXPECT_EQ(namesOf(*module->getOps<mlir::func::FuncOp>().begin()),
            (std::vector<std::string>{"x", "weight", "residual", "s", "x2", "out"}));
}

// Nor does a record of measurements hang on what a region is called, or on the model's lines.
TEST(RegionNames, AreNoPartOfATuningProblem) {
  mlir::DialectRegistry registry;
  registry.insert<LatheDialect, mlir::func::FuncDialect>();
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  auto problemOf = [&](const std::string& name, const std::string& op, const std::string& at) {
    const std::string type = "tensor<4x8xf32>";
    auto module = mlir::parseSourceString<mlir::ModuleOp>(
        "func.func @" + name + "(%x: " + type + ") -> " + type + " {\n%0 = lathe." + op +
            " %x : " + type + " loc(\"part\"(\"" + at + "\":1:1))\nreturn %0 : " + type + " }",
        &context);
    auto region = *module->getOps<mlir::func::FuncOp>().begin();
    return questionOf(region, "kernel", schedulesOf(region)).problem;
  };
  const std::string one = problemOf("region_0", "exp", "a.py");
  EXPECT_THAT(one, ::testing::StartsWith("region "));
  EXPECT_EQ(one, problemOf("region_17", "exp", "a.py"));
  EXPECT_EQ(one, problemOf("region_0", "exp", "b.py"));
  EXPECT_NE(one, problemOf("region_0", "tanh", "a.py"));
}

// An op in the middle of a row of them, too, has the name of what it computes and its own line.
TEST(RegionNames, EachOpIsWrittenAtItsOwnLine) {
  mlir::DialectRegistry registry;
  registry.insert<LatheDialect, mlir::func::FuncDialect>();
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  const std::string type = " : tensor<4x8xf32>";
  auto module = mlir::parseSourceString<mlir::ModuleOp>(
      "func.func @f(%x" + type + ") -> tensor<4x8xf32> {\n%0 = lathe.exp %x" + type +
          " loc(\"part.a\"(\"a.py\":1:1))\n%1 = lathe.neg %0" + type +
          " loc(\"part.b\"(\"b.py\":2:1))\n%2 = lathe.tanh %1" + type +
          " loc(\"part.c\"(\"c.py\":3:1))\nreturn %2" + type + " }",
      &context);
  ASSERT_TRUE(module);
  auto region = *module->getOps<mlir::func::FuncOp>().begin();
  auto printed = printRegion(region, "region_0", schedulesOf(region).front());
  ASSERT_TRUE(llvm::succeeded(printed));
  EXPECT_THAT(printed->kernels[0].source,
              ::testing::HasSubstr("negated = -power;  // part.b b.py:2\n"));
}

// However many values a kernel has, each has a name where it is used.
TEST(RegionNames, AreThereInKernelsOfAnySize) {
  mlir::DialectRegistry registry;
  registry.insert<LatheDialect, mlir::func::FuncDialect>();
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  const std::string type = "tensor<40x192xf32>", one = "tensor<40x1xf32>";
  std::string operands = "%x0: " + type, ops;
  for (int n = 1; n < 80; ++n) {
    const std::string i = std::to_string(n), last = "%x" + std::to_string(n - 1);
    operands += ", %r" + i + ": " + one;
    ops += "%x" + i + " = lathe.mul " + last + ", %r" + i + " : " + type + ", " + one + "\n";
    auto module = mlir::parseSourceString<mlir::ModuleOp>(
        "func.func @f(" + operands + ") -> tensor<40xf32> {\n" + ops +
            "%sum = lathe.reduce_sum %x" + i + " axes [1] : " + type +
            "\nreturn %sum : tensor<40xf32> }",
        &context);
    ASSERT_TRUE(module);
    auto region = *module->getOps<mlir::func::FuncOp>().begin();
    auto printed = printRegion(region, "region", schedulesOf(region)[0]);
    ASSERT_TRUE(llvm::succeeded(printed)) << n;
    const std::string& text = printed->kernels[0].source;
    for (const char* hole : {"= ;", "( ", " )", ", )", "(,", "  = "})
      EXPECT_EQ(text.find(hole), std::string::npos) << n << ": '" << hole << "' in\n" << text;
  }
}

}  // namespace
}  // namespace lathe::cuda
