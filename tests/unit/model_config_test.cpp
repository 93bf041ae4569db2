// SPDX-License-Identifier: Apache-2.0
#include "lathe/runtime/model_config.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "lathe/frontend/families/llama.h"
#include "tests/unit/test_files.h"

namespace lathe {
namespace {

using nlohmann::json;
using nn::RopeScalingOptions;
using test::expectError;

constexpr ErrorCode kFile = ErrorCode::InvalidFile, kUnsupported = ErrorCode::Unsupported;

// As transformers 4 writes it.
json version4() {
  return json::parse(R"({
    "architectures": ["LlamaForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
    "bos_token_id": 1, "eos_token_id": [2, 3], "head_dim": 16, "hidden_act": "silu",
    "hidden_size": 64, "initializer_range": 0.02, "intermediate_size": 172,
    "max_position_embeddings": 512, "mlp_bias": true, "model_type": "llama",
    "num_attention_heads": 6, "num_hidden_layers": 4, "num_key_value_heads": 2, "pretraining_tp": 1,
    "rms_norm_eps": 1e-05, "rope_scaling": null, "rope_theta": 500000.0,
    "tie_word_embeddings": true, "torch_dtype": "bfloat16", "transformers_version": "4.46.0",
    "use_cache": true, "vocab_size": 512})");
}

LlamaConfig parse(const json& file) { return parseLlamaConfig(file.dump(), "config.json"); }
ModelConfig facts(const json& file) { return parseModelConfig(file.dump(), "config.json"); }

TEST(LlamaConfig, ReadsTransformers4) {
  LlamaConfig c = parse(version4());
  EXPECT_EQ(c.vocabSize, 512);
  EXPECT_EQ(c.hiddenSize, 64);
  EXPECT_EQ(c.intermediateSize, 172);
  EXPECT_EQ(c.layers, 4);
  EXPECT_EQ(c.heads, 6);
  EXPECT_EQ(c.kvHeads, 2);
  EXPECT_EQ(c.headDim, 16);
  EXPECT_EQ(c.maxPositions, 512);
  EXPECT_EQ(c.rmsNormEps, 1e-5);
  EXPECT_EQ(c.ropeTheta, 500000);
  EXPECT_EQ(c.ropeScaling.type, RopeScalingOptions::Type::Default);
  EXPECT_TRUE(c.tieWordEmbeddings);
  EXPECT_FALSE(c.attentionBias);
  EXPECT_TRUE(c.mlpBias);
  EXPECT_EQ(c.activation, Activation::silu);
}

TEST(ModelConfig, TellsWhatRunsAModel) {
  ModelConfig c = facts(version4());
  EXPECT_EQ(c.architecture, "LlamaForCausalLM");
  EXPECT_EQ(c.modelType, "llama");
  EXPECT_EQ(c.vocabSize, 512);
  EXPECT_EQ(c.hiddenSize, 64);
  EXPECT_EQ(c.intermediateSize, 172);
  EXPECT_EQ(c.layers, 4);
  EXPECT_EQ(c.heads, 6);
  EXPECT_EQ(c.kvHeads, 2);
  EXPECT_EQ(c.headDim, 16);
  EXPECT_EQ(c.maxPositions, 512);
  EXPECT_TRUE(c.tieWordEmbeddings);
  EXPECT_EQ(c.bosId, 1);
  EXPECT_EQ(c.eosIds, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(c.padId, std::nullopt);
  EXPECT_EQ(c.dtype, DType::BF16);
}

TEST(ModelConfig, KnowsOtherNamesOfSizes) {
  ModelConfig c = facts(json::parse(R"({"model_type": "gpt2", "vocab_size": 99, "n_embd": 24,
    "n_layer": 3, "n_head": 4, "n_inner": 50, "n_positions": 77})"));
  EXPECT_EQ(c.hiddenSize, 24);
  EXPECT_EQ(c.layers, 3);
  EXPECT_EQ(c.kvHeads, 4);
  EXPECT_EQ(c.headDim, 6);
  EXPECT_EQ(c.intermediateSize, 50);
  EXPECT_EQ(c.maxPositions, 77);
  EXPECT_EQ(c.bosId, std::nullopt);
  EXPECT_TRUE(c.eosIds.empty());
}

// Dynamic scaling is for texts behind the positions that were trained.
TEST(ModelConfig, DynamicScalingReachesFurther) {
  auto positions = [](const std::string& scaling) {
    return parseModelConfig(
               R"({"model_type": "llama", "max_position_embeddings": 16, )" + scaling + "}",
               "config.json")
        .maxPositions;
  };
  EXPECT_EQ(positions(R"("rope_scaling": {"type": "dynamic", "factor": 4.0})"), 64);
  EXPECT_EQ(positions(R"("rope_parameters": {"rope_type": "dynamic", "factor": 2.5})"), 40);
  EXPECT_EQ(positions(R"("rope_scaling": {"rope_type": "linear", "factor": 4.0})"), 16);
  EXPECT_EQ(positions(R"("rope_scaling": null)"), 16);
  EXPECT_EQ(positions(R"("rope_scaling": {"type": "dynamic", "factor": 1e300})"), kMaxPositions);
}

TEST(LlamaConfig, ReadsTransformers5) {
  json file = version4();
  file.erase("rope_theta");
  file.erase("rope_scaling");
  file.erase("torch_dtype");
  file["dtype"] = "float16";
  file["rope_parameters"] = {{"rope_type", "llama3"},
                             {"rope_theta", 10000.0},
                             {"factor", 8},
                             {"low_freq_factor", 1.0},
                             {"high_freq_factor", 4.0},
                             {"original_max_position_embeddings", 128}};
  LlamaConfig c = parse(file);
  EXPECT_EQ(c.ropeTheta, 10000);
  EXPECT_EQ(c.ropeScaling.type, RopeScalingOptions::Type::Llama3);
  EXPECT_EQ(c.ropeScaling.factor, 8);
  EXPECT_EQ(c.ropeScaling.lowFreqFactor, 1);
  EXPECT_EQ(c.ropeScaling.highFreqFactor, 4);
  EXPECT_EQ(c.ropeScaling.originalMaxPositions, 128);
  EXPECT_EQ(facts(file).dtype, DType::F16);
}

TEST(LlamaConfig, ReadsTheOldSpellingOfLinearScaling) {
  json file = version4();
  file["rope_scaling"] = {{"type", "linear"}, {"factor", 2.5}};
  LlamaConfig c = parse(file);
  EXPECT_EQ(c.ropeScaling.type, RopeScalingOptions::Type::Linear);
  EXPECT_EQ(c.ropeScaling.factor, 2.5);
}

TEST(LlamaConfig, FillsInTheFamilysDefaults) {
  const json file = json::parse(R"({"model_type": "llama", "vocab_size": 100, "hidden_size": 48,
    "intermediate_size": 96, "num_hidden_layers": 1, "num_attention_heads": 3})");
  LlamaConfig c = parse(file);
  EXPECT_EQ(c.kvHeads, 3);
  EXPECT_EQ(c.headDim, 16);
  EXPECT_EQ(c.maxPositions, 2048);
  EXPECT_EQ(c.rmsNormEps, 1e-6);
  EXPECT_EQ(c.ropeTheta, 10000);
  EXPECT_FALSE(c.tieWordEmbeddings);
  EXPECT_EQ(facts(file).bosId, 1);
  EXPECT_EQ(facts(file).eosIds, std::vector<int64_t>{2});
  EXPECT_EQ(facts(file).dtype, DType::F32);
}

// transformers gives a configuration of these types tokens that the file leaves out.
TEST(ModelConfig, TypesLikeLlamaBeginWithOneAndEndWithTwo) {
  auto parse = [](const std::string& type) {
    return parseModelConfig("{\"model_type\": \"" + type + "\", \"vocab_size\": 10}", "c.json");
  };
  for (const char* type : {"llama", "mistral", "mixtral", "granite"}) {
    EXPECT_EQ(parse(type).bosId, 1) << type;
    EXPECT_EQ(parse(type).eosIds, std::vector<int64_t>{2}) << type;
  }
  for (const char* type : {"qwen2", "gpt2", "phi3"}) {
    EXPECT_FALSE(parse(type).bosId) << type;
    EXPECT_TRUE(parse(type).eosIds.empty()) << type;
  }
}

TEST(ModelConfig, NullTokenMeansNone) {
  json file = version4();
  file["bos_token_id"] = nullptr;
  file["eos_token_id"] = nullptr;
  file["pad_token_id"] = -1;
  ModelConfig c = facts(file);
  EXPECT_EQ(c.bosId, std::nullopt);
  EXPECT_TRUE(c.eosIds.empty());
  EXPECT_EQ(c.padId, std::nullopt);
}

TEST(LlamaConfig, RefusesFieldsThatItDoesNotKnow) {
  for (const char* value : {"true", "2", "\"x\"", "[1]", "{\"a\": 1}"}) {
    json file = version4();
    file["novel_gate"] = json::parse(value);
    expectError(kUnsupported,
                "novel_gate: not supported by LlamaForCausalLM: expected no such field",
                [&] { parse(file); });
  }
}

TEST(LlamaConfig, AcceptsNeutralValuesOfOtherMathematics) {
  json file = version4();
  file.update({{"sliding_window", nullptr},
               {"use_sliding_window", false},
               {"partial_rotary_factor", 1.0},
               {"pruned_heads", json::object()},
               {"layer_types", json(std::vector<std::string>(4, "full_attention"))},
               {"is_encoder_decoder", false},
               {"quantization_config", nullptr},
               {"novel_gate", false},
               {"novel_list", json::array()},
               {"resid_pdrop", 0.1}});
  EXPECT_EQ(parse(file).layers, 4);
}

struct BadField {
  const char* name;
  const char* key;
  const char* value;  // JSON; null pointer: the key is removed
  ErrorCode code;
  const char* message;
};
void PrintTo(const BadField& b, std::ostream* out) { *out << b.name; }

class BadConfig : public testing::TestWithParam<BadField> {};

TEST_P(BadConfig, IsRefusedByName) {
  const BadField& bad = GetParam();
  json file = version4();
  if (bad.value)
    file[bad.key] = json::parse(bad.value);
  else
    file.erase(bad.key);
  // What runs a model reads tokens and dtypes, the family what it computes.
  expectError(bad.code, bad.message, [&] {
    facts(file);
    parse(file);
  });
}

// The trained length: what stands beside rope_scaling counts before what stands in it, and the
// model's own length where neither does.
TEST(LlamaConfig, ReadsTheTrainedLengthWhereverItStands) {
  json file = version4();
  file["rope_scaling"] = {{"rope_type", "yarn"}, {"factor", 4}};
  EXPECT_EQ(parse(file).ropeScaling.originalMaxPositions, 512);
  file["rope_scaling"]["original_max_position_embeddings"] = 64;
  EXPECT_EQ(parse(file).ropeScaling.originalMaxPositions, 64);
  file["original_max_position_embeddings"] = 32;
  EXPECT_EQ(parse(file).ropeScaling.originalMaxPositions, 32);
}

TEST(LlamaConfig, YarnsMissingNumbersAreThoseOfTransformers) {
  json file = version4();
  file["rope_scaling"] = {{"rope_type", "yarn"}, {"factor", 4}};
  const RopeScalingOptions scaling = parse(file).ropeScaling;
  EXPECT_EQ(scaling.betaFast, 32);
  EXPECT_EQ(scaling.betaSlow, 1);
  EXPECT_TRUE(scaling.truncate);
}

TEST(LlamaConfig, AllHeadsMayShareOneOfKeys) {
  json file = version4();
  file["num_key_value_heads"] = 1;
  EXPECT_EQ(parse(file).kvHeads, 1);
}

// Dynamic scaling grows from the model's own length, as Transformers has it, whatever is written.
TEST(LlamaConfig, DynamicScalingTakesTheModelsOwnLength) {
  json file = version4();
  file["rope_scaling"] = {{"rope_type", "dynamic"}, {"factor", 2}};
  EXPECT_EQ(parse(file).ropeScaling.originalMaxPositions, 512);
  EXPECT_EQ(parse(file).ropeScaling.factor, 2);
  file["rope_scaling"]["original_max_position_embeddings"] = 64;
  EXPECT_EQ(parse(file).ropeScaling.originalMaxPositions, 512);
  file["original_max_position_embeddings"] = 32;
  EXPECT_EQ(parse(file).ropeScaling.originalMaxPositions, 512);
}

constexpr const char* kLlama3 = R"({"rope_type": "llama3", "factor": 8, "low_freq_factor": 4,
    "high_freq_factor": 4, "original_max_position_embeddings": 128})";
