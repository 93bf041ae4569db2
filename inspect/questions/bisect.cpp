// SPDX-License-Identifier: Apache-2.0
#include "lathe/inspect/bisect.h"

#include "frontend/graph_impl.h"
#include "inspect/questions/reproducer.h"
#include "lathe/ir/types.h"
#include "lathe/runtime/error.h"
#include "mlir/IR/IRMapping.h"
#include "passes/rewrite/rewrite_log.h"

using namespace mlir;

namespace lathe {
namespace {

using Culprit = BisectResult::Culprit;

// Ends a pipeline that has shown enough.
struct Enough {};

// What one step of a pipeline gave.
struct Judged {
  size_t index;
  std::string stage, step;
  size_t rewritesBefore, rewritesAfter;
  Deviation deviation;
};

class Bisection {
 public:
  Bisection(const Graph& graph, const BisectOptions& options)
      : graph_(graph),
        options_(options),
        trial_(std::make_unique<Trial>(graph.impl().finished(), options.trial)) {}

  BisectResult run() {
    result_.sizes = trial_->sizes();
    std::optional<Judged> wrong = firstWrongStep();
    if (wrong)
      blame(*wrong);
    else if (options_.backend)
      tryBackend();
    return std::move(result_);
  }

 private:
  CompileOptions compileOptions() const { return trial_->options().compile; }

  // Runs the pipeline and gives `see` every module that the interpreter can run.
  void pipeline(const CompileOptions& options,
                const std::function<void(size_t, Stage, const std::string&, ModuleOp)>& see) const {
    try {
      runStages(graph_, Stage::Lowered, options, {}, [&](const StepDone& step, ModuleOp module) {
        if (Trial::canRun(module)) see(step.number - 1, step.stage, step.name, module);
      });
    } catch (const Enough&) {
    }
  }

  Deviation judge(ModuleOp module, const std::string& what) {
    ++result_.runs;
    trial_->tell(what);
    return trial_->judge(trial_->run(module, trial_->options().precision));
  }

  std::optional<Judged> firstWrongStep() {
    CompileRecord record;
    CompileOptions options = compileOptions();
    options.record = &record;
    std::optional<Judged> wrong;
    size_t before = 0;
    OperationFingerPrint last(graph_.impl().finished());
    pipeline(options, [&](size_t index, Stage stage, const std::string& step, ModuleOp module) {
      OperationFingerPrint now(module);
      bool same = now == last;
      last = now;
      // The weights that were asked for are the ones from which later steps count.
      if (changesWeights(record, before)) {
        requantized_ = module.clone();
        trial_ = std::make_unique<Trial>(*requantized_, options_.trial);
      } else if (!same) {
        Deviation d = judge(module, "step " + step);
        if (!d.within) {
          wrong =
              Judged{index, std::string(nameOf(stage)), step, before, record.rewrites.size(), d};
          throw Enough();
        }
      }
      before = record.rewrites.size();
    });
    result_.rewrites = record.rewrites.size();
    rewrites_ = std::move(record.rewrites);
    return wrong;
  }

  // The results after a step, with so many rewrites and no more.
  Deviation after(size_t step, size_t rewrites) {
    CompileOptions options = compileOptions();
    options.stopAfterRewrite = rewrites;
    Deviation d;
    pipeline(options, [&](size_t index, Stage, const std::string& name, ModuleOp module) {
      if (index != step) return;
      d = judge(module, "step " + name + " with " + std::to_string(rewrites) + " rewrites");
      throw Enough();
    });
    return d;
  }

