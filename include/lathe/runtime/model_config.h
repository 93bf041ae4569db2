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

/// What config.json says of a model of any family, for those who run and show it: the families
/// (lathe/frontend/families/family.h) read what they compute from. Sizes count elements; 0 where
/// the file does not say.
struct ModelConfig {
  std::string architecture;  ///< "LlamaForCausalLM"; empty where the file names its type alone
  std::string modelType;     ///< "llama"; empty where the file names its class alone
  int64_t vocabSize = 0;
  int64_t hiddenSize = 0;
  int64_t intermediateSize = 0;
  int64_t layers = 0;
  int64_t heads = 0;
  int64_t kvHeads = 0;       ///< heads unless the file says otherwise
  int64_t headDim = 0;       ///< hiddenSize / heads unless the file says otherwise
  int64_t maxPositions = 0;  ///< tokens of a sequence, by dynamic scaling if the model has it
  bool tieWordEmbeddings = false;
  std::optional<int64_t> bosId;
  std::vector<int64_t> eosIds;
  std::optional<int64_t> padId;
  int64_t targetVocabSize = 0;  ///< of what an encoder-decoder writes; vocabSize unless it says so
  /// What an encoder-decoder begins with, and the first token behind it.
  std::optional<int64_t> decoderStartId, forcedBosId;
  DType dtype = DType::F32;  ///< what the weights were saved in; F32 if the file does not say
};

/// Reads config.json, under the names that the families give these fields (`hidden_size`, `n_embd`,
/// `d_model`). `path` is the file or its folder. Throws Error(InvalidFile) for values that make no
/// model and Error(Unsupported) for a dtype that weights cannot have.
ModelConfig loadModelConfig(const std::string& path);
ModelConfig parseModelConfig(std::string_view json, const std::string& file);
/// The same of a document that is parsed already.
class JsonValue;
ModelConfig readModelConfig(const JsonValue& root);

/// The defaults of generation that a model brings along; what the file does not say is empty.
struct GenerationConfig {
  std::optional<int64_t> bosId;
  std::vector<int64_t> eosIds;
  std::optional<int64_t> padId;
  std::optional<int64_t> decoderStartId, forcedBosId;
  std::vector<int64_t> excludedIds;  ///< tokens that never come
  std::optional<bool> doSample;
  std::optional<double> temperature;
  std::optional<int64_t> topK;
  std::optional<double> topP;
  std::optional<double> minP;
  std::optional<double> repetitionPenalty;
  std::vector<std::string> stopStrings;
  std::optional<int64_t> maxNewTokens;
  std::optional<int64_t> maxLength;
  /// Keys that are present, not null, not at their neutral value and not obeyed (forced tokens,
  /// guidance, typical sampling): worth a note to the user.
  std::vector<std::string> ignoredFields;
};

/// `path` is the file or its folder; a folder without the file gives an empty config.
GenerationConfig loadGenerationConfig(const std::string& path);
GenerationConfig parseGenerationConfig(std::string_view json, const std::string& file);

}  // namespace lathe
