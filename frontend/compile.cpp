// SPDX-License-Identifier: Apache-2.0
#include "lathe/frontend/compile.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "frontend/entry_points.h"
#include "frontend/graph_impl.h"
#include "frontend/observe.h"
#include "lathe/backends/backend.h"
#include "lathe/backends/interpreter.h"
#include "lathe/ir/dialect.h"
#include "lathe/passes/pipeline.h"
#include "lathe/runtime/backend_plugin.h"
#include "lathe/runtime/error.h"
#include "passes/patterns/library.h"
#include "passes/rewrite/rewrite_log.h"
#include "passes/shard/mesh.h"
#include "passes/user_patterns.h"
#include "passes/why_not.h"
#include "runtime/bound_weights.h"
#include "runtime/mapped_file.h"

namespace lathe {
namespace {

std::string print(mlir::ModuleOp module, bool withLocations) {
  std::string text;
  llvm::raw_string_ostream os(text);
  mlir::OpPrintingFlags flags;
  if (withLocations) flags.enableDebugInfo();
  module.print(os, flags);
  return text;
}

// "blocks.3.mlp model.cc:40" of the first line behind a location.
std::string firstLine(mlir::Location location) { return originText(firstOrigin(location)); }
std::vector<std::string> weightNames(mlir::ModuleOp module) {
  std::vector<std::string> names;
  module.walk([&](WeightOp op) { names.push_back(op.getName().str()); });
  return names;
}

// "blocks.3.mlp" of the same.
std::string firstPath(mlir::Location location) { return modulePathOf(firstOrigin(location)).str(); }

// The fusions that a compilation tries.
PatternLibrary allPatterns(mlir::MLIRContext* context, const CompileOptions& options) {
  // The user's first: of two that came equally near, theirs is told.
  PatternLibrary library =
      userPatterns(context, options.pipeline.patterns, options.pipeline.patternFiles);
  for (auto& p : fusionPatterns(context)) library.push_back(p);
  return library;
}

// Fills the caller's record while the pipeline runs.
class Recording {
 public:
  explicit Recording(const CompileOptions& options) : options_(options), record_(options.record) {}

  void after(Stage stage, const std::string& step, mlir::ModuleOp module, const RewriteLog& log) {
    if (!record_) return;
    for (; seen_ < log.entries().size(); ++seen_) {
      const RewriteLog::Entry& e = log.entries()[seen_];
      std::vector<std::string> weakened;
      for (Contract c : e.weakened) weakened.emplace_back(rowOf(c).name);
      record_->rewrites.push_back({e.number, e.attempt, step, e.what, firstLine(e.at),
                                   std::move(weakened), firstPath(e.at)});
      applied_.emplace(record_->rewrites.back().what, record_->rewrites.back().at);
    }
    // Canonicalization is done: what the user's patterns refuse now a built-in one may take next.
    if (step == "cse") noteDeclined(module);
    if (record_->wantMisses && step == "fuse") addMisses(module);
    for (; record_->wantMisses && declined_ < log.declined().size(); ++declined_) {
      const RewriteLog::Declined& d = log.declined()[declined_];
      record_->misses.push_back({d.op, firstLine(d.at), d.op.substr(d.op.find('.') + 1), 0, 0, d.by,
                                 d.reason, firstPath(d.at), d.by});
    }
    snapshot(stage, step, module);
  }
  /// The user's patterns of which all ops match, and that a condition or the pattern itself then
  /// refuses: they are told even if another pattern takes the op.
  void noteDeclined(mlir::ModuleOp module) {
    const PipelineOptions& pipeline = options_.pipeline;
    if (!record_ || !record_->wantMisses || (!pipeline.patterns && pipeline.patternFiles.empty()))
      return;
    const PatternLibrary own =
        userPatterns(module.getContext(), pipeline.patterns, pipeline.patternFiles);
    for (const NearMiss& near : findMisses(module, own, /*evenFar=*/true))
      if (near.pattern && near.miss.why >= Miss::Why::Where &&
          near.miss.matched >= near.pattern->opCount())
        if (CompileRecord::Miss miss = missOf(near);
            !applied_.contains(placeOf(miss)) && refusedAt_.insert(placeOf(miss)).second)
          refused_.push_back(std::move(miss));
  }
  void snapshot(Stage stage, const std::string& step, mlir::ModuleOp module) {
    if (record_ && record_->wantSnapshots)
      record_->snapshots.push_back({std::string(nameOf(stage)), step, print(module, true)});
  }

