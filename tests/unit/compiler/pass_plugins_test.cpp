// SPDX-License-Identifier: Apache-2.0
// Passes that a user brings: by name, from the program and from shared libraries.
#include <lathe/lathe.h>

#include "lathe/backends/backend.h"
#include "lathe/passes/plugins.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Pass/Pass.h"
#include "tests/unit/test_files.h"

namespace lathe {
namespace {

using test::expectError;

struct RenameExp : mlir::PassWrapper<RenameExp, mlir::OperationPass<>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(RenameExp)
  llvm::StringRef getArgument() const final { return "test-fail-on-exp"; }
  void runOnOperation() final {
    getOperation()->walk([&](mlir::Operation* op) {
      if (op->getName().getStringRef() != "lathe.exp") return;
      op->emitError("an exp is left");
      signalPassFailure();
    });
  }
};

std::string fused(const CompileOptions& options, bool withExp = true) {
  Graph g;
  Tensor x = g.input("x", DType::F32, {4});
  g.output("y", withExp ? exp(x) : abs(x));
  return irAt(g, "fused", options);
}

TEST(PassesTest, RunByNameWithAndWithoutTheAnchor) {
  for (const char* passes : {"lathe-decompose", "cse,lathe-decompose",
                             "builtin.module(lathe-decompose)", "func.func(cse)"})
    EXPECT_NE(fused({.backend = "reference", .pipeline = {.passes = passes}}).find("lathe.exp"),
              std::string::npos)
        << passes;
}

TEST(PassesTest, AreAStepOfTheRecord) {
  CompileRecord record;
  record.wantSnapshots = true;
  fused({.backend = "reference", .pipeline = {.passes = "cse"}, .record = &record});
  EXPECT_TRUE(std::any_of(record.snapshots.begin(), record.snapshots.end(), [](auto& snapshot) {
    return snapshot.stage == "fused" && snapshot.step == "passes";
  }));
}

TEST(PassesTest, APassThatFailsGivesItsWords) {
  mlir::PassRegistration<RenameExp>();
  // With the anchor of mlir-opt, too: the passes are the module's own then, not of modules in it.
  for (const char* passes : {"test-fail-on-exp", " builtin.module(test-fail-on-exp)\n"}) {
    SCOPED_TRACE(passes);
    const CompileOptions options{.backend = "reference", .pipeline = {.passes = passes}};
    expectError(ErrorCode::InvalidArgument, "an exp is left", [&] { fused(options); });
    fused(options, /*withExp=*/false);
  }
}

// Turns every exp into an op that MLIR knows and Lathe's backends do not.
struct ExpToMath : mlir::PassWrapper<ExpToMath, mlir::OperationPass<>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ExpToMath)
  llvm::StringRef getArgument() const final { return "test-exp-to-math"; }
  void getDependentDialects(mlir::DialectRegistry& registry) const final {
    registry.insert<mlir::math::MathDialect>();
  }
  void runOnOperation() final {
    getOperation()->walk([&](mlir::Operation* op) {
      if (op->getName().getStringRef() != "lathe.exp") return;
      mlir::OpBuilder b(op);
      op->replaceAllUsesWith(mlir::math::ExpOp::create(b, op->getLoc(), op->getOperand(0)));
      op->erase();
    });
  }
};

TEST(PassesTest, OpsOfOtherDialectsAreErrorsOfCompilation) {
  mlir::PassRegistration<ExpToMath>();
  for (const std::string& backend : backendNames()) {
    Graph g;
    Tensor x = g.input("x", DType::F32, {4});
    g.output("y", exp(x));
    const std::string line = "pass_plugins_test.cpp:" + std::to_string(__LINE__ - 1);
    for (const std::string& words : {std::string("math.exp cannot run here: backends take ops of "
                                                 "the lathe dialect, got one of 'math'"),
                                     line})
      expectError(ErrorCode::Unsupported, words, [&] {
        compile(g, {.backend = backend, .pipeline = {.passes = "test-exp-to-math"}});
      });
  }
}

TEST(PassesTest, MistakesInThePipelineAreTold) {
  auto fails = [](const std::string& words, const std::string& passes) {
    expectError(ErrorCode::InvalidArgument, words,
                [&] { fused({.backend = "reference", .pipeline = {.passes = passes}}); });
  };
  fails("passes 'no-such-pass': ", "no-such-pass");
  fails("'no-such-pass' does not refer to a registered pass", "no-such-pass");
  fails("passes 'cse(': ", "cse(");
  fails("passes 'cse{': ", "cse{");
}

TEST(PluginsTest, WhatIsNoPluginIsRefused) {
  test::TemporaryFolder folder;
  auto fails = [](const std::string& words, const std::string& path) {
    for (int again : {0, 1}) {  // what was refused once is no plugin later, either
      SCOPED_TRACE(again);
      expectError(ErrorCode::InvalidFile, words, [&] { loadPassPlugin(path); });
    }
  };
  fails("none.so: expected a pass plugin, No such file", folder / "none.so");
  fails("text.so: no pass plugin: ", folder.write("text.so", "no library"));
  // A library, but not a plugin.
  fails("no pass plugin: ", LATHE_BINARY_DIR "/lib/liblathe_runtime.so");
}

}  // namespace
}  // namespace lathe
