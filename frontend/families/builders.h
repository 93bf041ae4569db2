// SPDX-License-Identifier: Apache-2.0
#pragma once
// The families that the library brings, one file each.
#include "lathe/frontend/families/family.h"

namespace lathe::builders {

using Builder = Graph(ConfigReader& config, const FamilyOptions& options);

Builder llama, mistral, qwen2, qwen3, gemma, gemma2, gemma3, phi3, gpt2, gptNeoX, olmo2, granite,
    mixtral, qwen3Moe, bert, bertMaskedLm, roberta, robertaMaskedLm, t5, vit, vitClassifier, bart;

/// The windows of Qwen's layers: `sliding_window` with `use_sliding_window` from layer
/// `max_window_layers` (where missing `otherwiseFrom`) on, or as `layer_types` says.
std::vector<int64_t> qwenWindows(ConfigReader& config, int64_t layers, int64_t otherwiseFrom = 28);

/// The bound of a soft cap; 0 where the field is null.
double readCap(ConfigReader& config, std::string_view key, double otherwise);

}  // namespace lathe::builders
