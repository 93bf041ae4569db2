// SPDX-License-Identifier: Apache-2.0
// Fields of config.json and names of tensors that the families' goldens do not draw.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cmath>

#include "lathe/lathe.h"
#include "lathe/runtime/safetensors.h"
#include "tests/unit/test_files.h"

namespace lathe {
namespace {

using nlohmann::json;

Graph build(const json& config, const FamilyOptions& options = {}) {
  return buildFromConfig(JsonValue::parse(config.dump(), "config.json"), options);
}

json clip(const char* architecture) {
  return {{"architectures", {architecture}}, {"hidden_size", 8},         {"intermediate_size", 12},
          {"num_hidden_layers", 1},          {"num_attention_heads", 2}, {"vocab_size", 11},
          {"max_position_embeddings", 9},    {"image_size", 4},          {"patch_size", 2}};
}

TEST(FamilyConfigs, OneOfClipsTowersHasItsPrefixOrNone) {
  for (auto [architecture, prefix, weight, foreign] :
       {std::tuple{"CLIPTextModel", "text_model.", "embeddings.token_embedding.weight",
                   std::pair("image_size", "patch_size")},
        std::tuple{"CLIPVisionModel", "vision_model.", "embeddings.patch_embedding.weight",
                   std::pair("vocab_size", "max_position_embeddings")}}) {
    json config = clip(architecture);
    config.erase(foreign.first);
    config.erase(foreign.second);
    const std::string usual = '"' + std::string(prefix) + weight, bare = '"' + std::string(weight);
    EXPECT_NE(build(config).text().find(usual), std::string::npos);
    FamilyOptions options;
    options.hasWeight = [weight = weight](std::string_view name) { return name == weight; };
    const std::string text = build(config, options).text();
    EXPECT_NE(text.find(bare), text.npos) << text;
    EXPECT_EQ(text.find(prefix), text.npos) << text;
  }
}

// Fields of well-known folders that say nothing about what is computed.
TEST(FamilyConfigs, FieldsOfPublishedFoldersThatChangeNothing) {
  struct Published {
    const char* architecture;
    json fields;
  };
  const Published all[] = {
      {"BartForConditionalGeneration",
       {{"_num_labels", 3},
        {"classif_dropout", 0.1},
        {"force_bos_token_to_be_generated", true},
        {"output_past", true},
        {"extra_pos_embeddings", 2},
        {"normalize_embedding", true},
        {"replacing_rate", 0},
        {"save_step", 58}}},
      {"MarianMTModel", {{"_num_labels", 3}, {"classif_dropout", 0.0}}},
      {"GPT2LMHeadModel", {{"n_special", 0}, {"predict_special_tokens", true}}},
      {"LlamaForCausalLM",
       {{"is_llama_config", true},
        {"transformers.js_config", {{"dtype", "q4"}}},
        {"max_sequence_length", 2048}}},
      {"Gemma2ForCausalLM", {{"sliding_window_size", 4096}}},
      {"Phi3ForCausalLM",
       {{"auto_map", {{"AutoConfig", "configuration_phi3.Phi3Config"}}},
        {"full_attn_mod", 1},
        {"interpolate_factor", 1}}},
      {"Starcoder2ForCausalLM",
       {{"attention_softmax_in_fp32", true},
        {"layer_norm_epsilon", 1e-5},
        {"scale_attention_softmax_in_fp32", true},
        {"scale_attn_weights", true}}},
      {"CohereForCausalLM", {{"model_max_length", 131072}}},
      {"StableLmForCausalLM",
       {{"num_heads", 32}, {"rope_pct", 0.25}, {"rotary_scaling_factor", 1.0}}},
      {"BertModel",
       {{"directionality", "bidi"},
        {"pooler_fc_size", 768},
        {"pooler_num_attention_heads", 12},
        {"pooler_num_fc_layers", 3},
        {"pooler_size_per_head", 128},
        {"pooler_type", "first_token_transform"}}},
      {"GPTNeoXForCausalLM", {{"num_steps", "global_step320500"}}}};
  for (const auto& [architecture, fields] : all) {
    const SafetensorsFile goldens = SafetensorsFile::open(
        LATHE_TEST_DATA "/golden/families/" + std::string(architecture) + ".safetensors");
    json config = json::parse(goldens.metadata().at("cases")).at(0).at("config");
    const std::string plain = build(config).text();
    config.update(fields);
    EXPECT_EQ(build(config).text(), plain) << architecture;
    config["head_gain"] = 2.0;  // of nobody
    test::expectError(ErrorCode::Unsupported, "head_gain: not supported by",
                      [&] { build(config); });
  }
  json towers = {{"architectures", {"CLIPModel"}},
                 {"text_config", {{"tie_word_embeddings", true}}},
                 {"vision_config", {{"tie_word_embeddings", true}}}};
  build(towers);
}

TEST(FamilyConfigs, BloomsHeadsHaveTwoNames) {
  json config = {{"architectures", {"BloomForCausalLM"}},
                 {"vocab_size", 11},
                 {"hidden_size", 8},
                 {"n_layer", 1},
                 {"n_head", 2}};
  const std::string text = build(config).text();
  config.erase("n_head");
  config["num_attention_heads"] = 2;
  EXPECT_EQ(build(config).text(), text);
}

TEST(FamilyConfigs, BloomsProductsInPiecesAreRefused) {
  json config = {{"architectures", {"BloomForCausalLM"}},
                 {"vocab_size", 11},
                 {"hidden_size", 8},
                 {"n_layer", 1},
                 {"n_head", 2},
                 {"pretraining_tp", 4},
                 {"slow_but_exact", false}};
  build(config);
  config["slow_but_exact"] = true;
  test::expectError(ErrorCode::Unsupported,
                    "slow_but_exact: not supported with pretraining_tp above 1",
                    [&] { build(config); });
  config["pretraining_tp"] = 1;
  build(config);
}

// The field is of the norm behind the layers, which models with norms behind their sums have not.
TEST(FamilyConfigs, OptsLastNormMayBeTakenOutTwice) {
  json config = {{"architectures", {"OPTForCausalLM"}},
                 {"vocab_size", 11},
                 {"hidden_size", 8},
                 {"ffn_dim", 12},
                 {"num_hidden_layers", 1},
                 {"num_attention_heads", 2},
                 {"do_layer_norm_before", false},
                 {"_remove_final_layer_norm", true}};
  const char* norm = "\"model.decoder.final_layer_norm.weight";
  EXPECT_EQ(build(config).text().find(norm), std::string::npos);
  config["do_layer_norm_before"] = true;
  EXPECT_EQ(build(config).text().find(norm), std::string::npos);
  config["_remove_final_layer_norm"] = false;
  EXPECT_NE(build(config).text().find(norm), std::string::npos);
}

int count(const std::string& text, std::string_view what) {
  int found = 0;
  for (size_t at = text.find(what); at != text.npos; at = text.find(what, at + 1)) ++found;
  return found;
}

// Published configs say it of each layer (layer_types); without that the family's rule does.
TEST(FamilyConfigs, WindowsFollowTheRuleWhereNoLayerNamesItsOwn) {
  json config = {{"vocab_size", 11},           {"hidden_size", 8},
                 {"intermediate_size", 12},    {"num_hidden_layers", 5},
                 {"num_attention_heads", 2},   {"num_key_value_heads", 2},
                 {"use_sliding_window", true}, {"sliding_window", 3}};
  auto windowsOf = [&] { return count(irAt(build(config), "fused"), " window 3 "); };
  const json common = config;
  // Every other layer below the second, in three entry points.
  config["architectures"] = {"Qwen2MoeForCausalLM"};
  config.update(json{{"max_window_layers", 2},
                     {"num_experts", 2},
                     {"num_experts_per_tok", 1},
                     {"moe_intermediate_size", 4},
                     {"shared_expert_intermediate_size", 4}});
  EXPECT_EQ(windowsOf(), 1 * 3);
  config["max_window_layers"] = 3;
  EXPECT_EQ(windowsOf(), 2 * 3);
  // Those without rotations: the second and the fourth.
  config = common;
  config["architectures"] = {"SmolLM3ForCausalLM"};
  config["no_rope_layer_interval"] = 2;
  EXPECT_EQ(windowsOf(), 2 * 3);
}

// As transformers has them: from a distance of 256 on the numbers differ. Nothing else is in bf16.
TEST(FamilyConfigs, FalconsBiasesOfDistanceAreRounded) {
  json config = {{"architectures", {"FalconForCausalLM"}},
                 {"vocab_size", 11},
                 {"hidden_size", 8},
                 {"num_hidden_layers", 1},
                 {"num_attention_heads", 2}};
  EXPECT_EQ(count(build(config).text(), "bf16"), 0);
  config["alibi"] = true;
  EXPECT_GT(count(build(config).text(), "bf16"), 0);
}

// Of Qwen 2's mixtures they are of 4096 tokens and below the 28th layer unless the config says
// otherwise.
TEST(FamilyConfigs, WindowsOfMixturesHaveDefaults) {
  const json config = {{"architectures", {"Qwen2MoeForCausalLM"}},
                       {"vocab_size", 11},
                       {"hidden_size", 8},
                       {"intermediate_size", 12},
                       {"num_attention_heads", 2},
                       {"num_key_value_heads", 2},
                       {"max_position_embeddings", 8192},
                       {"use_sliding_window", true},
                       {"num_experts", 1},
                       {"num_experts_per_tok", 1},
                       {"moe_intermediate_size", 4},
                       {"shared_expert_intermediate_size", 4}};
  auto with = [&](int64_t layers, const json& more) {
    json changed = config;
    changed["num_hidden_layers"] = layers;
    changed.update(more);
    return build(changed).text();
  };
  const std::string usual = with(1, json::object());
  EXPECT_EQ(with(1, {{"sliding_window", 4096}}), usual);
  EXPECT_NE(with(1, {{"sliding_window", 4095}}), usual);
  EXPECT_EQ(with(1, {{"max_window_layers", 0}}), with(1, {{"use_sliding_window", false}}));
  test::expectError(ErrorCode::InvalidFile, "a sliding layer needs a sliding_window", [&] {
    with(1, {{"use_sliding_window", false}, {"layer_types", {"sliding_attention"}}});
  });
  EXPECT_EQ(with(29, {{"max_window_layers", 28}}), with(29, json::object()));
}

// One head of keys for all unless the config says otherwise, a number of them in the newer
// architecture alone, and there one that divides the heads.
TEST(FamilyConfigs, FalconsHeadsOfKeysAreOneAllOrOfGroups) {
  const json config = {{"architectures", {"FalconForCausalLM"}},
                       {"vocab_size", 11},
                       {"hidden_size", 16},
                       {"num_hidden_layers", 1},
                       {"num_attention_heads", 4}};
  auto rowsOf = [&](const json& more) {
    json changed = config;
    changed.update(more);
    const std::string text = build(changed).text(), name = "query_key_value.weight\" : tensor<";
    const size_t at = text.find(name);
    return at == text.npos ? int64_t(-1) : std::stoll(text.substr(at + name.size()));
  };
  const int64_t head = 4;
  EXPECT_EQ(rowsOf(json::object()), (4 + 2) * head);
  EXPECT_EQ(rowsOf({{"multi_query", true}, {"num_kv_heads", 3}}), (4 + 2) * head);
  EXPECT_EQ(rowsOf({{"multi_query", false}, {"num_kv_heads", 3}}), (4 + 2 * 4) * head);
  json grouped = {{"new_decoder_architecture", true}, {"num_kv_heads", 2}};
  EXPECT_EQ(rowsOf(grouped), (4 + 2 * 2) * head);
  grouped["num_kv_heads"] = 3;
  test::expectError(ErrorCode::InvalidFile, "expected a number that divides 4 heads, got 3",
                    [&] { rowsOf(grouped); });
}

json decoder(const char* architecture) {
  return {{"architectures", {architecture}}, {"vocab_size", 11},       {"hidden_size", 8},
          {"intermediate_size", 12},         {"num_hidden_layers", 2}, {"num_attention_heads", 2},
          {"max_position_embeddings", 16}};
}
json withKeyHeads(const char* architecture) {
  json c = decoder(architecture);
  c["num_key_value_heads"] = 2;
  return c;
}
json marian() {
  json c = {
      {"architectures", {"MarianMTModel"}}, {"vocab_size", 11},  {"d_model", 8},
      {"max_position_embeddings", 16},      {"pad_token_id", 1}, {"decoder_start_token_id", 1}};
  for (const char* side : {"encoder", "decoder"}) {
    c[std::string(side) + "_layers"] = 1;
    c[std::string(side) + "_attention_heads"] = 2;
    c[std::string(side) + "_ffn_dim"] = 12;
  }
  return c;
}
json vit() {
  json c = decoder("ViTModel");
  c.erase("vocab_size");
  c.erase("max_position_embeddings");
  c["image_size"] = 4;
  c["patch_size"] = 2;
  return c;
}

// Some checkpoints leave out biases of zeros; those that a checkpoint has count.
TEST(FamilyConfigs, BiasesOfLogitsAreAddedWhereTheCheckpointHasThem) {
  const std::string name = "final_logits_bias";
  for (const char* architecture : {"MarianMTModel", "BartForConditionalGeneration"}) {
    json config = marian();
    config["architectures"] = {architecture};
    auto has = [&](const FamilyOptions& options) {
      return build(config, options).text().find(name) != std::string::npos;
    };
    EXPECT_TRUE(has({})) << architecture;
    EXPECT_TRUE(has({.hasWeight = [](std::string_view) { return true; }})) << architecture;
    EXPECT_FALSE(has({.hasWeight = [&](std::string_view weight) { return weight != name; }}))
        << architecture;
  }
}

TEST(FamilyConfigs, BlocksOfACacheAreFromOneTokenToAllPositions) {
  const json llama = decoder("LlamaForCausalLM");
  for (int64_t block : {1, 3, 16}) {
    const std::string text = build(llama, {.cacheBlock = block}).text();
    EXPECT_NE(text.find("x" + std::to_string(block) + "x4xf32"), text.npos) << block << text;
    // The last block need not be full: together they hold all 16 positions.
    const std::string most = std::to_string(block == 3 ? 6 : 16 / block);
    EXPECT_NE(text.find("lathe.dim @entries 1 to " + most + "\n"), text.npos) << block << text;
    // As many texts as a call takes may share one block, or have all of theirs.
    const std::string all =
        std::to_string((block == 3 ? 6 : 16 / block) * FamilyOptions{}.maxBatch);
    EXPECT_NE(text.find("lathe.dim @blocks 1 to " + all + "\n"), text.npos) << block << text;
  }
  for (int64_t block : {-1, 17})
    test::expectError(ErrorCode::InvalidArgument, "expected cacheBlock from 1 to the model's 16",
                      [&] { build(llama, {.cacheBlock = block}); });
}

// What is missing is the family's default, null is none of its own.
TEST(FamilyConfigs, NullIsNotTheDefault) {
  struct Row {
    const char* architecture;
    int64_t missing;
  };
  for (const Row& row :
       {Row{"Qwen3ForCausalLM", 128}, Row{"GemmaForCausalLM", 256}, Row{"Gemma2ForCausalLM", 256},
        Row{"Gemma3ForCausalLM", 256}, Row{"LlamaForCausalLM", 4}}) {
    json config = withKeyHeads(row.architecture);
    config.erase("head_dim");
    auto widthOf = [&](const json& c) {
      const std::string text = build(c).text(), name = "self_attn.q_proj.weight\" : tensor<";
      const size_t at = text.find(name);
      return at == text.npos ? int64_t(-1) : std::stoll(text.substr(at + name.size()));
    };
    EXPECT_EQ(widthOf(config), 2 * row.missing) << row.architecture;
    config["head_dim"] = nullptr;
    EXPECT_EQ(widthOf(config), 8) << row.architecture;
    config["head_dim"] = 6;
    EXPECT_EQ(widthOf(config), 12) << row.architecture;
  }
}

// As transformers has them.
TEST(FamilyConfigs, ImagesAre224PixelsWide) {
  json config = vit();
  config.erase("image_size");
  config["patch_size"] = 16;
  const std::string text = build(config).text();
  EXPECT_NE(text.find("position_embeddings\" : tensor<1x197x8x"), text.npos) << text;
}

TEST(FamilyConfigs, ClipsTextsBeginAtOneToken) {
  json config = clip("CLIPTextModel");
  config.erase("image_size");
  config.erase("patch_size");
  const std::string text = build(config).text();
  EXPECT_NE(text.find("lathe.dim @seq 1 to 9\n"), text.npos) << text;
}

TEST(FamilyConfigs, ClipsPatchesDivideItsImage) {
  json config = clip("CLIPVisionModel");
  config.erase("vocab_size");
  config.erase("max_position_embeddings");
  EXPECT_NO_THROW(build(config));
  config["patch_size"] = 3;
  test::expectError(ErrorCode::InvalidFile, "expected patches that divide the image of 4, got 3",
                    [&] { build(config); });
}

// The first Falcon has one norm for both parts of a layer.
TEST(FamilyConfigs, FalconsSecondNormIsOfTheNewArchitecture) {
  json config = decoder("FalconForCausalLM");
  config.erase("intermediate_size");
  for (int64_t norms : {1, 2}) {
    config["num_ln_in_parallel_attn"] = norms;
    if (norms == 2)
      test::expectError(ErrorCode::Unsupported,
                        "num_ln_in_parallel_attn: not supported without new_decoder_architecture",
                        [&] { build(config); });
    config["new_decoder_architecture"] = true;
    EXPECT_NO_THROW(build(config));
    config.erase("new_decoder_architecture");
  }
}

TEST(FamilyConfigs, WhispersHeadsDivideItsWidth) {
  json config = marian();
  config["architectures"] = {"WhisperForConditionalGeneration"};
  config.erase("max_position_embeddings");
  EXPECT_NO_THROW(build(config));
  for (const char* heads : {"encoder_attention_heads", "decoder_attention_heads"}) {
    json changed = config;
    changed[heads] = 3;
    test::expectError(ErrorCode::InvalidFile, "expected heads that divide d_model",
                      [&] { build(changed); });
  }
}

// Height and width are each their own, in the table of places as in the patches.
TEST(FamilyConfigs, ImagesNeedNotBeSquare) {
  for (auto [height, width] : {std::pair<int64_t, int64_t>{4, 4}, {4, 8}, {8, 4}, {2, 6}}) {
    json config = vit();
    config["image_size"] = {height, width};
    const std::string size = std::to_string(height) + " x " + std::to_string(width);
    Program program = compile(build(config), {.backend = "reference"});
    const int64_t tokens = 1 + height / 2 * (width / 2);
    bool isThere = false;
    for (const TensorInfo& weight : program.weights)
      if (weight.source() == "embeddings.position_embeddings") {
        EXPECT_EQ(weight.sourceShape().at(1).asConstant(), tokens) << size;
        isThere = true;
      }
    EXPECT_TRUE(isThere);
    Session session(std::move(program));
    session.bindRandomWeights(1);
    const Array y =
        session.run("forward", {{"pixel_values", Array(DType::F32, {1, 3, height, width})}})
            .at("last_hidden_state");
    EXPECT_EQ(y.shape(), (Shape{1, tokens, 8})) << size;
  }
}

// Layer i divides its scores by i + 1 more.
TEST(FamilyConfigs, GptsScoresAreScaledByTheLayersNumber) {
  json config{{"architectures", {"GPT2LMHeadModel"}},
              {"vocab_size", 11},
              {"n_embd", 32},
              {"n_layer", 3},
              {"n_head", 2},
              {"n_positions", 16},
              {"scale_attn_weights", true},
              {"n_inner", nullptr}};
  auto has = [&](const char* number) {
    return build(config).text().find("dense<" + std::string(number) + "> : tensor<f32>") !=
           std::string::npos;
  };
  EXPECT_TRUE(has("2.500000e-01"));
  EXPECT_FALSE(has("1.250000e-01"));
  config["scale_attn_by_inverse_layer_idx"] = true;
  for (const char* number : {"2.500000e-01", "1.250000e-01", "0.0833333358"})
    EXPECT_TRUE(has(number)) << number << " in " << build(config).text();
}

// The gate of T5 1.1 is GELU by tanh whatever it is called.
TEST(FamilyConfigs, GatesOfT5AreOfTanh) {
  auto gated = [](const char* name) {
    return build({{"architectures", {"T5ForConditionalGeneration"}},
                  {"vocab_size", 11},
                  {"d_model", 8},
                  {"d_kv", 4},
                  {"d_ff", 12},
                  {"num_layers", 1},
                  {"num_heads", 2},
                  {"feed_forward_proj", name}})
        .text();
  };
  EXPECT_EQ(gated("gated-gelu"), gated("gated-gelu_new"));
  EXPECT_NE(gated("gated-gelu"), gated("gated-relu"));
}

// The head of the masked model has the activation of the layers, and weights of its own where they
// are not those of the table.
TEST(FamilyConfigs, BertsHeadIsAsTheConfigSays) {
  json config = decoder("BertForMaskedLM");
  const std::string name = "\"cls.predictions.decoder.weight\"";
  EXPECT_NE(build(config).text().find("lathe.erf"), std::string::npos);
  EXPECT_EQ(build(config).text().find(name), std::string::npos);
  config["hidden_act"] = "relu";
  EXPECT_EQ(build(config).text().find("lathe.erf"), std::string::npos);
  config["tie_word_embeddings"] = false;
  EXPECT_NE(build(config).text().find(name), std::string::npos);
}

// transformers divides the one factor by the other where both are given, and takes none of them
// alone.
TEST(FamilyConfigs, FactorsOfYarnComeInPairs) {
  auto withFactors = [](const json& more) {
    json config = decoder("LlamaForCausalLM");
    config["rope_scaling"] = {
        {"rope_type", "yarn"}, {"factor", 4.0}, {"original_max_position_embeddings", 8}};
    config["rope_scaling"].update(more);
    return build(config).text();
  };
  const std::string plain = withFactors(json::object());
  EXPECT_EQ(withFactors({{"mscale", 0.5}}), plain);
  EXPECT_EQ(withFactors({{"mscale_all_dim", 0.5}}), plain);
  EXPECT_EQ(withFactors({{"mscale", 0.0}, {"mscale_all_dim", 0.5}}), plain);
  const std::string both = withFactors({{"mscale", 1.0}, {"mscale_all_dim", 0.5}});
  EXPECT_NE(both, plain);
  // 0.1 m log(4) + 1 of each.
  const double factor = (0.1 * std::log(4.0) + 1) / (0.05 * std::log(4.0) + 1);
  EXPECT_EQ(withFactors({{"attention_factor", factor}}), both);
  EXPECT_NE(withFactors({{"mscale", 0.5}, {"mscale_all_dim", 1.0}}), both);
}

// A config that is right, with one thing changed.
TEST(FamilyConfigs, MistakesAreTold) {
  struct Mistake {
    json config;
    json change;
    ErrorCode code;
    const char* message;
  };
  const ErrorCode bad = ErrorCode::InvalidFile, unsupported = ErrorCode::Unsupported;
  const json llama = decoder("LlamaForCausalLM"), qwen = withKeyHeads("Qwen2ForCausalLM"),
             phi = withKeyHeads("PhiForCausalLM"), phi3 = withKeyHeads("Phi3ForCausalLM"),
             bert = decoder("BertModel"),
             gptj = {{"architectures", {"GPTJForCausalLM"}},
                     {"vocab_size", 11},
                     {"n_embd", 8},
                     {"n_layer", 1},
                     {"n_head", 2},
                     {"n_positions", 16},
                     {"rotary_dim", 2}};
  auto rope = [](const json& value) { return json{{"rope_scaling", value}}; };
  auto types = [](const json& value) { return json{{"layer_types", value}}; };
  for (const Mistake& m : std::vector<Mistake>{
           {llama, {{"num_key_value_heads", 3}}, bad, "3 key/value heads for 2 heads, expected at"},
           {llama,
            {{"num_attention_heads", 4}, {"num_key_value_heads", 3}},
            bad,
            "3 key/value heads do not divide 4 heads"},
           {llama, {{"num_attention_heads", 3}}, bad, "3 heads do not divide hidden_size 8"},
           {llama, {{"head_dim", 3}}, bad, "expected an even head dimension for RoPE, got 3"},
           {llama, {{"hidden_act", "mish"}}, unsupported, "expected an activation of"},
           {llama, {{"model_type", "bert"}}, unsupported, "expected \"llama\""},
           {llama, {{"architectures", json::array()}}, unsupported, "expected one architecture of"},
           {llama, {{"architectures", {"NovelForCausalLM"}}}, unsupported, "architecture"},
           {llama, rope(3), bad, "expected an object or null, got 3"},
           {llama, rope({{"rope_type", "novel"}}), unsupported, "expected a rope type of"},
           {llama, rope({{"rope_type", "linear"}, {"factor", 0.5}}), bad, "a factor >= 1, got 0.5"},
           {llama,
            rope({{"rope_type", "llama3"},
                  {"factor", 2},
                  {"low_freq_factor", 4},
                  {"high_freq_factor", 4},
                  {"original_max_position_embeddings", 8}}),
            bad, "high_freq_factor 4 is not above low_freq_factor 4"},
           {llama,
            {{"rope_scaling", {{"rope_type", "default"}}},
             {"rope_parameters", {{"rope_type", "default"}}}},
            bad,
            "both \"rope_scaling\" and \"rope_parameters\" are given, expected one"},
           {llama,
            {{"rope_theta", 7}, {"rope_parameters", {{"rope_type", "default"}, {"rope_theta", 5}}}},
            bad,
            "contradicts rope_theta 7"},
           {llama, rope({{"rope_type", "default"}, {"factor", 2}}), bad, "default has no factor"},
           {llama,
            {{"partial_rotary_factor", 0.5}},
            unsupported,
            "expected a partial_rotary_factor of 1, got 0.5"},
           {phi, {{"partial_rotary_factor", 1.5}}, bad, "above 0 and up to 1, got 1.5"},
           {phi, {{"partial_rotary_factor", 0}}, bad, "above 0 and up to 1, got 0"},
           {phi,
            {{"partial_rotary_factor", 0.3}},
            bad,
            "an even number of rotated elements, got 1"},
           {phi,
            {{"partial_rotary_factor", 0.1}},
            bad,
            "an even number of rotated elements, got 0 of 4"},
           {phi,
            {{"partial_rotary_factor", 0.75}},
            bad,
            "an even number of rotated elements, got 3 of 4"},
           {phi3,
            rope({{"type", "longrope"}, {"short_factor", {1.0}}, {"long_factor", {1.0, 2.0}}}), bad,
            "expected 2 factors, one for each frequency, got 1"},
           {qwen, types({"full_attention"}), bad, "expected a type for each of 2 layers, got 1"},
           {qwen, types({"full_attention", "linear"}), unsupported, "expected \"full_attention\""},
           {qwen, types({"sliding_attention", "full_attention"}), bad,
            "a sliding layer needs a sliding_window"},
           {withKeyHeads("SmolLM3ForCausalLM"),
            {{"no_rope_layers", {1}}},
            bad,
            "expected a number for each of 2 layers, got 1"},
           {gptj, {{"rotary_dim", 3}}, bad, "rotary_dim: expected an even"},
           {gptj, {{"rotary_dim", 6}}, bad, "up to the head dimension 4"},
           {bert,
            {{"position_embedding_type", "relative_key"}},
            unsupported,
            "not supported: expected \"absolute\", got \"relative_key\""},
           {bert, {{"num_attention_heads", 3}}, bad, "3 heads do not divide hidden_size 8"},
           {bert, {{"pad_token_id", 11}}, bad, "pad_token_id"},
           {vit(), {{"patch_size", {2, 1}}}, unsupported, "expected square patches"},
           {vit(), {{"patch_size", 3}}, bad, "expected patches that divide the image of"},
           {vit(), {{"image_size", {4, 4, 4}}}, bad, "expected a size or two, got"},
           {vit(),
            {{"pooler_act", "gelu"}},
            unsupported,
            "not supported: expected \"tanh\", got \"gelu\""},
           {marian(),
            {{"decoder_vocab_size", 13}},
            bad,
            "expected the vocab_size 11 where both sides"},
           {marian(), {{"normalize_before", true}}, unsupported, "normalize_before: not supported"},
           {marian(),
            {{"add_final_layer_norm", true}},
            unsupported,
            "not supported: expected false"},
           {marian(),
            {{"decoder_attention_heads", 3}},
            bad,
            "expected heads that divide d_model"}}) {
    SCOPED_TRACE(m.config["architectures"].dump() + m.change.dump());
    EXPECT_NO_THROW(build(m.config));
    json changed = m.config;
    changed.update(m.change);
    test::expectError(m.code, m.message, [&] { build(changed); });
  }
}

// Other norms of the diffusion transformer's class are those of other models.
TEST(FamilyConfigs, DiffusionTransformersHaveOneKindOfNorm) {
  json config{{"_class_name", "DiTTransformer2DModel"},
              {"num_layers", 1},
              {"num_attention_heads", 2},
              {"attention_head_dim", 4},
              {"norm_type", "ada_norm_zero"}};
  EXPECT_NO_THROW(build(config));
  config["norm_type"] = "ada_norm";
  test::expectError(ErrorCode::Unsupported,
                    "norm_type: not supported: expected \"ada_norm_zero\", got \"ada_norm\"",
                    [&] { build(config); });
}

}  // namespace
}  // namespace lathe
