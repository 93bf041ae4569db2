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

// The same model on 1, 2, 4, ... ranks, each with the plan that it has then.
RankScaling scalingOf(const ExplainReport& report, const Model& model, CompileFlags flags) {
  constexpr int64_t kMostRanks = 64;
  RankScaling scaling;
  for (int64_t ranks = 1; ranks <= kMostRanks; ranks *= 2) {
    flags.compile.pipeline.mesh.ranks = ranks;
    ExplainReport on = report;
    on.ranks = ranks;
    on.program = costsOfModel(model, flags, report.stage, report.values);
    for (const EntryPoint* e : report.entries)
      if (const EntryPoint& entry = on.program->entry(e->name); on.isKnown(entry))
        scaling[e->name].push_back(predictOnRanks(on, entry));
  }
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
  addRanks(*parser, flags.compile.pipeline.mesh.ranks);
  parser->add_option("--mesh", mesh,
                     "tp=N: the same as --ranks N, and how the model scales up to 64 ranks");
  parser->add_option("--link", link,
                     "between ranks: latency and bandwidth, as 25us,2.8GB/s (default: processes of "
                     "one host)");
  parser->add_flag("--json", json, "print one JSON document");
  if (!parseArguments(*parser, arguments)) return kOk;

  ExplainReport report;
  report.values = parseSizes(sizes, "--set");
  // Tells the mistakes of flags before any work.
  if (!device.empty() && device != "host") report.machine = parseMachine(device);
  int64_t& ranks = flags.compile.pipeline.mesh.ranks;
  if (!mesh.empty()) ranks = parseMesh(mesh);
  if (!link.empty() && ranks <= 1)
    throw Error(ErrorCode::InvalidArgument, "--link is between ranks; add --mesh tp=N");
  const Link between = link.empty() ? sharedMemoryLink() : parseLink(link);
  Model model = openModel(path, flags.loras);
  flags.randomWeights = lacksWeights(model);
  report.model = path;
  report.stage = stage;
  report.everyOp = everyOp;
  report.program = costsOfModel(model, flags, stage, report.values);
  report.ranks = report.program->ranks;
  if (report.ranks > 1) report.link = between;
  chooseEntries(report, entry);
  bool anyKnown = false;
  for (const EntryPoint* e : report.entries) anyKnown |= report.isKnown(*e);
  if (!anyKnown)
    report.machine.reset();  // polynomials have no time
  else if (!report.machine)
    report.machine = hostRoofs(anew);
  const RankScaling scaling =
      mesh.empty() || !anyKnown ? RankScaling() : scalingOf(report, model, flags);
  if (json)
    printExplanationJson(report, scaling);
  else
    printExplanation(report, scaling);
  return kOk;
}

}  // namespace lathe::cli
