// SPDX-License-Identifier: Apache-2.0
#include "lathe/runtime/config_reader.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace lathe {
namespace {

// Fields that say nothing about what a model computes at inference: training, output formats,
// tokens, defaults of generation, notes of tools.
constexpr auto kHarmless = std::to_array<std::string_view>({
    "architectures",
    "model_type",
    "torch_dtype",
    "dtype",
    "transformers_version",
    "_name_or_path",
    "bos_token_id",
    "eos_token_id",
    "pad_token_id",
    "sep_token_id",
    "cls_token_id",
    "mask_token_id",
    "unk_token_id",
    "decoder_start_token_id",
    "image_token_id",
    "tokenizer_class",
    "model_max_length",
    "max_sequence_length",
    "prefix",
    "gradient_checkpointing",
    "keys_to_ignore_at_inference",
    // training
    "initializer_range",
    "initializer_factor",
    "attention_dropout",
    "hidden_dropout",
    "dropout",
    "activation_dropout",
    "classifier_dropout",
    "hidden_dropout_prob",
    "attention_probs_dropout_prob",
    "resid_pdrop",
    "embd_pdrop",
    "attn_pdrop",
    "embedding_dropout",
    "resid_dropout",
    "router_aux_loss_coef",
    "router_jitter_noise",
    "classif_dropout",
    "replacing_rate",
    "save_step",
    "num_steps",
    // output and memory
    "use_cache",
    "cache_implementation",
    "output_attentions",
    "output_hidden_states",
    "output_router_logits",
    "return_dict",
    "return_dict_in_generate",
    "output_scores",
    "output_past",
    "torchscript",
    "tf_legacy_loss",
    "use_bfloat16",
    "_attn_implementation",
    "_attn_implementation_autoset",
    "attn_implementation",
    "chunk_size_feed_forward",
    "tie_encoder_decoder",
    "cross_attention_hidden_size",
    // heads of classifiers
    "id2label",
    "label2id",
    "num_labels",
    "_num_labels",
    "problem_type",
    "finetuning_task",
    "task_specific_params",
    "summary_type",
    "summary_use_proj",
    "summary_activation",
    "summary_proj_to_labels",
    "summary_first_dropout",
    // generation
    "max_length",
    "min_length",
    "do_sample",
    "temperature",
    "top_k",
    "top_p",
    "typical_p",
    "repetition_penalty",
    "length_penalty",
    "no_repeat_ngram_size",
    "num_beams",
    "num_return_sequences",
    "early_stopping",
    "num_beam_groups",
    "diversity_penalty",
    "encoder_no_repeat_ngram_size",
    "exponential_decay_length_penalty",
    "bad_words_ids",
    "suppress_tokens",
    "begin_suppress_tokens",
    "forced_bos_token_id",
    "forced_eos_token_id",
    "force_bos_token_to_be_generated",
    // tools; code of the folder's own, of which the architecture has a class in transformers
    "auto_map",
    "transformers.js_config",
    "is_llama_config",
    "unsloth_version",
    "unsloth_fixed",
});

// Factors and counts that do nothing at 1.
constexpr auto kNothingAtOne = std::to_array<std::string_view>(
    {"pretraining_tp", "partial_rotary_factor", "residual_multiplier", "embedding_multiplier",
     "logits_scaling", "logit_scale", "interpolate_factor", "full_attn_mod"});

bool isNeutral(const std::string& key, const JsonValue& value) {
  if (value.isNull()) return true;
  if (value.isBool()) return !value.asBool();
  // An empty object is how transformers 4 writes "nothing pruned".
  if (value.isObject() || value.isArray()) return value.size() == 0;
  return value.isNumber() && value.asDouble() == 1 &&
         std::ranges::find(kNothingAtOne, key) != kNothingAtOne.end();
}

}  // namespace

ConfigReader::ConfigReader(JsonValue object)
    : object_(std::move(object)), read_(std::make_shared<std::set<std::string, std::less<>>>()) {
  if (!object_.isObject()) throw object_.error("expected an object, got " + object_.show());
}

std::optional<JsonValue> ConfigReader::find(std::string_view key) {
  read_->emplace(key);
  return object_.find(key);
}

JsonValue ConfigReader::at(std::string_view key) {
  read_->emplace(key);
  return object_.at(key);
}

int64_t ConfigReader::size(std::string_view key, int64_t high, std::optional<int64_t> otherwise) {
  if (!otherwise) return at(key).asInt(1, high);
  auto value = find(key);
  return value ? value->asInt(1, high) : *otherwise;
}

double ConfigReader::number(std::string_view key, double otherwise) {
  auto value = find(key);
  return value ? value->asDouble() : otherwise;
}

double ConfigReader::positive(std::string_view key, double otherwise) {
  auto value = find(key);
  if (!value) return otherwise;
  const double v = value->asDouble();
  if (!(v > 0)) throw value->error(fmt::format("expected a number > 0, got {}", value->show()));
  return v;
}

double ConfigReader::epsilon(std::string_view key, double otherwise) {
  auto value = find(key);
  if (!value) return otherwise;
  const double v = value->asDouble();
  if (!(v > 0 && v < 1))
    throw value->error("expected a number between 0 and 1, both excluded, got " + value->show());
  return v;
}

bool ConfigReader::flag(std::string_view key, bool otherwise) {
  auto value = find(key);
  return value ? value->asBool() : otherwise;
}

std::string ConfigReader::text(std::string_view key, std::string_view otherwise) {
  auto value = find(key);
  return value ? value->asString() : std::string(otherwise);
}

void ConfigReader::expect(std::string_view key, std::string_view wanted) {
  if (text(key, wanted) != wanted)
    throw at(key).error(
        fmt::format("not supported: expected \"{}\", got {}", wanted, at(key).show()),
        ErrorCode::Unsupported);
}

void ConfigReader::ignore(std::initializer_list<std::string_view> keys) {
  for (std::string_view key : keys) read_->emplace(key);
}

void ConfigReader::finish(std::string_view who) const {
  for (size_t i = 0; i < object_.size(); ++i) {
    const auto [key, value] = object_.member(i);
    if (read_->contains(key) || isNeutral(key, value) ||
        std::ranges::find(kHarmless, key) != kHarmless.end())
      continue;
    throw value.error(
        fmt::format("not supported by {}: expected no such field, got {}; take it out if it does "
                    "not change what the model computes",
                    who, value.show()),
        ErrorCode::Unsupported);
  }
}

}  // namespace lathe
