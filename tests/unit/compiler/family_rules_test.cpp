// SPDX-License-Identifier: Apache-2.0
// Which families there are, by which names they are found, and how fields are spelled that several
// of them share.
#include <cmath>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "lathe/frontend/families/decoder_config.h"
#include "lathe/lathe.h"
#include "tests/unit/test_files.h"

namespace lathe {
namespace {

using nlohmann::json;
using test::expectError;

JsonValue valueOf(const json& config) { return JsonValue::parse(config.dump(), "config.json"); }
std::string textOf(const json& config, const FamilyOptions& options = {}) {
  return buildFromConfig(valueOf(config), options).text();
}
json decoder(const char* architecture, const json& more = json::object()) {
  json c = {{"architectures", {architecture}},
            {"vocab_size", 11},
            {"hidden_size", 8},
            {"intermediate_size", 12},
            {"num_hidden_layers", 2},
            {"num_attention_heads", 2},
            {"num_key_value_heads", 2},
            {"max_position_embeddings", 16}};
  c.update(more);
  return c;
}

TEST(FamilyRules, EachHasATypeAndATask) {
  using enum ModelTask;
  struct Row {
    const char *architecture, *type;
    ModelTask task;
  };
  const std::vector<Row> wanted{{"LlamaForCausalLM", "llama", Generate},
                                {"MistralForCausalLM", "mistral", Generate},
                                {"Qwen2ForCausalLM", "qwen2", Generate},
                                {"Qwen3ForCausalLM", "qwen3", Generate},
                                {"GemmaForCausalLM", "gemma", Generate},
                                {"Gemma2ForCausalLM", "gemma2", Generate},
                                {"Gemma3ForCausalLM", "gemma3_text", Generate},
                                {"Phi3ForCausalLM", "phi3", Generate},
                                {"GPT2LMHeadModel", "gpt2", Generate},
                                {"GPTNeoXForCausalLM", "gpt_neox", Generate},
                                {"Olmo2ForCausalLM", "olmo2", Generate},
                                {"GraniteForCausalLM", "granite", Generate},
                                {"MixtralForCausalLM", "mixtral", Generate},
                                {"Qwen3MoeForCausalLM", "qwen3_moe", Generate},
                                {"Qwen2MoeForCausalLM", "qwen2_moe", Generate},
                                {"PhiForCausalLM", "phi", Generate},
                                {"OPTForCausalLM", "opt", Generate},
                                {"GPTJForCausalLM", "gptj", Generate},
                                {"FalconForCausalLM", "falcon", Generate},
                                {"Starcoder2ForCausalLM", "starcoder2", Generate},
                                {"SmolLM3ForCausalLM", "smollm3", Generate},
                                {"CohereForCausalLM", "cohere", Generate},
                                {"StableLmForCausalLM", "stablelm", Generate},
                                {"BloomForCausalLM", "bloom", Generate},
                                {"BertModel", "bert", Embed},
                                {"BertForMaskedLM", "bert", Other},
                                {"RobertaModel", "roberta", Embed},
                                {"RobertaForMaskedLM", "roberta", Other},
                                {"XLMRobertaModel", "xlm-roberta", Embed},
                                {"XLMRobertaForMaskedLM", "xlm-roberta", Other},
                                {"T5ForConditionalGeneration", "t5", Rewrite},
                                {"MT5ForConditionalGeneration", "mt5", Rewrite},
                                {"BartForConditionalGeneration", "bart", Rewrite},
                                {"MarianMTModel", "marian", Rewrite},
                                {"WhisperForConditionalGeneration", "whisper", Rewrite},
                                {"DistilBertModel", "distilbert", Embed},
                                {"DistilBertForMaskedLM", "distilbert", Other},
                                {"DistilBertForSequenceClassification", "distilbert", Other},
                                {"CLIPModel", "clip", Other},
                                {"CLIPTextModel", "clip_text_model", Other},
                                {"CLIPVisionModel", "clip_vision_model", Other},
                                {"DiTTransformer2DModel", "", Other},
                                {"Transformer2DModel", "", Other},
                                {"ViTModel", "vit", Other},
                                {"ViTForImageClassification", "vit", Other}};
  ASSERT_EQ(families().size(), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_EQ(families()[i].architecture, wanted[i].architecture);
    EXPECT_EQ(families()[i].modelType, wanted[i].type) << wanted[i].architecture;
    EXPECT_EQ(families()[i].task, wanted[i].task) << wanted[i].architecture;
    EXPECT_EQ(familyOf(valueOf({{"architectures", {wanted[i].architecture}}})).architecture,
              wanted[i].architecture);
  }
}

TEST(FamilyRules, BareModelsHaveTheirHead) {
  auto found = [](const json& config) { return familyOf(valueOf(config)).architecture; };
  for (auto [bare, whole] : {std::pair("LlamaModel", "LlamaForCausalLM"),
                             {"GPT2Model", "GPT2LMHeadModel"},
                             {"BartModel", "BartForConditionalGeneration"},
                             {"T5Model", "T5ForConditionalGeneration"},
                             {"MarianModel", "MarianMTModel"},
                             {"BertModel", "BertModel"}})
    EXPECT_EQ(found({{"architectures", {bare}}}), whole);
  EXPECT_EQ(found({{"model_type", "gpt_neox"}}), "GPTNeoXForCausalLM");
  EXPECT_EQ(found({{"model_type", "bert"}}), "BertModel") << "the first of its type";
  EXPECT_EQ(found({{"model_type", "vit"}}), "ViTModel");
  EXPECT_EQ(found({{"_class_name", "Transformer2DModel"}, {"architectures", {"BertModel"}}}),
            "Transformer2DModel");
  EXPECT_EQ(found({{"architectures", {"BertForMaskedLM"}}, {"model_type", "novel"}}),
            "BertForMaskedLM");
  struct Mistake {
    json config;
    ErrorCode code;
    const char* message;
  };
  for (const Mistake& m : std::vector<Mistake>{
           {json::array(), ErrorCode::InvalidFile, "expected an object, got an array"},
           {json::object(), ErrorCode::InvalidFile,
            "neither \"architectures\" nor \"model_type\" says what model this is"},
           {{{"architectures", {"A", "B"}}},
            ErrorCode::Unsupported,
            "expected one architecture of LlamaForCausalLM, "},
           {{{"architectures", {"LlamaForSequenceClassification"}}},
            ErrorCode::Unsupported,
            "expected an architecture of LlamaForCausalLM, "},
           {{{"architectures", {"NovelModel"}}}, ErrorCode::Unsupported, "got \"NovelModel\""},
           {{{"model_type", "novel"}},
            ErrorCode::Unsupported,
            "expected the type of an architecture of LlamaForCausalLM, "}})
    expectError(m.code, m.message, [&] { familyOf(valueOf(m.config)); });
}

TEST(FamilyRules, BlocksOfACacheAreOfModelsThatHaveOne) {
  json bert = decoder("BertModel");
  bert.erase("num_key_value_heads");
  expectError(
      ErrorCode::Unsupported,
      "config.json: BertModel: cacheBlock: caches in blocks are of decoders, this model has "
      "no cache; leave it at 0",
      [&] { textOf(bert, {.cacheBlock = 4}); });
}

// Names of activations, of which several are one.
TEST(FamilyRules, ActivationsHaveSeveralNames) {
  auto with = [](const char* name) {
    return textOf(decoder("PhiForCausalLM", {{"hidden_act", name}, {"partial_rotary_factor", 1}}));
  };
  const std::string silu = with("silu"), gelu = with("gelu"), tanh = with("gelu_new"),
                    relu = with("relu");
  EXPECT_EQ(with("swish"), silu);
  EXPECT_EQ(with("gelu_pytorch_tanh"), tanh);
  EXPECT_EQ(with("gelu_fast"), tanh);
  for (const auto& [text, op] : {std::pair(&silu, "lathe.sigmoid"),
                                 {&gelu, "lathe.erf"},
                                 {&tanh, "lathe.tanh"},
                                 {&relu, "lathe.max"}})
    for (const char* other : {"lathe.sigmoid", "lathe.erf", "lathe.tanh"})
      EXPECT_EQ(text->find(other) != text->npos, std::string_view(op) == other) << op << other;
  expectError(ErrorCode::Unsupported,
              "hidden_act: expected an activation of silu, swish, gelu, gelu_new, "
              "gelu_pytorch_tanh, gelu_fast, relu, got \"mish\"",
              [&] { with("mish"); });
}

// --- rotary positions

std::string rotated(const json& rope, const json& more = json::object()) {
  json config = decoder("LlamaForCausalLM", more);
  if (!rope.is_null()) config["rope_scaling"] = rope;
  return textOf(config);
}

TEST(RopeRules, MissingNumbersAreThoseOfTransformers) {
  const std::string plain = rotated(nullptr);
  EXPECT_EQ(rotated({{"rope_type", "default"}}), plain);
  EXPECT_EQ(rotated({{"type", "default"}}), plain);
  EXPECT_EQ(rotated(json::object()), plain);
  EXPECT_EQ(rotated({{"rope_type", "default"}, {"factor", 1}}), plain);
  EXPECT_NE(rotated({{"rope_type", "linear"}, {"factor", 2}}), plain);
  EXPECT_EQ(rotated({{"rope_type", "linear"}, {"factor", 1}}), plain);
  const json yarn{{"rope_type", "yarn"}, {"factor", 4}, {"original_max_position_embeddings", 8}};
  auto with = [&](const json& more) {
    json all = yarn;
    all.update(more);
    return rotated(all);
  };
  const std::string usual = with(json::object());
  EXPECT_EQ(with({{"beta_fast", 32}}), usual);
  EXPECT_EQ(with({{"beta_slow", 1}}), usual);
  EXPECT_EQ(with({{"truncate", true}}), usual);
  EXPECT_EQ(with({{"attention_factor", 0.1 * std::log(4.0) + 1}}), usual);
  EXPECT_NE(with({{"attention_factor", 2}}), usual);
  // 16 positions of 8 trained ones: the factor is 2 where none is given.
  EXPECT_EQ(rotated({{"rope_type", "yarn"}, {"original_max_position_embeddings", 8}}),
            with({{"factor", 2}}));
  // What stands beside the object counts first.
  EXPECT_EQ(rotated(yarn, {{"original_max_position_embeddings", 4}}),
            with({{"original_max_position_embeddings", 4}}));
}

TEST(RopeRules, LongRopeHasTwoNamesAndTwoLists) {
  const json longRope{{"type", "longrope"},
                      {"short_factor", {1, 1}},
                      {"long_factor", {2, 3}},
                      {"original_max_position_embeddings", 8}};
  auto with = [&](const json& more) {
    json all = longRope;
    all.update(more);
    return rotated(all);
  };
  const std::string usual = with(json::object());
  EXPECT_EQ(with({{"type", "su"}}), usual);
  EXPECT_EQ(with({{"factor", 2}}), usual) << "16 positions of 8";
  EXPECT_NE(with({{"factor", 4}}), usual);
  EXPECT_EQ(with({{"attention_factor", std::sqrt(1 + std::log(2.0) / std::log(8.0))}}), usual);
  expectError(ErrorCode::InvalidFile, "expected a number > 0, got 0",
              [&] { with({{"long_factor", {1, 0}}}); });
}

// Tokens that are verified together have the rotations that they would have one by one, on both
// sides of the trained length.
TEST(RopeRules, VerifiedTokensAreRotatedAsIfEachCameAlone) {
  const json dynamic{{"rope_type", "dynamic"}, {"factor", 4}};
  const json longRope{{"rope_type", "longrope"},
                      {"short_factor", {1, 1}},
                      {"long_factor", {2, 3}},
                      {"original_max_position_embeddings", 6}};
  for (const json& rope : {dynamic, longRope}) {
    const json config =
        decoder("LlamaForCausalLM",
                {{"rope_scaling", rope}, {"max_position_embeddings", rope == dynamic ? 6 : 16}});
    Session session(
        compile(buildFromConfig(valueOf(config), {.verify = true}), {.backend = "reference"}));
    session.bindRandomWeights(1);
    auto logits = [&](const char* entry, int64_t from, int64_t count) {
      Array ids(DType::I64, {1, count}), positions(DType::I64, {1});
      for (int64_t i = 0; i < count; ++i) ids.set(i, double((from + i) * 5 % 11));
      positions.set(0, double(from));
      return session.run(entry, {{"input_ids", ids}, {"positions", positions}}).at("logits");
    };
    session.setSymbol("cache", 16);
    logits("prefill", 0, 4);
    const Array together = logits("verify", 4, 4);
    session.resetStates();
    logits("prefill", 0, 4);
    for (int64_t i = 0; i < 4; ++i) {
      const Array alone = logits("decode", 4 + i, 1);
      for (int64_t k = 0; k < 11; ++k)
        EXPECT_NEAR(together.at(i * 11 + k), alone.at(k), 1e-5) << rope << " token " << i;
    }
  }
}

// The model's own length is the trained one, whatever is written, and calls may be longer.
TEST(RopeRules, DynamicScalingStretchesTheModelsLength) {
  const json dynamic{{"rope_type", "dynamic"}, {"factor", 4}};
  json written = dynamic;
  written["original_max_position_embeddings"] = 3;
  EXPECT_EQ(rotated(written), rotated(dynamic));
  const std::string text = rotated(dynamic);
  EXPECT_NE(text.find("lathe.dim @seq 1 to 64"), text.npos) << text.substr(0, 400);
  // Lengths of the others hold their factor already.
  const json linear{{"rope_type", "linear"}, {"factor", 4}},
      yarn{{"rope_type", "yarn"}, {"factor", 4}};
  for (const json& rope : {json(), linear, yarn})
    EXPECT_NE(rotated(rope).find("lathe.dim @seq 1 to 16\n"), text.npos) << rope;
}

// Layers with a window have a base of their own, which their object need not say.
TEST(RopeRules, LayersWithAWindowHaveTheirOwnBase) {
  auto with = [](const json& sliding, const json& more = json::object()) {
    json config = decoder("Gemma3ForCausalLM", {{"head_dim", 4}});
    config["rope_parameters"] = {{"full_attention", {{"rope_type", "default"}}},
                                 {"sliding_attention", sliding}};
    config.update(more);
    return textOf(config);
  };
  auto base = [](double theta) { return json{{"rope_type", "default"}, {"rope_theta", theta}}; };
  const json plain{{"rope_type", "default"}};
  EXPECT_EQ(with(plain), with(base(10000)));
  EXPECT_EQ(with(plain, {{"rope_local_base_freq", 500}}), with(base(500)));
  EXPECT_NE(with(base(500)), with(base(10000)));
}

TEST(RopeRules, TypesAreNamedOnce) {
  EXPECT_EQ(rotated({{"rope_type", "linear"}, {"type", "linear"}, {"factor", 2}}),
            rotated({{"rope_type", "linear"}, {"factor", 2}}));
  expectError(ErrorCode::InvalidFile, "\"rope_type\" is \"linear\" and \"type\" is \"yarn\"",
              [] { rotated({{"rope_type", "linear"}, {"type", "yarn"}, {"factor", 2}}); });
  expectError(ErrorCode::Unsupported,
              "expected a rope type of default, linear, dynamic, yarn, llama3, longrope, got \"x\"",
              [] { rotated({{"rope_type", "x"}}); });
}

// --- sizes of calls

TEST(FamilyOptionsRules, LengthsAreAtMostTheModels) {
  const json llama = decoder("LlamaForCausalLM");
  EXPECT_EQ(textOf(llama, {.maxSeq = 16, .cacheCapacity = 16}), textOf(llama));
  const std::string some = textOf(llama, {.maxBatch = 3, .maxSeq = 5, .cacheCapacity = 7});
  for (const char* dim : {"@batch 1 to 3", "@seq 1 to 5", "@cache 1 to 7"})
    EXPECT_NE(some.find(std::string("lathe.dim ") + dim), some.npos) << some.substr(0, 300);
  // The table of angles has a row for every position of the longer one.
  for (const FamilyOptions& options :
       {FamilyOptions{.maxSeq = 5, .cacheCapacity = 7}, {.maxSeq = 7, .cacheCapacity = 5}}) {
    const std::string text = textOf(llama, options);
    EXPECT_NE(text.find("tensor<7x"), text.npos) << text;
    EXPECT_EQ(text.find("tensor<5x"), text.npos) << text;
  }
  EXPECT_NE(textOf(llama).find("lathe.dim @batch 1 to 64"), some.npos);
  for (int64_t length : {-1, 17}) {
    expectError(ErrorCode::InvalidArgument,
                "expected maxSeq from 1 to the model's 16 positions, got " +
                    std::to_string(length) + "; without it, it is all of them",
                [&] { textOf(llama, {.maxSeq = length}); });
    expectError(ErrorCode::InvalidArgument,
                "expected cacheCapacity from 1 to the model's 16 positions, got " +
                    std::to_string(length) + "; without it, it is all of them",
                [&] { textOf(llama, {.cacheCapacity = length}); });
  }
  for (int64_t layers : {-1, 3})
    expectError(ErrorCode::InvalidArgument, "expected 1 to 2 layers, got " + std::to_string(layers),
                [&] { textOf(llama, {.layers = layers}); });
  EXPECT_EQ(textOf(llama, {.layers = 2}), textOf(llama));
  json one = llama;
  one["num_hidden_layers"] = 1;
  EXPECT_EQ(textOf(llama, {.layers = 1}), textOf(one));
}

// The side that writes has positions of its own: those of the other are of sounds.
TEST(FamilyOptionsRules, TextsAreAtMostAsLongAsTheWritersPositions) {
  const json whisper = {{"architectures", {"WhisperForConditionalGeneration"}},
                        {"vocab_size", 11},
                        {"d_model", 8},
                        {"encoder_layers", 1},
                        {"decoder_layers", 1},
                        {"encoder_attention_heads", 2},
                        {"decoder_attention_heads", 2},
                        {"encoder_ffn_dim", 12},
                        {"decoder_ffn_dim", 12},
                        {"max_source_positions", 30},
                        {"max_target_positions", 16}};
  EXPECT_EQ(textOf(whisper, {.maxSeq = 16, .cacheCapacity = 16}), textOf(whisper));
  for (const FamilyOptions& options : {FamilyOptions{.maxSeq = 17}, {.cacheCapacity = 17}})
    expectError(ErrorCode::InvalidArgument, "from 1 to the model's 16 positions, got 17",
                [&] { textOf(whisper, options); });
}

// The first places of the table are the padding's and those before it.
TEST(FamilyOptionsRules, TextsOfRobertaHaveThePlacesBehindThePaddings) {
  for (int64_t padding : {1, 3}) {
    const json roberta = {
        {"architectures", {"RobertaModel"}}, {"vocab_size", 11},       {"hidden_size", 8},
        {"intermediate_size", 12},           {"num_hidden_layers", 1}, {"num_attention_heads", 2},
        {"max_position_embeddings", 20},     {"pad_token_id", padding}};
    const int64_t most = 20 - padding - 1;
    EXPECT_NE(textOf(roberta).find("lathe.dim @seq 1 to " + std::to_string(most) + "\n"),
              std::string::npos);
    EXPECT_EQ(textOf(roberta, {.maxSeq = most}), textOf(roberta));
    expectError(ErrorCode::InvalidArgument,
                "from 1 to the model's " + std::to_string(most) + " positions, got " +
                    std::to_string(most + 1),
                [&] { textOf(roberta, {.maxSeq = most + 1}); });
  }
}

// Lists of a config with something for each layer may go on behind those that are asked for.
TEST(FamilyOptionsRules, FirstLayersAreThoseOfAFullList) {
  const json all =
      decoder("Qwen2ForCausalLM", {{"sliding_window", 3},
                                   {"use_sliding_window", true},
                                   {"layer_types", {"sliding_attention", "full_attention"}}});
  json one = all;
  one["num_hidden_layers"] = 1;
  one["layer_types"] = {"sliding_attention"};
  EXPECT_EQ(textOf(all, {.layers = 1}), textOf(one));
}

TEST(FamilyOptionsRules, EntryPointsAreThoseThatAreAskedFor) {
  const json llama = decoder("LlamaForCausalLM");
  auto entries = [&](const FamilyOptions& options) {
    std::vector<std::string> names;
    for (const EntryPoint& e :
         compile(buildFromConfig(valueOf(llama), options), {.backend = "reference"}).entries)
      names.push_back(e.name);
    return names;
  };
  using ::testing::ElementsAre;
  EXPECT_THAT(entries({}), ElementsAre("forward", "prefill", "decode"));
  EXPECT_THAT(entries({.verify = true}), ElementsAre("forward", "prefill", "decode", "verify"));
  EXPECT_THAT(entries({.greedy = true}), ElementsAre("forward", "prefill", "decode", "greedy"));
  EXPECT_THAT(entries({.verify = true, .greedy = true}),
              ElementsAre("forward", "prefill", "decode", "verify", "greedy"));
  expectError(ErrorCode::InvalidArgument, "expected `greedy` or `cacheBlock`, got both",
              [&] { entries({.cacheBlock = 4, .greedy = true}); });
}

// Which layers see a window, as the rule of each family says: the first of the layers, or the last
// of a period.
TEST(FamilyRules, WindowsLieInTheLayersOfTheRule) {
  auto layers = [](const char* architecture, const json& more) {
    json config =
        decoder(architecture, {{"num_hidden_layers", 6}, {"head_dim", 4}, {"sliding_window", 3}});
    config.update(more);
    const std::string text = irAt(buildFromConfig(valueOf(config)), "fused");
    std::string which;
    // Of the first entry point, in the order of the layers.
    const std::string forward = text.substr(0, text.find("@prefill"));
    for (size_t at = 0; (at = forward.find("= lathe.attention ", at)) != forward.npos; ++at)
      which += forward.substr(at, forward.find('\n', at) - at).find(" window 3") != forward.npos
                   ? 'w'
                   : '-';
    return which;
  };
  EXPECT_EQ(layers("MistralForCausalLM", json::object()), "wwwwww");
  EXPECT_EQ(layers("Gemma2ForCausalLM", json::object()), "w-w-w-");
  EXPECT_EQ(layers("Gemma3ForCausalLM", json::object()), "wwwww-");
  EXPECT_EQ(layers("Gemma3ForCausalLM", {{"sliding_window_pattern", 3}}), "ww-ww-");
  EXPECT_EQ(layers("Qwen2ForCausalLM", {{"use_sliding_window", true}, {"max_window_layers", 4}}),
            "----ww");
  EXPECT_EQ(layers("Qwen2ForCausalLM", {{"max_window_layers", 4}}), "------");
  // Those that do not rotate.
  EXPECT_EQ(layers("SmolLM3ForCausalLM", {{"use_sliding_window", true}}), "---w--");
  EXPECT_EQ(
      layers("Qwen2ForCausalLM", {{"use_sliding_window", true},
                                  {"layer_types",
                                   {"full_attention", "sliding_attention", "full_attention",
                                    "full_attention", "full_attention", "sliding_attention"}}}),
      "-w---w");
}

}  // namespace
}  // namespace lathe
