// SPDX-License-Identifier: Apache-2.0
// Configurations field by field: names, ends of ranges, what is left out, and whole messages.
#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "lathe/runtime/config_reader.h"
#include "lathe/runtime/json_reader.h"
#include "lathe/runtime/model_config.h"
#include "tests/unit/test_files.h"

namespace lathe {
namespace {

using test::messageOf;

ModelConfig model(const std::string& fields) {
  return parseModelConfig("{\"model_type\": \"x\"" + fields + "}", "c.json");
}
std::string refusalOf(const std::string& fields) {
  return messageOf([&] { model(fields); });
}
std::string field(const std::string& name, const std::string& value) {
  return ", \"" + name + "\": " + value;
}

// What the families call these, in the order in which one is taken where a file has several.
TEST(ModelConfigFields, HaveTheirNamesInTheirOrder) {
  using Member = int64_t ModelConfig::*;
  const std::pair<Member, std::vector<const char*>> members[] = {
      {&ModelConfig::vocabSize, {"vocab_size"}},
      {&ModelConfig::targetVocabSize, {"decoder_vocab_size"}},
      {&ModelConfig::hiddenSize, {"hidden_size", "n_embd", "d_model"}},
      {&ModelConfig::intermediateSize,
       {"intermediate_size", "n_inner", "d_ff", "encoder_ffn_dim", "ffn_dim"}},
      {&ModelConfig::layers,
       {"num_hidden_layers", "n_layer", "num_layers", "encoder_layers", "n_layers"}},
      {&ModelConfig::heads,
       {"num_attention_heads", "n_head", "num_heads", "encoder_attention_heads"}},
      {&ModelConfig::kvHeads, {"num_key_value_heads"}},
      {&ModelConfig::headDim, {"head_dim", "d_kv"}},
      {&ModelConfig::maxPositions,
       {"max_position_embeddings", "n_positions", "max_target_positions"}}};
  for (const auto& [member, names] : members)
    for (size_t i = 0; i < names.size(); ++i) {
      std::string fields;  // the last first: a file's order says nothing
      for (size_t j = names.size(); j-- > i;) fields += field(names[j], std::to_string(10 + j));
      EXPECT_EQ(model(fields).*member, int64_t(10 + i)) << names[i];
    }
}

TEST(ModelConfigFields, HoldTheEndsOfTheirRanges) {
  const std::pair<const char*, int64_t> most[] = {{"vocab_size", 16777216},
                                                  {"decoder_vocab_size", 16777216},
                                                  {"hidden_size", 1048576},
                                                  {"intermediate_size", 16777216},
                                                  {"num_hidden_layers", 1000},
                                                  {"num_attention_heads", 65536},
                                                  {"num_key_value_heads", 65536},
                                                  {"head_dim", 1048576},
                                                  {"max_position_embeddings", 16777216}};
  for (const auto& [name, high] : most) {
    EXPECT_EQ(refusalOf(field(name, std::to_string(high))), "");
    EXPECT_EQ(refusalOf(field(name, "1")), "");
    for (int64_t wrong : {int64_t(0), high + 1})
      EXPECT_EQ(refusalOf(field(name, std::to_string(wrong))),
                "c.json: " + std::string(name) + ": expected an integer from 1 to " +
                    std::to_string(high) + ", got " + std::to_string(wrong));
  }
}

TEST(ModelConfigFields, FollowOthersWhereTheyAreLeftOut) {
  const ModelConfig none = model("");
  EXPECT_EQ(none.modelType, "x");
  EXPECT_EQ(none.architecture, "");
  for (int64_t size :
       {none.vocabSize, none.hiddenSize, none.intermediateSize, none.layers, none.heads,
        none.kvHeads, none.headDim, none.maxPositions, none.targetVocabSize})
    EXPECT_EQ(size, 0);
  EXPECT_FALSE(none.tieWordEmbeddings);
  EXPECT_EQ(none.dtype, DType::F32);
  const ModelConfig some = model(field("vocab_size", "90") + field("hidden_size", "70") +
                                 field("num_attention_heads", "8"));
  EXPECT_EQ(some.targetVocabSize, 90);
  EXPECT_EQ(some.kvHeads, 8);
  EXPECT_EQ(some.headDim, 8);  // rounded down
  // Of a class alone, as diffusers writes it.
  const ModelConfig named = parseModelConfig(
      R"({"_class_name": "UNet", "architectures": ["A"], "model_type": "y"})", "c.json");
  EXPECT_EQ(named.architecture, "UNet");
  EXPECT_EQ(named.modelType, "");
}

TEST(ModelConfigFields, TokensAreThoseOfTheVocabulary) {
  const std::string ten = field("vocab_size", "10");
  for (const char* name : {"bos_token_id", "eos_token_id", "pad_token_id", "decoder_start_token_id",
                           "forced_bos_token_id"}) {
    const std::string low = name == std::string("pad_token_id") ? "-1" : "0";
    EXPECT_EQ(refusalOf(ten + field(name, "9")), "") << name;
    EXPECT_EQ(
        refusalOf(ten + field(name, "10")),
        "c.json: " + std::string(name) + ": expected an integer from " + low + " to 9, got 10");
    EXPECT_EQ(
        refusalOf(ten + field(name, "-2")),
        "c.json: " + std::string(name) + ": expected an integer from " + low + " to 9, got -2");
    // Without a vocabulary, of the largest that there may be.
    EXPECT_EQ(refusalOf(field(name, "16777215")), "") << name;
    EXPECT_EQ(refusalOf(field(name, "16777216")), "c.json: " + std::string(name) +
                                                      ": expected an integer from " + low +
                                                      " to 16777215, got 16777216");
  }
  const ModelConfig c = model(ten + field("bos_token_id", "3") + field("eos_token_id", "[4, 5]") +
                              field("pad_token_id", "0") + field("decoder_start_token_id", "6") +
                              field("forced_bos_token_id", "7"));
  EXPECT_EQ(c.bosId, 3);
  EXPECT_EQ(c.eosIds, (std::vector<int64_t>{4, 5}));
  EXPECT_EQ(c.padId, 0);
  EXPECT_EQ(c.decoderStartId, 6);
  EXPECT_EQ(c.forcedBosId, 7);
  // The tokens that types like llama's have, where their vocabulary has them.
  auto llama = [](const std::string& rest) {
    return parseModelConfig("{\"model_type\": \"llama\"" + rest + "}", "c.json");
  };
  EXPECT_EQ(llama(field("vocab_size", "2")).bosId, 1);
  EXPECT_TRUE(llama(field("vocab_size", "2")).eosIds.empty());
  EXPECT_EQ(llama(field("vocab_size", "3")).eosIds, std::vector<int64_t>{2});
  EXPECT_EQ(llama(field("vocab_size", "1")).bosId, std::nullopt);
  EXPECT_EQ(llama(field("eos_token_id", "0") + field("bos_token_id", "0")).eosIds,
            std::vector<int64_t>{0});
}

TEST(ModelConfigFields, DtypesHaveTheirNames) {
  const std::pair<const char*, DType> dtypes[] = {
      {"\"float32\"", DType::F32},         {"\"bfloat16\"", DType::BF16},
      {"\"float16\"", DType::F16},         {"\"torch.float32\"", DType::F32},
      {"\"torch.bfloat16\"", DType::BF16}, {"\"torch.float16\"", DType::F16}};
  for (const auto& [name, dtype] : dtypes)
    for (const char* key : {"dtype", "torch_dtype"})
      EXPECT_EQ(model(field(key, name)).dtype, dtype) << name;
  // The newer name first.
  EXPECT_EQ(model(field("torch_dtype", "\"float32\"") + field("dtype", "\"float16\"")).dtype,
            DType::F16);
  EXPECT_EQ(refusalOf(field("dtype", "\"float64\"")),
            "c.json: dtype: expected float32, bfloat16 or float16, got \"float64\"");
}

TEST(ModelConfigFields, DynamicScalingReachesAsFarAsItsFactor) {
  auto positions = [](const std::string& scaling) {
    return model(field("max_position_embeddings", "10") + scaling).maxPositions;
  };
  EXPECT_EQ(positions(field("rope_scaling", R"({"rope_type": "dynamic", "factor": 0.5})")), 10);
  EXPECT_EQ(positions(field("rope_scaling", R"({"rope_type": "dynamic", "factor": 1.96})")), 19);
  // "rope_type" counts where both spellings stand there.
  EXPECT_EQ(
      positions(field("rope_scaling", R"({"type": "dynamic", "rope_type": "yarn", "factor": 4})")),
      10);
  EXPECT_EQ(positions(field("rope_scaling", R"({"rope_type": "linear", "factor": 4})") +
                      field("rope_parameters", R"({"rope_type": "dynamic", "factor": 3})")),
            30);
  EXPECT_EQ(positions(field("rope_scaling", R"({"rope_type": "dynamic"})")), 10);
}

TEST(ModelConfigFields, TellWhatModelItIs) {
  auto refusal = [](const char* json) {
    return messageOf([&] { parseModelConfig(json, "c.json"); });
  };
  EXPECT_EQ(refusal("{}"),
            "c.json: neither \"architectures\" nor \"model_type\" says what model this is");
  EXPECT_EQ(refusal(R"({"architectures": []})"),
            "c.json: architectures: expected a list of one architecture, got an array");
  EXPECT_EQ(refusal(R"({"architectures": ["a", "b"]})"),
            "c.json: architectures: expected a list of one architecture, got an array");
  EXPECT_EQ(refusal(R"({"architectures": "a"})"),
            "c.json: architectures: expected a list of one architecture, got \"a\"");
  EXPECT_EQ(refusal("3"), "c.json: expected an object, got 3");
}

//===--- ConfigReader -----------------------------------------------------------------------===//

ConfigReader readerOf(const std::string& json) {
  return ConfigReader(JsonValue::parse(json, "c.json"));
}

TEST(ConfigReader, ReadsWithinItsRanges) {
  ConfigReader c = readerOf(R"({"n": 3, "one": 1, "zero": 0, "x": 0.5, "minus": -0.5, "no": false,
                                "t": "word", "null": null})");
  EXPECT_EQ(c.size("n", 3), 3);
  EXPECT_EQ(messageOf([&] { c.size("n", 2); }),
            "c.json: n: expected an integer from 1 to 2, got 3");
  EXPECT_EQ(messageOf([&] { c.size("zero", 2, 1); }),
            "c.json: zero: expected an integer from 1 to 2, got 0");
  EXPECT_EQ(c.size("none", 2, 7), 7);
  EXPECT_EQ(c.size("null", 2, 7), 7);
  EXPECT_EQ(messageOf([&] { c.size("none", 2); }), "c.json: the key \"none\" is missing");
  EXPECT_EQ(c.number("minus", 9), -0.5);
  EXPECT_EQ(c.number("none", 9), 9);
  EXPECT_EQ(c.positive("x", 9), 0.5);
  EXPECT_EQ(c.positive("null", 9), 9);
  EXPECT_EQ(messageOf([&] { c.positive("zero", 9); }),
            "c.json: zero: expected a number > 0, got 0");
  EXPECT_EQ(c.epsilon("x", 9), 0.5);
  EXPECT_EQ(c.epsilon("none", 9), 9);
  for (const char* key : {"zero", "one"})
    EXPECT_EQ(messageOf([&] { c.epsilon(key, 9); }),
              "c.json: " + std::string(key) +
                  ": expected a number between 0 and 1, both excluded, got " +
                  (key[0] == 'z' ? "0" : "1"));
  EXPECT_FALSE(c.flag("no", true));
  EXPECT_TRUE(c.flag("none", true));
  EXPECT_EQ(c.text("t", "else"), "word");
  EXPECT_EQ(c.text("null", "else"), "else");
  EXPECT_EQ(messageOf([] { readerOf("[]"); }), "c.json: expected an object, got an array");
}

// Fields that nobody read: refused unless they ask for nothing.
TEST(ConfigReader, FieldsThatAskForNothingAreLeft) {
  auto refusal = [](const std::string& value, const std::string& key = "gate") {
    return messageOf([&] { readerOf("{\"" + key + "\": " + value + "}").finish("Novel"); });
  };
  for (const char* nothing : {"null", "false", "[]", "{}"}) EXPECT_EQ(refusal(nothing), "");
  const std::pair<const char*, const char*> something[] = {
      {"true", "true"}, {"1", "1"}, {"0", "0"}, {"\"\"", "\"\""}, {"[0]", "an array"}};
  for (const auto& [value, shown] : something)
    EXPECT_EQ(refusal(value), "c.json: gate: not supported by Novel: expected no such field, got " +
                                  std::string(shown) +
                                  "; take it out if it does not change what the model computes");
  for (const char* key :
       {"pretraining_tp", "partial_rotary_factor", "residual_multiplier", "embedding_multiplier",
        "logits_scaling", "logit_scale", "interpolate_factor", "full_attn_mod"}) {
    EXPECT_EQ(refusal("1", key), "");
    EXPECT_EQ(refusal("1.0", key), "");
    EXPECT_NE(refusal("2", key), "") << key;
    EXPECT_NE(refusal("0", key), "") << key;
  }
  ConfigReader c = readerOf(R"({"a": 1, "b": 2, "c": 3, "torch_dtype": "float8"})");
  c.size("a", 9);
  c.ignore({"b"});
  EXPECT_EQ(messageOf([&] { c.finish("Novel"); }),
            "c.json: c: not supported by Novel: expected no such field, got 3; take it out if it "
            "does not change what the model computes");
  EXPECT_EQ(c.at("c").asInt(), 3);
  EXPECT_EQ(messageOf([&] { c.finish("Novel"); }), "");
}

//===--- generation -------------------------------------------------------------------------===//

GenerationConfig generation(const std::string& fields) {
  return parseGenerationConfig("{" + fields + "}", "g.json");
}

TEST(GenerationConfigFields, HoldTheEndsOfTheirRanges) {
  auto refusal = [](const std::string& key, const std::string& value) {
    return messageOf([&] { generation("\"" + key + "\": " + value); });
  };
  const struct {
    const char *key, *good[2], *bad[2], *expected;
  } fields[] = {
      {"temperature", {"0", "100.5"}, {"-0.1", "-1"}, "a temperature >= 0"},
      {"top_k", {"0", "2147483647"}, {"-1", "2147483648"}, "an integer from 0 to 2147483647"},
      {"top_p", {"1e-9", "1"}, {"0", "1.5"}, "a top-p in (0, 1]"},
      {"min_p", {"0", "1"}, {"-0.5", "1.5"}, "a min-p in [0, 1]"},
      {"repetition_penalty", {"0.1", "2"}, {"0", "-1"}, "a repetition penalty > 0"},
      {"max_new_tokens",
       {"1", "2147483647"},
       {"0", "2147483648"},
       "an integer from 1 to 2147483647"},
      {"max_length", {"1", "2147483647"}, {"0", "2147483648"}, "an integer from 1 to 2147483647"},
      {"bos_token_id",
       {"0", "2147483647"},
       {"-1", "2147483648"},
       "an integer from 0 to 2147483647"},
      {"eos_token_id",
       {"0", "2147483647"},
       {"-1", "2147483648"},
       "an integer from 0 to 2147483647"},
      {"pad_token_id",
       {"-1", "2147483647"},
       {"-2", "2147483648"},
       "an integer from -1 to 2147483647"},
      {"decoder_start_token_id",
       {"0", "2147483647"},
       {"-1", "2147483648"},
       "an integer from 0 to 2147483647"},
      {"forced_bos_token_id",
       {"0", "2147483647"},
       {"-1", "2147483648"},
       "an integer from 0 to 2147483647"}};
  for (const auto& f : fields) {
    for (const char* value : f.good) EXPECT_EQ(refusal(f.key, value), "") << f.key;
    for (const std::string value : f.bad)
      EXPECT_EQ(refusal(f.key, value),
                "g.json: " + std::string(f.key) + ": expected " + f.expected + ", got " + value);
  }
}

TEST(GenerationConfigFields, AreEmptyWhereTheFileSaysNothing) {
  for (const char* text : {"", "\"temperature\": null, \"eos_token_id\": null, \"top_k\": null"}) {
    const GenerationConfig c = generation(text);
    EXPECT_FALSE(c.bosId || c.padId || c.decoderStartId || c.forcedBosId || c.doSample ||
                 c.temperature || c.topK || c.topP || c.minP || c.repetitionPenalty ||
                 c.maxNewTokens || c.maxLength);
    EXPECT_TRUE(c.eosIds.empty() && c.excludedIds.empty() && c.stopStrings.empty());
    EXPECT_TRUE(c.ignoredFields.empty());
  }
  EXPECT_EQ(generation("\"eos_token_id\": 5").eosIds, std::vector<int64_t>{5});
  EXPECT_EQ(generation("\"pad_token_id\": -1").padId, std::nullopt);
  EXPECT_EQ(generation("\"pad_token_id\": 0").padId, 0);
  EXPECT_EQ(generation("\"do_sample\": false").doSample, false);
}

// What has no effect on the tokens is no setting that was passed over.
TEST(GenerationConfigFields, OfToolsAreNoSettings) {
  for (const char* key :
       {"transformers_version", "_from_model_config", "use_cache", "cache_implementation",
        "cache_config", "return_legacy_cache", "output_attentions", "output_hidden_states",
        "output_scores", "output_logits", "return_dict_in_generate", "trust_remote_code"})
    EXPECT_TRUE(generation("\"" + std::string(key) + "\": true").ignoredFields.empty()) << key;
  EXPECT_EQ(generation(R"("b": 1, "a": "x", "c": [1], "d": {"e": 1}, "f": true)").ignoredFields,
            (std::vector<std::string>{"b", "a", "c", "d", "f"}));
  EXPECT_TRUE(
      generation(R"("b": 0, "c": [], "d": {}, "f": false, "g": null)").ignoredFields.empty());
}

// What is off at 1 is on at 0; of words to leave out those of several tokens are passed over.
TEST(GenerationConfigFields, TellWhatIsPassedOver) {
  for (const char* key : {"num_beams", "num_beam_groups", "num_return_sequences", "typical_p",
                          "length_penalty", "encoder_repetition_penalty", "guidance_scale"}) {
    EXPECT_TRUE(generation("\"" + std::string(key) + "\": 1").ignoredFields.empty()) << key;
    for (const char* value : {"0", "2"})
      EXPECT_EQ(generation("\"" + std::string(key) + "\": " + value).ignoredFields,
                std::vector<std::string>{key})
          << value;
  }
  const GenerationConfig c = generation(R"("bad_words_ids": [[1, 2], [3]])");
  EXPECT_EQ(c.excludedIds, std::vector<int64_t>{3});
  EXPECT_EQ(c.ignoredFields, std::vector<std::string>{"bad_words_ids"});
}

TEST(GenerationConfigFields, TokensThatNeverComeMayBeTheFirst) {
  const GenerationConfig c = generation(R"("suppress_tokens": [-1, 0, 3], "bad_words_ids": [[0]])");
  EXPECT_EQ(c.excludedIds, (std::vector<int64_t>{0, 3, 0}));
  EXPECT_EQ(messageOf([] { parseGenerationConfig("[]", "g.json"); }),
            "g.json: expected an object, got an array");
  test::TemporaryFolder folder;
  EXPECT_EQ(loadGenerationConfig(folder.path()).topK, std::nullopt) << "no file, no defaults";
  const std::string file = folder.write("generation_config.json", R"({"top_k": 7})");
  EXPECT_EQ(loadGenerationConfig(folder.path()).topK, 7);
  EXPECT_EQ(loadGenerationConfig(file).topK, 7);
  EXPECT_EQ(messageOf([&] { loadGenerationConfig(folder / "none.json"); }),
            folder / "none.json" + ": cannot open: No such file or directory");
}

}  // namespace
}  // namespace lathe
