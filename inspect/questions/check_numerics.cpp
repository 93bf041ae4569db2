// SPDX-License-Identifier: Apache-2.0
#include "lathe/inspect/check_numerics.h"

#include <memory>

#include "frontend/graph_impl.h"
#include "inspect/questions/divergence.h"
#include "passes/rewrite/rewrite_log.h"

using namespace mlir;

namespace lathe {

static bool identical(const TrialResults& a, const TrialResults& b) {
  for (size_t i = 0; i < a.size(); ++i)
    if (!deviationOf(a[i].value, b[i].value, a[i].dtype, 0, "").identical) return false;
  return true;
}

NumericsTable checkNumerics(const Graph& graph, const TrialOptions& options) {
  ModuleOp recorded = graph.impl().finished();
  auto trial = std::make_unique<Trial>(recorded, options);
  NumericsTable table;
  table.sizes = trial->sizes();
  table.results = trial->wanted().size();

  OwningOpRef<ModuleOp> before = recorded.clone();
  OperationFingerPrint seen(recorded);
  TrialResults last = trial->wanted();
  Deviation lastDeviation;
  CompileRecord record;
  CompileOptions compile = trial->options().compile;
  compile.record = &record;
  size_t rewritesBefore = 0;
  OwningOpRef<ModuleOp> requantized;  // what the later trial runs
  size_t runs = 1;                    // the program's
  auto afterStep = [&](const StepDone& step, ModuleOp module) {
    NumericsRow row{std::string(nameOf(step.stage)), step.name};
    runs = step.of + 1;
    row.rewrites = record.rewrites.size() - rewritesBefore;
    row.changesWeights = changesWeights(record, rewritesBefore);
    rewritesBefore = record.rewrites.size();
    row.ran = Trial::canRun(module);
    OperationFingerPrint now(module);
    // What a step did not touch gives the results that it gave before.
    if (row.ran && now == seen) {
      row.deviation = lastDeviation;
    } else if (row.ran) {
      trial->tell("step " + step.name, step.number - 1, runs);
      TrialResults results = trial->run(module, trial->options().precision);
      row.deviation = trial->judge(results);
      // A step that mends nothing is not blamed for what came before it.
      bool broke = !row.deviation.within && lastDeviation.within;
      auto d = identical(results, last)
                   ? std::nullopt
                   : firstDivergence({*before, last}, {module, results}, *trial, broke);
      if (d) {
        row.op = d->op;
        row.at = d->at;
        row.was = d->was;
        row.wasAt = d->wasAt;
      }
      last = std::move(results);
      lastDeviation = row.deviation;
      before = module.clone();
      seen = now;
      if (row.changesWeights) {
        row.deviation.within = true;
        requantized = module.clone();
        trial = std::make_unique<Trial>(*requantized, options);
        last = trial->wanted();
        lastDeviation = {};
      }
    }
    table.within &= row.deviation.within;
    table.rows.push_back(std::move(row));
  };
  Program program = runStages(graph, Stage::Program, compile, {}, afterStep);
  NumericsRow row{"program", compile.backend};
  row.ran = true;
  trial->tell("the program of backend " + compile.backend, runs - 1, runs);
  row.deviation = trial->judgeBackend(trial->run(std::move(program)));
  table.within &= row.deviation.within;
  table.rows.push_back(std::move(row));
  return table;
}

}  // namespace lathe
