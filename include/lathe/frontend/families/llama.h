// SPDX-License-Identifier: Apache-2.0
#pragma once
// Llama 2 and 3, SmolLM: Touvron et al., "Llama 2: Open Foundation and Fine-Tuned Chat Models",
// 2023. `LlamaForCausalLM` checkpoints.
#include <cstdint>
#include <string>
#include <string_view>

#include "lathe/frontend/families/family.h"
#include "lathe/frontend/nn/rope_scaling.h"
#include "lathe/runtime/enums.h"

namespace lathe {

/// A `LlamaForCausalLM` config.json. Sizes count elements.
struct LlamaConfig {
  int64_t vocabSize = 0;
  int64_t hiddenSize = 0;
  int64_t intermediateSize = 0;
  int64_t layers = 0;
  int64_t heads = 0;
  int64_t kvHeads = 0;  ///< divides heads
  int64_t headDim = 0;  ///< even; hiddenSize / heads unless the file says otherwise
  int64_t maxPositions = 2048;
  double rmsNormEps = 1e-6;
  double ropeTheta = 10000;
  nn::RopeScalingOptions ropeScaling;
  bool tieWordEmbeddings = false;
  bool attentionBias = false;
  bool mlpBias = false;
  Activation activation = Activation::silu;
};

/// Reads config.json as transformers 4 (`rope_theta`, `rope_scaling`) or 5 (`rope_parameters`)
/// writes it. `path` is the file or its folder. A field that changes the mathematics is honoured or
/// refused by name: Error(InvalidFile) for values that make no model, Error(Unsupported) for models
/// that are not of this family.
LlamaConfig loadLlamaConfig(const std::string& path);
LlamaConfig parseLlamaConfig(std::string_view json, const std::string& file);

/// Records the entry points of recordCausalLm (lathe/frontend/families/causal_lm.h). Weights have
/// the names of Hugging Face. Ops have the lines of frontend/families/llama.cpp, errors that of the
/// call. Throws Error(InvalidArgument) for sizes that make no model or options beyond the config's
/// maxPositions.
Graph buildLlama(const LlamaConfig& config, const FamilyOptions& options = {}, LATHE_AT);

}  // namespace lathe
