// SPDX-License-Identifier: Apache-2.0
// lathe inspect: what a model takes, gives and holds.
#include <fnmatch.h>

#include <algorithm>

#include <fmt/format.h>

#include "lathe/runtime/checkpoint.h"
#include "tools/lathe/compiler_library.h"
#include "tools/lathe/console.h"
#include "tools/lathe/inspect_pipeline.h"
#include "tools/lathe/json_output.h"
#include "tools/lathe/kernels.h"
#include "tools/lathe/model.h"
#include "tools/lathe/open_session.h"
#include "tools/lathe/rank_links.h"
#include "tools/lathe/verbs.h"

namespace lathe::cli {
namespace {

struct TensorTotals {
  int64_t tensors = 0, parameters = 0, bytes = 0;
};

struct Interface {
  const Program& program;
  std::string tensors;  // glob
  TensorTotals totals;

  explicit Interface(const Program& p, std::string glob) : program(p), tensors(std::move(glob)) {
    for (const TensorInfo& w : p.weights) {
      ++totals.tensors;
      totals.parameters += parameters(w);
      totals.bytes += int64_t(bytesOf(w.dtype, parameters(w)));
    }
  }
  static int64_t parameters(const TensorInfo& info) {
    int64_t count = 1;
    for (const DimExpr& d : info.shape) count *= d.asConstant().value_or(0);
    return count;
  }
  bool shown(const TensorInfo& info) const {
    return tensors.empty() || fnmatch(tensors.c_str(), info.name.c_str(), 0) == 0;
  }
};

Json portsJson(const EntryPoint& entry, const std::vector<Port>& ports) {
  Json list = Json::array();
  for (const Port& port : ports) {
    const Slot& slot = entry.slots[size_t(port.slot)];
    list.push_back(
        {{"name", port.name}, {"dtype", nameOf(slot.dtype)}, {"shape", shapeJson(slot.shape)}});
  }
  return list;
}

Json configJson(const ModelConfig& c) {
  return {{"vocab_size", c.vocabSize},
          {"hidden_size", c.hiddenSize},
          {"intermediate_size", c.intermediateSize},
          {"layers", c.layers},
          {"heads", c.heads},
          {"kv_heads", c.kvHeads},
          {"head_dim", c.headDim},
          {"max_positions", c.maxPositions},
          {"tied_head", c.tieWordEmbeddings}};
}

void printAsJson(const Model& model, const Interface& interface) {
  const Program& program = interface.program;
  Json out = document("inspect");
  out["model"] = model.path;
  out["kind"] = nameOf(model.kind);
  if (model.program) out["backend"] = program.backend;
  if (model.files.contains("config.json")) out["config"] = configJson(configOf(model));
  if (auto dtype = arithmeticOf(program)) out["arithmetic"] = nameOf(*dtype);
  out["entries"] = Json::array();
  for (const EntryPoint& e : program.entries)
    out["entries"].push_back({{"name", e.name},
                              {"inputs", portsJson(e, e.inputs)},
                              {"outputs", portsJson(e, e.outputs)}});
  out["symbols"] = Json::array();
  for (const SymbolInfo& s : program.symbols)
    out["symbols"].push_back(
        {{"name", s.name}, {"low", s.lo}, {"high", s.hi}, {"multiple", s.multiple}});
  out["states"] = Json::array();
  for (const TensorInfo& s : program.states)
    out["states"].push_back(
        {{"name", s.name}, {"dtype", nameOf(s.dtype)}, {"shape", shapeJson(s.shape)}});
  out["weights"] = Json::array();
  for (const TensorInfo& w : program.weights) {
    if (!interface.shown(w)) continue;
    int64_t parameters = Interface::parameters(w);
    out["weights"].push_back({{"name", w.name},
                              {"dtype", nameOf(w.dtype)},
                              {"shape", shapeJson(w.shape)},
                              {"parameters", parameters},
                              {"size_bytes", int64_t(bytesOf(w.dtype, parameters))}});
  }
  out["parameters"] = interface.totals.parameters;
  out["weights_bytes"] = interface.totals.bytes;
  if (model.program) {
    out["metadata"] = program.metadata;
    for (auto& [name, bytes] : program.blobs) out["blobs_bytes"][name] = bytes.size();
    for (auto& [name, bytes] : program.files) out["files_bytes"][name] = bytes.size();
  }
  printJson(out);
}

void printHeader(const Model& model, const Program& program) {
  fmt::print("{}: {}", model.path, nameOf(model.kind));
  if (model.program) fmt::print(" for backend {}", program.backend);
  fmt::print("\n");
  if (model.files.contains("config.json")) {
    ModelConfig c = configOf(model);
    fmt::print(
        "model: {} layers, hidden {}, intermediate {}, {} heads of {}, {} KV heads, vocabulary {}, "
        "{} positions{}\n",
        c.layers, c.hiddenSize, c.intermediateSize, c.heads, c.headDim, c.kvHeads, c.vocabSize,
        c.maxPositions, c.tieWordEmbeddings ? ", tied head" : "");
  }
  if (auto dtype = arithmeticOf(program)) fmt::print("arithmetic: {}\n", nameOf(*dtype));
  if (!model.program) return;
  for (auto& [key, value] : program.metadata) fmt::print("{}: {}\n", key, value);
  for (auto& [name, bytes] : program.blobs)
    fmt::print("blob {}: {}\n", name, byteText(double(bytes.size())));
  for (auto& [name, bytes] : program.files)
    fmt::print("file {}: {}\n", name, byteText(double(bytes.size())));
}

void printAsText(const Model& model, const Interface& interface) {
  const Program& program = interface.program;
  printHeader(model, program);
  for (const EntryPoint& e : program.entries) {
    fmt::print("\nentry {}\n", e.name);
    auto ports = [&](const char* direction, const std::vector<Port>& list) {
      for (const Port& port : list) {
        const Slot& slot = e.slots[size_t(port.slot)];
        fmt::print("  {} {}: {}\n", direction, port.name, describe(slot.dtype, slot.shape));
      }
    };
    ports("in ", e.inputs);
    ports("out", e.outputs);
  }
  if (!program.symbols.empty()) fmt::print("\nsymbols\n");
  for (const SymbolInfo& s : program.symbols)
    fmt::print("  {}: {} to {}{}\n", s.name, s.lo, s.hi,
               s.multiple > 1 ? fmt::format(", multiples of {}", s.multiple) : "");
  if (!program.states.empty()) fmt::print("\nstates\n");
  for (const TensorInfo& s : program.states)
    fmt::print("  {}: {}\n", s.name, describe(s.dtype, s.shape));
  const TensorTotals& totals = interface.totals;
  fmt::print("\nweights: {} tensors, {} parameters, {}\n", totals.tensors,
             countText(double(totals.parameters)), byteText(double(totals.bytes)));
  for (const TensorInfo& w : program.weights)
    if (interface.shown(w)) fmt::print("  {}: {}\n", w.name, describe(w.dtype, w.shape));
}

}  // namespace

int inspectVerb(const ArgumentList& arguments) {
  auto parser = makeParser("inspect", "Shows what a model takes, gives and holds.",
                           "lathe inspect examples/models/stories --tensors '*norm*'");
  std::string path, glob, stage, kernels;
  bool json = false, graphviz = false;
  CompileFlags flags;
  parser->add_option("MODEL", path, kModelFilesHelp)->required();
  parser->add_flag("--json", json, "print one JSON document");
  parser->add_option("--tensors", glob, "list only the weights whose names match this glob");
  addStopAfter(*parser, stage);
  parser->add_flag("--graphviz", graphviz,
                   "print the graph, as recorded or at --stop-after, for dot(1)");
  parser->add_option("--backend", flags.compile.backend,
                     "backend of --stop-after and --kernels (LATHE_BACKEND)");
  parser->add_option("--kernels", kernels, "write the cuda backend's kernels into a folder");
  addTarget(*parser, flags.compile.backendOptions.target);
  addDType(*parser, flags.dtype);
  addLayers(*parser, flags.family.layers);
  addPipelineFlags(*parser, flags);
  addRanks(*parser, flags.compile.pipeline.mesh);
  addGreedy(*parser, flags.family.greedy);
  PipelineQuestions questions;
  addPipelineQuestions(*parser, questions);
  if (!parseArguments(*parser, arguments)) return kOk;

  Model model = openModel(path, flags.loras);
  flags.randomWeights = lacksWeights(model);
  if (questions.asked()) return answer(questions, model, flags, json);
  if (!stage.empty() || graphviz) {
    if (graphviz) requireGraph(model, "--graphviz");
    if (stage.empty()) stage = "recorded";
    printGraphText(
        "inspect", stage, graphviz ? "dot" : "mlir",
        graphviz ? compiler().graphviz(requestFor(model, flags), stage) : irOf(model, flags, stage),
        json);
    return kOk;
  }
  if (!kernels.empty()) {
    const size_t count = writeKernels(*programOf(model, flags), kernels);
    if (json) {
      Json out = document("inspect");
      out["folder"] = kernels;
      out["kernels"] = count;
      printJson(out);
      return kOk;
    }
    console().note(fmt::format("wrote {} kernels to {}", count, kernels));
    return kOk;
  }
  // Inputs, sizes and weights are the same for every backend; the reference makes no code, and
  // knows no ranks. Without --ranks they are the whole model's, whatever the graph says of ranks.
  Mesh& mesh = flags.compile.pipeline.mesh;
  mesh = resized(mesh, std::max<int64_t>(mesh.ranksOfStage(), 1), 1);
  if (!model.program) flags.compile.backend = mesh.ranks > 1 ? "cpu" : "reference";
  std::shared_ptr<const Program> program = programOf(model, flags);
  if (hasOwnWeights(model) && !flags.randomWeights)
    checkProgramWeights(*program, path, model.loras);
  Interface interface(*program, glob);
  if (json)
    printAsJson(model, interface);
  else
    printAsText(model, interface);
  return kOk;
}

}  // namespace lathe::cli
