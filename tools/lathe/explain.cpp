// SPDX-License-Identifier: Apache-2.0
// lathe explain: what a model would cost at given sizes on a given machine, without running it.
#include <fmt/format.h>

#include "lathe/runtime/error.h"
#include "tools/lathe/arguments.h"
#include "tools/lathe/compiler_library.h"
#include "tools/lathe/console.h"
#include "tools/lathe/explain_report.h"
#include "tools/lathe/host_roofs.h"
#include "tools/lathe/model.h"
#include "tools/lathe/nearest.h"
#include "tools/lathe/verbs.h"

namespace lathe::cli {
namespace {

std::shared_ptr<const Program> costsOfModel(const Model& model, const CompileFlags& flags,
                                            const std::string& stage, const SymbolValues& values) {
  if (!model.program) {
    Progress progress("explaining " + model.path);
    return compiler().explain(requestFor(model, flags), stage, values);
  }
  if (stage != "lowered")
    throw Error(ErrorCode::InvalidArgument,
                "--stage: " + model.path +
                    " is a compiled program without IR; it has the kernel "
                    "calls of stage lowered alone");
  if (!model.program->blobs.contains("costs"))
    throw Error(ErrorCode::InvalidArgument,
                model.path + ": the program holds no costs; compile the model again");
  checkSymbolValues(*model.program, values);
  return programOf(model, flags);  // refuses the flags of a compilation
}

void chooseEntries(ExplainReport& report, const std::string& name) {
  for (const EntryPoint& e : report.program->entries)
    if (name.empty() || e.name == name) report.entries.push_back(&e);
  if (report.entries.empty()) report.program->entry(name);  // names those that exist
  if (report.values.empty()) return;
  // With sizes, an entry point that lacks one is left out with a note, or refused if none is left.
  std::string lacking;
  std::erase_if(report.entries, [&](const EntryPoint* e) {
    const std::string missing = report.missing(*e);
    if (missing.empty()) return false;
    lacking +=
        fmt::format("{}entry point '{}' needs {}", lacking.empty() ? "" : "; ", e->name, missing);
    return true;
  });
  if (report.entries.empty()) throw Error(ErrorCode::InvalidArgument, "--set: " + lacking);
  if (!lacking.empty()) console().note("left out: " + lacking);
}

// What each stage of a pipeline takes, by entry point.
std::map<std::string, std::vector<RankPrediction>> stagesOf(const ExplainReport& report,
                                                            const Model& model,
                                                            CompileFlags flags) {
  std::map<std::string, std::vector<RankPrediction>> stages;
  for (int64_t stage = 0; stage < report.stages; ++stage) {
    flags.compile.pipeline.mesh.stage = stage;
    ExplainReport on = report;
    on.program = costsOfModel(model, flags, report.stage, report.values);
    if (model.program && stage > 0) on.program = on.program->laterStages[size_t(stage) - 1];
    for (const EntryPoint* e : report.entries)
      if (const EntryPoint& entry = on.program->entry(e->name); on.isKnown(entry))
        stages[e->name].push_back(predictOnRanks(on, entry));
  }
  return stages;
}

// The same model on 1, 2, 4, ... ranks, each with the plan that it has then; with stages of a
// pipeline so many in each, compared with one rank.
std::map<std::string, std::vector<RankPrediction>> scalingOf(const ExplainReport& report,
                                                             const Model& model,
                                                             CompileFlags flags) {
  constexpr int64_t kMostRanks = 64;
  std::map<std::string, std::vector<RankPrediction>> scaling;
  auto add = [&, asked = flags.compile.pipeline.mesh](int64_t ranks, int64_t stages) {
    flags.compile.pipeline.mesh = resized(asked, ranks, stages);
    ExplainReport on = report;
    on.ranks = ranks;
    on.stages = stages;
    for (const auto& [entry, each] : stagesOf(on, model, flags))
      scaling[entry].push_back(predictOnStages(each));
  };
  if (report.stages > 1) add(1, 1);
  for (int64_t ranks = 1; ranks * report.stages <= kMostRanks; ranks *= 2)
    add(ranks, report.stages);
  return scaling;
}

}  // namespace

int explainVerb(const ArgumentList& arguments) {
  auto parser = makeParser(
      "explain",
      "Predicts work, traffic, memory and time of every op from the symbolic sizes alone.",
      "lathe explain config.json --set batch=1,seq=8192 --device h100");
  std::string path, stage = "lowered", device, entry;
  std::vector<std::string> sizes;
  bool json = false, everyOp = false, anew = false;
  std::string mesh, link;
  CompileFlags flags;
  parser->add_option("MODEL", path, kModelFilesHelp)->required();
  parser->add_option("--set", sizes,
                     "sizes: SYMBOL=NUMBER,...; without them costs are polynomials");
  parser->add_option("--device", device,
                     "host (default, measured once), h100, h200, a100, epyc:CORES, xeon:CORES or "
                     "flops=F,bandwidth=B[,flops32=G]");
  parser->add_flag("--measure", anew, "measure the host again");
  parser->add_option("--stage", stage, "fused, laid-out or lowered (default)")
      ->check(CLI::IsMember({"fused", "laid-out", "lowered"}));
  parser->add_option("--entry", entry, "one entry point alone");
  parser->add_flag("--every-op", everyOp, "one row for each op instead of each place in a layer");
  addBackend(*parser, flags.compile.backend);
  addDType(*parser, flags.dtype);
  addPipelineFlags(*parser, flags);
  addRanks(*parser, flags.compile.pipeline.mesh);
  parser->add_option("--mesh", mesh,
                     "tp=N: the same as --ranks N, and how the model scales up to 64 ranks; "
                     "tp=N,pp=S: so many ranks in each of S stages");
  parser->add_option("--link", link,
                     "between ranks: latency and bandwidth, as 25us,2.8GB/s (default: processes of "
                     "one host)");
  parser->add_flag("--json", json, "print one JSON document");
  if (!parseArguments(*parser, arguments)) return kOk;

  ExplainReport report;
  report.values = parseSizes(sizes, "--set");
  // Tells the mistakes of flags before any work.
  if (!device.empty() && device != "host") report.machine = parseMachine(device);
  if (!mesh.empty()) {
    const bool splitRows = flags.compile.pipeline.mesh.splitRows;
    flags.compile.pipeline.mesh = parseMesh(mesh);
    flags.compile.pipeline.mesh.splitRows = splitRows;
  }
  if (!link.empty() && flags.compile.pipeline.mesh.ranks <= 1)
    throw Error(ErrorCode::InvalidArgument, "--link is between ranks; add --mesh tp=N");
  const Link between = link.empty() ? sharedMemoryLink() : parseLink(link);
  Model model = openModel(path, flags.loras);
  flags.randomWeights = lacksWeights(model);
  report.model = path;
  report.stage = stage;
  report.everyOp = everyOp;
  report.program = costsOfModel(model, flags, stage, report.values);
  report.ranks = report.program->ranks;
  report.stages = model.program ? model.program->stages()
                                : std::max<int64_t>(flags.compile.pipeline.mesh.stages, 1);
  if (report.ranks * report.stages > 1) report.link = between;
  chooseEntries(report, entry);
  bool anyKnown = false;
  for (const EntryPoint* e : report.entries) anyKnown |= report.isKnown(*e);
  if (!anyKnown)
    report.machine.reset();  // polynomials have no time
  else if (!report.machine)
    report.machine = hostRoofs(anew);
  RankPredictions predictions;
  if (anyKnown && report.stages > 1) predictions.stages = stagesOf(report, model, flags);
  if (anyKnown && !mesh.empty()) predictions.scaling = scalingOf(report, model, flags);
  if (json)
    printExplanationJson(report, predictions);
  else
    printExplanation(report, predictions);
  return kOk;
}

}  // namespace lathe::cli
