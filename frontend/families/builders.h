// SPDX-License-Identifier: Apache-2.0
#pragma once
// The families that the library brings, one file each.
#include "lathe/frontend/families/family.h"
#include "lathe/runtime/error.h"

namespace lathe::builders {

using Builder = Graph(ConfigReader& config, const FamilyOptions& options);

Builder llama, mistral, qwen2, qwen3, gemma, gemma2, gemma3, phi3, gpt2, gptNeoX, olmo2, granite,
    mixtral, qwen3Moe, qwen2Moe, phi, opt, gptJ, falcon, starcoder2, smolLm3, cohere, stableLm,
    bloom, bert, bertMaskedLm, roberta, robertaMaskedLm, t5, mt5, vit, vitClassifier, bart, marian,
    whisper, distilBert, distilBertMaskedLm, distilBertClassifier, clip, clipText, clipVision, dit;

/// The windows of Qwen's layers: `sliding_window` with `use_sliding_window` from layer
/// `max_window_layers` (where missing `otherwiseFrom`) on, or as `layer_types` says.
std::vector<int64_t> qwenWindows(ConfigReader& config, int64_t layers, int64_t otherwiseFrom = 28);

/// Which layers have a mixture: every `decoder_sparse_step`-th, without those of `mlp_only_layers`.
std::vector<bool> readMixtures(ConfigReader& config, int64_t layers);

/// The bound of a soft cap; 0 where the field is null.
double readCap(ConfigReader& config, std::string_view key, double otherwise);

/// The message without the place in a family's file: what was wrong is the config's or the
/// caller's.
std::string messageOf(const Error& e);

}  // namespace lathe::builders
