// SPDX-License-Identifier: Apache-2.0
#include "lathe/runtime/model_config.h"

#include <algorithm>
#include <filesystem>
#include <initializer_list>

#include <fmt/format.h>

#include "lathe/runtime/config_reader.h"
#include "lathe/runtime/error.h"
#include "lathe/runtime/json_reader.h"
#include "runtime/mapped_file.h"

namespace lathe {
namespace {

using Names = std::initializer_list<std::string_view>;

// The first of these fields that the file has.
std::optional<JsonValue> findAny(const JsonValue& root, Names names) {
  for (std::string_view name : names)
    if (auto value = root.find(name)) return value;
  return std::nullopt;
}

int64_t size(const JsonValue& root, Names names, int64_t high, int64_t otherwise = 0) {
  auto value = findAny(root, names);
  return value ? value->asInt(1, high) : otherwise;
}

void readName(const JsonValue& root, ModelConfig& config) {
  if (auto name = root.find("_class_name")) {  // diffusers
    config.architecture = name->asString();
    return;
  }
  auto architectures = root.find("architectures");
  if (architectures) {
    if (!architectures->isArray() || architectures->size() != 1)
      throw architectures->error("expected a list of one architecture, got " +
                                 architectures->show());
    config.architecture = architectures->at(0).asString();
  }
  auto type = root.find("model_type");
  if (!architectures && !type)
    throw root.error("neither \"architectures\" nor \"model_type\" says what model this is");
  if (type) config.modelType = type->asString();
}

void readTokens(const JsonValue& root, ModelConfig& config) {
  const int64_t last = (config.vocabSize ? config.vocabSize : kMaxVocabulary) - 1;
  // The defaults are those of transformers' LlamaConfig and of those derived from it; null means
  // that there is no such token.
  const bool likeLlama = config.modelType == "llama" || config.modelType == "mistral" ||
                         config.modelType == "mixtral" || config.modelType == "granite";
  if (likeLlama && !root.has("bos_token_id") && last >= 1) config.bosId = 1;
  if (auto bos = root.find("bos_token_id")) config.bosId = bos->asInt(0, last);
  if (likeLlama && !root.has("eos_token_id") && last >= 2) config.eosIds = {2};
  if (auto eos = root.find("eos_token_id")) {
    if (eos->isArray())
      config.eosIds = listFrom(*eos, [&](const JsonValue& id) { return id.asInt(0, last); });
    else
      config.eosIds = {eos->asInt(0, last)};
  }
  if (auto pad = root.find("pad_token_id"))
    if (int64_t id = pad->asInt(-1, last); id >= 0) config.padId = id;  // -1: none, in old files
  if (auto start = root.find("decoder_start_token_id"))
    config.decoderStartId = start->asInt(0, last);
  if (auto bos = root.find("forced_bos_token_id")) config.forcedBosId = bos->asInt(0, last);
}

DType readDType(const JsonValue& root) {
  auto value = findAny(root, {"dtype", "torch_dtype"});
  if (!value) return DType::F32;
  std::string_view name = value->asString();
  if (name.starts_with("torch.")) name.remove_prefix(6);
  if (name == "float32") return DType::F32;
  if (name == "bfloat16") return DType::BF16;
  if (name == "float16") return DType::F16;
  throw value->error("expected float32, bfloat16 or float16, got " + value->show(),
                     ErrorCode::Unsupported);
}

// Dynamic scaling reaches so many times as far as the positions that were trained.
double dynamicFactor(const JsonValue& root) {
  for (const char* name : {"rope_scaling", "rope_parameters"}) {
    const auto scaling = root.find(name);
    if (!scaling || !scaling->isObject()) continue;
    auto type = scaling->find("rope_type");
    if (!type) type = scaling->find("type");
    const auto factor = scaling->find("factor");
    if (!type || !type->isString() || type->asString() != "dynamic" || !factor) continue;
    return std::max(factor->asDouble(), 1.0);
  }
  return 1;
}

}  // namespace

ModelConfig readModelConfig(const JsonValue& root) {
  if (!root.isObject()) throw root.error("expected an object, got " + root.show());
  ModelConfig config;
  readName(root, config);
  config.vocabSize = size(root, {"vocab_size"}, kMaxVocabulary);
  config.targetVocabSize = size(root, {"decoder_vocab_size"}, kMaxVocabulary, config.vocabSize);
  config.hiddenSize = size(root, {"hidden_size", "n_embd", "d_model"}, kMaxHidden);
  config.intermediateSize =
      size(root, {"intermediate_size", "n_inner", "d_ff", "encoder_ffn_dim", "ffn_dim"},
           kMaxIntermediate);
  config.layers =
      size(root, {"num_hidden_layers", "n_layer", "num_layers", "encoder_layers", "n_layers"},
           kMaxLayers);
  config.heads = size(
      root, {"num_attention_heads", "n_head", "num_heads", "encoder_attention_heads"}, kMaxHeads);
  config.kvHeads = size(root, {"num_key_value_heads"}, kMaxHeads, config.heads);
  config.headDim = size(root, {"head_dim", "d_kv"}, kMaxHidden,
                        config.heads ? config.hiddenSize / config.heads : 0);
  config.maxPositions =
      size(root, {"max_position_embeddings", "n_positions", "max_target_positions"}, kMaxPositions);
  config.maxPositions =
      int64_t(std::min(double(kMaxPositions), double(config.maxPositions) * dynamicFactor(root)));
  if (auto tied = root.find("tie_word_embeddings")) config.tieWordEmbeddings = tied->asBool();
  readTokens(root, config);
  config.dtype = readDType(root);
  return config;
}

ModelConfig loadModelConfig(const std::string& path) {
  std::error_code ignored;
  bool folder = std::filesystem::is_directory(path, ignored);
  return readModelConfig(JsonValue::load(
      folder ? (std::filesystem::path(path) / "config.json").string() : path, kConfigFile));
}

ModelConfig parseModelConfig(std::string_view json, const std::string& file) {
  return readModelConfig(JsonValue::parse(json, file));
}

}  // namespace lathe