const BadField kBad[] = {
    {"VocabMissing", "vocab_size", nullptr, kFile, "the key \"vocab_size\" is missing"},
    {"VocabNull", "vocab_size", "null", kFile, "vocab_size: expected an integer, got null"},
    {"VocabText", "vocab_size", "\"512\"", kFile, "vocab_size: expected an integer, got \"512\""},
    {"VocabFloat", "vocab_size", "512.0", kFile, "vocab_size: expected an integer, got 512"},
    {"VocabZero", "vocab_size", "0", kFile, "vocab_size: expected an integer from 1 to"},
    {"VocabTooLarge", "vocab_size", "2147483648", kFile,
     "vocab_size: expected an integer from 1 to 16777216, got 2147483648"},
    {"Vocab2To63", "vocab_size", "9223372036854775808", kFile,
     "vocab_size: expected an integer from"},
    {"HiddenMissing", "hidden_size", nullptr, kFile, "the key \"hidden_size\" is missing"},
    {"HiddenNegative", "hidden_size", "-1", kFile, "hidden_size: expected an integer from 1 to"},
    {"HiddenHuge", "hidden_size", "1e308", kFile, "hidden_size: expected an integer, got 1e+308"},
    {"IntermediateZero", "intermediate_size", "0", kFile, "intermediate_size: expected an integer"},
    {"LayersZero", "num_hidden_layers", "0", kFile,
     "num_hidden_layers: expected an integer from 1"},
    {"LayersMany", "num_hidden_layers", "1000000000", kFile,
     "num_hidden_layers: expected an integer from 1 to 1000, got 1000000000"},
    {"LayersTooMany", "num_hidden_layers", "1001", kFile,
     "num_hidden_layers: expected an integer from 1 to 1000, got 1001"},
    {"PositionsMany", "max_position_embeddings", "1000000000", kFile,
     "max_position_embeddings: expected an integer from 1 to 16777216, got 1000000000"},
    {"HeadsZero", "num_attention_heads", "0", kFile, "num_attention_heads: expected"},
    {"KvAboveHeads", "num_key_value_heads", "7", kFile,
     "num_key_value_heads: 7 key/value heads for 6 heads"},
    {"KvDoNotDivide", "num_key_value_heads", "4", kFile,
     "num_key_value_heads: 4 key/value heads do not divide 6 heads"},
    {"HeadDimOdd", "head_dim", "15", kFile,
     "head_dim: expected an even head dimension for RoPE, got 15"},
    {"HeadDimNeeded", "head_dim", nullptr, kFile, "6 heads do not divide hidden_size 64"},
    {"HeadDimZero", "head_dim", "0", kFile, "head_dim: expected an integer from 1"},
    {"EpsZero", "rms_norm_eps", "0", kFile, "rms_norm_eps: expected a number between 0 and 1"},
    {"EpsNegative", "rms_norm_eps", "-1e-6", kFile, "rms_norm_eps: expected a number between"},
    {"EpsText", "rms_norm_eps", "\"NaN\"", kFile, "rms_norm_eps: expected a number, got \"NaN\""},
    {"ThetaZero", "rope_theta", "0", kFile, "rope_theta: expected a number > 0, got 0"},
    {"PositionsZero", "max_position_embeddings", "0", kFile, "max_position_embeddings: expected"},
    {"TieText", "tie_word_embeddings", "\"yes\"", kFile, "tie_word_embeddings: expected true or"},
    {"TieNumber", "tie_word_embeddings", "1", kFile, "tie_word_embeddings: expected true or false"},
    {"BosPastVocabulary", "bos_token_id", "512", kFile,
     "bos_token_id: expected an integer from 0 to"},
    {"EosNegative", "eos_token_id", "[-1]", kFile, "eos_token_id[0]: expected an integer from 0"},
    {"EosText", "eos_token_id", "\"</s>\"", kFile, "eos_token_id: expected an integer, got"},
    {"PadBelowMinusOne", "pad_token_id", "-2", kFile, "pad_token_id: expected an integer from -1"},
    {"NoArchitecture", "architectures", "[]", kFile, "expected a list of one architecture"},
    {"OtherArchitecture", "architectures", "[\"MixtralForCausalLM\"]", kUnsupported,
     "expected \"LlamaForCausalLM\", got \"MixtralForCausalLM\""},
    {"UnknownArchitecture", "architectures", "[\"NovelForCausalLM\"]", kUnsupported,
     "expected an architecture of LlamaForCausalLM, MistralForCausalLM, "},
    {"OtherActivation", "hidden_act", "\"mish\"", kUnsupported,
     "hidden_act: expected an activation of silu, swish, gelu, gelu_new, gelu_pytorch_tanh, "
     "gelu_fast, relu, got \"mish\""},
    {"OtherDtype", "torch_dtype", "\"float8_e4m3fn\"", kUnsupported,
     "torch_dtype: expected float32"},
    {"PretrainingTp", "pretraining_tp", "2", kUnsupported, "pretraining_tp: not supported by"},
    {"SlidingWindow", "sliding_window", "4096", kUnsupported, "sliding_window: not supported"},
    {"Quantised", "quantization_config", R"({"bits": 4})", kUnsupported,
     "quantization_config: not"},
    {"PartialRotary", "partial_rotary_factor", "0.5", kUnsupported, "partial_rotary_factor: not"},
    {"EncoderDecoder", "is_encoder_decoder", "true", kUnsupported, "is_encoder_decoder: not"},
    {"SlidingLayers", "layer_types",
     R"(["full_attention", "sliding_attention", "full_attention", "full_attention"])", kFile,
     "layer_types[1]: a sliding layer needs a sliding_window"},
    {"UnknownLayers", "layer_types", R"(["linear_attention", "", "", ""])", kUnsupported,
     "layer_types[0]: expected \"full_attention\" or \"sliding_attention\""},
    {"FewLayerTypes", "layer_types", R"(["full_attention"])", kFile,
     "layer_types: expected a type for each of 4 layers, got 1"},
    {"RopeText", "rope_scaling", "\"linear\"", kFile, "rope_scaling: expected an object or null"},
    {"RopeNovel", "rope_scaling", R"({"rope_type": "novel", "factor": 2})", kUnsupported,
     "rope_scaling.rope_type: expected a rope type of default, linear, dynamic, yarn, llama3, "
     "longrope, got \"novel\""},
    {"LongRopeFactors", "rope_scaling",
     R"({"rope_type": "longrope", "factor": 2, "short_factor": [1], "long_factor": [2]})", kFile,
     "rope_scaling.short_factor: expected 8 factors, one for each frequency, got 1"},
    {"RopeNoFactor", "rope_scaling", R"({"type": "linear"})", kFile,
     "the key \"factor\" is missing"},
    {"RopeSmallFactor", "rope_scaling", R"({"type": "linear", "factor": 0.5})", kFile,
     "rope_scaling.factor: expected a factor >= 1, got 0.5"},
    {"RopeTwoTypes", "rope_scaling", R"({"type": "linear", "rope_type": "llama3", "factor": 2})",
     kFile, "\"rope_type\" is \"llama3\" and \"type\" is \"linear\""},
    {"RopeUnusedFactor", "rope_scaling", R"({"rope_type": "default", "factor": 2})", kFile,
     "rope type default has no factor"},
    {"RopeUnknownKey", "rope_scaling", R"({"type": "linear", "factor": 2, "mscale": 1})",
     kUnsupported, "rope_scaling.mscale: not supported by rope type linear"},
    {"RopeNoLowFrequency", "rope_scaling",
     R"({"rope_type": "llama3", "factor": 8, "high_freq_factor": 4})", kFile,
     "the key \"low_freq_factor\" is missing"},
    {"RopeNoHighFrequency", "rope_scaling",
     R"({"rope_type": "llama3", "factor": 8, "low_freq_factor": 0.5})", kFile,
     "the key \"high_freq_factor\" is missing"},
    {"RopeEqualFrequencies", "rope_scaling", kLlama3, kFile, "high_freq_factor 4 is not above"},
    {"RopeThetaTwice", "rope_parameters", R"({"rope_type": "default", "rope_theta": 1e4})", kFile,
     "rope_parameters.rope_theta: 10000.0 contradicts rope_theta 500000.0"},
};
INSTANTIATE_TEST_SUITE_P(Fields, BadConfig, testing::ValuesIn(kBad),
                         [](auto& info) { return std::string(info.param.name); });

