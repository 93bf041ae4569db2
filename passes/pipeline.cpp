// SPDX-License-Identifier: Apache-2.0
#include "lathe/passes/pipeline.h"

#include <array>

#include "lathe/ir/types.h"
#include "lathe/passes/passes.h"
#include "lathe/passes/plugins.h"
#include "lathe/runtime/error.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "passes/observe.h"
#include "passes/rewrite/locations.h"
#include "passes/rewrite/numerics_scope.h"
#include "passes/rewrite/rewrite_log.h"
#include "passes/user_patterns.h"

using namespace mlir;

namespace lathe {
namespace {

constexpr std::array<std::string_view, 6> kStages{"recorded", "canonical", "fused",
                                                  "laid-out", "lowered",   "program"};

// Collects what MLIR has to say, and throws it after MLIR has returned.
template <class Fn>
void guarded(ModuleOp module, const char* what, Fn fn) {
  std::string text;
  LogicalResult result = success();
  {
    ScopedDiagnosticHandler collect(module.getContext(), [&](Diagnostic& d) {
      if (d.getSeverity() != DiagnosticSeverity::Error) return failure();
      llvm::raw_string_ostream(text) << (text.empty() ? "" : "\n") << d.getLocation() << ": " << d;
      return success();
    });
    result = fn();
  }
  if (failed(result)) throw Error(ErrorCode::InvalidArgument, std::string(what) + ": " + text);
}

void runPass(ModuleOp module, const char* what, std::unique_ptr<Pass> pass) {
  guarded(module, what, [&] {
    PassManager manager(module.getContext());
    manager.addPass(std::move(pass));
    return manager.run(module);
  });
}

void check(ModuleOp module, const char* what) {
  guarded(module, what, [&] { return verify(module); });
}

// Backends know the ops of one dialect; a user's pass may have left others.
void checkDialect(ModuleOp module) {
  module.walk([](Operation* op) {
    const StringRef dialect = op->getName().getDialectNamespace();
    if (dialect == "lathe" || isa<ModuleOp, func::FuncOp, func::ReturnOp>(op)) return;
    throw Error(ErrorCode::Unsupported,
                op->getName().getStringRef().str() +
                    " cannot run here: backends take ops of the lathe dialect, got one of '" +
                    dialect.str() + "'; let the pass that made it leave ops of lathe; at " +
                    originText(firstOrigin(op->getLoc())));
  });
}

// A backend's step is one rewrite: it is refused as a whole once a log is closed.
void runStep(ModuleOp module, const Step& step) {
  RewriteLog* log = rewriteLogOf(module.getContext());
  if (!log) return step.run(module);
  if (step.required) return log->unnumbered([&] { step.run(module); });
  log->asOne(step.name, module, [&] { step.run(module); });
}

}  // namespace

std::string_view nameOf(Stage stage) { return kStages[size_t(stage)]; }

Stage parseStage(std::string_view name) {
  std::string known;
  for (size_t i = 0; i < kStages.size(); ++i) {
    if (kStages[i] == name) return Stage(i);
    known += (i ? ", " : "") + std::string(kStages[i]);
  }
  throw Error(ErrorCode::InvalidArgument, "stage '" + std::string(name) + "' is none of " + known);
}

void runPipeline(ModuleOp module, Stage until, const BackendSteps& backend,
                 const PipelineOptions& options) {
  NumericsScope numerics(
      module.getContext(),
      {.mode = options.mode, .audit = options.audit, .evaluate = options.evaluate});
  auto reached = [&](Stage stage) {
    if (options.observe) options.observe(stage, module);
    return stage == until;
  };
  auto after = [&](Stage stage, const std::string& step) {
    if (options.observeStep) options.observeStep(stage, step, module);
  };
  auto pass = [&](Stage stage, const char* step, std::unique_ptr<Pass> p) {
    runPass(module, step, std::move(p));
    after(stage, step);
  };
  auto steps = [&](Stage stage, const std::vector<Step>& list) {
    for (const Step& step : list) {
      runStep(module, step);
      check(module, step.name.c_str());
      after(stage, step.name);
    }
  };
  // Before anything runs: mistakes in what the user brings are told as they are, and first.
  MLIRContext* context = module.getContext();
  PatternLibrary own = userPatterns(context, options.patterns, options.patternFiles);
  for (const std::string& plugin : options.plugins) loadPassPlugin(plugin);
  auto passes = options.passes.empty() ? nullptr : parsePasses(context, options.passes);
  if (reached(Stage::Recorded)) return;

  // Before any rewrite: from here on nothing connects an observed value that is computed again with
  // the graph that it was taken from.
  const bool observed = !observedResults(module).empty();
  if (observed) steps(Stage::Canonical, {{"isolate-observed", isolateObserved, true}});

  // The user writes patterns as models are written: they are tried before canonicalization changes
  // the spelling, and again with the built-in fusions.
  if (!own.empty()) pass(Stage::Canonical, "user-fusions", createUserFusionsPass(own));

  // CSE after canonicalization: equal spellings first, then equal values.
  pass(Stage::Canonical, "canonicalize", createCanonicalizePass());
  pass(Stage::Canonical, "cse", createCsePass());
  if (reached(Stage::Canonical)) return;

  // One pass holds all fusions: the greedy driver finds the small ones first, and attention is
  // matched on fused softmax.
  pass(Stage::Fused, "fuse", createFusePass([&](MLIRContext*) { return own; }));
  // The user's passes see fused ops, and what they leave is cleaned up like the fusions' rests.
  if (passes) {
    guarded(module, "passes", [&] { return passes->run(module); });
    after(Stage::Fused, "passes");
  }
  // After the fusions and the user's passes, before the CSE that merges what is the same twice.
  if (observed) steps(Stage::Fused, {{"inline-observed", inlineObserved, true}});
  pass(Stage::Fused, "canonicalize-fused", createCanonicalizePass());
  pass(Stage::Fused, "cse-fused", createCsePass());
  if (reached(Stage::Fused)) return;

  checkDialect(module);
  // Layouts before hoisting: packing is weight-only arithmetic and moves into `load` with the rest.
  steps(Stage::LaidOut, backend.layOut);
  if (reached(Stage::LaidOut)) return;

  steps(Stage::Lowered, backend.lower);
  pass(Stage::Lowered, "check-locations", createCheckLocationsPass());
  if (reached(Stage::Lowered)) return;

  // Code generation has patterns of its own.
  if (RewriteLog* log = rewriteLogOf(context))
    log->unnumbered([&] { backend.build(module); });
  else
    backend.build(module);
  reached(Stage::Program);
}

}  // namespace lathe
