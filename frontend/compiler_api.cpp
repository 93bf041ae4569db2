// SPDX-License-Identifier: Apache-2.0
#include "frontend/compiler_api.h"

#include <filesystem>
#include <fstream>
#include <iterator>

#include "backends/backend.h"
#include "frontend/compile.h"
#include "frontend/families/llama.h"
#include "runtime/checkpoint.h"
#include "runtime/error.h"

namespace lathe {
namespace {

namespace fs = std::filesystem;

std::string readText(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw Error(ErrorCode::Io, "cannot read " + path.string());
  return {std::istreambuf_iterator<char>(in), {}};
}

CompileOptions optionsOf(const ModelRequest& r) {
  CompileOptions o;
  o.backend = r.backend;
  o.allTiers = r.allTiers;
  o.float64 = r.float64;
  o.saveIrDir = r.saveIrDir;
  return o;
}

// The dtype of the floating-point weights: one graph takes one, as checkpoints have it.
DType weightDType(const std::string& folder, const LlamaConfig& config) {
  Checkpoint checkpoint = Checkpoint::open(folder);
  auto embedding = checkpoint.find("model.embed_tokens.weight");
  return embedding ? embedding->dtype() : config.dtype;
}

Graph graphOf(const ModelRequest& r) {
  if (r.path.ends_with(".mlir")) return Graph::parse(readText(r.path), r.path);
  LlamaConfig config = loadLlamaConfig(r.path);
  LlamaGraphOptions options;
  options.dtype = r.dtype;
  options.weightDType = r.bareConfig ? DType::BF16 : weightDType(r.path, config);
  options.maxBatch = r.maxBatch;
  options.maxSeq = r.maxSeq;
  options.cacheCapacity = r.cacheCapacity;
  return buildLlama(config, options);
}

std::shared_ptr<const Program> compileModel(const ModelRequest& r) {
  auto program = std::make_shared<Program>(compile(graphOf(r), optionsOf(r)));
  fs::path folder = fs::is_directory(r.path) ? fs::path(r.path) : fs::path();
  if (r.bareConfig && folder.empty()) program->files["config.json"] = readText(r.path);
  for (const char* name : {"config.json", "generation_config.json", "tokenizer.json"})
    if (!folder.empty() && fs::exists(folder / name))
      program->files[name] = readText(folder / name);
  return program;
}

std::string modelIr(const ModelRequest& r, const std::string& stage) {
  return irAt(graphOf(r), stage, optionsOf(r), /*withLocations=*/true);
}
std::string modelGraphviz(const ModelRequest& r) { return graphOf(r).graphviz(); }

}  // namespace
}  // namespace lathe

const lathe::CompilerApi* latheCompilerApi() {
  static const lathe::CompilerApi api{lathe::compileModel, lathe::modelIr, lathe::modelGraphviz,
                                      lathe::backendNames};
  return &api;
}