TEST(LlamaConfig, RefusesHeadsThatAreTooLargeTogether) {
  json file = version4();
  file["num_attention_heads"] = file["num_key_value_heads"] = 65536;
  EXPECT_EQ(parse(file).heads, 65536);
  file["head_dim"] = 18;
  expectError(kFile, "head_dim: expected heads of at most 1048576 numbers together, got 65536 x 18",
              [&] { parse(file); });
}

// An odd size of heads is blamed on what gave it.
TEST(LlamaConfig, RefusesOddHeadsByTheirNumberWhereTheirSizeIsNotGiven) {
  json file = version4();
  file.erase("head_dim");
  file["hidden_size"] = 66;
  expectError(kFile, "num_attention_heads: expected an even head dimension for RoPE, got 11",
              [&] { parse(file); });
}

TEST(LlamaConfig, RefusesBothSpellingsOfScaling) {
  json file = version4();
  file["rope_scaling"] = {{"type", "linear"}, {"factor", 2}};
  file["rope_parameters"] = {{"rope_type", "default"}};
  expectError(kFile, "both \"rope_scaling\" and \"rope_parameters\"", [&] { parse(file); });
}

TEST(LlamaConfig, RefusesAFileThatSaysNothingOfItsKind) {
  expectError(kFile, "neither \"architectures\" nor \"model_type\"", [] { parse(json::object()); });
  expectError(kFile, "expected an object, got an array", [] { parse(json::array()); });
}

