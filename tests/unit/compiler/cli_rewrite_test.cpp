// SPDX-License-Identifier: Apache-2.0
// `lathe generate` on a small T5: the prompt goes through the encoder, what comes out is another
// text, the same one by one, in a batch and as ids.
#include <gmock/gmock.h>

#include "lathe/lathe.h"
#include "lathe/runtime/json_reader.h"
#include "lathe/runtime/safetensors.h"
#include "lathe/runtime/source_text.h"
#include "lathe/runtime/text_generation.h"
#include "tests/golden/family_weights.h"
#include "tests/unit/compiler/cli_runner.h"

namespace lathe {
namespace {

using test::expectFailure;
using test::outputOf;

constexpr const char* kConfig = R"({"architectures": ["T5ForConditionalGeneration"],
    "model_type": "t5", "vocab_size": 155, "d_model": 16, "d_kv": 8, "d_ff": 24, "num_layers": 2,
    "num_heads": 2, "decoder_start_token_id": 0, "pad_token_id": 0, "eos_token_id": 1})";
constexpr int64_t kVocab = 155, kNewTokens = 6;

JsonValue config() { return JsonValue::parse(kConfig, "config.json"); }

class RewriteCli : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_.write("config.json", kConfig);
    folder_.write("tokenizer.json", test::readFile(LATHE_TEST_DATA "/golden/tokenizer/t5.json"));
    const Program program = compile(buildFromConfig(config()), {.backend = "reference"});
    const Arrays weights = goldenWeights(program, 3);
    saveSafetensors(folder_ / "model.safetensors", {weights.begin(), weights.end()});
  }
  std::string generate(const std::string& flags) const {
    return "generate " + folder_.path() + " -n " + std::to_string(kNewTokens) + " --json " + flags;
  }
  static std::vector<int> idsOf(const JsonValue& list) {
    std::vector<int> ids;
    for (size_t i = 0; i < list.size(); ++i) ids.push_back(int(list.at(i).asInt()));
    return ids;
  }
  JsonValue document(const std::string& flags) const {
    return JsonValue::parse(outputOf(generate(flags)), flags);
  }
  test::TemporaryFolder folder_;
};

TEST_F(RewriteCli, ReadsAPromptAndWritesWhatTheModelSays) {
  const JsonValue said = document("-p 'the house is small'");
  const std::vector<int> prompt = idsOf(said.at("prompt_ids"));
  ASSERT_GT(prompt.size(), 1u);
  EXPECT_EQ(prompt.back(), 1) << "the tokenizer ends a text";

  auto program = std::make_shared<const Program>(compile(buildFromConfig(config())));
  Session session(program);
  session.bindWeights(goldenWeights(*program, 3));
  Generator generator(session, {kVocab, 512});
  encodeSources(session, {{prompt}}, kVocab, 0);
  const std::vector<int> start{0};
  const std::vector<int> wanted =
      generateText(generator, std::nullopt, start, {.newTokens = kNewTokens, .endIds = {1}}).ids();
  EXPECT_EQ(idsOf(said.at("ids")), wanted);
  // Another text is read otherwise.
  EXPECT_NE(idsOf(document("-p 'a'").at("ids")), wanted);
}

TEST_F(RewriteCli, ABatchOfUnequalLengthsWritesWhatEachTextGetsAlone) {
  folder_.write("lines.txt", "the house is small\na\nsmall houses of the house\n");
  const JsonValue texts = document("--batch " + (folder_ / "lines.txt")).at("texts");
  ASSERT_EQ(texts.size(), 3u);
  for (size_t i = 0; i < texts.size(); ++i) {
    const std::string line = texts.at(i).at("prompt").asString();
    EXPECT_EQ(idsOf(texts.at(i).at("ids")), idsOf(document("-p '" + line + "'").at("ids"))) << line;
  }
}

