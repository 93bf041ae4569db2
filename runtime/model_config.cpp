// SPDX-License-Identifier: Apache-2.0
#include "lathe/runtime/model_config.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>

#include <fmt/format.h>

#include "lathe/runtime/error.h"
#include "lathe/runtime/json_reader.h"
#include "runtime/mapped_file.h"

namespace lathe {
namespace {

// Far above every model there is, and low enough that sizes do not overflow and that compiling
// ends: it takes some 20 ms for each layer.
constexpr int64_t kMaxLayers = 1000, kMaxVocabulary = int64_t(1) << 24,
                  kMaxPositions = int64_t(1) << 24, kMaxHidden = int64_t(1) << 20,
                  kMaxIntermediate = int64_t(1) << 24;

// Keys read below, and keys that say nothing about what the model computes at inference.
constexpr auto kKnown = std::to_array<std::string_view>({"architectures",
                                                         "model_type",
                                                         "vocab_size",
                                                         "hidden_size",
                                                         "intermediate_size",
                                                         "num_hidden_layers",
                                                         "num_attention_heads",
                                                         "num_key_value_heads",
                                                         "head_dim",
                                                         "max_position_embeddings",
                                                         "rms_norm_eps",
                                                         "rope_theta",
                                                         "rope_scaling",
                                                         "rope_parameters",
                                                         "tie_word_embeddings",
                                                         "attention_bias",
                                                         "mlp_bias",
                                                         "hidden_act",
                                                         "bos_token_id",
                                                         "eos_token_id",
                                                         "pad_token_id",
                                                         "torch_dtype",
                                                         "dtype",
                                                         "transformers_version",
                                                         "_name_or_path",
                                                         "use_cache",
                                                         "initializer_range",
                                                         "attention_dropout",
                                                         "hidden_dropout",
                                                         "output_attentions",
                                                         "output_hidden_states",
                                                         "return_dict",
                                                         "return_dict_in_generate",
                                                         "output_scores",
                                                         "torchscript",
                                                         "tf_legacy_loss",
                                                         "use_bfloat16",
                                                         "_attn_implementation",
                                                         "_attn_implementation_autoset",
                                                         "attn_implementation",
                                                         "id2label",
                                                         "label2id",
                                                         "num_labels",
                                                         "problem_type",
                                                         "finetuning_task",
                                                         "task_specific_params",
                                                         "tokenizer_class",
                                                         "prefix",
                                                         "sep_token_id",
                                                         "decoder_start_token_id",
                                                         "cross_attention_hidden_size",
                                                         "tie_encoder_decoder",
                                                         "chunk_size_feed_forward",
                                                         "max_length",
                                                         "min_length",
                                                         "do_sample",
                                                         "temperature",
                                                         "top_k",
                                                         "top_p",
                                                         "typical_p",
                                                         "repetition_penalty",
                                                         "length_penalty",
                                                         "no_repeat_ngram_size",
                                                         "num_beams",
                                                         "num_return_sequences",
                                                         "early_stopping",
                                                         "max_window_layers",
                                                         "unsloth_version",
                                                         "unsloth_fixed",
                                                         "layer_types"});

// Keys of related models that change the mathematics, and the one value that leaves it alone. Null
// does so for every key.
struct Refused {
  std::string_view key;
  enum { OnlyNull, OnlyFalse, OnlyOne } neutral;
};
constexpr auto kRefused = std::to_array<Refused>({
    {"pretraining_tp", Refused::OnlyOne},
    {"partial_rotary_factor", Refused::OnlyOne},
    {"sliding_window", Refused::OnlyNull},
    {"use_sliding_window", Refused::OnlyFalse},
    {"quantization_config", Refused::OnlyNull},
    {"compression_config", Refused::OnlyNull},
    {"auto_map", Refused::OnlyNull},
    {"is_encoder_decoder", Refused::OnlyFalse},
    {"is_decoder", Refused::OnlyFalse},
    {"add_cross_attention", Refused::OnlyFalse},
    {"pruned_heads", Refused::OnlyNull},
    {"num_experts", Refused::OnlyNull},
    {"num_local_experts", Refused::OnlyNull},
    {"num_experts_per_tok", Refused::OnlyNull},
    {"qk_norm", Refused::OnlyFalse},
    {"use_qk_norm", Refused::OnlyFalse},
    {"qk_layernorm", Refused::OnlyFalse},
    {"clip_qkv", Refused::OnlyNull},
    {"qkv_bias", Refused::OnlyFalse},
    {"no_rope_layers", Refused::OnlyNull},
    {"rope_interleaved", Refused::OnlyFalse},
    {"attention_multiplier", Refused::OnlyNull},
    {"residual_multiplier", Refused::OnlyOne},
    {"embedding_multiplier", Refused::OnlyOne},
    {"logits_scaling", Refused::OnlyOne},
    {"logit_scale", Refused::OnlyOne},
    {"final_logit_softcapping", Refused::OnlyNull},
    {"attn_logit_softcapping", Refused::OnlyNull},
    {"query_pre_attn_scalar", Refused::OnlyNull},
    {"parallel_residual", Refused::OnlyFalse},
});

bool isNeutral(const JsonValue& value, const Refused& rule) {
  if (rule.neutral == Refused::OnlyFalse) return value.isBool() && !value.asBool();
  if (rule.neutral == Refused::OnlyOne) return value.isNumber() && value.asDouble() == 1;
  // An empty object is how transformers 4 writes "nothing pruned".
  return value.isObject() && value.size() == 0;
}

void refuseOtherMathematics(const JsonValue& root) {
  for (const Refused& rule : kRefused) {
    auto value = root.find(rule.key);
    if (!value || isNeutral(*value, rule)) continue;
    constexpr const char* expected[] = {"null", "false", "1"};
    throw value->error(fmt::format("not supported: expected {} or no such key, got {}",
                                   expected[rule.neutral], value->show()),
                       ErrorCode::Unsupported);
  }
  if (auto types = root.find("layer_types")) {
    for (size_t i = 0; i < types->size(); ++i) {
      JsonValue type = types->at(i);
      if (type.asString() != "full_attention")
        throw type.error("not supported: expected \"full_attention\", got " + type.show(),
                         ErrorCode::Unsupported);
    }
  }
}

void checkArchitecture(const JsonValue& root) {
  auto architectures = root.find("architectures");
  if (architectures) {
    if (!architectures->isArray() || architectures->size() != 1 ||
        architectures->at(0).asString() != "LlamaForCausalLM") {
      std::string got = architectures->show();
      if (architectures->isArray() && architectures->size() > 0) got = architectures->at(0).show();
      throw architectures->error("expected [\"LlamaForCausalLM\"], got " + got,
                                 ErrorCode::Unsupported);
    }
  }
  auto type = root.find("model_type");
  if (!architectures && !type)
    throw root.error("neither \"architectures\" nor \"model_type\" says what model this is");
  if (type && type->asString() != "llama")
    throw type->error("expected \"llama\", got " + type->show(), ErrorCode::Unsupported);
}

int64_t size(const JsonValue& root, std::string_view key, int64_t high) {
  return root.at(key).asInt(1, high);
}

bool flag(const JsonValue& root, std::string_view key) {
  auto value = root.find(key);
  return value && value->asBool();
}

double positive(const JsonValue& value) {
  double v = value.asDouble();
  if (!(v > 0)) throw value.error(fmt::format("expected a number > 0, got {}", value.show()));
  return v;
}

void readHeads(const JsonValue& root, LlamaConfig& config) {
  config.heads = size(root, "num_attention_heads", 65536);
  config.kvHeads = config.heads;
  if (auto kv = root.find("num_key_value_heads")) {
    config.kvHeads = kv->asInt(1, 65536);
    if (config.kvHeads > config.heads)
      throw kv->error(fmt::format("{} key/value heads for {} heads, expected at most as many",
                                  config.kvHeads, config.heads));
    if (config.heads % config.kvHeads != 0)
      throw kv->error(
          fmt::format("{} key/value heads do not divide {} heads", config.kvHeads, config.heads));
  }
  if (auto dim = root.find("head_dim")) {
    config.headDim = dim->asInt(1, 65536);
  } else {
    if (config.hiddenSize % config.heads != 0)
      throw root.at("num_attention_heads")
          .error(fmt::format("{} heads do not divide hidden_size {}, and there is no head_dim",
                             config.heads, config.hiddenSize));
    config.headDim = config.hiddenSize / config.heads;
  }
  const JsonValue blamed = root.at(root.find("head_dim") ? "head_dim" : "num_attention_heads");
  if (config.headDim % 2 != 0)
    throw blamed.error(
        fmt::format("expected an even head dimension for RoPE, got {}", config.headDim));
  if (config.heads * config.headDim > kMaxHidden)
    throw blamed.error(fmt::format("expected heads of at most {} numbers together, got {} x {}",
                                   kMaxHidden, config.heads, config.headDim));
}

double atLeastOne(const JsonValue& value) {
  double v = value.asDouble();
  if (!(v >= 1)) throw value.error(fmt::format("expected a factor >= 1, got {}", value.show()));
  return v;
}

// `rope_scaling` of transformers 4, or `rope_parameters` of 5, which holds rope_theta too.
void readRope(const JsonValue& rope, LlamaConfig& config) {
  constexpr auto known = std::to_array<std::string_view>(
      {"rope_type", "type", "rope_theta", "factor", "low_freq_factor", "high_freq_factor",
       "original_max_position_embeddings", "partial_rotary_factor"});
  if (!rope.isObject()) throw rope.error("expected an object or null, got " + rope.show());
  auto type = rope.find("rope_type"), oldType = rope.find("type");
  if (type && oldType && type->asString() != oldType->asString())
    throw rope.error(
        fmt::format("\"rope_type\" is {} and \"type\" is {}", type->show(), oldType->show()));
  if (!type) type = oldType;
  const std::string name = type ? type->asString() : "default";
  RopeScaling& scaling = config.ropeScaling;
  if (name == "default")
    scaling.type = RopeScaling::Type::Default;
  else if (name == "linear")
    scaling.type = RopeScaling::Type::Linear;
  else if (name == "llama3")
    scaling.type = RopeScaling::Type::Llama3;
  else
    throw type->error("expected rope type default, linear or llama3, got " + type->show(),
                      ErrorCode::Unsupported);
  for (size_t i = 0; i < rope.size(); ++i) {
    auto [key, value] = rope.member(i);
    if (!value.isNull() && std::ranges::find(known, key) == known.end())
      throw value.error(fmt::format("not supported with rope type {}", name),
                        ErrorCode::Unsupported);
  }
  if (auto partial = rope.find("partial_rotary_factor"); partial && partial->asDouble() != 1)
    throw partial->error("not supported: expected 1, got " + partial->show(),
                         ErrorCode::Unsupported);
  if (scaling.type == RopeScaling::Type::Default) {
    auto factor = rope.find("factor");
    if (factor && factor->asDouble() != 1)
      throw factor->error("rope type default has no factor, got " + factor->show());
    return;
  }
  scaling.factor = atLeastOne(rope.at("factor"));
  if (scaling.type != RopeScaling::Type::Llama3) return;
  scaling.lowFreqFactor = positive(rope.at("low_freq_factor"));
  scaling.highFreqFactor = positive(rope.at("high_freq_factor"));
  if (scaling.highFreqFactor <= scaling.lowFreqFactor)
    throw rope.error(fmt::format("high_freq_factor {} is not above low_freq_factor {}",
                                 scaling.highFreqFactor, scaling.lowFreqFactor));
  scaling.originalMaxPositions = size(rope, "original_max_position_embeddings", kMaxPositions);
}

void readPositions(const JsonValue& root, LlamaConfig& config) {
  if (auto positions = root.find("max_position_embeddings"))
    config.maxPositions = positions->asInt(1, kMaxPositions);
  auto theta = root.find("rope_theta"), scaling = root.find("rope_scaling"),
       parameters = root.find("rope_parameters");
  if (theta) config.ropeTheta = positive(*theta);
  if (scaling) readRope(*scaling, config);
  if (!parameters) return;
  if (scaling)
    throw root.error("both \"rope_scaling\" and \"rope_parameters\" are given, expected one");
  readRope(*parameters, config);
  if (auto inner = parameters->find("rope_theta")) {
    config.ropeTheta = positive(*inner);
    if (theta && theta->asDouble() != config.ropeTheta)
      throw inner->error(fmt::format("{} contradicts rope_theta {}", inner->show(), theta->show()));
  }
}

void readTokens(const JsonValue& root, LlamaConfig& config) {
  const int64_t last = config.vocabSize - 1;
  // The defaults are those of transformers' LlamaConfig; null means that there is no such token.
  if (!root.has("bos_token_id") && last >= 1) config.bosId = 1;
  if (auto bos = root.find("bos_token_id")) config.bosId = bos->asInt(0, last);
  if (!root.has("eos_token_id") && last >= 2) config.eosIds = {2};
  if (auto eos = root.find("eos_token_id")) {
    if (eos->isArray())
      for (size_t i = 0; i < eos->size(); ++i) config.eosIds.push_back(eos->at(i).asInt(0, last));
    else
      config.eosIds = {eos->asInt(0, last)};
  }
  if (auto pad = root.find("pad_token_id"))
    if (int64_t id = pad->asInt(-1, last); id >= 0) config.padId = id;  // -1: none, in old files
}

DType readDType(const JsonValue& root) {
  auto value = root.find("dtype");
  if (!value) value = root.find("torch_dtype");
  if (!value) return DType::F32;
  std::string_view name = value->asString();
  if (name.starts_with("torch.")) name.remove_prefix(6);
  if (name == "float32") return DType::F32;
  if (name == "bfloat16") return DType::BF16;
  if (name == "float16") return DType::F16;
  throw value->error("expected float32, bfloat16 or float16, got " + value->show(),
                     ErrorCode::Unsupported);
}

LlamaConfig readConfig(const JsonValue& root) {
  if (!root.isObject()) throw root.error("expected an object, got " + root.show());
  checkArchitecture(root);
  refuseOtherMathematics(root);
  LlamaConfig config;
  config.vocabSize = size(root, "vocab_size", kMaxVocabulary);
  config.hiddenSize = size(root, "hidden_size", kMaxHidden);
  config.intermediateSize = size(root, "intermediate_size", kMaxIntermediate);
  config.layers = size(root, "num_hidden_layers", kMaxLayers);
  readHeads(root, config);
  if (auto eps = root.find("rms_norm_eps")) {
    config.rmsNormEps = eps->asDouble();
    if (!(config.rmsNormEps > 0 && config.rmsNormEps < 1))
      throw eps->error("expected a number between 0 and 1, both excluded, got " + eps->show());
  }
  readPositions(root, config);
  config.tieWordEmbeddings = flag(root, "tie_word_embeddings");
  config.attentionBias = flag(root, "attention_bias");
  config.mlpBias = flag(root, "mlp_bias");
  if (auto act = root.find("hidden_act")) {
    config.hiddenAct = act->asString();
    if (config.hiddenAct != "silu" && config.hiddenAct != "swish")
      throw act->error("expected \"silu\", got " + act->show(), ErrorCode::Unsupported);
  }
  readTokens(root, config);
  config.dtype = readDType(root);
  for (size_t i = 0; i < root.size(); ++i) {
    const std::string& key = root.member(i).first;
    if (std::ranges::find(kKnown, key) == kKnown.end() &&
        std::ranges::find(kRefused, key, &Refused::key) == kRefused.end())
      config.unknownFields.push_back(key);
  }
  return config;
}

}  // namespace

LlamaConfig loadLlamaConfig(const std::string& path) {
  std::error_code ignored;
  bool folder = std::filesystem::is_directory(path, ignored);
  return readConfig(JsonValue::load(
      folder ? (std::filesystem::path(path) / "config.json").string() : path, kConfigFile));
}

LlamaConfig parseLlamaConfig(std::string_view json, const std::string& file) {
  return readConfig(JsonValue::parse(json, file));
}

}  // namespace lathe
