// SPDX-License-Identifier: Apache-2.0
// lathe run: one execution of an entry point on named inputs.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>
#include <type_traits>

#include <fmt/format.h>

#include "lathe/runtime/error.h"
#include "lathe/runtime/npy.h"
#include "lathe/runtime/safetensors.h"
#include "tools/lathe/input_spec.h"
#include "tools/lathe/json_output.h"
#include "tools/lathe/open_session.h"
#include "tools/lathe/rank_launcher.h"
#include "tools/lathe/ranks.h"
#include "tools/lathe/report.h"
#include "tools/lathe/verbs.h"

namespace lathe::cli {
namespace {

constexpr int64_t kShownValues = 8;

// MODEL is the first word without '=' (or the first that exists); the others are inputs that
// followed one --input.
std::string takeModel(std::vector<std::string>& words, std::vector<std::string>& inputs) {
  std::string model;
  for (const std::string& word : words) {
    std::error_code ignored;
    bool isInput = word.find('=') != std::string::npos &&
                   (!model.empty() || !std::filesystem::exists(word, ignored));
    if (isInput)
      inputs.push_back(word);
    else if (model.empty())
      model = word;
    else
      throw Error(ErrorCode::InvalidArgument,
                  "unexpected argument '" + word + "' after the model " + model);
  }
  if (model.empty())
    throw Error(ErrorCode::InvalidArgument, "MODEL is required; see `lathe run --help`");
  return model;
}

Arrays readInputs(const std::vector<std::string>& specs) {
  Arrays inputs;
  for (const std::string& spec : specs) {
    auto [name, array] = parseInput(spec);
    if (!inputs.emplace(name, array).second)
      throw Error(ErrorCode::InvalidArgument, "--input " + name + ": given twice");
  }
  return inputs;
}

// Symbols that only states have (a cache's capacity) are read off no input: --symbol or the largest
// of their range, so that whatever the inputs ask for fits.
void setStateSymbols(Session& session, const EntryPoint& entry,
                     const std::vector<std::string>& settings) {
  const Program& program = session.program();
  // An input gives a symbol its value where a dim is that symbol alone, not in `past+seq`.
  std::set<std::string> inInputs, given, inStates;
  for (const Port& port : entry.inputs)
    for (const DimExpr& d : entry.slots[size_t(port.slot)].shape)
      for (const std::string& name : d.symbols()) {
        inInputs.insert(name);
        if (d == DimExpr::symbol(name)) given.insert(name);
      }
  auto readStates = [&](const EntryPoint& of) {
    for (const Port& port : of.statesIn)
      for (const DimExpr& d : of.slots[size_t(port.slot)].shape)
        for (const std::string& name : d.symbols()) inStates.insert(name);
  };
  readStates(entry);
  for (const auto& stage : program.laterStages) readStates(stage->entry(entry.name));
  for (const SymbolInfo& s : program.symbols)
    if (inStates.contains(s.name) && !inInputs.contains(s.name))
      session.setSymbol(s.name, s.hi / s.multiple * s.multiple);
  for (const std::string& setting : settings) {
    size_t equals = setting.find('=');
    std::string name = setting.substr(0, equals);
    if (equals == std::string::npos || equals == 0)
      throw Error(ErrorCode::InvalidArgument, "--symbol: expected NAME=VALUE, got " + setting);
    if (given.contains(name))
      throw Error(ErrorCode::InvalidArgument,
                  "--symbol: the inputs' shapes already give '" + name + "' its value");
    session.setSymbol(name, parseCount(setting.substr(equals + 1), "--symbol " + name, 0));
  }
}

// Token ids come as i32 from many tools; widening them is exact.
void widenIndices(const EntryPoint& entry, Arrays& inputs) {
  for (const Port& port : entry.inputs) {
    auto it = inputs.find(port.name);
    if (it != inputs.end() && it->second.dtype() == DType::I32 &&
        entry.slots[size_t(port.slot)].dtype == DType::I64)
      it->second = it->second.to(DType::I64);
  }
}

void checkOutputName(const std::string& output, const EntryPoint& entry) {
  if (output.empty() || output.ends_with(".safetensors")) return;
  if (!output.ends_with(".npy"))
    throw Error(ErrorCode::InvalidArgument,
                "--output: expected a name that ends in .safetensors or .npy, got " + output);
  if (entry.outputs.size() != 1)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("--output: a .npy file holds one tensor, entry point '{}' has {}; "
                            "write a .safetensors file",
                            entry.name, entry.outputs.size()));
  const DType dtype = entry.slots[size_t(entry.outputs[0].slot)].dtype;
  if (dtype == DType::BF16 || isPacked(dtype))
    throw Error(ErrorCode::Unsupported,
                fmt::format("--output: NumPy has no {}, which the output '{}' is; write a "
                            ".safetensors file",
                            nameOf(dtype), entry.outputs[0].name));
}

// i64 is apart because a double holds only integers up to 2^53 exactly; T is int64_t for it and
// double for every other dtype.
template <class T>
struct Summary {
  std::vector<T> first;
  T low = 0, high = 0;  // of the elements that are not NaN, if there are any
  int64_t nans = 0;
};

template <class T>
Summary<T> summarize(const Array& array) {
  Summary<T> s;
  bool any = false;
  auto add = [&](T value) {
    if (s.first.size() < size_t(kShownValues)) s.first.push_back(value);
    if (value != value) {
      ++s.nans;
      return;
    }
    s.low = any ? std::min(s.low, value) : value;
    s.high = any ? std::max(s.high, value) : value;
    any = true;
  };
  if constexpr (std::is_same_v<T, int64_t>)
    for (int64_t value : array.as<int64_t>()) add(value);
  else
    for (int64_t i = 0; i < array.size(); ++i) add(array.at(i));
  return s;
}

/// Calls `use` with the summary of `array`, exact for its dtype.
template <class Use>
void withSummary(const Array& array, Use use) {
  if (array.dtype() == DType::I64)
    use(summarize<int64_t>(array));
  else
    use(summarize<double>(array));
}

// The sign of a NaN says nothing.
std::string shown(double value) { return std::isnan(value) ? "nan" : fmt::format("{:.6g}", value); }
std::string shown(int64_t value) { return fmt::format("{}", value); }
Json shownJson(double value) { return numberOrText(value); }
Json shownJson(int64_t value) { return value; }

void printText(const Arrays& outputs) {
  for (auto& [name, array] : outputs) {
    fmt::print("{}: {}\n", name, lathe::describe(array.dtype(), array.shape()));
    if (!array.size()) continue;
    withSummary(array, [&](const auto& s) {
      std::vector<std::string> first;
      for (auto value : s.first) first.push_back(shown(value));
      fmt::print("  {}{}\n", fmt::join(first, ", "), array.size() > kShownValues ? ", ..." : "");
      if (s.nans == array.size()) {
        fmt::print("  all NaN\n");
        return;
      }
      fmt::print("  min {}, max {}", shown(s.low), shown(s.high));
      if (s.nans) fmt::print(", {} NaN", s.nans);
      fmt::print("\n");
    });
  }
}

void printOutputsJson(const Arrays& outputs, const std::string& entry, const std::string& file) {
  Json out = document("run");
  out["entry"] = entry;
  if (!file.empty()) out["output"] = file;
  out["outputs"] = Json::array();
  for (auto& [name, array] : outputs) {
    Json item{{"name", name}, {"dtype", nameOf(array.dtype())}, {"shape", array.shape()}};
    withSummary(array, [&](const auto& s) {
      Json first = Json::array();
      for (auto value : s.first) first.push_back(shownJson(value));
      item["first_values"] = first;
      if (array.size() > s.nans) {
        item["min"] = shownJson(s.low);
        item["max"] = shownJson(s.high);
      }
      item["nan_count"] = s.nans;
    });
    out["outputs"].push_back(item);
  }
  printJson(out);
}

}  // namespace