TEST(LlamaConfig, RefusesNumbersThatJsonDoesNotHave) {
  for (const char* text : {R"({"rms_norm_eps": NaN})", R"({"rms_norm_eps": Infinity})",
                           R"({"rms_norm_eps": 1e999})", R"({"vocab_size": 0x10})"})
    EXPECT_THROW(parseLlamaConfig(text, "config.json"), Error) << text;
  expectError(kFile, "config.json: not valid JSON at byte",
              [] { parseLlamaConfig(R"({"rms_norm_eps": NaN})", "config.json"); });
}

TEST(GenerationConfig, ReadsWhatItObeysAndNotesTheRest) {
  GenerationConfig c = parseGenerationConfig(R"({"bos_token_id": 1, "eos_token_id": [2, 7],
    "pad_token_id": 0, "do_sample": true, "temperature": 0.6, "top_k": 50, "top_p": 0.9,
    "max_new_tokens": 64, "max_length": 4096, "transformers_version": "4.46.0", "num_beams": 1,
    "repetition_penalty": 1.1, "min_p": 0.05, "stop_strings": ["a", "b"], "typical_p": 0.9,
    "no_repeat_ngram_size": 0, "suppress_tokens": []})",
                                             "generation_config.json");
  EXPECT_EQ(c.bosId, 1);
  EXPECT_EQ(c.eosIds, (std::vector<int64_t>{2, 7}));
  EXPECT_EQ(c.padId, 0);
  EXPECT_EQ(c.doSample, true);
  EXPECT_EQ(c.temperature, 0.6);
  EXPECT_EQ(c.topK, 50);
  EXPECT_EQ(c.topP, 0.9);
  EXPECT_EQ(c.maxNewTokens, 64);
  EXPECT_EQ(c.maxLength, 4096);
  EXPECT_EQ(c.repetitionPenalty, 1.1);
  EXPECT_EQ(c.minP, 0.05);
  EXPECT_EQ(c.stopStrings, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(c.ignoredFields, std::vector<std::string>{"typical_p"});
}

