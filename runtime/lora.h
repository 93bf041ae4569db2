// SPDX-License-Identifier: Apache-2.0
#pragma once
// LoRA: Hu et al., "LoRA: Low-Rank Adaptation of Large Language Models", 2022; DoRA: Liu et al.,
// 2024. A folder as PEFT writes it: adapter_config.json and adapter_model.safetensors.
#include <string>
#include <vector>

#include "runtime/stored_weight.h"

namespace lathe {

/// Adds the adapter's tensors to the table, under names that begin with `prefix`, and says what is
/// to be done with them; tensors of `modules_to_save` take the place of the model's. Throws
/// Error(Unsupported) for fields of other mathematics, Error(InvalidFile) for tensors that fit
/// nothing.
std::vector<LoraUpdate> addLora(StoredWeights& weights, const std::string& folder,
                                const std::string& prefix);

}  // namespace lathe
