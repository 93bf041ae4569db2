// SPDX-License-Identifier: Apache-2.0
// What a field of config.json is where it is missing: the default of its class in transformers. A
// graph without the field is the graph with that value, and no other.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <regex>

#include "lathe/lathe.h"

namespace lathe {
namespace {

using nlohmann::json;

std::string textOf(const json& config) {
  return buildFromConfig(JsonValue::parse(config.dump(), "config.json"), {}).text();
}

struct Field {
  const char* name;
  json otherwise;                ///< what it is where it is missing
  json other;                    ///< which makes another graph
  json beside = json::object();  ///< fields that have to be there for it
};
struct Class {
  const char* architecture;
  json config;
  std::vector<Field> fields;
};

// Sizes of decoders whose fields have Llama's names.
json decoder(const json& more = json::object()) {
  json c = {{"vocab_size", 11},       {"hidden_size", 32},        {"intermediate_size", 12},
            {"num_hidden_layers", 2}, {"num_attention_heads", 4}, {"num_key_value_heads", 2}};
  c.update(more);
  return c;
}
json gpt(const json& more = json::object()) {
  json c = {{"vocab_size", 11}, {"n_embd", 32}, {"n_layer", 2}, {"n_head", 4}};
  c.update(more);
  return c;
}
json t5() {
  return {{"vocab_size", 11}, {"d_model", 8},    {"d_kv", 4},
          {"d_ff", 12},       {"num_layers", 1}, {"num_heads", 2}};
}
json bothSides() {
  json c = {{"vocab_size", 11},
            {"d_model", 8},
            {"max_position_embeddings", 16},
            {"pad_token_id", 1},
            {"decoder_start_token_id", 1}};
  for (const char* side : {"encoder", "decoder"}) {
    c[std::string(side) + "_layers"] = 1;
    c[std::string(side) + "_attention_heads"] = 2;
    c[std::string(side) + "_ffn_dim"] = 12;
  }
  return c;
}
json experts(const json& more) {
  json c = decoder({{"num_experts", 4},
                    {"num_experts_per_tok", 2},
                    {"moe_intermediate_size", 4},
                    {"num_hidden_layers", 2}});
  c.update(more);
  return c;
}
// A number of key heads is a default of its own where there are twice as many heads.
Field keyHeads(int64_t count) {
  return {"num_key_value_heads",
          count,
          2 * count,
          {{"num_attention_heads", 2 * count}, {"hidden_size", 16 * count}}};
}
Field positions(int64_t count) { return {"max_position_embeddings", count, 64}; }
Field flag(const char* name, bool otherwise) { return {name, otherwise, !otherwise}; }
Field number(const char* name, double otherwise, double other, json beside = json::object()) {
  return {name, otherwise, other, std::move(beside)};
}
const Field kTied = flag("tie_word_embeddings", true), kApart = flag("tie_word_embeddings", false),
            kSilu{"hidden_act", "silu", "relu"}, kTheta = number("rope_theta", 10000, 500),
            kPlain = flag("attention_bias", false);

std::vector<Class> decoders() {
  const json window{{"use_sliding_window", true}, {"sliding_window", 3}};
  return {
      {"LlamaForCausalLM",
       decoder(),
       {positions(2048), kSilu, kTheta, kApart, kPlain, flag("mlp_bias", false),
        number("rms_norm_eps", 1e-6, 1e-5), Field{"num_key_value_heads", 4, 2},
        Field{"head_dim", 8, 16}}},
      {"MistralForCausalLM",
       decoder(),
       {positions(131072), kSilu, kTheta, kApart, number("rms_norm_eps", 1e-6, 1e-5), keyHeads(8),
        Field{"sliding_window", 4096, 3}}},
      {"MixtralForCausalLM",
       decoder(),
       {positions(131072), kSilu, number("rope_theta", 1e6, 1e4), kApart,
        number("rms_norm_eps", 1e-5, 1e-6), keyHeads(8), Field{"sliding_window", nullptr, 3},
        Field{"num_local_experts", 8, 4}, Field{"num_experts_per_tok", 2, 1}}},
      {"Qwen2ForCausalLM",
       decoder(),
       {positions(32768), kSilu, kTheta, kApart, number("rms_norm_eps", 1e-6, 1e-5), keyHeads(32),
        Field{"use_sliding_window", false, true, {{"sliding_window", 3}, {"max_window_layers", 0}}},
        Field{"sliding_window", 4096, 3, {{"use_sliding_window", true}, {"max_window_layers", 0}}},
        Field{"sliding_window",
              4096,
              nullptr,
              {{"use_sliding_window", true}, {"max_window_layers", 0}}},
        Field{"max_window_layers",
              28,
              29,
              {{"use_sliding_window", true}, {"sliding_window", 3}, {"num_hidden_layers", 30}}}}},
      {"Qwen3ForCausalLM",
       decoder(),
       {positions(32768), kSilu, kTheta, kApart, kPlain, number("rms_norm_eps", 1e-6, 1e-5),
        keyHeads(32), Field{"head_dim", 128, 8},
        Field{"max_window_layers", 28, 0, {{"use_sliding_window", true}, {"sliding_window", 3}}}}},
      {"Qwen2MoeForCausalLM",
       experts({{"shared_expert_intermediate_size", 4}}),
       {positions(32768), kTheta, kApart, keyHeads(16), flag("norm_topk_prob", false),
        flag("qkv_bias", true), Field{"decoder_sparse_step", 1, 2},
        Field{"mlp_only_layers", json::array(), {1}}, Field{"moe_intermediate_size", 1408, 4},
        Field{"shared_expert_intermediate_size", 5632, 4}, Field{"num_experts", 60, 4},
        Field{"num_experts_per_tok", 4, 2, {{"num_experts", 8}}},
        Field{"max_window_layers", 28, 0, {{"use_sliding_window", true}, {"sliding_window", 3}}}}},
      {"Qwen3MoeForCausalLM",
       experts(json::object()),
       {positions(32768), kTheta, kApart, kPlain, keyHeads(4), flag("norm_topk_prob", false),
        Field{"decoder_sparse_step", 1, 2}, Field{"mlp_only_layers", json::array(), {1}},
        Field{"moe_intermediate_size", 768, 4}, Field{"num_experts", 128, 4},
        Field{"num_experts_per_tok", 8, 2, {{"num_experts", 16}}}}},
      {"GemmaForCausalLM",
       decoder(),
       {positions(8192), kTheta, kTied, kPlain, keyHeads(16), Field{"head_dim", 256, 8},
        number("rms_norm_eps", 1e-6, 1e-5)}},
      {"Gemma2ForCausalLM",
       decoder(),
       {positions(8192), kTheta, kTied, kPlain, keyHeads(4), Field{"head_dim", 256, 8},
        Field{"hidden_activation", "gelu_pytorch_tanh", "relu"},
        number("query_pre_attn_scalar", 256, 16), Field{"sliding_window", 4096, 3},
        Field{"attn_logit_softcapping", 50, nullptr}, Field{"attn_logit_softcapping", 50, 20},
        Field{"final_logit_softcapping", 30, nullptr}, Field{"final_logit_softcapping", 30, 20}}},
      {"Gemma3ForCausalLM",
       decoder({{"num_hidden_layers", 6}}),
       {positions(131072), number("rope_theta", 1e6, 1e4), kTied, kPlain, keyHeads(4),
        Field{"head_dim", 256, 8}, Field{"hidden_activation", "gelu_pytorch_tanh", "relu"},
        number("rope_local_base_freq", 10000, 500), number("query_pre_attn_scalar", 256, 16),
        Field{"sliding_window", 4096, 3}, Field{"sliding_window_pattern", 6, 2},
        Field{"_sliding_window_pattern", 6, 2}, Field{"final_logit_softcapping", nullptr, 20}}},
      {"PhiForCausalLM",
       decoder(),
       {positions(2048), kTheta, kApart, number("layer_norm_eps", 1e-5, 1e-6),
        number("partial_rotary_factor", 0.5, 1), Field{"hidden_act", "gelu_new", "relu"},
        flag("qk_layernorm", false)}},
      {"Phi3ForCausalLM",
       decoder(),
       {positions(4096), kSilu, kTheta, kApart, number("rms_norm_eps", 1e-5, 1e-6),
        number("partial_rotary_factor", 1, 0.5), Field{"sliding_window", nullptr, 3},
        Field{"original_max_position_embeddings",
              4096,
              2048,
              {{"max_position_embeddings", 8192},
               {"rope_scaling",
                {{"type", "longrope"},
                 {"short_factor", {1, 1, 1, 1}},
                 {"long_factor", {2, 2, 2, 2}}}}}}}},
      {"StableLmForCausalLM",
       decoder(),
       {positions(4096), kSilu, number("rope_theta", 10000, 500, {{"hidden_size", 64}}), kApart,
        number("layer_norm_eps", 1e-5, 1e-6), number("partial_rotary_factor", 0.25, 1),
        flag("use_qkv_bias", false), flag("qk_layernorm", false),
        flag("use_parallel_residual", false)}},
      {"CohereForCausalLM",
       decoder(),
       {positions(8192), kSilu, number("rope_theta", 500000, 1e4), kTied, kPlain,
        number("layer_norm_eps", 1e-5, 1e-6), number("logit_scale", 0.0625, 1),
        flag("use_qk_norm", false)}},
      {"SmolLM3ForCausalLM",
       decoder({{"num_hidden_layers", 4}}),
       {positions(32768), kSilu, number("rope_theta", 2e6, 1e4), kTied, kPlain, keyHeads(4),
        flag("mlp_bias", false), Field{"no_rope_layer_interval", 4, 2},
        Field{"no_rope_layers", {1, 1, 1, 0}, {1, 0, 1, 0}},
        Field{"use_sliding_window", false, true, {{"sliding_window", 3}}}}},
      {"GraniteForCausalLM",
       decoder(),
       {positions(2048), kSilu, kTheta, kApart, kPlain, flag("mlp_bias", false),
        number("embedding_multiplier", 1, 2), number("attention_multiplier", 1, 2),
        number("residual_multiplier", 1, 2), number("logits_scaling", 1, 2)}},
      {"Olmo2ForCausalLM",
       decoder(),
       {positions(2048), kSilu, kTheta, kApart, kPlain, number("rms_norm_eps", 1e-5, 1e-6)}},
      {"Starcoder2ForCausalLM",
       decoder(),
       {positions(4096), kTheta, kTied, keyHeads(2), number("norm_epsilon", 1e-5, 1e-6),
        flag("use_bias", true), Field{"hidden_act", "gelu_pytorch_tanh", "relu"},
        Field{"sliding_window", nullptr, 3}}},
      {"GPTNeoXForCausalLM",
       decoder(),
       {positions(2048), kApart, number("rotary_pct", 0.25, 1),
        number("rotary_emb_base", 10000, 500, {{"hidden_size", 64}}),
        number("layer_norm_eps", 1e-5, 1e-6), flag("use_parallel_residual", true),
        flag("attention_bias", true), Field{"hidden_act", "gelu", "relu"}}},
  };
}

std::vector<Class> others() {
  json falcon = decoder(), opt = decoder({{"ffn_dim", 12}}), bert = decoder();
  for (json* c : {&falcon, &opt, &bert}) c->erase("num_key_value_heads");
  for (json* c : {&falcon, &opt}) c->erase("intermediate_size");
  json vit = bert;
  vit.erase("vocab_size");
  vit.update({{"image_size", 32}, {"patch_size", 16}});
  const json grouped{{"new_decoder_architecture", true}};
  const json distilBert{
      {"vocab_size", 11}, {"dim", 8}, {"hidden_dim", 12}, {"n_layers", 1}, {"n_heads", 2}};
  json whisper = bothSides();
  whisper.erase("max_position_embeddings");
  // Names count where there are some.
  const json two{{"0", "a"}, {"1", "b"}}, three{{"0", "a"}, {"1", "b"}, {"2", "c"}};
  const std::vector<Field> labels{Field{"num_labels", 2, 3}, Field{"id2label", two, three}};
  return {
      {"GPTJForCausalLM",
       gpt({{"n_embd", 256}}),
       {Field{"n_positions", 2048, 16}, Field{"rotary_dim", 64, 32}, Field{"n_inner", nullptr, 12},
        Field{"n_inner", 1024, 12}, Field{"activation_function", "gelu_new", "relu"},
        number("layer_norm_epsilon", 1e-5, 1e-6), kApart}},
      {"GPT2LMHeadModel",
       gpt(),
       {Field{"n_positions", 1024, 16}, Field{"n_inner", nullptr, 12}, Field{"n_inner", 128, 12},
        Field{"activation_function", "gelu_new", "relu"}, number("layer_norm_epsilon", 1e-5, 1e-6),
        kTied, flag("scale_attn_weights", true), flag("scale_attn_by_inverse_layer_idx", false)}},
      {"FalconForCausalLM",
       falcon,
       {positions(2048), kTheta, kTied, Field{"ffn_hidden_size", 128, 12},
        flag("multi_query", true), flag("bias", false), flag("parallel_attn", true),
        flag("alibi", false), flag("new_decoder_architecture", false),
        Field{"activation", "gelu", "relu"}, number("layer_norm_epsilon", 1e-5, 1e-6),
        Field{"num_ln_in_parallel_attn", 2, 1, grouped}, Field{"num_kv_heads", 4, 2, grouped}}},
      {"BloomForCausalLM",
       {{"vocab_size", 11}, {"hidden_size", 8}, {"n_layer", 1}, {"n_head", 2}},
       {number("layer_norm_epsilon", 1e-5, 1e-6), kTied,
        flag("apply_residual_connection_post_layernorm", false), Field{"seq_length", 2048, 16}}},
      {"OPTForCausalLM",
       opt,
       {positions(2048), kTied, Field{"activation_function", "relu", "gelu"},
        flag("do_layer_norm_before", true), flag("_remove_final_layer_norm", false),
        flag("enable_bias", true), flag("layer_norm_elementwise_affine", true),
        Field{"word_embed_proj_dim", 32, 8}}},
      {"BertModel",
       bert,
       {positions(512), Field{"type_vocab_size", 2, 3}, Field{"hidden_act", "gelu", "relu"},
        number("layer_norm_eps", 1e-12, 1e-5)}},
      {"RobertaModel",
       bert,
       {positions(512), Field{"type_vocab_size", 2, 1}, Field{"hidden_act", "gelu", "relu"},
        number("layer_norm_eps", 1e-12, 1e-5), Field{"pad_token_id", 1, 2}}},
      {"ViTModel",
       vit,
       {Field{"image_size", 224, 32}, Field{"patch_size", 16, 8}, Field{"num_channels", 3, 1},
        flag("qkv_bias", true), Field{"hidden_act", "gelu", "relu"},
        Field{"pooler_output_size", vit.at("hidden_size"), 3},
        number("layer_norm_eps", 1e-12, 1e-5)}},
      {"CLIPTextModel",
       {{"vocab_size", 11},
        {"hidden_size", 8},
        {"num_attention_heads", 2},
        {"num_hidden_layers", 1},
        {"intermediate_size", 12}},
       {positions(77), Field{"hidden_act", "quick_gelu", "gelu"},
        number("layer_norm_eps", 1e-5, 1e-6), Field{"intermediate_size", 2048, 12},
        Field{"hidden_size", 512, 8}, Field{"num_attention_heads", 8, 2},
        Field{"num_hidden_layers", 12, 1}, Field{"vocab_size", 49408, 11},
        Field{"eos_token_id", 49407, 5}}},
      {"CLIPVisionModel",
       {{"hidden_size", 24},
        {"num_attention_heads", 2},
        {"num_hidden_layers", 1},
        {"intermediate_size", 12}},
       {Field{"image_size", 224, 64}, Field{"patch_size", 32, 16}, Field{"num_channels", 3, 1},
        Field{"hidden_act", "quick_gelu", "gelu"}, number("layer_norm_eps", 1e-5, 1e-6),
        Field{"intermediate_size", 3072, 12}, Field{"num_attention_heads", 12, 2}}},
      {"T5ForConditionalGeneration",
       t5(),
       {Field{"relative_attention_num_buckets", 32, 16},
        Field{"relative_attention_max_distance", 128, 64}, number("layer_norm_epsilon", 1e-6, 1e-5),
        Field{"feed_forward_proj", "relu", "gated-gelu"}, Field{"num_decoder_layers", 1, 2}, kTied,
        Field{"scale_decoder_outputs", true, false},
        Field{"scale_decoder_outputs", false, true, {{"tie_word_embeddings", false}}}}},
      {"MT5ForConditionalGeneration",
       t5(),
       {Field{"relative_attention_num_buckets", 32, 16},
        Field{"feed_forward_proj", "gated-gelu", "relu"}}},
      {"BartForConditionalGeneration",
       bothSides(),
       {positions(1024), flag("scale_embedding", false),
        Field{"activation_function", "gelu", "relu"}}},
      {"MarianMTModel",
       bothSides(),
       {positions(1024), flag("scale_embedding", false), kTied,
        flag("share_encoder_decoder_embeddings", true),
        Field{"decoder_vocab_size", 11, 12, {{"share_encoder_decoder_embeddings", false}}},
        Field{"decoder_vocab_size",
              11,
              12,
              {{"share_encoder_decoder_embeddings", false}, {"tie_word_embeddings", false}}},
        Field{"activation_function", "gelu", "relu"}}},
      {"WhisperForConditionalGeneration",
       whisper,
       {Field{"num_mel_bins", 80, 40}, Field{"max_source_positions", 1500, 16},
        Field{"max_target_positions", 448, 16}, Field{"activation_function", "gelu", "relu"},
        kTied}},
      {"DiTTransformer2DModel",
       {{"num_layers", 1}, {"num_attention_heads", 2}, {"attention_head_dim", 4}},
       {Field{"num_attention_heads", 16, 2}, Field{"attention_head_dim", 72, 4},
        Field{"in_channels", 4, 3}, Field{"out_channels", 3, 6, {{"in_channels", 3}}},
        Field{"sample_size", 32, 16}, Field{"patch_size", 2, 4},
        Field{"num_embeds_ada_norm", 1000, 10}, number("norm_eps", 1e-5, 1e-6),
        flag("attention_bias", true), flag("norm_elementwise_affine", false)}},
      {"BertForMaskedLM", bert, {kTied}},
      {"RobertaForMaskedLM", bert, {kTied}},
      {"DistilBertModel", distilBert, {positions(512), Field{"activation", "gelu", "relu"}}},
      {"DistilBertForMaskedLM", distilBert, {kTied}},
      {"DistilBertForSequenceClassification", distilBert, labels},
      {"ViTForImageClassification", vit, labels},
      {"CLIPModel",
       {{"text_config", {{"num_hidden_layers", 1}}}, {"vision_config", {{"num_hidden_layers", 1}}}},
       {Field{"projection_dim", 512, 8}}},
  };
}

class FamilyDefaults : public testing::TestWithParam<Class> {};
TEST_P(FamilyDefaults, AreThoseOfTransformers) {
  for (const Field& field : GetParam().fields) {
    SCOPED_TRACE(std::string(field.name) + " " + field.otherwise.dump());
    json config = GetParam().config;
    config["architectures"] = {GetParam().architecture};
    config.update(field.beside);
    config.erase(field.name);
    const std::string missing = textOf(config);
    config[field.name] = field.otherwise;
    EXPECT_TRUE(textOf(config) == missing) << "it is another value where it is missing";
    config[field.name] = field.other;
    EXPECT_FALSE(textOf(config) == missing) << field.other << " changes nothing";
  }
}
// One text, one image, one token: whatever a graph is for many of works for one.
TEST_P(FamilyDefaults, SizesOfCallsBeginAtOne) {
  json config = GetParam().config;
  config["architectures"] = {GetParam().architecture};
  const std::string text = textOf(config);
  const std::regex dim("lathe\\.dim @(\\w+) (\\d+) to");
  int found = 0;
  for (std::sregex_iterator it(text.begin(), text.end(), dim), end; it != end; ++it, ++found)
    EXPECT_EQ((*it)[2], "1") << (*it)[1];
  EXPECT_GT(found, 0) << text;
}
std::string nameOf(const testing::TestParamInfo<Class>& info) { return info.param.architecture; }
INSTANTIATE_TEST_SUITE_P(Decoders, FamilyDefaults, testing::ValuesIn(decoders()), nameOf);
INSTANTIATE_TEST_SUITE_P(Others, FamilyDefaults, testing::ValuesIn(others()), nameOf);

TEST(RopeParameters, GoBeforeWhatStandsBeside) {
  json config = decoder();
  config["architectures"] = {"PhiForCausalLM"};
  const json rope = {{"rope_type", "default"}, {"rope_theta", 10000}, {"partial_rotary_factor", 1}};
  config["rope_parameters"] = rope;
  const std::string wanted = textOf(config);
  config["partial_rotary_factor"] = 0.5;
  EXPECT_TRUE(textOf(config) == wanted);
  config["rope_parameters"].erase("partial_rotary_factor");
  EXPECT_FALSE(textOf(config) == wanted);
}

}  // namespace
}  // namespace lathe