int runVerb(const ArgumentList& arguments) {
  auto parser = makeParser("run", "Runs an entry point of a model once.",
                           "lathe run stories.lathe --input input_ids=1x4xi64=1,2,3,4 "
                           "--output logits.safetensors");
  std::vector<std::string> words, specs, symbols;
  std::string entryName, output, stage;
  bool json = false;
  CompileFlags flags;
  SessionFlags sessionFlags;
  ReportFlags report;
  parser->add_option("MODEL", words, kModelFilesHelp);
  parser->add_option("--entry", entryName, "entry point (default: forward, or the only one)");
  parser->add_option("--weights", sessionFlags.weights,
                     ".safetensors or .gguf file or folder of weights");
  parser
      ->add_option("--input", specs,
                   "NAME=SPEC; SPEC is @x.npy, @x.safetensors:key, 4x8xf32=1.0, 3xi64=1,2,3 or "
                   "i64=5")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->allow_extra_args(false);
  parser->add_option("--symbol", symbols, "NAME=VALUE of a size that no input has: cache=64")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->allow_extra_args(false);
  parser->add_option("-o,--output", output, "write outputs to a .safetensors or .npy file")
      ->check(OutputFile{});
  addBackend(*parser, flags.compile.backend);
  addDType(*parser, flags.dtype);
  addPipelineFlags(*parser, flags);
  addRanks(*parser, flags.compile.pipeline.mesh);
  addRankThreads(*parser, sessionFlags.rankThreads);
  addThreads(*parser, sessionFlags.threads);
  addDevice(*parser, sessionFlags.device);
  addStopAfter(*parser, stage);
  parser->add_option("--save-ir", flags.compile.saveIrDir,
                     "write the IR of every stage into a folder");
  addReport(*parser, report, /*withSizes=*/false);
  parser->add_flag("--json", json, "print one JSON document");
  if (!parseArguments(*parser, arguments)) return kOk;
  becomeLauncher(flags.compile.pipeline.mesh.ranks, sessionFlags.rankThreads);

  Model model = openModel(takeModel(words, specs), flags.loras);
  if (!stage.empty()) {
    fmt::print("{}\n", irOf(model, flags, stage));
    return kOk;
  }
  Arrays inputs = readInputs(specs);
  ReportedProgram compiled = reportedProgramOf(model, flags, report);
  std::shared_ptr<const Program> program = compiled.program;
  if (entryName.empty())
    entryName = program->entries.size() == 1 ? program->entries.front().name : "forward";
  const EntryPoint& entry = program->entry(entryName);
  checkOutputName(output, entry);
  widenIndices(entry, inputs);
  sessionFlags.profile = !report.path.empty();
  Session session = openSession(model, program, sessionFlags);
  setStateSymbols(session, entry, symbols);
  Arrays outputs = session.run(entryName, inputs);
  if (compiled.report)
    writeReport(report, compiled, model,
                {{entryName, sizesOfRun(session, entry, inputs), session.profile(entryName)}});
  if (output.ends_with(".npy"))
    writeOutput(output, [&] { saveNpy(output, outputs.begin()->second); });
  else if (!output.empty())
    writeOutput(output, [&] { saveSafetensors(output, {outputs.begin(), outputs.end()}); });
  if (json)
    printOutputsJson(outputs, entryName, output);
  else if (output.empty())
    printText(outputs);
  return kOk;
}

}  // namespace lathe::cli
