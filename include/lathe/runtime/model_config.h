// SPDX-License-Identifier: Apache-2.0
#pragma once
// config.json and generation_config.json of a Hugging Face folder.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lathe/runtime/dtype.h"

namespace lathe {

/// How RoPE frequencies are stretched beyond the trained length.
struct RopeScaling {
  enum class Type { Default, Linear, Llama3 };
  Type type = Type::Default;
  double factor = 1;                 ///< linear, llama3: every (low) frequency is divided by it
  double lowFreqFactor = 1;          ///< llama3
  double highFreqFactor = 4;         ///< llama3
  int64_t originalMaxPositions = 0;  ///< llama3: the length before stretching
};

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
  RopeScaling ropeScaling;
  bool tieWordEmbeddings = false;
  bool attentionBias = false;
  bool mlpBias = false;
  std::string hiddenAct = "silu";
  std::optional<int64_t> bosId;
  std::vector<int64_t> eosIds;
  std::optional<int64_t> padId;
  DType dtype = DType::F32;  ///< what the weights were saved in; F32 if the file does not say
  /// Keys that this reader does not know: worth a note, as they may change the model.
  std::vector<std::string> unknownFields;
};

/// Reads config.json as transformers 4 (`rope_theta`, `rope_scaling`) or 5 (`rope_parameters`)
/// writes it. `path` is the file or its folder. A field that changes the mathematics is honoured or
/// refused by name: Error(InvalidFile) for values that make no model, Error(Unsupported) for models
/// that are not of this family (other activation, rope type, sliding window, quantisation).
LlamaConfig loadLlamaConfig(const std::string& path);
LlamaConfig parseLlamaConfig(std::string_view json, const std::string& file);

/// The defaults of generation that a model brings along; what the file does not say is empty.
struct GenerationConfig {
  std::optional<int64_t> bosId;
  std::vector<int64_t> eosIds;
  std::optional<int64_t> padId;
  std::optional<bool> doSample;
  std::optional<double> temperature;
  std::optional<int64_t> topK;
  std::optional<double> topP;
  std::optional<int64_t> maxNewTokens;
  std::optional<int64_t> maxLength;
  /// Keys that are present, not null, not at their neutral value and not obeyed (beam search,
  /// penalties, forced tokens): worth a note to the user.
  std::vector<std::string> ignoredFields;
};

/// `path` is the file or its folder; a folder without the file gives an empty config.
GenerationConfig loadGenerationConfig(const std::string& path);
GenerationConfig parseGenerationConfig(std::string_view json, const std::string& file);

}  // namespace lathe
