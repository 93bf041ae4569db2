// SPDX-License-Identifier: Apache-2.0
#pragma once
// Families of models: from the architecture that a config.json names to a graph.
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "lathe/frontend/graph.h"
#include "lathe/runtime/config_reader.h"

namespace lathe {

/// How the vectors of a text's tokens become one vector of the text, at the entry point `embed`.
struct TextPooling {
  enum class Kind {
    Mean,   ///< over the tokens that are no padding
    First,  ///< that of the first token, BERT's [CLS]
    Max,    ///< the largest of each element over the tokens that are no padding
  } kind = Kind::Mean;
  bool normalizes = true;  ///< to length 1
};

struct FamilyOptions {
  DType dtype = DType::F32;        ///< of the arithmetic and the caches
  DType weightDType = DType::F32;  ///< what the checkpoint holds; converted once when loading
  int64_t maxBatch = 64;
  int64_t maxSeq = 0;         ///< tokens of one call; 0: the config's maxPositions
  int64_t cacheCapacity = 0;  ///< largest value of the symbol `cache`; 0: the config's maxPositions
  /// Tokens of a block of a cache in blocks, which BatchEngine shares between texts; 0: a cache of
  /// a row for each. The entry points of a cache then have the input `block_table`.
  int64_t cacheBlock = 0;
  bool verify = false;  ///< record the entry point `verify` too, for speculative decoding
  bool greedy = false;  ///< record `greedy` too, for steps without the host
  int64_t layers = 0;   ///< only so many of the config's layers; 0: all
  /// Whether the checkpoint has a tensor: for families whose checkpoints come under two sets of
  /// names. Without it the usual names are taken.
  std::function<bool(std::string_view name)> hasWeight = {};
  /// Whoever binds the weights reads `quantization_config`: it is not an error here.
  bool readsQuantized = false;
  TextPooling pooling = {};
};

/// What a family's models are for.
enum class ModelTask {
  Generate,  ///< entry points forward, prefill and decode over a cache: `lathe generate`
  /// Entry points forward, encode, prefill and decode: `lathe generate` reads a text and writes
  /// another.
  Rewrite,
  Embed,  ///< `forward` from token ids to vectors
  Other,  ///< entry points of its own: `lathe run`
};

/// A family: what its config.json is called, and the function that reads the config and records the
/// entry points. A build function reads every field that changes what the model computes; what it
/// left over is refused afterwards, by name.
struct Family {
  std::string architecture;  ///< "LlamaForCausalLM"
  std::string modelType;     ///< "llama"; empty where config.json has none
  ModelTask task = ModelTask::Generate;
  std::function<Graph(ConfigReader& config, const FamilyOptions& options)> build;
};

/// All families that there are, the library's first.
const std::vector<Family>& families();
/// Adds one; of two for one architecture the later counts. Not while models are built.
void registerFamily(Family family);

/// The family of a config.json: `architectures`, or where that is missing `model_type`; the
/// `_class_name` of diffusers before both. A bare model (`BartModel`, `GPT2Model`) that is none
/// itself is that with the head which generates text. Throws Error(Unsupported) that lists the
/// architectures there are.
const Family& familyOf(const JsonValue& config);

/// Reads config.json and records the model. Weights have the names of the checkpoint. Throws
/// Error(Unsupported) for architectures, activations and kinds of rotary positions that there are
/// not and for fields of other mathematics, Error(InvalidFile) for values that make no model, and
/// Error(InvalidArgument) for options beyond the model's.
Graph buildFromConfig(const JsonValue& config, const FamilyOptions& options = {});
/// A config.json, or that of a folder, as buildFromConfig takes it.
JsonValue loadConfig(const std::string& path);

}  // namespace lathe
