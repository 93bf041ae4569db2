// SPDX-License-Identifier: Apache-2.0
// An ordinary MLIR optimizer driver with the lathe dialect and passes.
#include <memory>
#include <vector>

#include "lathe/backends/interpreter.h"
#include "lathe/ir/context.h"
#include "lathe/ir/dialect.h"
#include "lathe/passes/passes.h"
#include "llvm/Support/CommandLine.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "passes/rewrite/numerics_scope.h"
#include "passes/rewrite/rewrite_log.h"

namespace {

constexpr uint64_t kNever = ~uint64_t(0);
llvm::cl::opt<uint64_t> stopAfter("stop-after-rewrite", llvm::cl::init(kNever),
                                  llvm::cl::desc("apply this many rewrites and no more"));
llvm::cl::opt<uint64_t> skipAttempt(
    "skip-attempt", llvm::cl::init(kNever),
    llvm::cl::desc("leave out the rewrite of this attempt (see --log-rewrites)"));
llvm::cl::opt<bool> logRewrites("log-rewrites",
                                llvm::cl::desc("number every rewrite on the error stream"));

llvm::cl::opt<lathe::NumericsMode> numerics(
    "numerics", llvm::cl::init(lathe::NumericsMode::Relaxed),
    llvm::cl::desc("what rewrites may do to rounding and special values"),
    llvm::cl::values(
        clEnumValN(lathe::NumericsMode::Strict, "strict", "nothing"),
        clEnumValN(lathe::NumericsMode::Relaxed, "relaxed", "what docs/numerics.md lists"),
        clEnumValN(lathe::NumericsMode::Fast, "fast", "also move arithmetic into weights")));

// MlirOptMain owns the contexts, one for each piece of a file that is split, which refer to their
// policies and logs: none of these is ever freed.
void setNumerics(mlir::MLIRContext* context, lathe::LatheDialect* dialect) {
  context->disableMultithreading();  // a policy is one thread's
  static auto& policies = *new std::vector<lathe::NumericsPolicy*>();
  policies.push_back(new lathe::NumericsPolicy{
      .mode = numerics, .audit = logRewrites, .evaluate = lathe::interpretFunction});
  dialect->numerics = policies.back();
}

void attachLog(mlir::MLIRContext* context, lathe::LatheDialect* dialect) {
  if (!logRewrites && stopAfter == kNever && skipAttempt == kNever) return;
  static auto& logs = *new std::vector<lathe::RewriteLog*>();
  logs.push_back(new lathe::RewriteLog(
      context, dialect,
      {.stopAfter = stopAfter, .skipAttempt = skipAttempt, .print = logRewrites}));
}

}  // namespace

int main(int argc, char** argv) {
  mlir::DialectRegistry registry;
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  lathe::registerDialects(registry);
  mlir::registerAllPasses();
  lathe::registerRewritePasses();
  registry.addExtension(+[](mlir::MLIRContext* context, lathe::LatheDialect* dialect) {
    setNumerics(context, dialect);
    attachLog(context, dialect);
  });
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, "optimizer driver of the lathe dialect\n", registry));
}
