// SPDX-License-Identifier: Apache-2.0
// GGUF's metadata as the config.json of a family. A key that changes what the model computes and
// that nobody read is an error, as a field of config.json is.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "lathe/runtime/config_reader.h"
#include "lathe/runtime/error.h"
#include "runtime/gguf_architecture.h"
#include "runtime/gguf_blocks.h"
#include "runtime/gguf_model.h"

namespace lathe {
namespace {

using Json = nlohmann::ordered_json;

// Of the architecture's own keys, those that change nothing.
constexpr auto kHarmless =
    std::to_array<std::string_view>({"vocab_size", "rope.scaling.finetuned"});

class Metadata {
 public:
  Metadata(const GgufFile& file, std::string_view prefix) : file_(file), prefix_(prefix) {}

  const GgufValue* find(std::string_view key) {
    read_.emplace(key);
    return file_.find(prefix_ + "." + std::string(key));
  }
  const GgufValue& at(std::string_view key) {
    read_.emplace(key);
    return file_.at(prefix_ + "." + std::string(key));
  }
  int64_t size(std::string_view key, int64_t most) { return uniformCount(at(key), most); }
  int64_t size(std::string_view key, int64_t most, int64_t otherwise) {
    const GgufValue* value = find(key);
    return value ? uniformCount(*value, most) : otherwise;
  }
  // The number that was written into 32 bits: 1e-05, and not what its nearest float is in 64.
  double number(std::string_view key) {
    const GgufValue& value = at(key);
    const double v = value.asDouble();
    return value.type() == GgufType::F32 ? std::stod(fmt::format("{}", float(v))) : v;
  }
  double number(std::string_view key, double otherwise) {
    return find(key) ? number(key) : otherwise;
  }
  // A number above 0, for bases, and one between 0 and 1 for epsilons: what config.json asks of
  // them, told with the file's own key.
  double positive(std::string_view key, double otherwise) {
    const double v = number(key, otherwise);
    if (!(v > 0)) throw at(key).error("expected a number > 0, got " + at(key).show());
    return v;
  }
  double epsilon(std::string_view key) {
    const double v = number(key);
    if (!(v > 0 && v < 1))
      throw at(key).error("expected a number between 0 and 1, both excluded, got " +
                          at(key).show());
    return v;
  }
  void finish(std::string_view family) const {
    for (auto& [key, value] : file_.header().metadata) {
      if (!key.starts_with(prefix_ + ".")) continue;
      const std::string_view own = std::string_view(key).substr(prefix_.size() + 1);
      if (!read_.contains(own) && std::ranges::find(kHarmless, own) == kHarmless.end())
        throw value.unsupported(
            fmt::format("not supported by {}: expected no such key, got {}", family, value.show()));
    }
  }

