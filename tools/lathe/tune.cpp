// SPDX-License-Identifier: Apache-2.0
// lathe tune: the candidates of a model's kernels, to be measured on a GPU.
#include <filesystem>

#include <fmt/format.h>

#include "lathe/runtime/error.h"
#include "tools/lathe/console.h"
#include "tools/lathe/json_output.h"
#include "tools/lathe/model.h"
#include "tools/lathe/open_session.h"
#include "tools/lathe/verbs.h"

namespace lathe::cli {

int tuneVerb(const ArgumentList& arguments) {
  auto parser = makeParser(
      "tune", "Writes the candidates of a model's CUDA kernels, to be measured on a GPU.",
      "lathe tune bench/configs/llama-1b.json --dtype bf16 -o candidates.lathe");
  std::string path, output, only;
  bool texts = false, json = false;
  CompileFlags flags;
  parser->add_option("MODEL", path, kGraphFiles)->required();
  parser->add_option("-o,--output", output, "the .lathe file to write")
      ->required()
      ->check(OutputFile{});
  addDType(*parser, flags.dtype);
  parser->add_option("--only", only,
                     "problems that contain one of these texts, with commas between them");
  parser->add_flag("--texts", texts, "kernel texts instead of machine code: to try it on a CPU");
  parser
      ->add_option("--max-seq", flags.family.maxSeq,
                   "most tokens of one call (default: the model's)")
      ->check(WholeNumber{1});
  parser->add_flag("--json", json, "describe the result as one JSON document");
  if (!parseArguments(*parser, arguments)) return kOk;
  if (!output.ends_with(".lathe"))
    throw Error(ErrorCode::InvalidArgument,
                "--output: expected a name that ends in .lathe, got " + output);
  Model model = openModel(path);
  requireGraph(model);
  flags.compile.backend = "cuda";
  flags.compile.backendOptions.target = texts ? "candidates" : "sm_90a,candidates";
  if (!only.empty()) flags.compile.backendOptions.target += ":" + only;
  flags.randomWeights = lacksWeights(model);
  flags.family.greedy = true;
  const std::shared_ptr<const Program> program = programOf(model, flags);
  if (program->entries.empty())
    throw Error(ErrorCode::InvalidArgument,
                only.empty() ? path + " has no kernel with several candidates"
                             : "--only: no problem of " + path + " contains '" + only +
                                   "'; without --only all are written, by name");
  size_t candidates = 0;
  for (const EntryPoint& e : program->entries) candidates += e.calls.size();
  writeOutput(output, [&] { program->save(output); });
  const auto bytes = std::filesystem::file_size(output);
  if (json) {
    Json out = document("tune");
    out["output"] = output;
    out["size_bytes"] = bytes;
    out["problems"] = program->entries.size();
    out["candidates"] = candidates;
    printJson(out);
  } else {
    console().note(fmt::format("wrote {} ({}): {} problems, {} candidates", output,
                               byteText(double(bytes)), program->entries.size(), candidates));
  }
  return kOk;
}

}  // namespace lathe::cli
