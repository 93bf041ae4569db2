// SPDX-License-Identifier: Apache-2.0
// Fields of config.json and names of tensors that the families' goldens do not draw.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "lathe/lathe.h"
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

}  // namespace
}  // namespace lathe