 private:
  const GgufFile& file_;
  const std::string prefix_;
  std::set<std::string, std::less<>> read_;
};

std::vector<double> factorsIn(const std::vector<GgufFile>& parts, std::string_view name) {
  for (const GgufFile& file : parts)
    if (const GgufTensor* tensor = file.tensor(name)) {
      if (tensor->type->plain != DType::F32 || tensor->shape.size() != 1 ||
          tensor->shape[0] > kMaxHeads)
        throw Error(ErrorCode::InvalidFile,
                    fmt::format("{}: tensor {}: expected a vector of F32", file.path(), name));
      std::vector<double> factors;
      for (int64_t i = 0; i < tensor->shape[0]; ++i) {
        float value;
        std::memcpy(&value, file.bytes(*tensor).data() + size_t(i) * sizeof value, sizeof value);
        if (!std::isfinite(value))
          throw Error(ErrorCode::InvalidFile,
                      fmt::format("{}: tensor {}: element {} is {}", file.path(), name, i, value));
        factors.push_back(double(value));
      }
      return factors;
    }
  return {};
}

// Linear and yarn are numbers; factors of single frequencies are tensors. Llama 3's rule comes as
// such factors, too: they are those of longrope, the same for all lengths, with no further scale.
void addRope(Json& config, Metadata& data, const std::vector<GgufFile>& parts) {
  config["rope_theta"] = data.positive("rope.freq_base", 10000);
  double factor = data.number("rope.scaling.factor", 1);
  // ggml's zero for no scaling.
  if (factor == 0) factor = 1;
  // A factor without a type is linear's, as ggml reads it; linear by 1 is none.
  const GgufValue* typeValue = data.find("rope.scaling.type");
  std::string type(typeValue ? typeValue->asString() : "linear");
  if (type == "linear" && factor == 1) type = "none";
  if (!typeValue) typeValue = data.find("rope.scaling.factor");
  const int64_t context = config["max_position_embeddings"];
  const int64_t trained = data.size("rope.scaling.original_context_length", kMaxPositions, context);
  const double attention = data.positive("rope.scaling.attn_factor", 1);
  auto expectFactor = [&] {
    if (factor < 1)
      throw data.at("rope.scaling.factor")
          .error("expected a factor >= 1, or 0 for none, got " +
                 data.at("rope.scaling.factor").show());
  };
  const std::vector<double> all = factorsIn(parts, "rope_freqs.weight");
  const std::vector<double> longer = factorsIn(parts, "rope_factors_long.weight");
  const std::vector<double> shorter = factorsIn(parts, "rope_factors_short.weight");
  if (!all.empty() || !longer.empty() || !shorter.empty()) {
    if (type != "none" && type != "longrope")
      throw typeValue->unsupported("expected none or longrope beside factors of frequencies, got " +
                                   typeValue->show());
    config["rope_scaling"] = {{"rope_type", "longrope"},
                              {"short_factor", all.empty() ? shorter : all},
                              {"long_factor", all.empty() ? longer : all},
                              {"original_max_position_embeddings", trained},
                              {"attention_factor", attention}};
  } else if (attention != 1 && (type == "linear" || type == "none")) {
    throw data.at("rope.scaling.attn_factor")
        .unsupported(fmt::format("expected 1 beside {} scaling, got {}", type, attention));
  } else if (type == "linear") {
    expectFactor();
    config["rope_scaling"] = {{"rope_type", "linear"}, {"factor", factor}};
  } else if (type == "yarn") {
    expectFactor();
    const double fast = data.positive("rope.scaling.yarn_beta_fast", 32),
                 slow = data.positive("rope.scaling.yarn_beta_slow", 1);
    if (slow > fast) {
      const GgufValue* blamed = data.find("rope.scaling.yarn_beta_slow");
      throw(blamed ? *blamed : data.at("rope.scaling.yarn_beta_fast"))
          .error(fmt::format("expected beta_slow <= beta_fast, got {} and {}", slow, fast));
    }
    config["rope_scaling"] = {{"rope_type", "yarn"},
                              {"factor", factor},
                              {"original_max_position_embeddings", trained},
                              {"beta_fast", fast},
                              {"beta_slow", slow},
                              {"attention_factor", attention * (1 + 0.1 * std::log(factor))}};
  } else if (type != "none") {
    throw typeValue->unsupported("expected none, linear, yarn or longrope, got " +
                                 typeValue->show());
  }
}

void addSizes(Json& config, Metadata& data, const std::vector<GgufFile>& parts) {
  const GgufFile& file = parts[0];
  const GgufTensor* table = findTensor(parts, "token_embd.weight");
  if (!table || table->shape.size() != 2)
    throw Error(ErrorCode::InvalidFile,
                file.path() + ": expected a matrix token_embd.weight, found none");
  config["vocab_size"] = table->shape[0];
  config["hidden_size"] = data.size("embedding_length", kMaxHidden);
  config["intermediate_size"] = data.size("feed_forward_length", kMaxIntermediate);
  config["num_hidden_layers"] = data.size("block_count", kMaxLayers);
  const int64_t heads = data.size("attention.head_count", kMaxHeads);
  config["num_attention_heads"] = heads;
  config["num_key_value_heads"] = data.size("attention.head_count_kv", kMaxHeads, heads);
  config["max_position_embeddings"] = data.size("context_length", kMaxPositions);
  config["rms_norm_eps"] = data.epsilon("attention.layer_norm_rms_epsilon");
  const int64_t hidden = config["hidden_size"];
  const int64_t key =
      data.size("attention.key_length", kMaxHeads, std::max<int64_t>(hidden / heads, 1));
  if (data.size("attention.value_length", kMaxHeads, key) != key)
    throw data.at("attention.value_length")
        .unsupported(fmt::format("expected {}, as keys have", key));
  config["head_dim"] = key;
  const int64_t rotated = data.size("rope.dimension_count", kMaxHeads, key);
  if (const GgufValue* given = data.find("rope.dimension_count");
      given && (rotated % 2 || rotated > key))
    throw given->error(
        fmt::format("expected an even number up to a head's {}, got {}", key, rotated));
  if (rotated != key) config["partial_rotary_factor"] = double(rotated) / double(key);
  config["tie_word_embeddings"] = findTensor(parts, "output.weight") == nullptr;
  if (const GgufValue* causal = data.find("attention.causal"); causal && !causal->asBool())
    throw causal->unsupported("expected true, got false");
}

void addTokens(Json& config, const GgufFile& file) {
  auto id = [&](const char* key) -> std::optional<int64_t> {
    const GgufValue* value = file.find(std::string("tokenizer.ggml.") + key);
    if (!value) return std::nullopt;
    return value->asInt(0, int64_t(config["vocab_size"]) - 1);
  };
  if (auto bos = id("bos_token_id"))
    config["bos_token_id"] = *bos;
  else
    config["bos_token_id"] = nullptr;
  std::vector<int64_t> ends;
  for (const char* key : {"eos_token_id", "eot_token_id", "eom_token_id"})
    if (auto end = id(key); end && std::ranges::find(ends, *end) == ends.end())
      ends.push_back(*end);
  config["eos_token_id"] = ends.empty()       ? Json(nullptr)
                           : ends.size() == 1 ? Json(ends[0])
                                              : Json(ends);
  if (auto pad = id("padding_token_id")) config["pad_token_id"] = *pad;
}

void addExperts(Json& config, Metadata& data, const char* count) {
  const int64_t all = data.size("expert_count", kMaxExperts);
  config[count] = all;
  config["num_experts_per_tok"] = data.size("expert_used_count", all);
}

// The scale of scores is no key: sizes say which of Google's models it is.
void addGemmaScale(Json& config, int64_t layersOfLargest) {
  const bool isLargest = config["num_hidden_layers"] == layersOfLargest;
  const int64_t hidden = config["hidden_size"], heads = config["num_attention_heads"];
  config["query_pre_attn_scalar"] = isLargest ? Json(hidden / heads) : config["head_dim"];
}

// What one architecture has beside the sizes.
void addOwn(Json& config, std::string_view name, Metadata& data,
            const std::vector<GgufFile>& parts) {
  auto has = [&](const char* tensor) { return findTensor(parts, tensor) != nullptr; };
  const bool isGemma = name.starts_with("gemma");
  if (isGemma)
    config["hidden_activation"] = "gelu_pytorch_tanh";
  else
    config["hidden_act"] = "silu";
  if (name == "llama") {
    if (isMixture(parts[0])) {
      config["architectures"] = {"MixtralForCausalLM"};
      config["model_type"] = "mixtral";
      addExperts(config, data, "num_local_experts");
    } else if (data.find("attention.sliding_window")) {
      config["architectures"] = {"MistralForCausalLM"};
      config["model_type"] = "mistral";
    } else {
      // Of no experts, which some writers say by counts of 0.
      data.find("expert_count");
      data.find("expert_used_count");
      config["attention_bias"] = has("blk.0.attn_q.bias");
      config["mlp_bias"] = has("blk.0.ffn_up.bias");
    }
  }
  if (name == "qwen3" || name == "qwen3moe" || name == "olmo2" || name == "granite")
    config["attention_bias"] = has("blk.0.attn_q.bias");
  if (name == "granite") {
    config["mlp_bias"] = has("blk.0.ffn_up.bias");
    for (auto [key, field] : {std::pair("attention.scale", "attention_multiplier"),
                              std::pair("embedding_scale", "embedding_multiplier"),
                              std::pair("residual_scale", "residual_multiplier"),
                              std::pair("logit_scale", "logits_scaling")})
      if (data.find(key)) config[field] = data.number(key);
  }
  if (name == "qwen3moe") {
    addExperts(config, data, "num_experts");
    config["moe_intermediate_size"] = data.size("expert_feed_forward_length", kMaxIntermediate);
    config["norm_topk_prob"] = true;
    config["decoder_sparse_step"] = 1;
  }
  if (name == "gemma2" || name == "gemma3") addGemmaScale(config, name == "gemma2" ? 46 : 62);
  // The first files of Gemma 2 have none of these keys.
  if (name == "gemma2") {
    config["sliding_window"] = data.size("attention.sliding_window", kMaxPositions, 4096);
    config["final_logit_softcapping"] = data.positive("final_logit_softcapping", 30);
    config["attn_logit_softcapping"] = data.positive("attn_logit_softcapping", 50);
  }
  if (name == "gemma3") {
    config["sliding_window"] = data.size("attention.sliding_window", kMaxPositions);
    config["final_logit_softcapping"] = nullptr;
    if (data.find("final_logit_softcapping"))
      config["final_logit_softcapping"] = data.positive("final_logit_softcapping", 1);
    config["rope_local_base_freq"] = data.positive("rope.freq_base_swa", 10000);
    if (data.find("attention.sliding_window_pattern"))
      config["sliding_window_pattern"] = data.size("attention.sliding_window_pattern", kMaxLayers);
  } else if (name == "phi3" || config["model_type"] == "mistral" ||
             config["model_type"] == "mixtral") {
    if (data.find("attention.sliding_window"))
      config["sliding_window"] = data.size("attention.sliding_window", kMaxPositions);
    else
      config["sliding_window"] = nullptr;
  }
}

}  // namespace

std::string ggufConfig(const std::vector<GgufFile>& parts) {
  const GgufFile& file = parts[0];
  const GgufArchitecture& a = architectureOf(file);
  Metadata data(file, a.name);
  Json config;
  config["architectures"] = {a.architecture};
  config["model_type"] = a.type;
  addSizes(config, data, parts);
  addRope(config, data, parts);
  addTokens(config, file);
  addOwn(config, a.name, data, parts);
  data.finish(std::string(config["architectures"][0]));
  return config.dump(2);
}

}  // namespace lathe