TEST(GenerationConfig, ReadsWhatATextBeginsWithAndWhatNeverComes) {
  auto parse = [](const char* json) { return parseGenerationConfig(json, "g.json"); };
  const GenerationConfig c = parse(R"({"decoder_start_token_id": 3, "forced_bos_token_id": 4,
      "suppress_tokens": [-1, 7, 8], "bad_words_ids": [[9]]})");
  EXPECT_EQ(c.decoderStartId, 3);
  EXPECT_EQ(c.forcedBosId, 4);
  EXPECT_EQ(c.excludedIds, (std::vector<int64_t>{7, 8, 9}));
  EXPECT_TRUE(c.ignoredFields.empty());
  const GenerationConfig words = parse(R"({"bad_words_ids": [[9], [1, 2]]})");
  EXPECT_EQ(words.excludedIds, (std::vector<int64_t>{9}));
  EXPECT_EQ(words.ignoredFields, (std::vector<std::string>{"bad_words_ids"}));
}

TEST(GenerationConfig, RefusesPenaltiesAndSharesOutOfRange) {
  auto parse = [](const char* json) { return [json] { parseGenerationConfig(json, "g.json"); }; };
  expectError(kFile, "g.json: min_p: expected a min-p in [0, 1], got 2", parse(R"({"min_p": 2})"));
  expectError(kFile, "g.json: repetition_penalty: expected a repetition penalty > 0, got 0",
              parse(R"({"repetition_penalty": 0})"));
  EXPECT_EQ(parseGenerationConfig(R"({"stop_strings": "end"})", "g.json").stopStrings,
            std::vector<std::string>{"end"});
}

