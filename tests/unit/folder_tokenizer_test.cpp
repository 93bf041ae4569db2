// SPDX-License-Identifier: Apache-2.0
// Folders without tokenizer.json give the ids and texts that transformers gives for them, and what
// is wrong with their files is told by file and place.
#include "runtime/folder_tokenizer.h"

#include <algorithm>
#include <filesystem>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "lathe/runtime/tokenizer.h"
#include "runtime/sentencepiece_model.h"
#include "tests/unit/test_files.h"

namespace lathe {
namespace {

using nlohmann::json;
using test::expectError;
using test::readFile;

const std::string kFolders = LATHE_SOURCE_DIR "/tests/golden/tokenizer_folders/";

class FolderTokenizer : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Classes, FolderTokenizer,
                         testing::Values("gpt2", "opt", "roberta", "bart", "qwen2", "clip",
                                         "whisper", "bert", "bert_cased", "t5", "t5_new",
                                         "xlm_roberta", "llama", "llama_new", "gemma", "marian",
                                         "plain_unigram", "plain_bpe"),
                         [](const auto& info) { return std::string(info.param); });

std::string trimmed(std::string text) {
  const auto isSpace = [](char c) {
    return c == ' ' || (c >= 9 && c <= 13) || (c >= 28 && c < 32);
  };
  while (!text.empty() && isSpace(text.back())) text.pop_back();
  while (!text.empty() && isSpace(text.front())) text.erase(0, 1);
  return text;
}

TEST_P(FolderTokenizer, EncodesAndDecodesAsTransformersDoes) {
  const Tokenizer tokenizer = Tokenizer::load(kFolders + GetParam());
  const json cases = json::parse(readFile(kFolders + GetParam() + "/cases.json"));
  ASSERT_GE(cases.size(), 35u);
  for (const json& c : cases) {
    const auto ids = c[1].get<std::vector<int>>();
    EXPECT_EQ(tokenizer.encode(c[0].get<std::string>(), {.allowSpecialText = true}), ids) << c[0];
    EXPECT_EQ(trimmed(tokenizer.decode(ids)), trimmed(c[2].get<std::string>())) << c[0];
  }
}

// Two texts and what stands around and between them: of each class, as its converter in
// transformers writes the template. $A and $B are the texts, a number behind a colon is another
// type than 0.
struct PairForm {
  const char* folder;
  std::vector<const char*> pieces;
};
const PairForm kPairForms[] = {
    {"gpt2", {"$A", "$B:1"}},
    {"opt", {"</s>", "$A", "$B:1"}},
    {"roberta", {"<s>", "$A", "</s>", "</s>", "$B", "</s>"}},
    {"bart", {"<s>", "$A", "</s>", "</s>", "$B", "</s>"}},
    {"qwen2", {"$A", "$B:1"}},
    {"clip", {"<|startoftext|>", "$A", "<|endoftext|>", "<|endoftext|>", "$B", "<|endoftext|>"}},
    {"whisper", {"<|startoftranscript|>", "<|notimestamps|>", "$A", "$B:1", "<|endoftext|>:1"}},
    {"bert", {"[CLS]", "$A", "[SEP]", "$B:1", "[SEP]:1"}},
    {"bert_cased", {"[CLS]", "$A", "[SEP]", "$B:1", "[SEP]:1"}},
    {"t5", {"$A", "</s>", "$B", "</s>"}},
    {"t5_new", {"$A", "</s>", "$B", "</s>"}},
    {"xlm_roberta", {"<s>", "$A", "</s>", "</s>", "$B", "</s>"}},
    {"llama", {"<s>", "$A", "<s>:1", "$B:1"}},
    {"gemma", {"<bos>", "$A", "<bos>:1", "$B:1"}},
    {"marian", {"$A", "$B", "</s>"}},
};

TEST(FolderTokenizers, PairsHaveTheTemplateOfTheirClass) {
  for (const PairForm& form : kPairForms) {
    SCOPED_TRACE(form.folder);
    const Tokenizer tokenizer = Tokenizer::load(kFolders + form.folder);
    PairEncoding want;
    for (const std::string piece : form.pieces) {
      const bool isSecond = piece.ends_with(":1");
      const std::string name = isSecond ? piece.substr(0, piece.size() - 2) : piece;
      std::vector<int> ids;
      if (name == "$A" || name == "$B") {
        ids = tokenizer.encode(name == "$A" ? "the cat" : "a dog", {.addSpecialTokens = false});
        ASSERT_FALSE(ids.empty());
      } else {
        ASSERT_TRUE(tokenizer.tokenToId(name)) << name;
        ids = {*tokenizer.tokenToId(name)};
      }
      want.ids.insert(want.ids.end(), ids.begin(), ids.end());
      want.typeIds.resize(want.ids.size(), isSecond);
    }
    const PairEncoding got = tokenizer.encodePair("the cat", "a dog");
    EXPECT_EQ(got.ids, want.ids);
    EXPECT_EQ(got.typeIds, want.typeIds);
  }
}

// The files of a folder, to be changed.
FolderFiles filesOf(const std::string& name) {
  FolderFiles files{.folder = "DIR"};
  for (const auto& entry : std::filesystem::directory_iterator(kFolders + name))
    if (entry.path().filename() != "cases.json")
      files.texts[entry.path().filename().string()] = readFile(entry.path().string());
  return files;
}
json changed(const std::string& text, const json& patch) {
  json value = json::parse(text);
  value.merge_patch(patch);
  return value;
}

void expectRefused(const FolderFiles& files, const std::string& message,
                   ErrorCode code = ErrorCode::InvalidFile) {
  expectError(code, message, [&] { convertTokenizer(files); });
}

TEST(FolderTokenizers, NothingToReadIsNoTokenizer) {
  FolderFiles files = filesOf("gpt2");
  files.texts.erase("vocab.json");
  EXPECT_FALSE(convertTokenizer(files));
}

TEST(FolderTokenizers, NameTheClassesThatTheyKnow) {
  FolderFiles files = filesOf("gpt2");
  files.texts["tokenizer_config.json"] = R"({"tokenizer_class": "XLNetTokenizer"})";
  expectRefused(
      files,
      "DIR/tokenizer_config.json: tokenizer_class: a folder without tokenizer.json: expected "
      "one of GPT2Tokenizer, CodeGenTokenizer, ",
      ErrorCode::Unsupported);
  files.texts["tokenizer_config.json"] = "{}";
  expectRefused(files, "DIR: expected tokenizer.json, or a tokenizer_class",
                ErrorCode::Unsupported);
  files.texts["tokenizer_config.json"] = R"({"tokenizer_class": "T5TokenizerFast"})";
  expectRefused(
      files,
      "DIR: expected tokenizer.model or spiece.model or sentencepiece.bpe.model of a folder "
      "without tokenizer.json");
}

TEST(FolderTokenizers, RefuseVocabulariesThatContradictThemselves) {
  const FolderFiles whole = filesOf("gpt2");
  FolderFiles files = whole;
  auto vocab = [&](const char* text) {
    files = whole;
    files.texts["vocab.json"] = text;
    return files;
  };
  expectRefused(vocab("[]"), "DIR/vocab.json: expected an object of tokens, got an array");
  expectRefused(vocab(R"({"a": 0, "b": 0})"), "DIR/vocab.json: b: \"a\" has the same id");
  expectRefused(vocab(R"({"a": 0, "b": 2})"), "DIR/vocab.json: b: expected an integer from 0 to 1");
  expectRefused(vocab(R"({"": 0})"), "DIR/vocab.json: the vocabulary has an empty token");
  auto merges = [&](const std::string& line) {
    files = whole;
    files.texts["merges.txt"] = "#version: 0.2\n\n" + line + "\n";
    return files;
  };
  expectRefused(merges("h"), "DIR/merges.txt: line 3: expected two pieces with one space between");
  expectRefused(merges("a b c"),
                "DIR/merges.txt: line 3: expected two pieces with one space between");
  expectRefused(merges("@@ h"), "DIR/merges.txt: line 3: \"@@\" is not in the vocabulary");
  expectRefused(merges("\xff h"),
                "DIR/merges.txt: expected UTF-8, got the byte 0xff at position 15");
  files = whole;
  files.texts.erase("merges.txt");
  expectRefused(files, "DIR: expected merges.txt of a folder without tokenizer.json");
  // An empty object is no empty list.
  for (const auto& [value, got] : {std::pair("{}", "an object"), {"\"a\"", "\"a\""}}) {
    files = whole;
    files.texts["special_tokens_map.json"] =
        std::string(R"({"additional_special_tokens": )") + value + "}";
    expectRefused(files, std::string("DIR/special_tokens_map.json: additional_special_tokens: "
                                     "expected an array, got ") +
                             got);
  }
  FolderFiles words = filesOf("bert");
  const std::string list = words.texts["vocab.txt"];
  words.texts["vocab.txt"] = "[PAD]\n\n" + list;
  expectRefused(words, "DIR/vocab.txt: line 2: expected a token, got nothing");
  words.texts["vocab.txt"] = "[PAD]\r\nx\r\n[PAD]\r\n";
  expectRefused(words, "DIR/vocab.txt: line 3: \"[PAD]\" is there twice");
  words.texts["vocab.txt"] = "a\nb\n";
  words.texts["tokenizer_config.json"] =
      R"({"tokenizer_class": "BertTokenizer", "cls_token": null})";
  expectRefused(words, "DIR/tokenizer_config.json: expected cls_token, which the tokenizer needs");
}

TEST(FolderTokenizers, LinesMayEndAsOnWindows) {
  FolderFiles files = filesOf("gpt2");
  const auto before = convertTokenizer(files);
  std::string& merges = files.texts["merges.txt"];
  for (size_t at = 0; (at = merges.find('\n', at)) != std::string::npos; at += 2)
    merges.replace(at, 1, "\r\n");
  EXPECT_EQ(convertTokenizer(files), before);
}

// Some tools write no "#version: 0.2" in front.
TEST(FolderTokenizers, MergesNeedNoVersion) {
  FolderFiles files = filesOf("gpt2");
  const auto before = convertTokenizer(files);
  std::string& merges = files.texts["merges.txt"];
  merges.erase(0, merges.find('\n') + 1);
  EXPECT_EQ(convertTokenizer(files), before);
}

// A merge that is listed again counts where it stands first.
TEST(FolderTokenizers, TheFirstOfEqualMergesCounts) {
  FolderFiles files = filesOf("gpt2");
  const auto before = convertTokenizer(files);
  std::string& merges = files.texts["merges.txt"];
  const size_t begin = merges.find('\n') + 1, end = merges.find('\n', begin) + 1;
  merges += merges.substr(begin, end - begin);
  EXPECT_EQ(convertTokenizer(files), before);
}

// What stands beside the tokenizer goes before what stands beside the model.
TEST(FolderTokenizers, TheClassIsThatOfTheTokenizersConfig) {
  FolderFiles files = filesOf("gpt2");
  auto with = [&](const char* tokenizer, const char* config) {
    FolderFiles own = files;
    own.texts["tokenizer_config.json"] = tokenizer;
    own.texts["config.json"] = config;
    return own;
  };
  const auto gpt2 = convertTokenizer(with(R"({"tokenizer_class": "GPT2Tokenizer"})", "{}"));
  const auto qwen2 = convertTokenizer(with(R"({"tokenizer_class": "Qwen2Tokenizer"})", "{}"));
  EXPECT_NE(gpt2, qwen2);
  EXPECT_EQ(convertTokenizer(with(R"({"tokenizer_class": "GPT2Tokenizer"})",
                                  R"({"tokenizer_class": "Qwen2Tokenizer"})")),
            gpt2);
  EXPECT_EQ(convertTokenizer(with(R"({"tokenizer_class": "Qwen2TokenizerFast"})",
                                  R"({"tokenizer_class": "GPT2Tokenizer", "model_type": "gpt2"})")),
            qwen2);
  EXPECT_EQ(convertTokenizer(with("{}", R"({"tokenizer_class": "Qwen2Tokenizer"})")), qwen2);
  EXPECT_EQ(convertTokenizer(with("{}", R"({"model_type": "qwen2"})")), qwen2);
  EXPECT_EQ(convertTokenizer(with("{}", R"({"tokenizer_class": "GPT2Tokenizer",
                                            "model_type": "qwen2"})")),
            gpt2)
      << "a class goes before a kind of model";
}

// Of special tokens that added_tokens.json lists it says no more than their ids.
TEST(FolderTokenizers, AddedTokensOfOlderFolders) {
  FolderFiles files = filesOf("gpt2");
  const auto size = json::parse(files.texts["vocab.json"]).size();
  files.texts["tokenizer_config.json"] =
      R"({"tokenizer_class": "GPT2Tokenizer", "pad_token": "<|pad|>"})";
  files.texts["added_tokens.json"] = json{{"<|pad|>", size}, {"Word", size + 1}}.dump();
  std::map<std::string, json> tokens;
  const json tokenizer = json::parse(convertTokenizer(files).value());
  for (const json& token : tokenizer["added_tokens"]) tokens[token["content"]] = token;
  ASSERT_TRUE(tokens.contains("<|pad|>") && tokens.contains("Word"));
  EXPECT_EQ(tokens["<|pad|>"]["id"], size);
  EXPECT_EQ(tokens["<|pad|>"]["special"], true);
  EXPECT_EQ(tokens["<|pad|>"]["normalized"], false);
  EXPECT_EQ(tokens["Word"]["id"], size + 1);
  EXPECT_EQ(tokens["Word"]["special"], false);
  EXPECT_EQ(tokens["Word"]["normalized"], true);
}

// special_tokens_map.json is of folders without added_tokens_decoder; there it goes first.
TEST(FolderTokenizers, MapsOfSpecialTokensAreOfOlderFolders) {
  FolderFiles newer = filesOf("qwen2");
  const auto before = convertTokenizer(newer);
  newer.texts["special_tokens_map.json"] = R"({"unk_token": "<|mapped|>"})";
  EXPECT_EQ(convertTokenizer(newer), before);
  FolderFiles older = filesOf("gpt2");
  older.texts["tokenizer_config.json"] =
      R"({"tokenizer_class": "GPT2Tokenizer", "pad_token": "<|config|>"})";
  older.texts["special_tokens_map.json"] = R"({"pad_token": "<|mapped|>"})";
  const std::string text = convertTokenizer(older).value();
  EXPECT_NE(text.find("<|mapped|>"), text.npos);
  EXPECT_EQ(text.find("<|config|>"), text.npos);
}

TEST(FolderTokenizers, AddedTokensHaveTheirIds) {
  FolderFiles files = filesOf("qwen2");
  const json config = json::parse(files.texts["tokenizer_config.json"]);
  const std::string first = config["added_tokens_decoder"].begin().key();
  const json entry = config["added_tokens_decoder"][first];
  files.texts["tokenizer_config.json"] =
      changed(config.dump(), {{"added_tokens_decoder", {{"999999", entry}, {first, nullptr}}}})
          .dump();
  expectRefused(files, "the next one");
  files.texts["tokenizer_config.json"] =
      changed(config.dump(), {{"added_tokens_decoder", {{"x", entry}}}}).dump();
  expectRefused(files, "expected an id as key, got \"x\"");
}

// What an added token does not say: it stands in any word, takes no space beside it, and is looked
// for in the normalized text unless it is special.
TEST(FolderTokenizers, AddedTokensThatSayLittle) {
  const FolderFiles files = filesOf("qwen2");
  const json before = json::parse(files.texts.at("tokenizer_config.json"));
  const std::string content = "<tool_call>";
  auto added = [&](json entry) {
    entry["content"] = content;
    json config = before;
    config["added_tokens_decoder"]["319"] = entry;
    FolderFiles own = files;
    own.texts["tokenizer_config.json"] = config.dump();
    const json tokenizer = json::parse(convertTokenizer(own).value());
    for (const json& token : tokenizer["added_tokens"])
      if (token["content"] == content) return token;
    throw std::runtime_error("the token was not added");
  };
  const std::vector<std::string> kFlags{"single_word", "lstrip", "rstrip", "special"};
  for (const std::string& said : kFlags)
    for (bool value : {false, true}) {
      const json token = added({{said, value}});
      for (const std::string& flag : kFlags)
        EXPECT_EQ(token[flag], flag == said && value) << flag << " where " << said << value;
      EXPECT_EQ(token["normalized"], !(said == "special" && value)) << said << value;
    }
  for (bool special : {false, true})
    for (bool normalized : {false, true})
      EXPECT_EQ(added({{"special", special}, {"normalized", normalized}})["normalized"],
                normalized);
}

// Messages of Protocol Buffers.
std::string field(int number, std::string_view bytes) {
  std::string text(1, char(number << 3 | 2));
  return text += char(bytes.size()), text += bytes;
}
std::string flag(int number, int value) {
  std::string text;
  for (uint32_t tag = uint32_t(number) << 3; tag; tag >>= 7)
    text += char((tag & 127) | (tag > 127) << 7);
  return text += char(value);
}
std::string piece(std::string_view text, int type = 1, float score = -1) {
  std::string number(1, char(2 << 3 | 5));
  number.append(reinterpret_cast<const char*>(&score), 4);
  return field(1, field(1, text) + number + flag(3, type));
}

TEST(SentencePieceModels, AreRefusedByByteOrPiece) {
  const std::string unknown = piece("<unk>", 2);
  auto refuse = [](const std::string& bytes, const std::string& message,
                   ErrorCode code = ErrorCode::InvalidFile) {
    expectError(code, "x.model: " + message, [&] { SentencePieceModel::read(bytes, "x.model"); });
  };
  EXPECT_EQ(SentencePieceModel::read(unknown + piece("a"), "x.model").pieces.size(), 2u);
  refuse("", "expected 1 to 16777216 pieces, got 0");
  refuse("\x0a\x7f", "byte 2: ");
  refuse(piece("a"), "expected one piece of type 2 (unknown), got 0");
  refuse(unknown + piece("b", 2), "expected one piece of type 2 (unknown), got 2");
  refuse(unknown + piece("a") + piece("a"), "pieces 1 and 2 are both \"a\"");
  refuse(unknown + piece(""), "piece 1 is empty");
  refuse(unknown + piece("a", 1, std::numeric_limits<float>::quiet_NaN()),
         "piece 1: expected a finite score, got nan");
  refuse(unknown + piece("a", 5), "piece 1 is unused", ErrorCode::Unsupported);
  refuse(unknown + piece("a", 9), "byte 28: model.pieces.type: expected a kind from 1 to 6, got 9");
  refuse(unknown + piece("\xff"), "byte 21: model.pieces.piece: expected a text in UTF-8");
  refuse(unknown + field(2, flag(3, 3)), "model_type: expected 1 (unigram) or 2 (BPE), got 3",
         ErrorCode::Unsupported);
  refuse(unknown + field(2, flag(24, 1)), "treat_whitespace_as_suffix", ErrorCode::Unsupported);
  refuse(unknown + field(3, flag(5, 0)), "escape_whitespaces", ErrorCode::Unsupported);
  refuse(unknown + field(5, field(2, "x")), "denormalizer_spec", ErrorCode::Unsupported);
  // The same fields with the values that they have anyway.
  for (const std::string& usual :
       {field(2, flag(24, 0)), field(3, flag(5, 1)), field(5, field(2, "")), field(2, flag(3, 1)),
        field(2, flag(3, 2))})
    EXPECT_NO_THROW(SentencePieceModel::read(unknown + usual, "x.model"));
}

TEST(SentencePieceModels, AreOfTheClassThatReadsThem) {
  FolderFiles files = filesOf("llama");
  files.texts["tokenizer_config.json"] = R"({"tokenizer_class": "T5Tokenizer"})";
  expectRefused(files, "DIR/tokenizer.model: model_type: expected 1 (unigram) of this class, got 2",
                ErrorCode::Unsupported);
  files.texts["tokenizer.model"] = piece("<unk>", 2) + piece("a");
  files.texts["tokenizer_config.json"] = R"({"tokenizer_class": "XLMRobertaTokenizer"})";
  expectRefused(files, "DIR/tokenizer.model: expected at least 4 pieces, got 2");
  const std::string three = piece("<unk>", 2) + piece("a") + piece("b");
  files.texts["tokenizer.model"] = three;
  expectRefused(files, "DIR/tokenizer.model: expected at least 4 pieces, got 3");
  files.texts["tokenizer.model"] = three + piece("c");
  EXPECT_TRUE(convertTokenizer(files));
  files.texts["tokenizer_config.json"] = R"({"tokenizer_class": "LlamaTokenizer"})";
  expectRefused(files,
                "DIR/tokenizer.model: model_type: expected 2 (BPE) of this class, got 1 (unigram)",
                ErrorCode::Unsupported);
}

// The best score first, then the longest left part, then the longest right one, in characters and
// not in bytes, wherever the pieces stand.
TEST(SentencePieceModels, MergesFollowFromTheScores) {
  FolderFiles files = filesOf("llama");
  std::string model = piece("<unk>", 2) + piece("<s>", 3) + piece("</s>", 3);
  for (const char* character : {"a", "b", "c", "\u00e9"}) model += piece(character, 1, -9);
  model += piece("ab", 1, -3) + piece("bc", 1, -2) + piece("abc", 1, -1);
  model += piece("a\u00e9", 1, -5) + piece("bb", 1, -4) + piece("abb", 1, -5);
  files.texts["tokenizer.model"] = model + field(2, flag(3, 2));
  EXPECT_EQ(json::parse(convertTokenizer(files).value())["model"]["merges"],
            json::parse(R"([["ab","c"], ["a","bc"], ["b","c"], ["a","b"], ["b","b"], ["ab","b"],
                           ["a","bb"], ["a","\u00e9"]])"));
}

// Bytes are put together where the model falls back on them, and nowhere else.
TEST(SentencePieceModels, BytesAreTextOfModelsThatFallBackOnThem) {
  FolderFiles files = filesOf("t5");
  const std::string model = piece("<unk>", 2) + piece("</s>", 3) + piece("a");
  for (int falls : {0, 1}) {
    files.texts["spiece.model"] = model + field(2, flag(35, falls));
    const json tokenizer = json::parse(convertTokenizer(files).value());
    json decoder = tokenizer["decoder"];
    // Transformers' converter knows no such models: their texts are changed as SentencePiece does.
    const json first = tokenizer["normalizer"]["normalizers"][0];
    EXPECT_EQ(first["type"], falls ? "Replace" : "Strip");
    if (falls) {
      ASSERT_EQ(decoder["type"], "Sequence");
      EXPECT_EQ(decoder["decoders"][0], json::parse(R"({"type": "ByteFallback"})"));
      decoder = decoder["decoders"][1];
    }
    EXPECT_EQ(decoder["type"], "Metaspace");
  }
}

// The first three pieces have the names that the folder gives them, further ones their own.
TEST(SentencePieceModels, TheUnknownTokenIsRenamedWhereverItStands) {
  FolderFiles files = filesOf("llama");
  for (size_t place : {0, 1, 2, 3}) {
    std::vector<std::string> pieces = {piece("<s>", 3), piece("</s>", 3), piece("a")};
    pieces.insert(pieces.begin() + ptrdiff_t(place), piece("<unk>", 2));
    std::string& model = files.texts["tokenizer.model"] = field(2, flag(3, 2));
    for (const std::string& one : pieces) model += one;
    json added = json::object();
    if (place < 3) added[std::to_string(place)] = {{"content", "<none>"}, {"special", true}};
    files.texts["tokenizer_config.json"] =
        json{{"tokenizer_class", "LlamaTokenizer"}, {"added_tokens_decoder", added}}.dump();
    const json tokenizer = json::parse(convertTokenizer(files).value());
    EXPECT_EQ(tokenizer["model"]["unk_token"], place < 3 ? "<none>" : "<unk>") << place;
  }
}

// Older files of Gemma have none, but a byte.
TEST(SentencePieceModels, ATabIsAByteWhereItIsNoPiece) {
  FolderFiles files = filesOf("gemma");
  files.texts["tokenizer_config.json"] = R"({"tokenizer_class": "GemmaTokenizer"})";
  files.texts.erase("special_tokens_map.json");
  std::string model = field(2, flag(3, 2));
  for (const char* special : {"<pad>", "<eos>", "<bos>"}) model += piece(special, 3);
  model += piece("<unk>", 2) + piece("<0x08>", 6) + piece("<0x09>", 6);
  for (bool isPiece : {false, true}) {
    files.texts["tokenizer.model"] = isPiece ? model + piece("\t") : model;
    const json vocabulary = json::parse(convertTokenizer(files).value())["model"]["vocab"];
    EXPECT_EQ(vocabulary.value("\t", -1), isPiece ? 6 : 5);
    EXPECT_EQ(vocabulary.value("<0x09>", -1), isPiece ? 5 : -1);
    EXPECT_EQ(vocabulary.value("<0x08>", -1), 4);
  }
}

// The unknown token has the name that the folder gives it, and of the spaces in front of a text
// one is not the text's.
TEST(SentencePieceModels, TheFoldersNamesArePiecesToo) {
  FolderFiles files = filesOf("llama");
  files.texts["tokenizer_config.json"] =
      R"({"tokenizer_class": "LlamaTokenizer",
          "added_tokens_decoder": {"0": {"content": "<none>", "special": true}}})";
  const json tokenizer = json::parse(convertTokenizer(files).value());
  EXPECT_EQ(tokenizer["model"]["unk_token"], "<none>");
  EXPECT_EQ(tokenizer["decoder"]["decoders"].back(),
            json::parse(R"({"type": "Strip", "content": " ", "start": 1, "stop": 0})"));
}

