// SPDX-License-Identifier: Apache-2.0
#include "tools/lathe/model.h"

#include <cstdlib>
#include <filesystem>
#include <system_error>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "lathe/runtime/backend_plugin.h"
#include "lathe/runtime/config_reader.h"
#include "lathe/runtime/error.h"
#include "lathe/runtime/json_reader.h"
#include "lathe/runtime/kv_slots.h"
#include "runtime/folder_tokenizer.h"
#include "runtime/gguf_model.h"
#include "runtime/mapped_file.h"
#include "tools/lathe/arguments.h"
#include "tools/lathe/compiler_library.h"
#include "tools/lathe/console.h"
#include "tools/lathe/input_spec.h"

namespace lathe::cli {
namespace {

namespace fs = std::filesystem;

bool isThere(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

const std::string& fileOf(const Model& model, const char* name) {
  auto it = model.files.find(name);
  if (it == model.files.end())
    throw Error(ErrorCode::InvalidFile, model.path + ": expected a model with " + name +
                                            ", this one has none; give a Hugging Face folder or a "
                                            "program compiled from one");
  return it->second;
}

std::string nameInside(const Model& model, const char* name) {
  if (model.kind == ModelKind::Folder) return (fs::path(model.path) / name).string();
  return model.kind == ModelKind::BareConfig ? model.path : model.path + ": " + name;
}

ModelKind modelKindOf(const std::string& path) {
  std::error_code ignored;
  if (!isThere(path))
    throw Error(ErrorCode::InvalidFile,
                path +
                    ": expected a Hugging Face folder, a .gguf, .onnx or .mlir file or a .lathe "
                    "program, found nothing there");
  if (fs::is_directory(path, ignored)) {
    if (!isThere(fs::path(path) / "config.json"))
      throw Error(ErrorCode::InvalidFile,
                  path + ": expected a Hugging Face folder, found no config.json in it");
    return ModelKind::Folder;
  }
  if (path.ends_with(".mlir")) return ModelKind::Mlir;
  if (path.ends_with(".gguf")) return ModelKind::Gguf;
  if (path.ends_with(".onnx")) return ModelKind::Onnx;
  if (path.ends_with(".lathe")) return ModelKind::Artifact;
  if (path.ends_with(".json")) return ModelKind::BareConfig;
  throw Error(ErrorCode::InvalidFile,
              path +
                  ": expected a Hugging Face folder, a .gguf, .onnx or .mlir file or a .lathe "
                  "program");
}

void refuse(bool given, const char* flag, const Model& model, const std::string& why) {
  if (given) throw Error(ErrorCode::InvalidArgument, std::string(flag) + ": " + model.path + why);
}

}  // namespace

std::string_view nameOf(ModelKind kind) {
  switch (kind) {
    case ModelKind::Folder:
      return "folder";
    case ModelKind::BareConfig:
      return "config";
    case ModelKind::Gguf:
      return "gguf";
    case ModelKind::Mlir:
      return "mlir";
    case ModelKind::Onnx:
      return "onnx";
    case ModelKind::Artifact:
      return "program";
  }
  return "";
}

Model openModel(const std::string& path, const std::vector<std::string>& loras) {
  Model model;
  model.path = path;
  model.kind = modelKindOf(path);
  model.loras = loras;
  switch (model.kind) {
    case ModelKind::Artifact:
      model.program = Program::open(path);
      model.files = model.program->files;
      break;
    case ModelKind::Folder:
      model.files = readModelFiles(path);
      break;
    case ModelKind::BareConfig:
      model.files["config.json"] = readWholeFile(path, kConfigFile);
      break;
    case ModelKind::Gguf:
      model.files = ggufModelFiles(path);
      break;
    case ModelKind::Mlir:
    case ModelKind::Onnx:
      break;
  }
  refuse(!loras.empty() && (model.kind == ModelKind::Mlir || lacksWeights(model)), "--lora", model,
         " has no weights that an adapter could be merged into");
  return model;
}

bool hasCheckpoint(const std::string& folder) {
  return isThere(fs::path(folder) / "model.safetensors") ||
         isThere(fs::path(folder) / "model.safetensors.index.json");
}

bool hasOwnWeights(const Model& model) {
  return model.kind == ModelKind::Gguf || model.kind == ModelKind::Onnx ||
         (model.kind == ModelKind::Folder && hasCheckpoint(model.path));
}

bool lacksWeights(const Model& model) {
  return model.kind == ModelKind::BareConfig ||
         (model.kind == ModelKind::Folder && !hasCheckpoint(model.path));
}

void requireGraph(const Model& model, const std::string& flag) {
  if (model.program)
    throw Error(ErrorCode::InvalidArgument,
                (flag.empty() ? "" : flag + ": ") + model.path +
                    " is a compiled program without IR; give the model that it was compiled from");
}

ModelConfig configOf(const Model& model) {
  return parseModelConfig(fileOf(model, "config.json"), nameInside(model, "config.json"));
}

int64_t maxPositionsOf(const ModelConfig& config) {
  return config.maxPositions ? config.maxPositions : kMaxPositions;
}

GenerationConfig generationConfigOf(const Model& model) {
  const char* name = "generation_config.json";
  if (!model.files.contains(name)) return {};
  GenerationConfig config = parseGenerationConfig(model.files.at(name), nameInside(model, name));
  for (const std::string& field : config.ignoredFields)
    console().note("generation_config.json: '" + field + "' is not obeyed");
  return config;
}

std::optional<Tokenizer> tokenizerOf(const Model& model) {
  const char* name = "tokenizer.json";
  if (model.files.contains(name))
    return Tokenizer::parse(model.files.at(name), nameInside(model, name));
  if (model.kind != ModelKind::Folder) return std::nullopt;
  try {
    if (const auto made = folderTokenizer(model.path))
      return Tokenizer::parse(*made, nameInside(model, name));
  } catch (const Error& e) {
    // Whoever needs the tokenizer tells it; token ids do without.
    if (e.code() != ErrorCode::Unsupported) throw;
  }
  return std::nullopt;
}

Error missingTokenizer(const Model& model, const std::string& instead) {
  try {
    if (model.kind == ModelKind::Folder) folderTokenizer(model.path);
  } catch (const Error& e) {
    return e;
  }
  return Error(ErrorCode::InvalidFile,
               model.path + ": expected a model with tokenizer.json, this one has none" + instead);
}

std::optional<ChatTemplate> chatTemplateOf(const Model& model) {
  auto text = [&](const char* name) -> std::string_view {
    auto it = model.files.find(name);
    return it == model.files.end() ? std::string_view() : it->second;
  };
  return ChatTemplate::find(text("tokenizer_config.json"), text("chat_template.jinja"), model.path);
}

static void addRewriteFlags(CLI::App& parser, CompileFlags& flags) {
  parser
      .add_option("--stop-after-rewrite", flags.compile.stopAfterRewrite,
                  "apply this many rewrites and no more (numbers: lathe inspect --rewrites)")
      ->check(WholeNumber{0});
  parser
      .add_option("--skip-attempt", flags.compile.skipAttempt,
                  "leave out the rewrite of this attempt (lathe inspect --rewrites)")
      ->check(WholeNumber{0});
}

void addBackendPlugins(CLI::App& parser, std::vector<std::string>& files) {
  parser
      .add_option("--load-backend-plugin", files,
                  "shared library with a backend, which runs as code; may be repeated")
      ->allow_extra_args(false);
}

void addPipelineFlags(CLI::App& parser, CompileFlags& flags) {
  parser
      .add_option("--lora", flags.loras,
                  "PEFT folder that is merged into the weights; may be repeated")
      ->allow_extra_args(false);
  parser
      .add_option("--constant", flags.constantSpecs,
                  "NAME=SPEC: an ONNX file's input as a known value, as `lathe run --input` takes "
                  "it; it is no input then; may be repeated")
      ->allow_extra_args(false);
  parser.add_option("--mode", flags.mode,
                    "what fusions may change about rounding: strict, relaxed (default) or fast");
  parser.add_option("--weight-format", flags.weightFormats,
                    "bits of the weights: stored (default), int8 or int4, then :GROUP "
                    "(channel, 32, 64, 128), :asymmetric, and ,embedding=FORMAT,head=FORMAT; "
                    ",activations=int8 rounds what meets weights in few bits");
  parser
      .add_option("--patterns", flags.compile.pipeline.patternFiles,
                  "fusions from a PDL (.mlir) or PDLL (.pdll) file; may be repeated")
      ->allow_extra_args(false);
  parser
      .add_option("--load-pass-plugin", flags.compile.pipeline.plugins,
                  "shared library with MLIR passes, which runs as code; may be repeated")
      ->allow_extra_args(false);
  parser.add_option("--passes", flags.compile.pipeline.passes,
                    "passes to run after the fusions: my-pass,cse");
  addBackendPlugins(parser, flags.compile.backendPlugins);
  addRewriteFlags(parser, flags);
}

void addRanks(CLI::App& parser, Mesh& mesh) {
  parser
      .add_option("--ranks", mesh.ranks,
                  "run the model on so many ranks, each with its pieces of it")
      ->check(WholeNumber{1, 1024});
  // Behind --ranks, which is read first.
  auto read = [&mesh](int64_t stages) {
    mesh.stages = stages;
    if (mesh.ranks == 0) mesh.ranks = stages;
  };
  parser
      .add_option_function<int64_t>("--stages", read,
                                    "the layers lie in so many stages, of --ranks / --stages ranks "
                                    "each: few messages, for slow links")
      ->check(WholeNumber{1, 64});
  parser.add_flag("--split-rows", mesh.splitRows,
                  "each rank computes the norms and residuals of its share of a prompt's rows");
}

void addGreedy(CLI::App& parser, bool& greedy) {
  parser.add_flag("--greedy", greedy,
                  "add a step that chooses the likeliest token on the device and goes on");
}

void addCacheBlock(CLI::App& parser, int64_t& block) {
  parser
      .add_option("--cache-block", block,
                  "tokens of a block of a decoder's cache, which texts share (lathe serve); 0: a "
                  "row for each text")
      ->check(WholeNumber{0, kMostBlockTokens});
}

void addLayers(CLI::App& parser, int64_t& layers) {
  parser.add_option("--layers", layers, "only so many layers of a folder's model")
      ->check(WholeNumber{1});
}

CompileFlags withLayersOnce(const Model& model, const CompileFlags& flags) {
  constexpr int64_t kLayers = 2, kManyParameters = 400'000'000;
  CompileFlags own = flags;
  if (flags.family.layers || !model.files.contains("config.json") || model.program) return own;
  const ModelConfig c = configOf(model);
  const int64_t parameters =
      c.layers * c.hiddenSize * (3 * c.intermediateSize + 2 * (c.heads + c.kvHeads) * c.headDim);
  if (c.layers <= kLayers || parameters < kManyParameters) return own;
  own.family.layers = kLayers;
  console().note(fmt::format("{}: the first {} of {} layers; --layers {} runs all", model.path,
                             kLayers, c.layers, c.layers));
  return own;
}

std::string shellWord(const std::string& text) {
  if (!text.empty() && text.find_first_of(" \t\n'\"\\`$&|;<>(){}*?[]!#~") == text.npos) return text;
  std::string quoted = "'";
  for (char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string flagsText(const CompileFlags& flags) {
  const CompileOptions& c = flags.compile;
  const PipelineOptions& p = c.pipeline;
  std::string text;
  auto add = [&](const char* flag, const std::string& value) {
    if (!value.empty()) text += fmt::format(" {} {}", flag, shellWord(value));
  };
  add("--backend", c.backend);
  if (flags.dtype) add("--dtype", std::string(nameOf(*flags.dtype)));
  for (const std::string& folder : flags.loras) add("--lora", folder);
  for (const std::string& value : flags.constantSpecs) add("--constant", value);
  add("--mode", flags.mode);
  add("--weight-format", flags.weightFormats);
  if (flags.family.layers) add("--layers", std::to_string(flags.family.layers));
  if (flags.family.cacheBlock) add("--cache-block", std::to_string(flags.family.cacheBlock));
  if (p.mesh.ranks > 1) add("--ranks", std::to_string(p.mesh.ranks));
  if (p.mesh.stages > 1) add("--stages", std::to_string(p.mesh.stages));
  if (p.mesh.splitRows) text += " --split-rows";
  for (const std::string& file : p.patternFiles) add("--patterns", file);
  for (const std::string& file : p.plugins) add("--load-pass-plugin", file);
  add("--passes", p.passes);
  for (const std::string& file : c.backendPlugins) add("--load-backend-plugin", file);
  if (c.skipAttempt != ~uint64_t(0)) add("--skip-attempt", std::to_string(c.skipAttempt));
  return text;
}

std::string backendOf(const CompileFlags& flags) {
  if (!flags.compile.backend.empty()) return flags.compile.backend;
  const char* variable = std::getenv("LATHE_BACKEND");
  return variable && *variable ? variable : "cpu";
}

ModelRequest requestFor(const Model& model, const CompileFlags& flags) {
  refuse(model.kind == ModelKind::Mlir && flags.dtype, "--dtype", model,
         " is IR text, whose dtypes are written in it");
  refuse(model.kind == ModelKind::Mlir && flags.family.maxSeq, "--max-seq", model,
         " is IR text, whose ranges are written in it");
  refuse(model.kind == ModelKind::Onnx && flags.dtype, "--dtype", model,
         " is an ONNX file, whose dtypes are written in it");
  refuse(model.kind == ModelKind::Onnx && flags.family.layers, "--layers", model,
         " is an ONNX file, whose layers are written in it");
  refuse(model.kind != ModelKind::Onnx && !flags.constantSpecs.empty(), "--constant", model,
         " is not an ONNX file");
  refuse(model.kind == ModelKind::BareConfig && !flags.randomWeights, "--random-weights", model,
         " is a bare config.json: the flag is needed");
  refuse(model.kind == ModelKind::Mlir && flags.family.cacheBlock, "--cache-block", model,
         " is IR text, whose caches are written in it");
  refuse(model.kind == ModelKind::Onnx && flags.family.cacheBlock, "--cache-block", model,
         " is an ONNX file, whose inputs and outputs are written in it");
  refuse(model.kind == ModelKind::Mlir && flags.family.layers, "--layers", model,
         " is IR text, whose layers are written in it");
  ModelRequest request = flags;
  request.path = model.path;
  request.loras = model.loras;
  for (const std::string& value : flags.constantSpecs) request.constants.insert(parseInput(value));
  request.compile.backend = backendOf(flags);
  if (!request.compile.backendOptions.target.empty() && request.compile.backend != "cuda")
    throw Error(ErrorCode::InvalidArgument, "--target is of the cuda backend, got backend " +
                                                request.compile.backend + "; add --backend cuda");
  const bool hasConfig = model.kind == ModelKind::Folder || model.kind == ModelKind::Gguf;
  request.bareConfig = model.kind == ModelKind::BareConfig || (hasConfig && flags.randomWeights);
  return request;
}

std::shared_ptr<const Program> programOf(const Model& model, const CompileFlags& flags) {
  loadBackendPlugins(flags.compile.backendPlugins);
  if (model.program) {
    const CompileOptions& c = flags.compile;
    const PipelineOptions& p = c.pipeline;
    const std::string& backend = model.program->backend;
    refuse(!c.backend.empty() && c.backend != backend, "--backend", model,
           " is a program compiled for " + backend);
    refuse(flags.dtype.has_value(), "--dtype", model, " is a compiled program; compile it anew");
    refuse(!c.saveIrDir.empty(), "--save-ir", model, " is a compiled program without IR");
    const std::string compiled = " is a compiled program; give the model that it was compiled from";
    refuse(!flags.mode.empty(), "--mode", model, compiled);
    refuse(!flags.constantSpecs.empty(), "--constant", model, compiled);
    refuse(!flags.weightFormats.empty(), "--weight-format", model, compiled);
    refuse(!p.patternFiles.empty(), "--patterns", model, compiled);
    refuse(!p.plugins.empty(), "--load-pass-plugin", model, compiled);
    refuse(!p.passes.empty(), "--passes", model, compiled);
    refuse(!c.backendOptions.target.empty(), "--target", model, compiled);
    refuse(flags.family.cacheBlock, "--cache-block", model, compiled);
    refuse(p.mesh.ranks > 1 && p.mesh.ranks != model.program->allRanks(), "--ranks", model,
           " is a program compiled for " + std::to_string(model.program->allRanks()));
    refuse(p.mesh.stages > 1 && p.mesh.stages != model.program->stages(), "--stages", model,
           " is a program compiled for " + std::to_string(model.program->stages()));
    refuse(p.mesh.splitRows, "--split-rows", model, compiled);
    const std::string noRewrites = " is a compiled program; compile it anew";
    refuse(c.stopAfterRewrite != ~uint64_t(0), "--stop-after-rewrite", model, noRewrites);
    refuse(c.skipAttempt != ~uint64_t(0), "--skip-attempt", model, noRewrites);
    return model.program;
  }
  ModelRequest request = requestFor(model, flags);
  Progress progress("compiling " + model.path);
  request.progress = [&](const std::string& step, size_t done, size_t total) {
    progress.stage("compiling " + model.path + ", after " + step);
    progress.at(done, total);
  };
  return compiler().compile(request);
}

std::optional<DType> arithmeticOf(const Program& program) {
  for (const TensorInfo& state : program.states)
    if (isFloat(state.dtype)) return state.dtype;
  for (const auto& stage : program.laterStages)
    if (auto dtype = arithmeticOf(*stage)) return dtype;
  return std::nullopt;
}

bool multipliesBytes(const Program& program) {
  for (const EntryPoint& entry : program.entries)
    for (const Call& call : entry.calls)
      if (call.kind.ends_with("quantized_linear"))
        if (auto rounds = JsonValue::parse(call.config, "call config").find("quantizes_x"))
          if (rounds->asBool()) return true;
  return false;
}

std::string irOf(const Model& model, const CompileFlags& flags, const std::string& stage) {
  requireGraph(model, "--stop-after");
  return compiler().irAt(requestFor(model, flags), stage);
}

}  // namespace lathe::cli