  void blame(const Judged& wrong) {
    result_.stage = wrong.stage;
    result_.step = wrong.step;
    result_.deviation = wrong.deviation;
    size_t good = wrong.rewritesBefore, bad = wrong.rewritesAfter;
    if (good == bad || !after(wrong.index, good).within) {
      result_.culprit = Culprit::Step;
      if (!options_.folder.empty()) reduce(graph_.impl().finished());
      return;
    }
    while (bad - good > 1) {
      size_t middle = (good + bad) / 2;
      Deviation d = after(wrong.index, middle);
      (d.within ? good : bad) = middle;
      if (!d.within) result_.deviation = d;
    }
    result_.culprit = Culprit::Rewrite;
    result_.rewrite = rewrites_.at(bad - 1);
    if (!options_.folder.empty()) reduceRewrite();
  }

  // --- reproducers

  // A copy of the module as the rewrite met it, and the ops there that it took.
  struct Capture final : RewriteObserver {
    uint64_t number, attempt;
    RewriteObserver* also;  // the caller's
    OwningOpRef<ModuleOp> before;
    IRMapping copies;
    SmallVector<Operation*> taken;

    void willTry(uint64_t n, uint64_t a, Operation* at) override {
      if (also) also->willTry(n, a, at);
      if (n != number || a != attempt) return;
      auto module = dyn_cast<ModuleOp>(at);
      if (!module) module = at->getParentOfType<ModuleOp>();
      copies.clear();
      before = cast<ModuleOp>(module->clone(copies));
    }
    void didApply(const Applied& applied) override {
      if (also) also->didApply(applied);
      if (applied.entry.number != number || applied.whole) return;
      for (Operation* op : applied.taken)
        if (Operation* copy = copies.lookupOrNull(op); copy && copy->getParentOp())
          taken.push_back(copy);
    }
  };

  void reduceRewrite() {
    Capture capture;
    capture.number = result_.rewrite.number;
    capture.attempt = result_.rewrite.attempt;
    CompileOptions options = compileOptions();
    capture.also = options.observer;
    options.stopAfterRewrite = capture.number;
    options.observer = &capture;
    pipeline(options, [](size_t, Stage, const std::string&, ModuleOp) {});
    bool inOneBlock = !capture.taken.empty() && llvm::all_of(capture.taken, [&](Operation* op) {
      return op->getBlock() == capture.taken.front()->getBlock() &&
             isa<func::FuncOp>(op->getParentOp());
    });
    std::optional<CutGraph> small;
    if (inOneBlock) small = cutOut(capture.taken, *trial_);
    if (small && showsOnInterpreter(*small)) return keep(*small, true);
    // A rewrite that takes no ops of its own, or whose mistake needs what stands around it.
    if (capture.before && !capture.before->lookupSymbol<func::FuncOp>("load") &&
        reduce(*capture.before))
      return;
    if (small) keep(*small, false);
  }

  bool showsOnInterpreter(const CutGraph& cut) const {
    bool wrong = false;
    try {
      Trial trial(cut.graph.impl().finished(), cut.trial);
      runStages(cut.graph, Stage::Lowered, trial.options().compile, {},
                [&](const StepDone&, ModuleOp module) {
                  if (!Trial::canRun(module)) return;
                  wrong = !trial.judge(trial.run(module, trial.options().precision)).within;
                  if (wrong) throw Enough();
                });
    } catch (const Enough&) {
    } catch (const Error&) {  // a part that the backend cannot take alone shows nothing
      return false;
    }
    return wrong;
  }

  bool showsOnBackend(const CutGraph& cut) const {
    try {
      Trial trial(cut.graph.impl().finished(), cut.trial);
      return !trial.judgeBackend(trial.run(lathe::compile(cut.graph, trial.options().compile)))
                  .within;
    } catch (const Error&) {
      return false;
    }
  }

  void keep(const CutGraph& cut, bool shows) {
    Reproducer r = write(cut, options_.folder);
    result_.files = {r.file, r.data, r.commands, r.ops, shows};
  }

