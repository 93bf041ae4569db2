// SPDX-License-Identifier: Apache-2.0
#pragma once
// LoRA: Hu et al., "LoRA: Low-Rank Adaptation of Large Language Models", 2022; DoRA: Liu et al.,
// 2024. A folder as PEFT writes it: adapter_config.json and adapter_model.safetensors.
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/stored_weight.h"

namespace lathe {

/// Fields of adapter_config.json that change no number: the tensors say which modules they are of,
/// and the rest is about training.
inline constexpr auto kLoraNotes = std::to_array<std::string_view>(
    {"target_modules", "exclude_modules", "layers_to_transform", "layers_pattern",
     "base_model_name_or_path", "revision", "task_type", "inference_mode", "lora_dropout",
     "auto_mapping", "megatron_core", "megatron_config", "eva_config", "loftq_config",
     "corda_config", "peft_version", "runtime_config", "qalora_group_size"});

struct LoraFolder {
  std::vector<LoraUpdate> updates;
  std::vector<std::string> replaced;  ///< as Checkpoint::replaced
};

/// Adds the adapter's tensors to the table, under names that begin with `prefix`, and says what is
/// to be done with them; tensors of `modules_to_save` take the place of the model's. Throws
/// Error(Unsupported) for fields of other mathematics, Error(InvalidFile) for tensors that fit
/// nothing and for a module of `modules_to_save` of which the file has none.
LoraFolder addLora(StoredWeights& weights, const std::string& folder, const std::string& prefix);

}  // namespace lathe
