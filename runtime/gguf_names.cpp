// SPDX-License-Identifier: Apache-2.0
// GGUF's names of tensors and Hugging Face's, of the architectures that have a family.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "lathe/runtime/config_reader.h"
#include "lathe/runtime/error.h"
#include "runtime/gguf_architecture.h"
#include "runtime/gguf_blocks.h"
#include "runtime/gguf_model.h"

namespace lathe {
namespace {

struct Renamed {
  std::string_view theirs, ours;
};

constexpr auto kOutside = std::to_array<Renamed>(
    {{"token_embd", "model.embed_tokens"}, {"output_norm", "model.norm"}, {"output", "lm_head"}});
constexpr auto kInLayers = std::to_array<Renamed>({
    {"attn_norm", "input_layernorm"},
    {"attn_q", "self_attn.q_proj"},
    {"attn_k", "self_attn.k_proj"},
    {"attn_v", "self_attn.v_proj"},
    {"attn_qkv", "self_attn.qkv_proj"},
    {"attn_output", "self_attn.o_proj"},
    {"attn_q_norm", "self_attn.q_norm"},
    {"attn_k_norm", "self_attn.k_norm"},
    {"post_attention_norm", "post_attention_layernorm"},
    {"post_ffw_norm", "post_feedforward_layernorm"},
    {"ffn_gate", "mlp.gate_proj"},
    {"ffn_down", "mlp.down_proj"},
});
// Experts of Mixtral, and of the others.
constexpr auto kExperts =
    std::to_array<std::array<std::string_view, 3>>({{"ffn_gate_exps", "w1", "gate_proj"},
                                                    {"ffn_up_exps", "w3", "up_proj"},
                                                    {"ffn_down_exps", "w2", "down_proj"}});
// Factors of the rotations, which config.json holds.
constexpr auto kOfConfig = std::to_array<std::string_view>(
    {"rope_freqs.weight", "rope_factors_long.weight", "rope_factors_short.weight"});

constexpr auto kArchitectures = std::to_array<GgufArchitecture>({
    {.name = "llama", .architecture = "LlamaForCausalLM", .type = "llama", .rotates = true},
    {.name = "qwen2", .architecture = "Qwen2ForCausalLM", .type = "qwen2"},
    {.name = "qwen3", .architecture = "Qwen3ForCausalLM", .type = "qwen3"},
    {.name = "qwen3moe", .architecture = "Qwen3MoeForCausalLM", .type = "qwen3_moe"},
    {.name = "gemma", .architecture = "GemmaForCausalLM", .type = "gemma", .addsOne = true},
    {.name = "gemma2",
     .architecture = "Gemma2ForCausalLM",
     .type = "gemma2",
     .addsOne = true,
     .ffnNorm = "pre_feedforward_layernorm"},
    {.name = "gemma3",
     .architecture = "Gemma3ForCausalLM",
     .type = "gemma3_text",
     .addsOne = true,
     .ffnNorm = "pre_feedforward_layernorm"},
    {.name = "phi3", .architecture = "Phi3ForCausalLM", .type = "phi3", .up = "mlp.gate_up_proj"},
    {.name = "olmo2", .architecture = "Olmo2ForCausalLM", .type = "olmo2"},
    {.name = "granite", .architecture = "GraniteForCausalLM", .type = "granite", .rotates = true},
});

std::string_view renamed(std::span<const Renamed> table, std::string_view name) {
  auto it = std::ranges::find(table, name, &Renamed::theirs);
  return it == table.end() ? std::string_view() : it->ours;
}

Error misshapen(const GgufTensor& tensor, const GgufFile& file, const std::string& expected) {
  return Error(
      ErrorCode::InvalidFile,
      fmt::format("{}: tensor {}: expected {}, got {}[{}]", file.path(), inQuotes(tensor.name),
                  expected, tensor.type->name, fmt::join(tensor.shape, ", ")));
}

// [experts, rows, columns] as a matrix for each expert.
std::vector<GgufWeight> expertsIn(const GgufTensor& tensor, const GgufFile& file,
                                  const std::string& path, bool isMixtral,
                                  const std::array<std::string_view, 3>& names) {
  if (tensor.shape.size() != 3 || tensor.shape[0] > kMaxExperts)
    throw misshapen(tensor, file, "[experts, rows, columns]");
  std::vector<GgufWeight> weights;
  for (int64_t e = 0; e < tensor.shape[0]; ++e)
    weights.push_back(
        {.name = fmt::format("{}{}.experts.{}.{}.weight", path,
                             isMixtral ? "block_sparse_moe" : "mlp", e, names[isMixtral ? 1 : 2]),
         .first = e * tensor.shape[1],
         .shape = {tensor.shape[1], tensor.shape[2]}});
  return weights;
}

}  // namespace

const GgufArchitecture& architectureOf(const GgufFile& file) {
  const GgufValue& value = file.at("general.architecture");
  const std::string_view name = value.asString();
  std::string names;
  for (const GgufArchitecture& a : kArchitectures) {
    if (a.name == name) return a;
    names += (names.empty() ? "" : ", ") + std::string(a.name);
  }
  throw value.unsupported(fmt::format("expected one of {}, got {}", names, value.show()));
}

bool isMixture(const GgufFile& file) {
  const GgufValue* experts = file.find(std::string(architectureOf(file).name) + ".expert_count");
  return experts && experts->asInt(0, kMaxExperts) > 0;
}

int64_t uniformCount(const GgufValue& value, int64_t most) {
  if (!value.isArray()) return value.asInt(1, most);
  const std::vector<int64_t> counts = value.asInts(1, most);
  if (counts.empty() || std::ranges::adjacent_find(counts, std::not_equal_to()) != counts.end())
    throw value.unsupported("expected the same number for all layers, got " + value.show());
  return counts.front();
}

std::vector<GgufWeight> weightsIn(const GgufTensor& tensor, const std::vector<GgufFile>& parts) {
  const GgufFile& file = parts[0];
  const GgufArchitecture& a = architectureOf(file);
  if (std::ranges::find(kOfConfig, tensor.name) != kOfConfig.end()) return {};
  const size_t dot = tensor.name.rfind('.');
  const std::string ending = dot == tensor.name.npos ? "" : tensor.name.substr(dot);
  std::string_view stem =
      std::string_view(tensor.name).substr(0, std::min(dot, tensor.name.size()));
  if (std::string_view ours = renamed(kOutside, stem); !ours.empty())
    return {{.name = std::string(ours) + ending, .lessOne = a.addsOne && stem == "output_norm"}};
  std::string path;
  if (stem.starts_with("blk.")) {
    const size_t end = stem.find('.', 4);
    if (end != stem.npos) {
      path = fmt::format("model.layers.{}.", stem.substr(4, end - 4));
      stem.remove_prefix(end + 1);
    }
  }
  // What has no other name keeps its own: it is told as unexpected.
  if (path.empty()) return {{.name = tensor.name}};
  const bool isMixtral = a.name == "llama";
  for (const auto& names : kExperts)
    if (stem == names[0] && isMixture(file)) return expertsIn(tensor, file, path, isMixtral, names);
  std::string_view ours = renamed(kInLayers, stem);
  if (stem == "ffn_norm") ours = a.ffnNorm;
  if (stem == "ffn_up") ours = a.up;
  if (stem == "ffn_gate_inp") ours = isMixtral ? "block_sparse_moe.gate" : "mlp.gate";
  if (ours.empty()) return {{.name = tensor.name}};
  GgufWeight weight{.name = path + std::string(ours) + ending};
  weight.lessOne = a.addsOne && stem.ends_with("norm");
  if (a.rotates && (stem == "attn_q" || stem == "attn_k")) {
    const std::string heads = std::string(a.name) + ".attention.head_count";
    const GgufValue* own = stem == "attn_k" ? file.find(heads + "_kv") : nullptr;
    weight.rotatedHeads = uniformCount(own ? *own : file.at(heads), kMaxHeads);
    const bool fits = tensor.shape.size() <= 2 &&
                      tensor.shape[0] % (2 * weight.rotatedHeads) == 0 &&
                      (tensor.shape.size() == 2 || tensor.type->elements == 1);
    if (!fits)
      throw misshapen(tensor, file,
                      fmt::format("rows of {} heads of even size", weight.rotatedHeads));
  }
  return {std::move(weight)};
}

}  // namespace lathe