 private:
  // A pattern is told once of a line: as a miss, or as the rewrite that it came to in the end.
  using Place = std::pair<std::string, std::string>;
  static Place placeOf(const CompileRecord::Miss& miss) { return {miss.pattern, miss.at}; }

  void addMisses(mlir::ModuleOp module) {
    for (const NearMiss& near :
         findMisses(module, allPatterns(module.getContext(), options_), record_->wantFarMisses))
      record_->misses.push_back(missOf(near));
    std::set<Place> told = applied_;
    for (const CompileRecord::Miss& miss : record_->misses) told.insert(placeOf(miss));
    for (CompileRecord::Miss& miss : refused_)
      if (!told.contains(placeOf(miss))) record_->misses.push_back(std::move(miss));
    refused_.clear();
  }
  static CompileRecord::Miss missOf(const NearMiss& near) {
    return {near.op->getName().getStringRef().str(),
            firstLine(near.op->getLoc()),
            near.name(),
            std::max(near.miss.matched, 0),
            near.pattern ? near.pattern->opCount() : 0,
            near.pattern ? std::string(nameOf(near.miss.why)) : "op",
            near.explain(),
            firstPath(near.op->getLoc()),
            "pattern",
            near.goal != nullptr};
  }

  const CompileOptions& options_;
  CompileRecord* record_;
  size_t seen_ = 0, declined_ = 0;
  std::vector<CompileRecord::Miss> refused_;  // by the user's patterns, so far
  std::set<Place> refusedAt_, applied_;
};

// Values outside the enumerations.
void expectValid(NumericsMode mode, Stage until) {
  if (int(mode) < 0 || mode > NumericsMode::Fast)
    throw Error(ErrorCode::InvalidArgument, std::to_string(int(mode)) +
                                                " is no numerics mode; take Strict, Relaxed or "
                                                "Fast");
  if (int(until) < 0 || until > Stage::Program)
    throw Error(ErrorCode::InvalidArgument,
                std::to_string(int(until)) + " is no stage; lathe::Stage names those there are");
}

// The stages of a pipeline are graphs of their own, of which each is compiled like any other. Who
// looks on sees one of them.
class StageCompiler {
 public:
  StageCompiler(const Backend& backend, const CompileOptions& options)
      : backend_(backend), options_(options) {}

  /// Changes `module`, a copy of the graph. `mesh` says which stage.
  Program run(mlir::OwningOpRef<mlir::ModuleOp> module, const Mesh& mesh, Stage until,
              const StageObserver& observe, const StepObserver& observeStep) {
    PipelineOptions pipeline = options_.pipeline;
    pipeline.mesh.stage = mesh.stage;
    BackendRequest request{options_.backendOptions, pipeline.mode, mesh.simulate ? 1 : mesh.ranks};
    if (std::string problem = backend_.whyNotWith(request); !problem.empty())
      throw Error(ErrorCode::Unsupported, problem);
    CompileRecord* record = options_.record;
    if (record && record->wantCode)
      request.onCode = [&](std::string kernel, std::string tier, std::string language,
                           std::string text) {
        record->code.push_back(
            {std::move(kernel), std::move(tier), std::move(language), std::move(text)});
      };
    checkEntryPoints(*module);
    if (until > Stage::Fused) checkBeforeLayout(*module);
    mlir::MLIRContext* context = module->getContext();
    BackendSteps steps{backend_.layOut(request), backend_.lower(request), {}};
    PipelineObservers observers{.audit = record != nullptr, .evaluate = interpretFunction};
    // Before there is a log: trials have no numbers. They are of the whole graph, so that all
    // stages decide alike.
    if (until != Stage::Recorded) {
      PipelineOptions unstaged = pipeline;
      unstaged.mesh.ranks = mesh.ranksOfStage();
      unstaged.mesh.stages = unstaged.mesh.stage = 0;
      unstaged.mesh.splitRows = false;  // costs are of the graph's own sizes
      auto decisions = decideObserved(*module, [&](mlir::ModuleOp trial) {
        runPipeline(trial, Stage::Lowered, steps, unstaged, observers);
      });
      if (record) record->observed = std::move(decisions);
    }
    RewriteLog log(context, context->getOrLoadDialect<LatheDialect>(),
                   {.stopAfter = options_.stopAfterRewrite,
                    .skipAttempt = options_.skipAttempt,
                    .observer = options_.observer});
    Recording recording(options_);
    Program program;
    steps.build = [&](mlir::ModuleOp m) { program = backend_.build(m, request); };
    observers.stage = [&](Stage reached, mlir::ModuleOp m) {
      if (reached == Stage::Recorded) {
        recording.snapshot(reached, "recorded", m);
        recording.noteDeclined(m);
      }
      saveIr(reached, m);
      if (observe) observe(reached, m);
    };
    observers.step = [&](const StepDone& step, mlir::ModuleOp m) {
      recording.after(step.stage, step.name, m, log);
      if (observeStep) observeStep(step, m);
    };
    const std::vector<std::string> declared = weightNames(*module);
    runPipeline(*module, until, steps, pipeline, observers);
    program.ranks = mesh.simulate ? 1 : mesh.ranksOfStage();
    noteUnreadWeights(program, declared);
    return program;
  }

