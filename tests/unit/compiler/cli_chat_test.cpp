// SPDX-License-Identifier: Apache-2.0
// Prompts of `lathe generate` and `lathe tokenize`: control tokens, chat templates, ids and pieces.
#include <algorithm>

#include <gmock/gmock.h>

#include "lathe/runtime/json_reader.h"
#include "tests/unit/compiler/cli_runner.h"

namespace lathe {
namespace {

using test::expectFailure;
using test::outputOf;
using ::testing::HasSubstr;

const std::string kStories = LATHE_SOURCE_DIR "/examples/models/stories";

std::vector<int> idsOf(const std::string& arguments, const char* key = "ids") {
  const JsonValue list = JsonValue::parse(outputOf(arguments + " --json"), arguments).at(key);
  std::vector<int> ids;
  for (size_t i = 0; i < list.size(); ++i) ids.push_back(int(list.at(i).asInt()));
  return ids;
}
std::string textOf(const std::string& arguments) {
  return JsonValue::parse(outputOf(arguments + " --json"), arguments).at("text").asString();
}

// The story model with a chat template of its own.
class ChatCli : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"config.json", "model.safetensors", "tokenizer.json"})
      std::filesystem::copy_file(kStories + "/" + name, folder_ / name);
    folder_.write("tokenizer_config.json",
                  R"({"bos_token": "<|bos|>", "eos_token": {"content": "<|eos|>"}, "chat_template":
      "{{ bos_token }}{% for m in messages %}{{ m.role }}: {{ m.content | trim }}{{ eos_token }}{% endfor %}{% if add_generation_prompt %}bot:{% endif %}"})");
  }
  std::string model() const { return folder_.path(); }
  test::TemporaryFolder folder_;
};

TEST(TokenizeCli, ShowsIdsAndPieces) {
  const std::string stories = "tokenize " + kStories;
  EXPECT_THAT(outputOf(stories + " -p Once"), HasSubstr("      0  \"<|bos|>\"  control\n"));
  const std::vector<int> ids = idsOf(stories + " -p 'Once upon a time'");
  EXPECT_EQ(ids[0], 0);
  EXPECT_GT(ids.size(), 2u);
  std::string list;
  for (int id : ids) list += (list.empty() ? "" : ",") + std::to_string(id);
  EXPECT_EQ(outputOf(stories + " --decode " + list), "<|bos|>Once upon a time\n");
  EXPECT_EQ(idsOf(stories + "/tokenizer.json -p 'Once upon a time'"), ids);
  EXPECT_EQ(textOf(stories + " --decode 0,1"), "<|bos|><|eos|>");
  expectFailure(2, "expected a text: -p TEXT, -f FILE, --messages FILE or --decode 1,2,3", stories);
  expectFailure(2, "expected a token id from 0 to 767, got 768", stories + " --decode 768");
  expectFailure(3, "expected a model with tokenizer.json, this one has none",
                "tokenize " LATHE_SOURCE_DIR "/docs -p a");
}

// A folder without tokenizer.json, and the program that is compiled from it.
TEST(TokenizeCli, ReadsOlderFiles) {
  test::TemporaryFolder folder;
  const std::string model = LATHE_SOURCE_DIR "/tests/golden/llama_tiny_linear/",
                    pieces = LATHE_SOURCE_DIR "/tests/golden/tokenizer_folders/llama/";
  for (const std::string& file : {model + "config.json", model + "model.safetensors",
                                  pieces + "tokenizer.model", pieces + "tokenizer_config.json"})
    std::filesystem::copy_file(file, folder / std::filesystem::path(file).filename().string());
  const std::string text = " -p 'Hello world'", program = folder / "program.lathe";
  const std::vector<int> ids = idsOf("tokenize " + folder.path() + text);
  EXPECT_EQ(ids.front(), 1);
  std::string list;
  for (size_t i = 1; i < ids.size(); ++i) list += (i > 1 ? "," : "") + std::to_string(ids[i]);
  EXPECT_EQ(textOf("tokenize " + folder.path() + " --decode " + list), "Hello world");
  outputOf("compile " + folder.path() + " -o " + program);
  EXPECT_EQ(idsOf("tokenize " + program + text), ids);
  // Of an unknown class: why there is no tokenizer; ids do without.
  folder.write("tokenizer_config.json", R"({"tokenizer_class": "XLNetTokenizer"})");
  expectFailure(4,
                "tokenizer_class: a folder without tokenizer.json: expected one of GPT2Tokenizer",
                "tokenize " + folder.path() + text);
  expectFailure(4, "got \"XLNetTokenizer\"", "generate " + folder.path() + text + " -n 1");
  EXPECT_EQ(idsOf("generate " + folder.path() + " --ids 1,2 -n 1").size(), 1u);
  outputOf("compile " + folder.path() + " -o " + program);
}

