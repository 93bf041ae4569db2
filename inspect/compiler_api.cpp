// SPDX-License-Identifier: Apache-2.0
#include "lathe/inspect/compiler_api.h"

#include <filesystem>
#include <ranges>
#include <string_view>
#include <utility>

#include "lathe/backends/backend.h"
#include "lathe/frontend/compile.h"
#include "lathe/frontend/families/pretrained.h"
#include "lathe/frontend/onnx.h"
#include "lathe/inspect/explain.h"
#include "lathe/runtime/error.h"
#include "lathe/runtime/model_config.h"
#include "runtime/folder_tokenizer.h"
#include "runtime/gguf_model.h"
#include "runtime/mapped_file.h"

namespace lathe {
namespace {

namespace fs = std::filesystem;

CompileOptions optionsOf(const ModelRequest& r) {
  CompileOptions o = r.compile;
  if (!r.mode.empty()) o.pipeline.mode = parseNumericsMode(r.mode);
  if (!r.weightFormats.empty()) o.backendOptions.weights = parseWeightFormats(r.weightFormats);
  return o;
}

// The dtype of most of the floats that a checkpoint holds as they are.
DType storedDType(const Checkpoint& checkpoint, DType otherwise) {
  const CheckpointTensor* largest = nullptr;
  for (const std::string& name : checkpoint.names()) {
    const CheckpointTensor* tensor = checkpoint.entry(name);
    if (!tensor->blocks && tensor->dtype && isFloat(*tensor->dtype) &&
        (!largest || tensor->bytes > largest->bytes))
      largest = tensor;
  }
  return largest ? *largest->dtype : otherwise;
}

DType arithmeticOf(const ModelRequest& r, DType weights) {
  return r.dtype.value_or(weights == DType::BF16 ? DType::BF16 : DType::F32);
}

Graph graphOf(const ModelRequest& r) {
  if (r.path.ends_with(".mlir")) return Graph::parse(readWholeFile(r.path, kIrTextFile), r.path);
  if (r.path.ends_with(".onnx")) {
    OnnxOptions options{.constants = r.constants};
    if (r.family.maxSeq) options.largest = r.family.maxSeq;
    return loadOnnx(r.path, options).graph;
  }
  const JsonValue config = pretrainedConfig(r.path);
  familyOf(config);  // an architecture that there is not is told before its weights are missed
  const DType saved = readModelConfig(config).dtype;
  FamilyOptions options = r.family;
  options.dtype = arithmeticOf(r, saved);
  options.weightDType = DType::BF16;
  if (r.bareConfig) return buildFromConfig(config, options);
  const Checkpoint checkpoint = Checkpoint::open(r.path, r.loras);
  options.dtype = arithmeticOf(r, storedDType(checkpoint, saved));
  return buildPretrained(r.path, checkpoint, options);
}

// With the model's small files inside.
std::shared_ptr<const Program> completed(Program compiled, const ModelRequest& r) {
  auto program = std::make_shared<Program>(std::move(compiled));
  fs::path folder = fs::is_directory(r.path) ? fs::path(r.path) : fs::path();
  if (r.bareConfig && folder.empty() && !r.path.ends_with(".gguf"))
    program->files["config.json"] = readWholeFile(r.path, kConfigFile);
  if (r.path.ends_with(".gguf")) program->files = ggufModelFiles(r.path);
  if (!folder.empty()) program->files = readModelFiles(folder.string());
  if (!folder.empty() && !program->files.contains("tokenizer.json")) {
    try {
      if (auto made = folderTokenizer(folder.string()))
        program->files["tokenizer.json"] = std::move(*made);
    } catch (const Error& e) {
      // A class of tokenizers without a converter: the program takes token ids.
      if (e.code() != ErrorCode::Unsupported) throw;
    }
  }
  return program;
}

std::shared_ptr<const Program> compileModel(const ModelRequest& r) {
  auto tell = [&](const StepDone& step, mlir::ModuleOp) {
    if (r.progress) r.progress(step.name, step.number, step.of + 1);  // and one for the code
  };
  return completed(runStages(graphOf(r), Stage::Program, optionsOf(r), {}, tell), r);
}
std::shared_ptr<const Program> compileReported(const ModelRequest& r,
                                               std::shared_ptr<const Report>& report) {
  auto made = std::make_shared<Report>();
  std::shared_ptr<const Program> program = completed(made->compile(graphOf(r), optionsOf(r)), r);
  report = made;
  return program;
}
void writeReport(const Report& report, const std::string& path, const Program& program,
                 const ReportOptions& options, const std::vector<ReportRun>& runs) {
  report.write(path, program, options, runs);
}

std::string modelIr(const ModelRequest& r, const std::string& stage) {
  return irAt(graphOf(r), stage, optionsOf(r), /*withLocations=*/true);
}
std::shared_ptr<const Program> explainModel(const ModelRequest& r, const std::string& stage,
                                            const SymbolValues& values) {
  return std::make_shared<Program>(explain(graphOf(r), stage, values, optionsOf(r)));
}
std::string modelGraphviz(const ModelRequest& r, const std::string& stage) {
  return Graph::parse(modelIr(r, stage), r.path).graphviz();
}

CompileRecord rewritesOf(const ModelRequest& r) {
  CompileRecord record;
  CompileOptions options = optionsOf(r);
  options.record = &record;
  runStages(graphOf(r), Stage::Lowered, options, {});
  return record;
}
// Of a trial, which runs on one machine: all ranks in one graph.
CompileOptions optionsOfTrial(const ModelRequest& r) {
  CompileOptions o = optionsOf(r);
  o.pipeline.mesh.simulate = true;
  return o;
}
NumericsTable checkModelNumerics(const ModelRequest& r, const TrialOptions& trial) {
  TrialOptions own = trial;
  own.compile = optionsOfTrial(r);
  return checkNumerics(graphOf(r), own);
}
BisectResult bisectModel(const ModelRequest& r, const BisectOptions& options) {
  BisectOptions own = options;
  own.trial.compile = optionsOfTrial(r);
  return bisect(graphOf(r), own);
}
std::vector<CompileRecord::Miss> whyNotInModel(const ModelRequest& r,
                                               const WhyNotOptions& options) {
  WhyNotOptions own = options;
  own.compile = optionsOf(r);
  return whyNot(graphOf(r), own);
}
LocationTable checkModelLocations(const ModelRequest& r) {
  return checkLocations(graphOf(r), optionsOf(r));
}
GraphDiff diffModels(const ModelRequest& a, const ModelRequest& b,
                     const GraphDiffOptions& options) {
  return diff(graphOf(a), graphOf(b), options);
}

bool isDecoder(const std::string& architecture) {
  for (const Family& family : std::views::reverse(families()))
    if (family.architecture == architecture) return family.task == ModelTask::Generate;
  return false;
}

// Errors about a graph that came from a file name the file; those of a call of C++ name its line.
template <auto function>
struct InFile;
template <class Result, class... Rest, Result (*function)(const ModelRequest&, Rest...)>
struct InFile<function> {
  static Result call(const ModelRequest& r, Rest... rest) {
    try {
      return function(r, std::forward<Rest>(rest)...);
    } catch (const Error& e) {
      const bool named =
          !e.file().empty() || std::string_view(e.what()).find(r.path) != std::string_view::npos;
      if (named) throw;
      throw Error(e.code(), r.path + ": " + e.what());
    }
  }
};

}  // namespace
}  // namespace lathe

const lathe::CompilerApi* latheCompilerApi() {
  static const lathe::CompilerApi api{lathe::InFile<lathe::compileModel>::call,
                                      lathe::InFile<lathe::modelIr>::call,
                                      lathe::InFile<lathe::modelGraphviz>::call,
                                      lathe::backendNames,
                                      lathe::isDecoder,
                                      lathe::InFile<lathe::explainModel>::call,
                                      lathe::InFile<lathe::rewritesOf>::call,
                                      lathe::InFile<lathe::checkModelNumerics>::call,
                                      lathe::InFile<lathe::bisectModel>::call,
                                      lathe::InFile<lathe::whyNotInModel>::call,
                                      lathe::InFile<lathe::checkModelLocations>::call,
                                      lathe::diffModels,
                                      lathe::InFile<lathe::compileReported>::call,
                                      lathe::writeReport};
  return &api;
}