// As many as the folder says, the first one last.
TEST(FolderTokenizers, T5HasMoreTokensBehindItsPieces) {
  FolderFiles files = filesOf("t5");
  files.texts.erase("special_tokens_map.json");
  for (int count : {0, 2}) {
    files.texts["tokenizer_config.json"] =
        json{{"tokenizer_class", "T5Tokenizer"}, {"extra_ids", count}}.dump();
    const json vocabulary = json::parse(convertTokenizer(files).value())["model"]["vocab"];
    std::vector<std::string> more;
    for (const json& entry : vocabulary)
      if (const std::string token = entry[0]; token.starts_with("<extra_id_"))
        more.push_back(token);
    if (count == 0)
      EXPECT_TRUE(more.empty());
    else
      EXPECT_EQ(more, (std::vector<std::string>{"<extra_id_1>", "<extra_id_0>"}));
  }
}

TEST(FolderTokenizers, MarianHasOneVocabulary) {
  FolderFiles files = filesOf("marian");
  files.texts["tokenizer_config.json"] = R"({"separate_vocabs": true})";
  expectRefused(files, "DIR/tokenizer_config.json: separate_vocabs: expected false, got true",
                ErrorCode::Unsupported);
  files.texts["tokenizer_config.json"] = R"({"unk_token": "<nothing>"})";
  EXPECT_TRUE(convertTokenizer(files));
  // A language has a name.
  json vocabulary = json::parse(files.texts["vocab.json"]);
  for (const char* token : {">><<", ">>x<<"}) vocabulary[token] = vocabulary.size();
  FolderFiles languages = files;
  languages.texts["vocab.json"] = vocabulary.dump();
  std::vector<std::string> added;
  const json converted = json::parse(*convertTokenizer(languages));
  for (const json& token : converted["added_tokens"])
    if (const std::string text = token["content"]; text.starts_with(">>")) added.push_back(text);
  EXPECT_EQ(std::ranges::count(added, ">>x<<"), 1);
  EXPECT_EQ(std::ranges::count(added, ">><<"), 0);
  // A text cannot spell what is no text: control tokens are no pieces.
  files.texts["source.spm"] =
      piece("<unk>", 2) + piece("</s>", 3) + piece("a") + piece("<x>", 4, -2);
  EXPECT_EQ(json::parse(*convertTokenizer(files))["model"]["pieces"],
            json::parse(R"([["a", -1.0], ["<x>", -2.0]])"));
  files.texts["source.spm"] = piece("<unk>", 2) + field(2, flag(3, 2));
  expectRefused(files, "DIR/source.spm: model_type: expected 1 (unigram), got 2 (BPE)",
                ErrorCode::Unsupported);
}

}  // namespace
}  // namespace lathe