// What HF's tokenizer does by default is asked for: text that a user typed forges no token.
TEST(TokenizeCli, ControlTokensAreReadWhereAsked) {
  const std::string text = " -p 'a<|eos|>b'", stories = "tokenize " + kStories;
  const std::vector<int> plain = idsOf(stories + text),
                         special = idsOf(stories + text + " --special");
  EXPECT_EQ(std::count(plain.begin(), plain.end(), 1), 0);
  EXPECT_EQ(std::count(special.begin(), special.end(), 1), 1);
  EXPECT_LT(special.size(), plain.size());
  EXPECT_EQ(idsOf("generate " + kStories + text + " --special -n 1", "prompt_ids"), special);
}

TEST_F(ChatCli, PutsTheTextIntoTheTemplate) {
  const std::string chat = " --chat --system ' Be kind. ' -p 'Hello '";
  EXPECT_EQ(textOf("tokenize " + model() + chat),
            "<|bos|>system: Be kind.<|eos|>user: Hello<|eos|>bot:");
  const std::vector<int> ids = idsOf("tokenize " + model() + chat);
  EXPECT_EQ(std::count(ids.begin(), ids.end(), 0), 1) << "the template has the only first token";
  EXPECT_EQ(std::count(ids.begin(), ids.end(), 1), 2);
  EXPECT_EQ(idsOf("generate " + model() + chat + " -n 1", "prompt_ids"), ids);
  folder_.write("talk.json", R"([{"role": "system", "content": "Be kind."},
                                 {"role": "user", "content": "Hello"}])");
  EXPECT_EQ(idsOf("tokenize " + model() + " --messages " + (folder_ / "talk.json")), ids);
  // A program has the template of the folder that it was compiled from.
  outputOf("compile " + model() + " --host-only -o " + (folder_ / "m.lathe"));
  EXPECT_EQ(idsOf("tokenize " + (folder_ / "m.lathe") + chat), ids);
}

TEST(Tokenize, AFileLosesItsMarkOfByteOrderAndMustBeUtf8) {
  test::TemporaryFolder folder;
  const std::string marked = folder.write("marked.txt", "\xef\xbb\xbfOnce upon");
  EXPECT_EQ(idsOf("tokenize " + kStories + " -f " + marked),
            idsOf("tokenize " + kStories + " -p 'Once upon'"));
  const std::string latin = folder.write("latin.txt", "caf\xe9 noir");
  expectFailure(2, "latin.txt: expected a text in UTF-8, got the byte 0xe9 at position 3",
                "tokenize " + kStories + " -f " + latin);
}

TEST_F(ChatCli, MessagesForgeNoControlTokens) {
  const std::string forged =
      "the message spells the control token <|eos|>; leave it out, or add --special";
  expectFailure(2, forged, "generate " + model() + " --chat -p 'a<|eos|>b' -n 1");
  expectFailure(2, forged, "tokenize " + model() + " --system 'a<|eos|>b' -p a");
  for (const char* talk :
       {R"([{"role": "user", "content": "<|eos|>"}])",
        R"([{"role": "user<|eos|>", "content": "a"}])",
        R"([{"role": "user", "content": [{"type": "text", "text": "<|eos|>"}]}])",
        R"([{"role": "user", "content": "a", "call": {"<|eos|>": 1}}])"}) {
    folder_.write("talk.json", talk);
    expectFailure(2, forged, "tokenize " + model() + " --messages " + (folder_ / "talk.json"));
  }
  EXPECT_EQ(textOf("tokenize " + model() + " --chat --special -p 'a<|eos|>b'"),
            "<|bos|>user: a<|eos|>b<|eos|>bot:");
}

// The token of what is not known is a control token that no text needs to spell.
TEST_F(ChatCli, MessagesMayHoldWordsThatAreNotKnown) {
  std::filesystem::copy_file(LATHE_SOURCE_DIR "/tests/golden/tokenizer/bert.json",
                             folder_ / "tokenizer.json",
                             std::filesystem::copy_options::overwrite_existing);
  const std::vector<int> ids = idsOf("tokenize " + model() + " --chat -p 'a \u16a0'");
  EXPECT_NE(std::count(ids.begin(), ids.end(), 1), 0) << "no [UNK]";
  expectFailure(2, "the message spells the control token [SEP]",
                "tokenize " + model() + " --chat -p 'a [SEP]'");
}

TEST_F(ChatCli, TellsWhatIsMissing) {
  expectFailure(3,
                "expected a model with a chat template (chat_template.jinja, or chat_template in "
                "tokenizer_config.json), this one has none",
                "generate " + kStories + " --chat -p a -n 1");
  expectFailure(2, "--ids are no conversation", "generate " + model() + " --chat --ids 1 -n 1");
  folder_.write("chat_template.jinja", "a\n{{ raise_exception('Only system and user') }}");
  expectFailure(2,
                "chat_template.jinja line 2: the chat template refuses this conversation: Only "
                "system and user",
                "generate " + model() + " --chat -p a -n 1");
  folder_.write("chat_template.jinja", "{% include 'x' %}");
  expectFailure(4, "{% include %} is not supported in chat templates",
                "generate " + model() + " --chat -p a -n 1");
}

}  // namespace
}  // namespace lathe
