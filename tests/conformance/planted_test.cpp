// SPDX-License-Identifier: Apache-2.0
// Mistakes planted in what rewrites make: a wrong axis, scale or permutation, a swapped gate, a
// dropped mask. Comparing results must see them, and bisecting must name the rewrite.
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <set>

#include "frontend/graph_impl.h"
#include "inspect/questions/trial_run.h"
#include "lathe/inspect/bisect.h"
#include "lathe/ir/types.h"
#include "lathe/lathe.h"
#include "mlir/IR/Verifier.h"
#include "passes/rewrite/rewrite_log.h"
#include "tests/conformance/mutations.h"
#include "tests/conformance/random_transformers.h"
#include "tests/depth.h"
#include "tests/golden/seed_models.h"

using namespace mlir;

namespace lathe::conformance {
namespace {

// Where a mistake goes: which op that which rewrite made, and which of its mutations.
struct Plant {
  std::string model;
  uint64_t rewrite = 0;
  size_t op = 0, mutation = 0;
  std::string what;  // "attention: lathe.attention causal"
};

// Applies a mutation and keeps it if the op still holds; else puts everything back.
bool mutate(Operation* op, size_t index) {
  std::vector<Mutation> all = mutationsOf(op);
  if (index >= all.size()) return false;
  SmallVector<Value> operands(op->getOperands());
  DictionaryAttr attributes = op->getAttrDictionary();
  ScopedDiagnosticHandler quiet(op->getContext(), [](Diagnostic&) { return success(); });
  all[index].apply(op);
  if (succeeded(verify(op))) return true;
  op->setAttrs(attributes);
  op->setOperands(operands);
  return false;
}

// What float64 on these data cannot show: another row policy where no row is fully masked, another
// alignment where queries and keys are as many, a name for bytes that only a backend reads.
bool isVisible(Operation* op, const Mutation& m) {
  if (auto append = dyn_cast<RopeAppendOp>(op); append && !append.getGain() && m.name == "number")
    return false;  // the epsilon of no norm
  return !StringRef(m.name).starts_with("masked_row=") && m.name != "causal=bottom_right" &&
         m.name != "layout=packed";
}

class Planter final : public RewriteObserver {
 public:
  explicit Planter(const Plant& plant) : plant_(plant) {}
  void didApply(const Applied& applied) override {
    if (applied.entry.number == plant_.rewrite && plant_.op < applied.made.size())
      planted_ = mutate(applied.made[plant_.op], plant_.mutation);
  }
  bool planted() const { return planted_; }

 private:
  Plant plant_;
  bool planted_ = false;
};

// Lists every place in one compilation.
class Surveyor final : public RewriteObserver {
 public:
  explicit Surveyor(std::string model) : model_(std::move(model)) {}
  void didApply(const Applied& applied) override {
    for (auto [i, op] : llvm::enumerate(applied.made)) {
      std::vector<Mutation> all = mutationsOf(op);
      for (size_t m = 0; m < all.size(); ++m)
        if (isVisible(op, all[m]))
          places.push_back(
              {model_, applied.entry.number, i, m,
               applied.entry.what + ": " + op->getName().getStringRef().str() + " " + all[m].name});
    }
  }
  std::vector<Plant> places;

 private:
  std::string model_;
};

struct Model {
  std::string name;
  std::function<Graph()> build;
};
std::vector<Model> models() {
  std::vector<Model> all;
  for (const seeds::SeedModel& m : seeds::seedModels())
    all.push_back({m.name, [m] { return m.build(DType::F32); }});
  for (uint64_t seed = 1; seed <= 12; ++seed)
    all.push_back({"random " + std::to_string(seed), [seed] { return randomTransformer(seed); }});
  return all;
}

CompileOptions observed(RewriteObserver& observer) {
  CompileOptions options;
  options.pipeline.mode = NumericsMode::Fast;  // the most rewrites
  options.observer = &observer;
  return options;
}

// What the whole pipeline's graph computes, on the interpreter.
Deviation outcome(const Graph& graph, const Trial& trial, RewriteObserver& observer) {
  Deviation d;
  runStages(graph, Stage::LaidOut, observed(observer), [&](Stage stage, ModuleOp module) {
    if (stage == Stage::LaidOut) d = trial.compare(trial.run(module, Precision::Float64));
  });
  return d;
}

TEST(Planted, MistakesAreSeenAndTheirRewriteIsNamed) {
  std::map<std::string, int> perKind;
  std::set<std::string> rewrites;
  int planted = 0, killed = 0, named = 0;
  std::string survivors, misnamed;
  // Of each kind of rewrite, op and mistake one place; in depth two.
  const int places = test::inDepth() ? 2 : 1;
  for (const Model& model : models()) {
    const Graph graph = model.build();
    Surveyor surveyor(model.name);
    runStages(graph, Stage::LaidOut, observed(surveyor), {});
    std::optional<Trial> trial;
    for (const Plant& place : surveyor.places) {
      if (perKind[place.what] >= places) continue;
      if (!trial) trial.emplace(graph.impl().finished(), TrialOptions{});
      Planter planter(place);
      Deviation d;
      try {
        d = outcome(graph, *trial, planter);
      } catch (const Error&) {
        continue;  // a later pass or the interpreter refuses what the mistake made
      }
      if (!planter.planted()) continue;
      ++perKind[place.what];
      ++planted;
      rewrites.insert(place.what.substr(0, place.what.find(':')));
      const std::string text =
          place.model + " #" + std::to_string(place.rewrite) + " " + place.what;
      if (d.within) {
        survivors += text + "\n";
        continue;
      }
      ++killed;
      Planter again(place);
      BisectResult found = bisect(graph, {.trial = {.compile = observed(again)}, .backend = false});
      if (found.culprit == BisectResult::Culprit::Rewrite && found.rewrite.number == place.rewrite)
        ++named;
      else
        misnamed += text + " -> " + std::string(nameOf(found.culprit)) + " #" +
                    std::to_string(found.rewrite.number) + " " + found.rewrite.what + "\n";
    }
  }
  RecordProperty("planted", planted);
  RecordProperty("killed", killed);
  std::printf("%d planted in %zu kinds of rewrites, %d killed, %d named\n", planted,
              rewrites.size(), killed, named);
  EXPECT_GE(planted, 100);
  EXPECT_GE(killed * 10, planted * 9) << survivors;
  EXPECT_EQ(named, killed) << misnamed;
}

}  // namespace
}  // namespace lathe::conformance
