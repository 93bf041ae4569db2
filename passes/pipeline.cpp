// SPDX-License-Identifier: Apache-2.0
#include "lathe/passes/pipeline.h"

#include <algorithm>
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
#include "passes/shard/cut_stages.h"
#include "passes/shard/mesh.h"
#include "passes/shard/shard.h"
#include "passes/user_patterns.h"

using namespace mlir;

namespace lathe {
namespace {

constexpr std::array<std::string_view, 7> kStages{"recorded", "canonical", "fused",  "sharded",
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

// The steps to a stage, in order. They are all known before the first runs, so that who looks on
// can tell how far it is.
class Plan {
 public:
  explicit Plan(ModuleOp module) : module_(module) {}

  void pass(Stage stage, const char* name, std::unique_ptr<Pass> pass) {
    auto manager = std::make_shared<PassManager>(module_.getContext());
    manager->addPass(std::move(pass));
    add(stage, name, std::move(manager));
  }
  void add(Stage stage, const char* name, std::shared_ptr<PassManager> passes) {
    steps_.push_back({stage, name, [module = module_, name, passes] {
                        guarded(module, name, [&] { return passes->run(module); });
                      }});
  }
  void add(Stage stage, const Step& step) {
    steps_.push_back({stage, step.name, [module = module_, step] {
                        runStep(module, step);
                        guarded(module, step.name.c_str(), [&] { return verify(module); });
                      }});
  }
  void add(Stage stage, const std::vector<Step>& steps) {
    for (const Step& step : steps) add(stage, step);
  }
  // What changes nothing in the module: nobody is told.
  void check(Stage stage, std::function<void()> run) {
    steps_.push_back({stage, "", std::move(run)});
  }

  void run(Stage until, const Mesh& mesh, const PipelineObservers& observers) const {
    const size_t of = size_t(std::ranges::count_if(
        steps_, [&](const Planned& s) { return !s.name.empty() && s.stage <= until; }));
    size_t number = 0;
    auto step = steps_.begin();
    for (int i = int(Stage::Recorded); i <= int(until); ++i) {
      for (; step != steps_.end() && step->stage == Stage(i); ++step) {
        step->run();
        if (!step->name.empty() && observers.step)
          observers.step({step->stage, step->name, ++number, of}, module_);
      }
      // Without a mesh there is no such stage, unless somebody asks for it.
      const bool skipped = Stage(i) == Stage::Sharded && mesh.ranks == 1 && i != int(until);
      if (observers.stage && !skipped) observers.stage(Stage(i), module_);
    }
  }

 private:
  struct Planned {
    Stage stage;
    std::string name;  // none of what is not told
    std::function<void()> run;
  };
  ModuleOp module_;
  std::vector<Planned> steps_;  // in the order of their stages
};

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
                 const PipelineOptions& options, const PipelineObservers& observers) {
  MLIRContext* context = module.getContext();
  NumericsScope numerics(
      context, {.mode = options.mode, .audit = observers.audit, .evaluate = observers.evaluate});
  // Before anything runs: mistakes in what the user brings are told as they are, and first.
  PatternLibrary own = userPatterns(context, options.patterns, options.patternFiles);
  for (const std::string& plugin : options.plugins) loadPassPlugin(plugin);
  std::shared_ptr<PassManager> passes =
      options.passes.empty() ? nullptr : parsePasses(context, options.passes);

  const Mesh mesh = meshOf(module, options.mesh);
  Mesh ofStage = mesh;
  ofStage.ranks = mesh.ranksOfStage();
  ofStage.stages = 1;
  ofStage.stage = 0;

  Plan plan(module);
  // Before any rewrite: on one rank what the graph says of ranks would only stand between fusions.
  if (ofStage.ranks == 1 && saysOfRanks(module))
    plan.add(Stage::Canonical, {"drop-shards", dropSaidOfRanks, true});
  // Before any other rewrite: from here on nothing connects an observed value that is computed
  // again with the graph that it was taken from.
  const bool observed = !observedResults(module).empty();
  if (observed) plan.add(Stage::Canonical, {"isolate-observed", isolateObserved, true});

  // The user writes patterns as models are written: they are tried before canonicalization changes
  // the spelling, and again with the built-in fusions.
  if (!own.empty()) plan.pass(Stage::Canonical, "user-fusions", createUserFusionsPass(own));

  // CSE after canonicalization: equal spellings first, then equal values.
  plan.pass(Stage::Canonical, "canonicalize", createCanonicalizePass());
  plan.pass(Stage::Canonical, "cse", createCsePass());

  // One pass holds all fusions: the greedy driver finds the small ones first, and attention is
  // matched on fused softmax.
  plan.pass(Stage::Fused, "fuse", createFusePass([&](MLIRContext*) { return own; }));
  // The user's passes see fused ops, and what they leave is cleaned up like the fusions' rests.
  if (passes) plan.add(Stage::Fused, "passes", passes);
  // After the fusions and the user's passes, before the CSE that merges what is the same twice.
  if (observed) plan.add(Stage::Fused, {"inline-observed", inlineObserved, true});
  plan.pass(Stage::Fused, "canonicalize-fused", createCanonicalizePass());
  plan.pass(Stage::Fused, "cse-fused", createCsePass());

  // Fused ops first: they have a rule each, and their elementary forms would need sixty. Layouts
  // later: a rank merges and packs the pieces that it reads.
  if (ofStage.ranks != 1) {
    plan.add(Stage::Sharded, {"shard", [&](ModuleOp m) { shard(m, ofStage); }, true});
    plan.pass(Stage::Sharded, "canonicalize-sharded", createCanonicalizePass());
    plan.pass(Stage::Sharded, "cse-sharded", createCsePass());
  }
  // Before the fusions: between a sum and what follows it less crosses than behind a fused norm.
  if (mesh.stages > 1)
    plan.add(Stage::Sharded,
             {"cut-stages", [&](ModuleOp m) { cutStages(m, mesh.stages, mesh.stage); }, true});
  if (mesh.ranks != 1) {
    // What the sums left: a residual that a linear op had taken goes into the norm behind it.
    plan.pass(Stage::Sharded, "fuse-sharded", createFusePass([&](MLIRContext*) { return own; }));
  }

  // Layouts before hoisting: packing is weight-only arithmetic and moves into `load` with the rest.
  plan.check(Stage::LaidOut, [&] { checkDialect(module); });
  plan.add(Stage::LaidOut, backend.layOut);

  plan.add(Stage::Lowered, backend.lower);
  plan.pass(Stage::Lowered, "check-locations", createCheckLocationsPass());

  // Code generation has patterns of its own.
  plan.check(Stage::Program, [&] {
    RewriteLog* log = rewriteLogOf(context);
    log ? log->unnumbered([&] { backend.build(module); }) : backend.build(module);
  });
  plan.run(until, mesh, observers);
}

}  // namespace lathe
