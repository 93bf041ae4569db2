// SPDX-License-Identifier: Apache-2.0
// What keys of GGUF's metadata mean, as config.json of the family. The meanings are those of
// llama.cpp's readers and of its converter from Hugging Face's folders.
#include <cmath>

#include <gtest/gtest.h>

#include "tests/unit/gguf_models.h"

namespace lathe {
namespace {

using nlohmann::json;
using test::Counts;
using test::expectError;
using Model = test::GgufModel;

TEST(GgufConfig, SizesHaveTheirDefaults) {
  const json plain = Model("llama").config();
  EXPECT_EQ(plain["vocab_size"], 10);
  EXPECT_EQ(plain["num_key_value_heads"], 4) << "as many as heads";
  EXPECT_EQ(plain["head_dim"], 16);
  EXPECT_EQ(plain["rope_theta"], 10000);
  EXPECT_EQ(plain["rms_norm_eps"], 1e-5) << "the number that was written, and not its nearest f32";
  EXPECT_EQ(plain["tie_word_embeddings"], true);
  for (const char* none : {"partial_rotary_factor", "rope_scaling", "pad_token_id"})
    EXPECT_FALSE(plain.contains(none)) << none;
  EXPECT_EQ(plain["bos_token_id"], nullptr);
  EXPECT_EQ(plain["eos_token_id"], nullptr);
  const json given = Model("llama")
                         .with("attention.head_count_kv", 2u)
                         .with("attention.key_length", 32u)
                         .with("attention.value_length", 32u)
                         .with("rope.dimension_count", 8u)
                         .with("rope.freq_base", 5e5f)
                         .tensor("output.weight", {64, 10})
                         .config();
  EXPECT_EQ(given["num_key_value_heads"], 2);
  EXPECT_EQ(given["head_dim"], 32);
  EXPECT_EQ(given["partial_rotary_factor"], 0.25);
  EXPECT_EQ(given["rope_theta"], 5e5);
  EXPECT_EQ(given["tie_word_embeddings"], false);
}

TEST(GgufConfig, CountsOfLayersAreOne) {
  EXPECT_EQ(Model("llama").with("attention.head_count", Counts{4, 4}).config()["head_dim"], 16);
  expectError(ErrorCode::Unsupported,
              "llama.attention.head_count_kv: expected the same number for all layers",
              [] { Model("llama").with("attention.head_count_kv", Counts{2, 4}).config(); });
  expectError(ErrorCode::Unsupported, "llama.attention.value_length: expected 16, as keys have",
              [] { Model("llama").with("attention.value_length", 8u).config(); });
}

TEST(GgufConfig, AnyOfThreeTokensEndsAText) {
  const std::string keys = "tokenizer.ggml.";
  auto ends = [&](std::vector<std::pair<const char*, uint32_t>> ids) {
    Model model("llama");
    for (auto& [key, id] : ids) model.with(keys + key + "_token_id", id);
    return model.config()["eos_token_id"];
  };
  EXPECT_EQ(ends({{"eos", 3}}), 3);
  EXPECT_EQ(ends({{"eot", 4}}), 4);
  EXPECT_EQ(ends({{"eom", 5}}), 5);
  EXPECT_EQ(ends({{"eos", 3}, {"eot", 4}, {"eom", 5}}), json({3, 4, 5}));
  EXPECT_EQ(ends({{"eos", 3}, {"eot", 3}, {"eom", 3}}), 3) << "each once";
  EXPECT_EQ(ends({{"eos", 3}, {"eom", 5}, {"eot", 3}}), json({3, 5}));
  const json config =
      Model("llama").with(keys + "bos_token_id", 1u).with(keys + "padding_token_id", 2u).config();
  EXPECT_EQ(config["bos_token_id"], 1);
  EXPECT_EQ(config["pad_token_id"], 2);
  // Ids are places in the table: from its first to its last.
  EXPECT_EQ(Model("llama").with(keys + "bos_token_id", 0u).config()["bos_token_id"], 0);
  EXPECT_EQ(ends({{"eos", 0}}), 0);
  EXPECT_NO_THROW(Model("llama").with(keys + "bos_token_id", 9u).config());
  EXPECT_THROW(Model("llama").with(keys + "bos_token_id", 10u).config(), Error);
}

// As ggml takes it; by 1 it is none.
TEST(GgufConfig, AFactorWithoutATypeIsLinear) {
  auto scalingOf = [](float factor) {
    return Model("qwen3")
        .with("rope.scaling.factor", factor)
        .config()
        .value("rope_scaling", json());
  };
  EXPECT_EQ(scalingOf(4), json::parse(R"({"rope_type": "linear", "factor": 4.0})"));
  EXPECT_EQ(scalingOf(1), nullptr);
  EXPECT_EQ(scalingOf(0), nullptr) << "ggml's zero for none";
}

// What a family refuses of config.json is told with the key that the file has.
TEST(GgufConfig, NumbersOutOfTheirRangesAreToldByTheirKeys) {
  const struct {
    const char* key;
    test::Value value;
    const char* message;
  } cases[] = {
      {"rope.freq_base", 0.0f, "expected a number > 0, got 0"},
      {"attention.layer_norm_rms_epsilon", 0.0f, "expected a number between 0 and 1, both excl"},
      {"attention.layer_norm_rms_epsilon", 1.0f, "expected a number between 0 and 1, both excl"},
      {"rope.scaling.factor", 0.5f, "expected a factor >= 1, or 0 for none, got 0.5"},
      {"rope.scaling.attn_factor", 0.0f, "expected a number > 0, got 0"},
      {"rope.dimension_count", 7u, "expected an even number up to a head's 16, got 7"},
      {"rope.dimension_count", 18u, "expected an even number up to a head's 16, got 18"},
  };
  for (const auto& c : cases)
    expectError(ErrorCode::InvalidFile, std::string("llama.") + c.key + ": " + c.message,
                [&] { Model("llama").with(c.key, c.value).config(); });
  auto yarn = [](float factor, const char* beta, float value) {
    return Model("llama")
        .with("rope.scaling.type", std::string("yarn"))
        .with("rope.scaling.factor", factor)
        .with(std::string("rope.scaling.yarn_beta_") + beta, value);
  };
  expectError(ErrorCode::InvalidFile, "llama.rope.scaling.factor: expected a factor >= 1",
              [&] { yarn(0.5f, "fast", 32).config(); });
  expectError(ErrorCode::InvalidFile, "llama.rope.scaling.yarn_beta_slow: expected beta_slow <=",
              [&] { yarn(2, "slow", 33).config(); });
  expectError(ErrorCode::InvalidFile, "llama.rope.scaling.yarn_beta_fast: expected beta_slow <=",
              [&] { yarn(2, "fast", 0.5f).config(); });
  EXPECT_EQ(yarn(0, "fast", 32).config()["rope_scaling"]["factor"], 1) << "ggml's zero for none";
  // What does not scale has no use for a factor.
  EXPECT_NO_THROW(Model("llama")
                      .with("rope.scaling.type", std::string("none"))
                      .with("rope.scaling.factor", 0.5f)
                      .config());
  expectError(ErrorCode::InvalidFile, "gemma2.attn_logit_softcapping: expected a number > 0",
              [] { Model("gemma2").with("attn_logit_softcapping", 0.0f).config(); });
  expectError(ErrorCode::InvalidFile, "gemma3.rope.freq_base_swa: expected a number > 0, got -1",
              [] {
                Model("gemma3")
                    .with("attention.sliding_window", 64u)
                    .with("rope.freq_base_swa", -1.0f)
                    .config();
              });
}

// ggml multiplies its own factor, 1 + 0.1 ln(factor), with the one that is written.
TEST(GgufConfig, YarnHasTheTemperatureOfBothFactors) {
  auto yarn = [](float attention) {
    Model model("llama");
    model.with("rope.scaling.type", std::string("yarn")).with("rope.scaling.factor", 4.0f);
    if (attention != 0) model.with("rope.scaling.attn_factor", attention);
    return model;
  };
  const double own = 1 + 0.1 * std::log(4.0);
  json scaling = yarn(0).config()["rope_scaling"];
  EXPECT_EQ(scaling["rope_type"], "yarn");
  EXPECT_EQ(scaling["factor"], 4);
  EXPECT_DOUBLE_EQ(scaling["attention_factor"], own);
  EXPECT_EQ(scaling["original_max_position_embeddings"], 512) << "the context's";
  EXPECT_EQ(scaling["beta_fast"], 32);
  EXPECT_EQ(scaling["beta_slow"], 1);
  EXPECT_DOUBLE_EQ(yarn(0.5f).config()["rope_scaling"]["attention_factor"], 0.5 * own);
  scaling = yarn(0)
                .with("rope.scaling.original_context_length", 128u)
                .with("rope.scaling.yarn_beta_fast", 16.0f)
                .with("rope.scaling.yarn_beta_slow", 2.0f)
                .config()["rope_scaling"];
  EXPECT_EQ(scaling["original_max_position_embeddings"], 128);
  EXPECT_EQ(scaling["beta_fast"], 16);
  EXPECT_EQ(scaling["beta_slow"], 2);
  expectError(ErrorCode::Unsupported,
              "llama.rope.scaling.type: expected none, linear, yarn or longrope, got \"su\"",
              [] { Model("llama").with("rope.scaling.type", std::string("su")).config(); });
}

// ggml multiplies with it whatever the type is; the families know it of yarn and longrope.
TEST(GgufConfig, AFactorOfRotationsThatNobodyTakesIsRefused) {
  for (const char* type : {"none", "linear"}) {
    Model model("llama");
    model.with("rope.scaling.type", std::string(type)).with("rope.scaling.factor", 4.0f);
    EXPECT_NO_THROW(model.with("rope.scaling.attn_factor", 1.0f).config()) << type;
    expectError(ErrorCode::Unsupported,
                std::string("llama.rope.scaling.attn_factor: expected 1 beside ") + type +
                    " scaling, got 2",
                [&] { model.with("rope.scaling.attn_factor", 2.0f).config(); });
  }
}

TEST(GgufConfig, DecodersLookBack) {
  EXPECT_NO_THROW(Model("llama").with("attention.causal", true).config());
  expectError(ErrorCode::Unsupported, "llama.attention.causal: expected true, got false",
              [] { Model("llama").with("attention.causal", false).config(); });
}

// Llama 3's factors are one list for all lengths, LongRoPE's are two.
TEST(GgufConfig, FactorsOfFrequenciesAreTensors) {
  json scaling = Model("llama").tensor("rope_freqs.weight", {2}, 1.5f).config()["rope_scaling"];
  EXPECT_EQ(scaling["rope_type"], "longrope");
  EXPECT_EQ(scaling["short_factor"], json({1.5, 1.5}));
  EXPECT_EQ(scaling["long_factor"], json({1.5, 1.5}));
  EXPECT_EQ(scaling["attention_factor"], 1);
  scaling = Model("phi3")
                .tensor("rope_factors_long.weight", {2}, 2.0f)
                .tensor("rope_factors_short.weight", {2}, 3.0f)
                .with("rope.scaling.attn_factor", 1.25f)
                .config()["rope_scaling"];
  EXPECT_EQ(scaling["short_factor"], json({3, 3}));
  EXPECT_EQ(scaling["long_factor"], json({2, 2}));
  EXPECT_EQ(scaling["attention_factor"], 1.25);
  expectError(ErrorCode::InvalidFile, "tensor rope_freqs.weight: expected a vector of F32",
              [] { Model("llama").tensor("rope_freqs.weight", {2, 2}).config(); });
  expectError(ErrorCode::InvalidFile, "tensor rope_freqs.weight: element 0 is inf",
              [] { Model("llama").tensor("rope_freqs.weight", {2}, INFINITY).config(); });
  expectError(ErrorCode::Unsupported, "expected none or longrope beside factors of frequencies",
              [] {
                Model("llama")
                    .tensor("rope_freqs.weight", {2})
                    .with("rope.scaling.type", std::string("yarn"))
                    .config();
              });
}

// The scale of Gemma's scores follows from the size: only the largest of a generation has that of
// hidden_size / heads.
TEST(GgufConfig, GemmasOfOneSizeScaleByTheirWidth) {
  struct Size {
    const char* name;
    uint32_t layers;
    int64_t scalar;
  };
  for (const Size& size : {Size{"gemma2", 26, 32},
                           {"gemma2", 46, 16},
                           {"gemma2", 62, 32},
                           {"gemma3", 26, 32},
                           {"gemma3", 46, 32},
                           {"gemma3", 62, 16}}) {
    const json config = Model(size.name)
                            .with("block_count", size.layers)
                            .with("attention.key_length", 32u)
                            .with("attention.value_length", 32u)
                            .with("attention.sliding_window", 128u)
                            .config();
    EXPECT_EQ(config["query_pre_attn_scalar"], size.scalar) << size.name << " " << size.layers;
    EXPECT_EQ(config["sliding_window"], 128);
    EXPECT_EQ(config["hidden_activation"], "gelu_pytorch_tanh");
    // The first files of Gemma 2 have no keys of these.
    const bool isSecond = std::string(size.name) == "gemma2";
    EXPECT_EQ(config["final_logit_softcapping"], isSecond ? json(30) : json(nullptr));
    EXPECT_EQ(config.value("attn_logit_softcapping", 0.0), isSecond ? 50 : 0);
    EXPECT_EQ(config.contains("rope_local_base_freq"), std::string(size.name) == "gemma3");
  }
  EXPECT_EQ(Model("gemma2").config()["sliding_window"], 4096);
  EXPECT_EQ(
      Model("gemma2").with("attn_logit_softcapping", 20.0f).config()["attn_logit_softcapping"], 20);
  const json config = Model("gemma3")
                          .with("attention.sliding_window", 128u)
                          .with("attention.sliding_window_pattern", 3u)
                          .with("rope.freq_base_swa", 5000.0f)
                          .with("final_logit_softcapping", 30.0f)
                          .config();
  // Layers with a window keep the usual base, whatever the others have.
  EXPECT_EQ(Model("gemma3")
                .with("attention.sliding_window", 128u)
                .with("rope.freq_base", 1e6f)
                .config()["rope_local_base_freq"],
            10000);
  EXPECT_EQ(config["sliding_window_pattern"], 3);
  EXPECT_EQ(config["rope_local_base_freq"], 5000);
  EXPECT_EQ(config["final_logit_softcapping"], 30);
}

// "llama" is what three families of Hugging Face's are written as.
TEST(GgufConfig, KeysTellTheFamiliesOfLlamaApart) {
  EXPECT_EQ(Model("llama").config()["model_type"], "llama");
  EXPECT_EQ(Model("llama").with("expert_count", 0u).with("expert_used_count", 0u).config(),
            Model("llama").config())
      << "counts of 0 are of no mixture";
  const json mixtral =
      Model("llama").with("expert_count", 4u).with("expert_used_count", 2u).config();
  EXPECT_EQ(mixtral["model_type"], "mixtral");
  EXPECT_EQ(mixtral["num_local_experts"], 4);
  EXPECT_EQ(mixtral["num_experts_per_tok"], 2);
  EXPECT_EQ(mixtral["sliding_window"], nullptr);
  const json mistral = Model("llama").with("attention.sliding_window", 64u).config();
  EXPECT_EQ(mistral["model_type"], "mistral");
  EXPECT_EQ(mistral["sliding_window"], 64);
  const json biased =
      Model("llama").tensor("blk.0.attn_q.bias", {64}).tensor("blk.0.ffn_up.bias", {96}).config();
  EXPECT_EQ(biased["attention_bias"], true);
  EXPECT_EQ(biased["mlp_bias"], true);
  EXPECT_EQ(Model("llama").config()["attention_bias"], false);
  EXPECT_EQ(Model("llama").config()["mlp_bias"], false);
}

// No key says it: there are biases where their tensors are.
TEST(GgufConfig, TensorsTellWhetherProjectionsHaveBiases) {
  for (const char* name : {"llama", "qwen3", "qwen3moe", "olmo2", "granite"}) {
    auto model = [&] {
      Model m(name);
      if (std::string_view(name) == "qwen3moe")
        for (const char* size : {"expert_count", "expert_used_count", "expert_feed_forward_length"})
          m.with(size, 8u);
      return m;
    };
    EXPECT_EQ(model().config()["attention_bias"], false) << name;
    const json biased = model().tensor("blk.0.attn_q.bias", {64}).config();
    EXPECT_EQ(biased["attention_bias"], true) << name;
  }
  EXPECT_EQ(Model("granite").config()["mlp_bias"], false);
  EXPECT_EQ(Model("granite").tensor("blk.0.ffn_up.bias", {96}).config()["mlp_bias"], true);
}

TEST(GgufConfig, FamiliesHaveKeysOfTheirOwn) {
  const json granite = Model("granite")
                           .with("attention.scale", 0.5f)
                           .with("embedding_scale", 2.0f)
                           .with("residual_scale", 0.25f)
                           .with("logit_scale", 8.0f)
                           .config();
  EXPECT_EQ(granite["attention_multiplier"], 0.5);
  EXPECT_EQ(granite["embedding_multiplier"], 2);
  EXPECT_EQ(granite["residual_multiplier"], 0.25);
  EXPECT_EQ(granite["logits_scaling"], 8);
  EXPECT_FALSE(Model("granite").config().contains("logits_scaling"));
  const json moe = Model("qwen3moe")
                       .with("expert_count", 8u)
                       .with("expert_used_count", 2u)
                       .with("expert_feed_forward_length", 24u)
                       .config();
  EXPECT_EQ(moe["num_experts"], 8);
  EXPECT_EQ(moe["num_experts_per_tok"], 2);
  EXPECT_EQ(moe["moe_intermediate_size"], 24);
  EXPECT_EQ(moe["norm_topk_prob"], true);
  EXPECT_EQ(moe["decoder_sparse_step"], 1) << "every layer has experts";
  EXPECT_EQ(Model("phi3").config()["sliding_window"], nullptr);
  EXPECT_EQ(Model("phi3").with("attention.sliding_window", 9u).config()["sliding_window"], 9);
}

// What attends to all positions does not read the key of a window: a model that has one is another.
TEST(GgufConfig, WindowsAreOfFamiliesThatHaveThem) {
  for (const char* name : {"qwen2", "qwen3", "gemma", "granite", "olmo2"}) {
    EXPECT_FALSE(Model(name).config().contains("sliding_window")) << name;
    expectError(ErrorCode::Unsupported,
                std::string(name) + ".attention.sliding_window: not supported by ",
                [&] { Model(name).with("attention.sliding_window", 9u).config(); });
  }
}

// Each cut of a piece may be a merge: long ones would take minutes and gigabytes.
TEST(GgufTokenizers, PiecesHaveALengthOfAllTogether) {
  auto read = [](size_t pieces, size_t length) {
    test::Strings tokens;
    for (size_t i = 0; i < pieces; ++i)
      tokens.push_back(std::string(length, 'x') + std::to_string(i));
    Model("llama")
        .with("tokenizer.ggml.model", std::string("llama"))
        .with("tokenizer.ggml.bos_token_id", 1u)
        .with("tokenizer.ggml.scores", std::vector<float>(pieces, 0.0f))
        .with("tokenizer.ggml.tokens", std::move(tokens))
        .tokenizer();
  };
  EXPECT_NO_THROW(read(10, 1000));
  expectError(ErrorCode::InvalidFile,
              "tokenizer.ggml.tokens: the pieces are too long to find what they are merged of",
              [&] { read(70, 2000); });
}

}  // namespace
}  // namespace lathe