 private:
  void saveIr(Stage reached, mlir::ModuleOp m) const {
    if (options_.saveIrDir.empty()) return;
    std::error_code problem;
    std::filesystem::create_directories(options_.saveIrDir, problem);
    if (problem)
      throw Error(ErrorCode::Io, options_.saveIrDir +
                                     ": cannot be made a folder for the IR: " + problem.message());
    const std::string file = options_.saveIrDir + "/" + std::to_string(int(reached)) + "-" +
                             std::string(nameOf(reached)) + ".mlir";
    writeFileAtomically(file, print(m, true));
  }

  const Backend& backend_;
  const CompileOptions& options_;
};

}  // namespace

Program runStages(const Graph& graph, Stage until, const CompileOptions& options,
                  const StageObserver& observe, const StepObserver& observeStep) {
  const PipelineOptions& pipeline = options.pipeline;
  expectValid(pipeline.mode, until);
  loadBackendPlugins(options.backendPlugins);
  const Backend& backend = findBackend(options.backend);
  const WeightFormats& weights = options.backendOptions.weights;
  const Contract precision =
      weights.quantizesWeights() ? Contract::WeightPrecision : Contract::ActivationPrecision;
  if (weights.any() && !mayWeaken(precision, pipeline.mode))
    throw Error(ErrorCode::InvalidArgument, "weight format " + textOf(weights) + ": " +
                                                refusalOf(precision, pipeline.mode) +
                                                "; take another mode");
  const auto lock = graph.impl().lock();
  mlir::OwningOpRef<mlir::ModuleOp> module = graph.impl().copy();
  Mesh mesh = meshOf(*module, pipeline.mesh);
  const bool allStages = until == Stage::Program && mesh.stages > 1;
  if (allStages) mesh.stage = 0;
  Program first =
      StageCompiler(backend, options).run(std::move(module), mesh, until, observe, observeStep);
  if (!allStages) return first;
  CompileOptions unseen = options;
  unseen.record = nullptr;
  unseen.observer = nullptr;
  unseen.saveIrDir.clear();
  for (mesh.stage = 1; mesh.stage < mesh.stages; ++mesh.stage)
    first.laterStages.push_back(std::make_shared<const Program>(
        StageCompiler(backend, unseen).run(graph.impl().copy(), mesh, until, {}, {})));
  return first;
}

Program compile(const Graph& graph, const CompileOptions& options) {
  return runStages(graph, Stage::Program, options, {});
}

std::string irAt(const Graph& graph, std::string_view stage, const CompileOptions& options,
                 bool withLocations) {
  Stage until = parseStage(stage);
  std::string text;
  runStages(graph, until, options, [&](Stage reached, mlir::ModuleOp m) {
    if (reached == until) text = print(m, withLocations);
  });
  return text;
}

}  // namespace lathe