TEST(GenerationConfig, NotesASettingUnlessItsNumberSwitchesItOff) {
  auto ignored = [](const std::string& key, const char* value) {
    return parseGenerationConfig("{\"" + key + "\": " + value + "}", "g.json").ignoredFields;
  };
  for (std::string key : {"num_beams", "num_beam_groups", "num_return_sequences", "typical_p",
                          "length_penalty", "encoder_repetition_penalty", "guidance_scale"}) {
    EXPECT_TRUE(ignored(key, "1").empty()) << key;
    EXPECT_TRUE(ignored(key, "1.0").empty()) << key;
    EXPECT_TRUE(ignored(key, "null").empty()) << key;
    EXPECT_EQ(ignored(key, "0"), std::vector<std::string>{key});
    EXPECT_EQ(ignored(key, "2"), std::vector<std::string>{key});
  }
  for (std::string key : {"no_repeat_ngram_size", "min_length", "epsilon_cutoff"}) {
    EXPECT_TRUE(ignored(key, "0").empty()) << key;
    EXPECT_EQ(ignored(key, "1"), std::vector<std::string>{key});
  }
  for (std::string key : {"begin_suppress_tokens", "forced_decoder_ids", "sequence_bias"}) {
    EXPECT_TRUE(ignored(key, "[]").empty()) << key;
    EXPECT_TRUE(ignored(key, "{}").empty()) << key;
    EXPECT_EQ(ignored(key, "[220]"), std::vector<std::string>{key});
    EXPECT_EQ(ignored(key, "{\"0\": 1}"), std::vector<std::string>{key});
  }
  EXPECT_TRUE(ignored("renormalize_logits", "false").empty());
  EXPECT_EQ(ignored("renormalize_logits", "true"), std::vector<std::string>{"renormalize_logits"});
}

