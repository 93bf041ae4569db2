// SPDX-License-Identifier: Apache-2.0
// generation_config.json; the struct is declared in model_config.h.
#include <algorithm>
#include <array>
#include <filesystem>

#include <fmt/format.h>

#include "lathe/runtime/error.h"
#include "lathe/runtime/json_reader.h"
#include "lathe/runtime/model_config.h"
#include "runtime/mapped_file.h"

namespace lathe {
namespace {

constexpr int64_t kMaxId = 2147483647;

// Read below, or without effect on which tokens come out.
constexpr auto kKnown = std::to_array<std::string_view>({"bos_token_id",
                                                         "eos_token_id",
                                                         "pad_token_id",
                                                         "decoder_start_token_id",
                                                         "forced_bos_token_id",
                                                         "suppress_tokens",
                                                         "do_sample",
                                                         "temperature",
                                                         "top_k",
                                                         "top_p",
                                                         "min_p",
                                                         "repetition_penalty",
                                                         "stop_strings",
                                                         "max_new_tokens",
                                                         "max_length",
                                                         "transformers_version",
                                                         "_from_model_config",
                                                         "use_cache",
                                                         "cache_implementation",
                                                         "cache_config",
                                                         "return_legacy_cache",
                                                         "output_attentions",
                                                         "output_hidden_states",
                                                         "output_scores",
                                                         "output_logits",
                                                         "return_dict_in_generate",
                                                         "trust_remote_code"});

// Whether a key that is not obeyed asks for nothing: false, or the number that switches it off.
bool isOff(const std::string& key, const JsonValue& value) {
  if (value.isNull()) return true;
  if (value.isBool()) return !value.asBool();
  if (value.isArray() || value.isObject()) return value.size() == 0;
  if (!value.isNumber()) return false;
  constexpr auto offAtOne = std::to_array<std::string_view>(
      {"num_beams", "num_beam_groups", "num_return_sequences", "typical_p", "length_penalty",
       "encoder_repetition_penalty", "guidance_scale"});
  bool one = std::ranges::find(offAtOne, key) != offAtOne.end();
  return value.asDouble() == (one ? 1 : 0);
}

// Tokens to leave out, and words to leave out that are one token; longer ones are not obeyed.
void readExcluded(const JsonValue& root, GenerationConfig& config) {
  if (auto tokens = root.find("suppress_tokens"))
    for (const JsonValue& token : tokens->elements())
      if (const int64_t id = token.asInt(-1, kMaxId); id >= 0)  // -1: none
        config.excludedIds.push_back(id);
  bool obeyed = true;
  if (auto words = root.find("bad_words_ids"))
    for (const JsonValue& word : words->elements()) {
      const std::vector<JsonValue> ids = word.elements();
      if (ids.size() == 1)
        config.excludedIds.push_back(ids[0].asInt(0, kMaxId));
      else
        obeyed = false;
    }
  if (!obeyed) config.ignoredFields.push_back("bad_words_ids");
}

GenerationConfig readConfig(const JsonValue& root) {
  if (!root.isObject()) throw root.error("expected an object, got " + root.show());
  GenerationConfig config;
  if (auto bos = root.find("bos_token_id")) config.bosId = bos->asInt(0, kMaxId);
  if (auto eos = root.find("eos_token_id")) {
    if (eos->isArray())
      config.eosIds = listFrom(*eos, [](const JsonValue& id) { return id.asInt(0, kMaxId); });
    else
      config.eosIds = {eos->asInt(0, kMaxId)};
  }
  if (auto pad = root.find("pad_token_id"))
    if (int64_t id = pad->asInt(-1, kMaxId); id >= 0) config.padId = id;
  if (auto start = root.find("decoder_start_token_id"))
    config.decoderStartId = start->asInt(0, kMaxId);
  if (auto bos = root.find("forced_bos_token_id")) config.forcedBosId = bos->asInt(0, kMaxId);
  readExcluded(root, config);
  if (auto sample = root.find("do_sample")) config.doSample = sample->asBool();
  if (auto temperature = root.find("temperature")) {
    config.temperature = temperature->asDouble();
    if (*config.temperature < 0)
      throw temperature->error("expected a temperature >= 0, got " + temperature->show());
  }
  if (auto topK = root.find("top_k")) config.topK = topK->asInt(0, kMaxId);
  if (auto topP = root.find("top_p")) {
    config.topP = topP->asDouble();
    if (!(*config.topP > 0 && *config.topP <= 1))
      throw topP->error("expected a top-p in (0, 1], got " + topP->show());
  }
  if (auto minP = root.find("min_p")) {
    config.minP = minP->asDouble();
    if (!(*config.minP >= 0 && *config.minP <= 1))
      throw minP->error("expected a min-p in [0, 1], got " + minP->show());
  }
  if (auto penalty = root.find("repetition_penalty")) {
    config.repetitionPenalty = penalty->asDouble();
    if (!(*config.repetitionPenalty > 0))
      throw penalty->error("expected a repetition penalty > 0, got " + penalty->show());
  }
  if (auto stop = root.find("stop_strings")) {
    if (stop->isString())
      config.stopStrings = {stop->asString()};
    else
      config.stopStrings = listFrom(*stop, [](const JsonValue& text) { return text.asString(); });
  }
  if (auto count = root.find("max_new_tokens")) config.maxNewTokens = count->asInt(1, kMaxId);
  if (auto count = root.find("max_length")) config.maxLength = count->asInt(1, kMaxId);
  for (size_t i = 0; i < root.size(); ++i) {
    auto [key, value] = root.member(i);
    if (std::ranges::find(kKnown, key) == kKnown.end() && key != "bad_words_ids" &&
        !isOff(key, value))
      config.ignoredFields.push_back(key);
  }
  return config;
}

}  // namespace

GenerationConfig loadGenerationConfig(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(path, ignored))
    return readConfig(JsonValue::load(path, kConfigFile));
  const auto file = std::filesystem::path(path) / "generation_config.json";
  if (!std::filesystem::exists(file, ignored)) return {};
  return readConfig(JsonValue::load(file.string(), kConfigFile));
}

GenerationConfig parseGenerationConfig(std::string_view json, const std::string& file) {
  return readConfig(JsonValue::parse(json, file));
}

}  // namespace lathe
