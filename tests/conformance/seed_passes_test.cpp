// SPDX-License-Identifier: Apache-2.0
// Every pass on every seed model: what the graph computes stays within the contract on the
// interpreter and on the cpu backend, and bit for bit in strict mode.
#include <gtest/gtest.h>

#include "frontend/graph_impl.h"
#include "inspect/questions/trial_run.h"
#include "lathe/lathe.h"
#include "tests/golden/seed_models.h"

using namespace mlir;

namespace lathe::conformance {
namespace {

struct Parameter {
  seeds::SeedModel model;
  DType dtype;
};
void PrintTo(const Parameter& p, std::ostream* os) { *os << p.model.name; }

class SeedPasses : public ::testing::TestWithParam<Parameter> {
 protected:
  Graph graph() const { return GetParam().model.build(GetParam().dtype); }
  // The inputs of the model's first call, as far as entry points have them.
  TrialOptions options(Precision precision) const {
    TrialOptions o{.precision = precision};
    for (const auto& [name, value] : GetParam().model.symbols) o.sizes[name] = value;
    return o;
  }
  // Compares after each step that the interpreter can run; returns how many it saw.
  static int compareSteps(const Graph& graph, const Trial& trial, NumericsMode mode,
                          bool identical) {
    int steps = 0;
    runStages(graph, Stage::Lowered, {.pipeline = {.mode = mode}}, {},
              [&](const StepDone& step, ModuleOp module) {
                if (!Trial::canRun(module)) return;
                ++steps;
                Deviation d = trial.compare(trial.run(module, trial.options().precision));
                EXPECT_TRUE(d.within && (d.identical || !identical))
                    << step.name << ": " << d.where;
              });
    return steps;
  }
};

TEST_P(SeedPasses, KeepResultsInEveryMode) {
  const Graph g = graph();
  Trial trial(g.impl().finished(), options(Precision::Float64));
  for (NumericsMode mode : {NumericsMode::Strict, NumericsMode::Relaxed, NumericsMode::Fast}) {
    SCOPED_TRACE(nameOf(mode));
    EXPECT_GE(compareSteps(g, trial, mode, false), 6);
  }
}

TEST_P(SeedPasses, KeepEveryBitInStrictMode) {
  const Graph g = graph();
  Trial trial(g.impl().finished(), options(Precision::OwnDtype));
  EXPECT_GE(compareSteps(g, trial, NumericsMode::Strict, true), 6);
}

TEST_P(SeedPasses, KeepResultsOnTheCpu) {
  const Graph g = graph();
  Trial trial(g.impl().finished(), options(Precision::Float64));
  for (NumericsMode mode : {NumericsMode::Strict, NumericsMode::Relaxed, NumericsMode::Fast}) {
    Deviation d =
        trial.judgeBackend(trial.run(compile(g, {.backend = "cpu", .pipeline = {.mode = mode}})));
    EXPECT_TRUE(d.within) << nameOf(mode) << ": " << d.where;
  }
}

std::vector<Parameter> parameters() {
  std::vector<Parameter> all;
  for (const seeds::SeedModel& model : seeds::seedModels())
    for (DType dtype : model.dtypes) all.push_back({model, dtype});
  return all;
}
INSTANTIATE_TEST_SUITE_P(Models, SeedPasses, ::testing::ValuesIn(parameters()),
                         [](const auto& info) {
                           return info.param.model.name + "_" +
                                  std::string(nameOf(info.param.dtype));
                         });

}  // namespace
}  // namespace lathe::conformance
