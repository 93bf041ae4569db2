// SPDX-License-Identifier: Apache-2.0
#include "tools/lathe/inspect_pipeline.h"

#include <algorithm>

#include <fmt/format.h>

#include "tools/lathe/arguments.h"
#include "tools/lathe/compiler_library.h"
#include "tools/lathe/console.h"
#include "tools/lathe/exit_status.h"

namespace lathe::cli {
namespace {

// "blocks.0 model.cc:40:3" where the compiler gave both.
std::string placeOfRewrite(const CompileRecord::Rewrite& r) {
  return r.path.empty() || r.at.starts_with(r.path) ? r.at : r.path + " " + r.at;
}

int printRewrites(const Model& model, const ModelRequest& request, bool json) {
  const CompileRecord record = compiler().rewrites(request);
  if (json) {
    Json out = document("inspect");
    out["model"] = model.path;
    out["rewrites"] = Json::array();
    for (const CompileRecord::Rewrite& r : record.rewrites)
      out["rewrites"].push_back({{"number", r.number},
                                 {"attempt", r.attempt},
                                 {"step", r.step},
                                 {"pattern", r.what},
                                 {"at", placeOfRewrite(r)},
                                 {"weakened", r.weakened}});
    printJson(out);
    return kOk;
  }
  size_t step = 4, what = 7;
  for (const CompileRecord::Rewrite& r : record.rewrites) {
    step = std::max(step, r.step.size());
    what = std::max(what, r.what.size());
  }
  fmt::print("{:>6}  {:>7}  {:<{}}  {:<{}}  at\n", "number", "attempt", "step", step, "pattern",
             what);
  for (const CompileRecord::Rewrite& r : record.rewrites)
    fmt::print("{:>6}  {:>7}  {:<{}}  {:<{}}  {}{}\n", r.number, r.attempt, r.step, step, r.what,
               what, placeOfRewrite(r),
               r.weakened.empty() ? "" : fmt::format("  weakens {}", fmt::join(r.weakened, ", ")));
  return kOk;
}

// `bisection` is the command that finds out what the table says is wrong.
int printNumerics(const Model& model, const ModelRequest& request, TrialOptions trial,
                  const std::string& bisection, bool json) {
  keepFreedMemory();
  Progress progress("running every step of " + model.path);
  trial.progress = [&](const std::string& what, size_t done, size_t total) {
    progress.stage(model.path + ": " + what);
    if (total) progress.at(done, total);
  };
  const NumericsTable table = compiler().checkNumerics(request, trial);
  const char* precision = trial.precision == Precision::Float64 ? "float64" : "own";
  const std::string mode = request.mode.empty() ? "relaxed" : request.mode;
  if (json) {
    Json out = document("inspect");
    out["model"] = model.path;
    out["precision"] = precision;
    out["mode"] = mode;
    out["seed"] = trial.seed;
    if (request.family.layers) out["layers"] = request.family.layers;
    out["sizes"] = table.sizes;
    out["within_contract"] = table.within;
    out["steps"] = Json::array();
    for (const NumericsRow& row : table.rows) {
      Json item{
          {"stage", row.stage}, {"step", row.step}, {"rewrites", row.rewrites}, {"ran", row.ran}};
      if (row.ran) item["deviation"] = deviationJson(row.deviation);
      if (row.changesWeights) item["changes_weights"] = true;
      if (!row.op.empty())
        item["first_diverging"] = {
            {"op", row.op}, {"at", row.at}, {"was", row.was}, {"was_at", row.wasAt}};
      out["steps"].push_back(item);
    }
    printJson(out);
    return table.within ? kOk : kNumeric;
  }
  fmt::print("{}: {} results, interpreter in {}, mode {}, {}, seed {}\n\n", model.path,
             table.results, precision, mode, sizesText(table.sizes), trial.seed);
  fmt::print("{:<10} {:<21} {:>8}  {:<9} {:>9} {:>9} {:>9}  first diverging op\n", "stage", "step",
             "rewrites", "contract", "absolute", "relative", "ulps");
  for (const NumericsRow& row : table.rows) {
    if (!row.ran) {
      fmt::print("{:<10} {:<21} {:>8}  kernel calls, which only the backend runs\n", row.stage,
                 row.step, row.rewrites);
      continue;
    }
    const Deviation& d = row.deviation;
    std::string first = row.op.empty() ? "" : row.op + " at " + row.at;
    if (!row.was.empty() && row.was != row.op) first += " (was " + row.was + ")";
    fmt::print("{:<10} {:<21} {:>8}  {:<9} {:>9.3g} {:>9.3g} {:>9.3g}  {}\n", row.stage, row.step,
               row.rewrites,
               row.changesWeights ? "weights"
               : d.identical      ? "same bits"
               : d.within         ? "inside"
                                  : "beyond",
               d.absolute, d.relative, d.ulps, first);
    if (!d.within) fmt::print("{:>12}beyond the contract: {}\n", "", d.where);
  }
  if (table.within)
    console().note("every step is inside the contract");
  else
    console().note("a step is beyond the contract; this names the rewrite: " + bisection);
  return table.within ? kOk : kNumeric;
}

int printLocations(const Model& model, const ModelRequest& request, bool json) {
  const LocationTable table = compiler().checkLocations(request);
  auto percent = [](const LocationRow& row) {
    return row.ops ? 100.0 * double(row.known) / double(row.ops) : 100.0;
  };
  if (json) {
    Json out = document("inspect");
    out["model"] = model.path;
    out["complete"] = table.complete;
    if (!table.error.empty()) out["error"] = table.error;
    out["steps"] = Json::array();
    for (const LocationRow& row : table.rows)
      out["steps"].push_back({{"stage", row.stage},
                              {"step", row.step},
                              {"ops", row.ops},
                              {"with_origin", row.known},
                              {"percent", percent(row)},
                              {"lost", row.lost}});
    printJson(out);
    return table.complete ? kOk : kFailed;
  }
  fmt::print("{:<10} {:<21} {:>7} {:>11}\n", "stage", "step", "ops", "with origin");
  for (const LocationRow& row : table.rows) {
    fmt::print("{:<10} {:<21} {:>7} {:>9.1f} %\n", row.stage, row.step, row.ops, percent(row));
    for (const std::string& lost : row.lost) fmt::print("{:>12}{}\n", "", lost);
  }
  if (!table.error.empty()) console().note("the pipeline ended there: " + table.error);
  return table.complete ? kOk : kFailed;
}

}  // namespace

void addPipelineQuestions(CLI::App& parser, PipelineQuestions& questions) {
  auto* rewrites =
      parser.add_flag("--rewrites", questions.rewrites,
                      "list the numbered rewrites: step, pattern, line, weakened contracts");
  auto* numerics = parser.add_flag("--check-numerics", questions.numerics,
                                   "run the interpreter after every step and compare results");
  parser
      .add_flag("--check-locations", questions.locations,
                "count the ops of every step that know the line that recorded them")
      ->excludes(rewrites)
      ->excludes(numerics);
  numerics->excludes(rewrites);
  addTrialFlags(parser, questions.trial);
  for (const char* flag : trialFlagNames()) parser.get_option(flag)->needs(numerics);
}

int answer(const PipelineQuestions& questions, const Model& model, const CompileFlags& flags,
           bool json) {
  requireGraph(model);
  const CompileFlags own = questions.numerics ? withLayersOnce(model, flags) : flags;
  const ModelRequest request = requestFor(model, own);
  if (questions.rewrites) return printRewrites(model, request, json);
  if (questions.locations) return printLocations(model, request, json);
  const std::string bisection =
      "lathe bisect " + shellWord(model.path) + flagsText(own) + flagsText(questions.trial);
  return printNumerics(model, request, trialOptions(model, own, questions.trial), bisection, json);
}

}  // namespace lathe::cli
