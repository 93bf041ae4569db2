// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/lowering/codegen.h"

#include <gtest/gtest.h>

#include "backends/cpu/lowering/region_emitter.h"
#include "lathe/runtime/error.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"

namespace lathe::test {
namespace {

std::string messageOf(const std::string& module) {
  mlir::DialectRegistry registry;
  cpu::registerKernelDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  auto kernels = mlir::parseSourceString<mlir::ModuleOp>(module, &context);
  try {
    cpu::compileKernels(*kernels, cpu::codegenTiers()[0]).get();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

TEST(Codegen, RefusesCallsThatNoProcessWouldResolve) {
  EXPECT_EQ(messageOf(R"(llvm.func @helper()
    llvm.func @f() { llvm.call @helper() : () -> () llvm.return })"),
            "expected generated kernels to call only the C library, got calls of helper; keep the "
            "op that needs them out of fusion regions");
}

// LLVM makes one call of the two.
TEST(Codegen, TakesASineAndACosineOfOneNumber) {
  for (const char* type : {"f32", "f64"}) {
    const std::string t = type;
    EXPECT_EQ(messageOf("llvm.func @f(%x: " + t + ", %to: !llvm.ptr) { %s = math.sin %x : " + t +
                        " %c = math.cos %x : " + t + " %y = arith.mulf %s, %c : " + t +
                        " llvm.store %y, %to : " + t + ", !llvm.ptr llvm.return }"),
              "no error")
        << t;
  }
}

TEST(Codegen, ReportsWhatDoesNotLower) {
  std::string message = messageOf(R"(llvm.func @f() {
    %0 = arith.constant dense<0.0> : tensor<2xf32>
    llvm.return })");
  EXPECT_EQ(message.rfind("expected the avx2 kernels to compile, got: ", 0), 0u) << message;
}

TEST(Codegen, ReportsAnObjectThatIsNone) {
  try {
    cpu::linkShared("no object");
    FAIL() << "expected an error";
  } catch (const Error& e) {
    EXPECT_STREQ(
        e.what(),
        "expected the generated kernels to link, got: The file was not recognized as a "
        "valid object file; check that the temporary folder (TMPDIR) is writable and has space");
  }
}

TEST(Codegen, NamesItsTiersFromTheNarrowestUp) {
  std::vector<std::string> names;
  for (const cpu::Tier& tier : cpu::codegenTiers()) names.push_back(tier.name);
  EXPECT_EQ(names, (std::vector<std::string>{"avx2", "avx512", "avx512bf16"}));
}

}  // namespace
}  // namespace lathe::test
