// SPDX-License-Identifier: Apache-2.0
#pragma once
// MODEL on the command line: a Hugging Face folder, a GGUF or ONNX file, IR text, or a compiled
// program.
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lathe/inspect/compiler_api.h"
#include "lathe/runtime/chat_template.h"
#include "lathe/runtime/error.h"
#include "lathe/runtime/model_config.h"
#include "lathe/runtime/program.h"
#include "lathe/runtime/tokenizer.h"

namespace CLI {
class App;
}

namespace lathe::cli {

/// What MODEL may be, in --help: of verbs that need the graph, and of those that take programs,
/// too.
inline constexpr const char* kGraphFiles =
    "Hugging Face folder, bare config.json, .gguf, .onnx or .mlir file";
inline constexpr const char* kModelFilesHelp =
    "Hugging Face folder, bare config.json, .gguf, .onnx, .mlir or .lathe file";

enum class ModelKind { Folder, BareConfig, Gguf, Onnx, Mlir, Artifact };
/// "folder", "config", "gguf", "onnx", "mlir", "program"
std::string_view nameOf(ModelKind kind);

struct Model {
  std::string path;
  ModelKind kind = ModelKind::Folder;
  std::map<std::string, std::string> files;  ///< config.json, tokenizer.json, ... by name
  std::shared_ptr<const Program> program;    ///< of an artifact
  std::vector<std::string> loras;            ///< folders of PEFT that are merged into the weights
};

/// Looks at the path and reads the small files; compiles nothing. Throws Error(InvalidFile) for
/// what is none of the kinds, Error(InvalidArgument) for adapters of what has no weights of its
/// own.
Model openModel(const std::string& path, const std::vector<std::string>& loras = {});
/// Whether a folder holds weights.
bool hasCheckpoint(const std::string& folder);
/// Whether the path of the model holds its weights, too.
bool hasOwnWeights(const Model& model);
/// True for a bare config.json and a folder without weights: they compile with made-up ones.
bool lacksWeights(const Model& model);
/// Throws Error(InvalidArgument) for a compiled program: what is asked needs the graph. `flag`, if
/// any, is what asks.
void requireGraph(const Model& model, const std::string& flag = {});

ModelConfig configOf(const Model& model);
/// The tokens of a sequence that config.json allows; where it does not say, what its reader allows.
int64_t maxPositionsOf(const ModelConfig& config);
GenerationConfig generationConfigOf(const Model& model);
/// That of tokenizer.json, or of the older files of a folder; nothing where the model brings none.
std::optional<Tokenizer> tokenizerOf(const Model& model);
/// Why there is none, and what to do instead.
Error missingTokenizer(const Model& model, const std::string& instead = "");
/// Nothing where the model brings no chat template.
std::optional<ChatTemplate> chatTemplateOf(const Model& model);

/// A request as flags make it; requestFor adds what follows from the model and from LATHE_BACKEND.
struct CompileFlags : ModelRequest {
  CompileFlags() { compile.backend.clear(); }  // empty where the flag was not given
  bool randomWeights = false;
  std::vector<std::string> constantSpecs;  ///< NAME=SPEC
};
/// Adds --load-backend-plugin.
void addBackendPlugins(CLI::App& parser, std::vector<std::string>& files);
/// Adds --lora, --constant, --mode, --weight-format, --patterns, --load-pass-plugin, --passes,
/// --load-backend-plugin, --stop-after-rewrite and --skip-attempt.
void addPipelineFlags(CLI::App& parser, CompileFlags& flags);

/// The backend that the flags or LATHE_BACKEND name.
std::string backendOf(const CompileFlags& flags);

/// Adds --greedy.
void addGreedy(CLI::App& parser, bool& greedy);
/// Adds --cache-block.
void addCacheBlock(CLI::App& parser, int64_t& block);
/// Adds --ranks, --stages and --split-rows.
void addRanks(CLI::App& parser, Mesh& mesh);
/// Adds --layers.
void addLayers(CLI::App& parser, int64_t& layers);
/// With --layers 2 for a model so large that running it on the interpreter takes minutes, unless
/// the flag was given; a note says so. Two layers have what most rewrites can meet, borders between
/// layers included; layers with a window may only come later.
CompileFlags withLayersOnce(const Model& model, const CompileFlags& flags);
/// The flags that change what is compiled, for a command that is printed: " --mode strict".
std::string flagsText(const CompileFlags& flags);
/// A word as a POSIX shell reads it.
std::string shellWord(const std::string& text);

/// The request for a folder or an .mlir file: flag, then LATHE_BACKEND, then cpu. Throws
/// Error(InvalidArgument) for flags that do not apply to this kind of model.
ModelRequest requestFor(const Model& model, const CompileFlags& flags);
/// The artifact's program, or a fresh compilation. Loads backends in plugins.
std::shared_ptr<const Program> programOf(const Model& model, const CompileFlags& flags);
/// What a program computes in, as its caches say; nothing where it has none.
std::optional<DType> arithmeticOf(const Program& program);
/// Whether layers round their rows to 8 bits.
bool multipliesBytes(const Program& program);
/// The text of a stage; artifacts hold none and are refused.
std::string irOf(const Model& model, const CompileFlags& flags, const std::string& stage);

}  // namespace lathe::cli