TEST(GenerationConfig, IsEmptyWhereTheFolderHasNone) {
  test::TemporaryFolder folder;
  GenerationConfig c = loadGenerationConfig(folder.path());
  EXPECT_TRUE(c.eosIds.empty());
  EXPECT_FALSE(c.temperature);
}

TEST(GenerationConfig, RefusesBadValues) {
  auto bad = [](const std::string& text) { return [=] { parseGenerationConfig(text, "g.json"); }; };
  expectError(kFile, "g.json: temperature: expected a temperature >= 0, got -1",
              bad(R"({"temperature": -1})"));
  expectError(kFile, "top_k: expected an integer from 0", bad(R"({"top_k": -5})"));
  expectError(kFile, "top_p: expected a top-p in (0, 1], got 0", bad(R"({"top_p": 0})"));
  expectError(kFile, "eos_token_id[1]: expected an integer, got \"x\"",
              bad(R"({"eos_token_id": [1, "x"]})"));
  expectError(kFile, "max_new_tokens: expected an integer from 1", bad(R"({"max_new_tokens": 0})"));
  // An empty object is no empty list.
  expectError(kFile, "g.json: suppress_tokens: expected an array, got an object",
              bad(R"({"suppress_tokens": {}})"));
  expectError(kFile, "g.json: bad_words_ids: expected an array, got an object",
              bad(R"({"bad_words_ids": {}})"));
  expectError(kFile, "g.json: bad_words_ids[1]: expected an array, got 9",
              bad(R"({"bad_words_ids": [[1], 9]})"));
  expectError(kFile, "g.json: bad_words_ids[0]: expected an array, got an object",
              bad(R"({"bad_words_ids": [{}]})"));
  for (const auto& [value, got] : {std::pair("{}", "an object"), {"5", "5"}})
    expectError(kFile, std::string("g.json: stop_strings: expected an array, got ") + got,
                bad(std::string(R"({"stop_strings": )") + value + "}"));
}

TEST(LlamaConfig, LoadsFromAFolderAndNamesAMissingFile) {
  test::TemporaryFolder folder;
  expectError(ErrorCode::Io, "config.json: cannot open", [&] { loadLlamaConfig(folder.path()); });
  folder.write("config.json", version4().dump());
  EXPECT_EQ(loadLlamaConfig(folder.path()).vocabSize, 512);
  EXPECT_EQ(loadLlamaConfig(folder / "config.json").vocabSize, 512);
}

}  // namespace
}  // namespace lathe
