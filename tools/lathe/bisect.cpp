// SPDX-License-Identifier: Apache-2.0
// lathe bisect: the rewrite that made a result wrong.
#include <fmt/format.h>

#include "tools/lathe/compiler_library.h"
#include "tools/lathe/console.h"
#include "tools/lathe/trial_flags.h"
#include "tools/lathe/verbs.h"

namespace lathe::cli {
namespace {

using Culprit = BisectResult::Culprit;

void printAsJson(const Model& model, const BisectResult& r) {
  Json out = document("bisect");
  out["model"] = model.path;
  out["culprit"] = nameOf(r.culprit);
  out["rewrites"] = r.rewrites;
  out["runs"] = r.runs;
  out["sizes"] = r.sizes;
  if (r.alsoSizes) out["also_sizes"] = *r.alsoSizes;
  if (r.culprit != Culprit::Nobody) out["deviation"] = deviationJson(r.deviation);
  if (!r.step.empty()) {
    out["stage"] = r.stage;
    out["step"] = r.step;
  }
  if (r.culprit == Culprit::Rewrite)
    out["rewrite"] = {{"number", r.rewrite.number},
                      {"attempt", r.rewrite.attempt},
                      {"pattern", r.rewrite.what},
                      {"at", r.rewrite.at},
                      {"weakened", r.rewrite.weakened}};
  if (!r.op.empty()) {
    out["op"] = r.op;
    out["at"] = r.at;
  }
  if (r.files)
    out["reproducer"] = {{"graph", r.files->graph},
                         {"data", r.files->data},
                         {"ops", r.files->ops},
                         {"shows_the_mistake", r.files->shows},
                         {"commands", r.files->commands}};
  printJson(out);
}

// "n = 2", and after a second trial "n = 2, then n = 17".
std::string triedText(const BisectResult& r) {
  std::string text = sizesText(r.sizes);
  if (r.alsoSizes && *r.alsoSizes != r.sizes) text += ", then " + sizesText(*r.alsoSizes);
  return text;
}

void printAsText(const Model& model, const CompileFlags& flags, const std::string& backend,
                 const BisectResult& r) {
  switch (r.culprit) {
    case Culprit::Nobody:
      fmt::print("{}: nothing is wrong; {} rewrites and backend {} stay inside the contract ({})\n",
                 model.path, r.rewrites, backend, triedText(r));
      return;
    case Culprit::Rewrite:
      fmt::print("rewrite {} of step {}: {} at {}\n", r.rewrite.number, r.step, r.rewrite.what,
                 r.rewrite.at);
      if (!r.rewrite.weakened.empty())
        fmt::print("  weakens {}\n", fmt::join(r.rewrite.weakened, ", "));
      break;
    case Culprit::Step:
      fmt::print("step {} of stage {}, which has no numbered rewrites\n", r.step, r.stage);
      break;
    case Culprit::Backend:
      if (r.op.empty())
        fmt::print("backend {}: its program differs as a whole, no part of the graph alone does\n",
                   backend);
      else
        fmt::print("backend {}: {} at {}\n", backend, r.op, r.at);
      break;
  }
  const Deviation& d = r.deviation;
  fmt::print("  {}\n  largest error: {:.3g} absolute, {:.3g} relative, {:.3g} ulps\n", d.where,
             d.absolute, d.relative, d.ulps);
  fmt::print("  found in {} runs of the graph with {}\n", r.runs, sizesText(r.sizes));
  if (r.culprit == Culprit::Rewrite)
    fmt::print(
        "\nbefore and after it:\n"
        "  lathe inspect {0}{4} --stop-after {1} --stop-after-rewrite {2}\n"
        "  lathe inspect {0}{4} --stop-after {1} --stop-after-rewrite {3}\n",
        shellWord(model.path), r.stage, r.rewrite.number - 1, r.rewrite.number, flagsText(flags));
  if (!r.files) return;
  fmt::print("\nreproducer: {} ({} {}{})\n", r.files->graph, r.files->ops,
             r.files->ops == 1 ? "op" : "ops",
             r.files->shows ? "" : "; it does not show the mistake by itself");
  for (const std::string& command : r.files->commands) fmt::print("  {}\n", command);
}

}  // namespace

int bisectVerb(const ArgumentList& arguments) {
  auto parser = makeParser(
      "bisect", "Finds the rewrite with which the results leave those of the recorded graph.",
      "lathe bisect examples/models/stories --set batch=1,seq=8 -o wrong/");
  std::string path, folder;
  bool json = false, noBackend = false;
  CompileFlags flags;
  TrialFlags trial;
  parser->add_option("MODEL", path, kGraphFiles)->required();
  parser->add_option("-o,--output", folder,
                     "folder for reproducer.mlir and its data (default: none is written)");
  addBackend(*parser, flags.compile.backend);
  parser->add_flag("--no-backend", noBackend, "leave the compiled program out");
  addDType(*parser, flags.dtype);
  addLayers(*parser, flags.family.layers);
  addPipelineFlags(*parser, flags);
  addRanks(*parser, flags.compile.pipeline.mesh);
  addTrialFlags(*parser, trial);
  parser->add_flag("--json", json, "print one JSON document");
  if (!parseArguments(*parser, arguments)) return kOk;

  Model model = openModel(path, flags.loras);
  requireGraph(model);
  flags.randomWeights = lacksWeights(model);
  flags = withLayersOnce(model, flags);
  BisectOptions options;
  options.trial = trialOptions(model, flags, trial);
  options.folder = folder;
  options.backend = !noBackend;
  const ModelRequest request = requestFor(model, flags);
  BisectResult result;
  {
    keepFreedMemory();
    Progress progress("searching " + path);
    options.trial.progress = [&](const std::string& what, size_t, size_t) {
      progress.stage("searching " + path + ": " + what);
    };
    result = compiler().bisect(request, options);
  }
  if (json)
    printAsJson(model, result);
  else
    printAsText(model, flags, request.compile.backend, result);
  return result.culprit == Culprit::Nobody ? kOk : kNumeric;
}

}  // namespace lathe::cli