TEST_F(RewriteCli, BeamsBeginWhereOneBeamDoes) {
  const std::vector<int> greedy = idsOf(document("-p small").at("ids"));
  EXPECT_EQ(idsOf(document("-p small --beams 1").at("beams").at(0).at("ids")), greedy);
  const JsonValue beams = document("-p small --beams 3").at("beams");
  ASSERT_EQ(beams.size(), 3u);
  EXPECT_GE(beams.at(0).at("score").asDouble(),
            document("-p small --beams 1").at("beams").at(0).at("score").asDouble());
}

TEST_F(RewriteCli, LeavesOutWhatTheModelsFilesSay) {
  const std::vector<int> free = idsOf(document("-p small").at("ids"));
  folder_.write("generation_config.json", "{\"suppress_tokens\": [" + std::to_string(free[0]) +
                                              "], \"forced_bos_token_id\": 7}");
  const std::vector<int> held = idsOf(document("-p small").at("ids"));
  EXPECT_EQ(std::count(held.begin(), held.end(), free[0]), 0);
  EXPECT_NE(held, free);
}

// config.json says what a text begins with where generation_config.json does not.
TEST_F(RewriteCli, TheForcedTokenIsThatOfTheGenerationConfigFirst) {
  auto score = [&] {
    return document("-p small --beams 1").at("beams").at(0).at("score").asDouble();
  };
  folder_.write("generation_config.json", "{\"forced_bos_token_id\": 7}");
  const double ofGeneration = score();
  folder_.write("config.json", std::string(kConfig).insert(1, "\"forced_bos_token_id\": 5, "));
  EXPECT_EQ(score(), ofGeneration);
  folder_.write("generation_config.json", "{}");
  EXPECT_NE(score(), ofGeneration);
}

TEST_F(RewriteCli, TakesWhatPublishedCheckpointsCarryTwice) {
  const std::vector<int> wanted = idsOf(document("-p small").at("ids"));
  const Arrays weights =
      goldenWeights(compile(buildFromConfig(config()), {.backend = "reference"}), 3);
  std::map<std::string, Array> tensors(weights.begin(), weights.end());
  tensors["encoder.embed_tokens.weight"] = tensors["decoder.embed_tokens.weight"] =
      tensors.at("shared.weight");
  tensors["decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"] =
      Array(DType::F32, {32, 2});
  saveSafetensors(folder_ / "other.safetensors", tensors);
  std::filesystem::rename(folder_ / "other.safetensors", folder_ / "model.safetensors");
  EXPECT_EQ(idsOf(document("-p small").at("ids")), wanted);
}

TEST_F(RewriteCli, SaysWhatItCannotDo) {
  expectFailure(2, "reads a text and writes another: it takes no --save-cache",
                generate("-p a --save-cache " + (folder_ / "cache")));
  folder_.write("config.json",
                std::string(kConfig).replace(std::string(kConfig).find("\"decoder_start"), 29, ""));
  expectFailure(3, "expected a decoder_start_token_id or a bos_token_id", generate("-p a"));
}

TEST_F(RewriteCli, VerbsThatContinueTextsRefuseIt) {
  expectFailure(4, "reads a text and writes another, which lathe serve cannot ask it for",
                "serve " + folder_.path() + " --port 0");
  folder_.write("tokenizer_config.json",
                R"({"chat_template": "{% for m in messages %}{{ m.content }}{% endfor %}"})");
  expectFailure(4, "reads a text and writes another, which lathe chat cannot ask it for",
                "chat " + folder_.path());
}

// Behind the token that the text begins with.
TEST_F(RewriteCli, TheModelMayBoundTheText) {
  folder_.write("generation_config.json", R"({"max_length": 4})");
  const std::string words = "generate " + folder_.path() + " -p small --ignore-eos --json";
  const JsonValue bounded = JsonValue::parse(outputOf(words), "bounded");
  EXPECT_EQ(bounded.at("ids").size(), 3u);
  EXPECT_EQ(bounded.at("stopped_by").asString(), "length");
  EXPECT_EQ(JsonValue::parse(outputOf(words + " -n 5"), "asked").at("ids").size(), 5u);
}

}  // namespace
}  // namespace lathe
