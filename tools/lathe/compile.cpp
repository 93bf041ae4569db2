// SPDX-License-Identifier: Apache-2.0
// lathe compile: a model as a .lathe program.
#include <filesystem>

#include <fmt/format.h>

#include "lathe/runtime/error.h"
#include "tools/lathe/console.h"
#include "tools/lathe/json_output.h"
#include "tools/lathe/model.h"
#include "tools/lathe/open_session.h"
#include "tools/lathe/report.h"
#include "tools/lathe/verbs.h"

namespace lathe::cli {

int compileVerb(const ArgumentList& arguments) {
  auto parser = makeParser("compile", "Compiles a model and writes it as a .lathe program.",
                           "lathe compile examples/models/stories -o stories.lathe --dtype bf16");
  std::string path, output, stage;
  bool hostOnly = false, allTiers = false, json = false;
  CompileFlags flags;
  ReportFlags report;
  parser->add_option("MODEL", path, kGraphFiles)->required();
  parser->add_option("-o,--output", output, "the .lathe file to write")->check(OutputFile{});
  addDType(*parser, flags.dtype);
  addPipelineFlags(*parser, flags);
  addRanks(*parser, flags.compile.pipeline.mesh);
  addBackend(*parser, flags.compile.backend);
  auto* all =
      parser->add_flag("--all-tiers", allTiers, "code for every instruction set tier (default)");
  parser->add_flag("--host-only", hostOnly, "code for this machine's tier alone")->excludes(all);
  parser->add_option("--save-ir", flags.compile.saveIrDir,
                     "write the IR of every stage into a folder");
  addTarget(*parser, flags.compile.backendOptions.target);
  addStopAfter(*parser, stage);
  addReport(*parser, report, /*withSizes=*/true);
  parser
      ->add_option("--max-seq", flags.family.maxSeq,
                   "most tokens of one call (default: the model's)")
      ->check(WholeNumber{1});
  parser->add_flag("--verify", flags.family.verify, "add what `lathe generate --speculate` needs");
  addGreedy(*parser, flags.family.greedy);
  addCacheBlock(*parser, flags.family.cacheBlock);
  parser->add_flag("--json", json, "describe the result as one JSON document");
  if (!parseArguments(*parser, arguments)) return kOk;
  if (output.empty() && stage.empty() && report.path.empty())
    throw Error(ErrorCode::InvalidArgument,
                "--output or --report is required; see `lathe compile --help`");
  if (!output.empty() && !output.ends_with(".lathe"))
    throw Error(ErrorCode::InvalidArgument,
                "--output: expected a name that ends in .lathe, got " + output);

  Model model = openModel(path, flags.loras);
  if (model.kind == ModelKind::Artifact)
    throw Error(ErrorCode::InvalidArgument, path + " is compiled already");
  flags.compile.backendOptions.allTiers = !hostOnly && !output.empty();
  flags.randomWeights = lacksWeights(model);
  if (!stage.empty()) {
    printGraphText("compile", stage, "mlir", irOf(model, flags, stage), json);
    return kOk;
  }
  // Fresh from the compiler and shared with nobody yet.
  ReportedProgram compiled = reportedProgramOf(model, flags, report);
  auto program = std::const_pointer_cast<Program>(compiled.program);
  program->metadata["lathe_version"] = LATHE_VERSION;
  if (hasOwnWeights(model) && !flags.randomWeights) {
    checkProgramWeights(*program, path, model.loras);
    if (!output.empty()) noteWeights(*program, output, model);
  }
  writeReport(report, compiled, model);
  if (output.empty()) {
    if (json) {
      Json out = document("compile");
      out["report"] = report.path;
      printJson(out);
    }
    return kOk;
  }
  writeOutput(output, [&] { program->save(output); });
  const auto bytes = std::filesystem::file_size(output);
  if (json) {
    Json out = document("compile");
    out["output"] = output;
    out["size_bytes"] = bytes;
    out["backend"] = program->backend;
    for (const EntryPoint& e : program->entries)
      out["entries"].push_back({{"name", e.name}, {"calls", e.calls.size()}});
    printJson(out);
  } else {
    console().note(fmt::format("wrote {} ({})", output, byteText(double(bytes))));
  }
  return kOk;
}

}  // namespace lathe::cli