  // The entry point that shows the mistake, cut down.
  bool reduce(ModuleOp module) {
    for (auto f : module.getOps<func::FuncOp>())
      if (reduce(f)) return true;
    return false;
  }
  bool reduce(func::FuncOp f) {
    if (!trial_->runs(f)) return false;
    auto cut = narrow(f, *trial_, [&](const CutGraph& c) { return showsOnInterpreter(c); });
    if (cut) keep(*cut, true);
    return cut.has_value();
  }

  // --- the backend

  void tryBackend() {
    OwningOpRef<ModuleOp> fused;
    Program program =
        runStages(graph_, Stage::Program, compileOptions(), [&](Stage stage, ModuleOp module) {
          if (stage == Stage::Fused) fused = module.clone();
        });
    ++result_.runs;
    trial_->tell("the program of backend " + compileOptions().backend);
    Deviation d = trial_->judgeBackend(trial_->run(std::move(program)));
    if (d.within) return;
    result_.culprit = Culprit::Backend;
    result_.deviation = d;
    for (auto f : fused->getOps<func::FuncOp>()) {
      if (!trial_->runs(f)) continue;
      auto cut = narrow(f, *trial_, [&](const CutGraph& c) {
        ++result_.runs;
        return showsOnBackend(c);
      });
      if (!cut) continue;
      // The last op of the smallest graph is the one without which it would be right.
      auto forward = cut->graph.impl().finished().lookupSymbol<func::FuncOp>("forward");
      Operation* last = forward.getBody().front().getTerminator()->getPrevNode();
      result_.op = last->getName().getStringRef().str();
      result_.at = sourceText(last->getLoc());
      if (!options_.folder.empty()) keep(*cut, true);
      return;
    }
  }

  const Graph& graph_;
  const BisectOptions& options_;
  std::unique_ptr<Trial> trial_;
  OwningOpRef<ModuleOp> requantized_;  // what it runs, where weights were changed on request
  BisectResult result_;
  std::vector<CompileRecord::Rewrite> rewrites_;
};

}  // namespace

static bool takesLong(const Graph& graph) {
  constexpr int64_t kWeights = 20'000'000;
  int64_t weights = 0;
  graph.impl().finished().walk([&](WeightOp op) {
    if (auto type = tensorType(op.getY()); type.hasStaticShape()) weights += type.getNumElements();
  });
  return weights > kWeights;
}

// One trial. Float64 does not round in casts, so a rewrite that puts some in is seen in the
// backend's results alone: before a backend is blamed, the rewrites are looked at in the graph's
// dtypes.
static BisectResult tried(Bisection& trial, const Graph& graph, const BisectOptions& options) {
  BisectResult found = trial.run();
  if (found.culprit != Culprit::Backend || options.trial.precision == Precision::OwnDtype)
    return found;
  BisectOptions own = options;
  own.trial.precision = Precision::OwnDtype;
  own.backend = false;
  BisectResult rounded = Bisection(graph, own).run();
  rounded.runs += found.runs;
  return rounded.culprit == Culprit::Nobody ? found : rounded;
}

// Nothing for a graph that does not run with these options, such as larger sizes than a backend
// takes.
static std::optional<BisectResult> triedIfItRuns(const Graph& graph, const BisectOptions& options) {
  try {
    Bisection trial(graph, options);
    return tried(trial, graph, options);
  } catch (const Error&) {
    return std::nullopt;
  }
}

BisectResult bisect(const Graph& graph, const BisectOptions& options) {
  Bisection trial(graph, options);
  BisectResult first = tried(trial, graph, options);
  if (first.culprit != Culprit::Nobody || takesLong(graph)) return first;
  // Larger sizes find what the first may miss.
  BisectOptions again = options;
  again.trial.seed += 1;
  again.trial.larger = true;
  std::optional<BisectResult> second = triedIfItRuns(graph, again);
  if (!second) return first;
  second->runs += first.runs;
  if (second->culprit != Culprit::Nobody) return *second;
  first.runs = second->runs;
  first.alsoSizes = second->sizes;
  return first;
}

}  // namespace lathe
