// SPDX-License-Identifier: Apache-2.0
#include "lathe/runtime/tokenizer.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/unit/test_files.h"

namespace lathe {
namespace {

using nlohmann::json;
using test::expectError;

std::string goldenPath(const std::string& name) {
  return std::string(LATHE_SOURCE_DIR) + "/tests/golden/tokenizer/" + name;
}
json golden(const std::string& name) { return json::parse(test::readFile(goldenPath(name))); }

constexpr EncodeOptions kLikeTheLibrary{.addSpecialTokens = true, .allowSpecialText = true};
constexpr EncodeOptions kPlain{.addSpecialTokens = false, .allowSpecialText = false};

class GoldenTokenizer : public testing::TestWithParam<const char*> {
 protected:
  Tokenizer tokenizer_ = Tokenizer::load(goldenPath(std::string(GetParam()) + ".json"));
  json cases_ = golden(std::string(GetParam()) + "_cases.json");
};
INSTANTIATE_TEST_SUITE_P(Files, GoldenTokenizer,
                         testing::Values("gpt2", "llama2", "llama3", "bert", "t5"));

TEST_P(GoldenTokenizer, EncodesAsTheLibraryDoes) {
  ASSERT_GE(cases_["encode"].size(), 500u);
  for (auto& c : cases_["encode"]) {
    auto ids = c["ids"].get<std::vector<int>>();
    EXPECT_EQ(tokenizer_.encode(c["text"].get<std::string>(), kLikeTheLibrary), ids) << c["text"];
  }
}

TEST_P(GoldenTokenizer, EncodesPlainTextAsTheLibraryDoes) {
  for (auto& c : cases_["encode"]) {
    auto ids = c.value("plain", c["ids"]).get<std::vector<int>>();
    EXPECT_EQ(tokenizer_.encode(c["text"].get<std::string>(), kPlain), ids) << c["text"];
  }
}

TEST_P(GoldenTokenizer, DecodesAsTheLibraryDoes) {
  for (auto& c : cases_["encode"]) {
    auto ids = c["ids"].get<std::vector<int>>();
    EXPECT_EQ(tokenizer_.decode(ids), c.value("decoded", c["text"]).get<std::string>());
  }
  for (auto& c : cases_["decode"]) {
    auto ids = c["ids"].get<std::vector<int>>();
    EXPECT_EQ(tokenizer_.decode(ids, true), c["text"].get<std::string>()) << c["ids"];
    EXPECT_EQ(tokenizer_.decode(ids, false), c.value("full", c["text"]).get<std::string>());
  }
}

TEST_P(GoldenTokenizer, StreamsOnlyWholeCharactersAndNothingIsLost) {
  for (auto& c : cases_["decode"]) {
    auto ids = c["ids"].get<std::vector<int>>();
    StreamDecoder stream(tokenizer_);
    std::string text;
    for (int id : ids) {
      std::string piece = stream.push(id);
      EXPECT_NO_THROW((void)json(piece).dump()) << "not valid UTF-8 by itself";
      text += piece;
    }
    EXPECT_EQ(text + stream.finish(), tokenizer_.decode(ids));
  }
}

// Cases of a file with other stages put in; their number.
size_t checkStages(const char* file, const char* cases) {
  const json base = golden(file);
  size_t checked = 0;
  for (auto& variant : golden(cases)) {
    json file = base;
    for (auto& [key, value] : variant["patch"].items()) file[key] = value;
    Tokenizer tokenizer = Tokenizer::parse(file.dump(), "variant");
    for (auto& c : variant["cases"]) {
      auto ids = c[1].get<std::vector<int>>();
      EXPECT_EQ(tokenizer.encode(c[0].get<std::string>(), kLikeTheLibrary), ids)
          << c[0] << " with " << variant["patch"];
      EXPECT_EQ(tokenizer.decode(ids), c[2].get<std::string>()) << variant["patch"];
      ++checked;
    }
  }
  return checked;
}
TEST(Tokenizer, EveryStageEncodesAsTheLibraryDoes) {
  EXPECT_GT(checkStages("gpt2.json", "stage_cases.json"), 400u);
}
TEST(Tokenizer, EveryStageOfSentencePieceEncodesAsTheLibraryDoes) {
  EXPECT_GT(checkStages("llama2.json", "metaspace_cases.json"), 250u);
}

TEST(Tokenizer, EveryStageThatLooksAtCharactersEncodesAsTheLibraryDoes) {
  EXPECT_GT(checkStages("gpt2.json", "character_cases.json"), 350u);
}
TEST(Tokenizer, EveryDecoderDecodesAsTheLibraryDoes) {
  EXPECT_GT(checkStages("bert.json", "decoder_cases.json"), 150u);
}

TEST(Tokenizer, EncodesPairsAsTheLibraryDoes) {
  size_t pairs = 0;
  for (auto& variant : golden("pair_cases.json")) {
    json file = golden(variant["file"].get<std::string>() + ".json");
    for (auto& [key, value] : variant["patch"].items()) file[key] = value;
    const Tokenizer tokenizer = Tokenizer::parse(file.dump(), "variant");
    for (auto& c : variant["cases"]) {
      const std::string first = c[0].get<std::string>();
      const auto ids = c[2].get<std::vector<int>>();
      if (c[1].is_null()) {
        EXPECT_EQ(tokenizer.encode(first, kLikeTheLibrary), ids) << variant["patch"];
        continue;
      }
      const PairEncoding both =
          tokenizer.encodePair(first, c[1].get<std::string>(), kLikeTheLibrary);
      EXPECT_EQ(both.ids, ids) << variant["patch"];
      EXPECT_EQ(both.typeIds, c[3].get<std::vector<int>>()) << variant["patch"];
      ++pairs;
    }
  }
  EXPECT_GE(pairs, 25u);
}

// A run of bytes is text only as a whole, so nothing of it is given before it ends.
TEST(Tokenizer, BytesWaitForTheEndOfTheirRun) {
  const Tokenizer t = Tokenizer::load(goldenPath("llama2.json"));
  auto byte = [&](int value) { return 3 + value; };
  const int a = *t.tokenToId("a");
  StreamDecoder stream(t);
  EXPECT_EQ(stream.push(byte(0xc3)), "");
  EXPECT_EQ(stream.push(byte(0xa9)), "");
  EXPECT_EQ(stream.push(a), "\u00e9a");
  EXPECT_EQ(stream.push(byte(0xc3)), "");
  EXPECT_EQ(stream.finish(), "\ufffd");
  EXPECT_EQ(t.decode(std::vector<int>{byte(0xc3), byte(0xa9), byte(0xff), a}),
            "\ufffd\ufffd\ufffda");
}

// Of a part of a character its own bytes, and what decoders do at a text's beginning.
TEST(Tokenizer, TokensHaveBytesOfTheirOwn) {
  const Tokenizer pieces = Tokenizer::load(goldenPath("llama2.json"));
  EXPECT_EQ(pieces.tokenBytes(3 + 0xc3), "\xc3");
  EXPECT_EQ(pieces.tokenBytes(3 + 'a', true), "a");
  const int piece = pieces.encode("the", {.addSpecialTokens = false}).front();
  const std::string text = pieces.decode(std::vector<int>{piece});
  EXPECT_EQ(pieces.tokenBytes(piece, true), text);
  EXPECT_EQ(pieces.tokenBytes(piece), " " + text);
  EXPECT_EQ(pieces.tokenBytes(*pieces.tokenToId("<s>")), "<s>");
  for (const char* file : {"llama2.json", "llama3.json"}) {
    const Tokenizer t = Tokenizer::load(goldenPath(file));
    const std::string mixed = "na\u00efve \u4e2d\u6587 \U0001f600 caf\u00e9";
    std::string joined;
    for (int id : t.encode(mixed, {.addSpecialTokens = false}))
      joined += t.tokenBytes(id, joined.empty());
    EXPECT_EQ(joined, mixed) << file;
  }
}

// A token that spells U+FFFD is no part of a character: its bytes are those that it decodes to.
TEST(Tokenizer, BytesOfTheReplacementCharacterAreItsOwn) {
  json file = golden("t5.json");
  auto& pieces = file["model"]["vocab"];
  const int alone = int(pieces.size()), behindSpace = alone + 1;
  pieces.push_back({"\ufffd", -3.0});
  pieces.push_back({"\u2581\ufffd", -3.0});
  const Tokenizer t = Tokenizer::parse(file.dump(), "variant");
  EXPECT_EQ(t.tokenBytes(alone, true), "\ufffd");
  EXPECT_EQ(t.tokenBytes(alone), "\ufffd");
  EXPECT_EQ(t.tokenBytes(behindSpace, true), "\ufffd");
  EXPECT_EQ(t.tokenBytes(behindSpace), " \ufffd");
}

// A small file to break: the alphabet a b c d, four merges.
json smallFile() {
  return json::parse(R"({
    "version": "1.0",
    "added_tokens": [{"id": 9, "content": "<s>", "special": true},
                     {"id": 10, "content": "<s>>", "special": true}],
    "normalizer": null,
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false},
    "post_processor": {"type": "TemplateProcessing",
      "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
      "special_tokens": {"<s>": {"id": "<s>", "ids": [9], "tokens": ["<s>"]}}},
    "decoder": {"type": "ByteLevel"},
    "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "c": 2, "d": 3, "ab": 4, "bc": 5, "abc": 6,
      "aa": 7, "aaaa": 8}, "merges": ["a b", ["ab", "c"], "b c", "a a", "aa aa"]}})");
}

Tokenizer smallTokenizer() { return Tokenizer::parse(smallFile().dump(), "small"); }

// A match may be longer than any step of the search for it.
TEST(Tokenizer, CutsNoLongMatch) {
  json file = smallFile();
  file["pre_tokenizer"] = {
      {"type", "Split"}, {"pattern", {{"Regex", "[ab]+(?!b)"}}}, {"behavior", "Isolated"}};
  file["model"]["ignore_merges"] = true;
  const std::string word = std::string(5000, 'a') + "b";
  file["model"]["vocab"][word] = 11;
  const Tokenizer t = Tokenizer::parse(file.dump(), "f");
  EXPECT_EQ(t.encode("c" + word + "c", kPlain), (std::vector<int>{2, 11, 2}));
}

TEST(Tokenizer, MergesByRankThenFromTheLeft) {
  Tokenizer t = smallTokenizer();
  EXPECT_EQ(t.encode("abc", kPlain), (std::vector<int>{6}));
  EXPECT_EQ(t.encode("bcab", kPlain), (std::vector<int>{5, 4}));
  EXPECT_EQ(t.encode("aaa", kPlain), (std::vector<int>{7, 0}));
  EXPECT_EQ(t.encode("aaaaaab", kPlain), (std::vector<int>{8, 0, 4}));
}

// As in the library that writes these files: a merge that is listed again has its last rank alone.
TEST(Tokenizer, TheLastOfEqualMergesCounts) {
  auto encoded = [](const char* merges, const char* text) {
    json file = smallFile();
    file["model"]["merges"] = json::parse(merges);
    return Tokenizer::parse(file.dump(), "f").encode(text, kPlain);
  };
  const std::vector<int> left{4, 2}, right{0, 5};
  EXPECT_EQ(encoded(R"(["a b", "b c"])", "abc"), left);
  EXPECT_EQ(encoded(R"(["b c", "a b"])", "abc"), right);
  EXPECT_EQ(encoded(R"(["a b", "b c", "a b"])", "abc"), right);
  EXPECT_EQ(encoded(R"(["b c", "a b", ["b", "c"]])", "abc"), left);
  EXPECT_EQ(encoded(R"(["a b", "a b", "b c", "b c", "a b"])", "abc"), right);
}

TEST(Tokenizer, NamesItsTokens) {
  Tokenizer t = smallTokenizer();
  EXPECT_EQ(t.vocabSize(), 11);
  EXPECT_EQ(t.tokenToId("abc"), 6);
  EXPECT_EQ(t.tokenToId("<s>"), 9);
  EXPECT_EQ(t.tokenToId("none"), std::nullopt);
  EXPECT_EQ(t.idToToken(8), "aaaa");
  EXPECT_TRUE(t.isSpecial(9));
  EXPECT_FALSE(t.isSpecial(8));
}

TEST(Tokenizer, TakesTheLongerOfTwoAddedTokens) {
  const std::vector<int> expected = {0, 10, 1, 9};
  EXPECT_EQ(
      smallTokenizer().encode("a<s>>b<s>", {.addSpecialTokens = false, .allowSpecialText = true}),
      expected);
}

TEST(Tokenizer, TextOfASpecialTokenStaysTextUnlessAsked) {
  Tokenizer t = Tokenizer::load(goldenPath("llama3.json"));
  const int control = *t.tokenToId("<|eot_id|>");
  const std::string text = "say <|eot_id|> now";
  std::vector<int> ids = t.encode(text);
  EXPECT_EQ(std::count(ids.begin(), ids.end(), control), 0);
  EXPECT_EQ(t.decode(ids), text);
  ids = t.encode(text, {.addSpecialTokens = true, .allowSpecialText = true});
  EXPECT_EQ(std::count(ids.begin(), ids.end(), control), 1);
}

TEST(Tokenizer, EncodesAMegabyteWithoutSpaces) {
  Tokenizer t = Tokenizer::load(goldenPath("llama3.json"));
  std::string text;
  for (uint64_t i = 0; text.size() < (1u << 20); ++i) text += char('a' + (i * i + i / 7) % 26);
  EXPECT_EQ(t.decode(t.encode(text)), text);
  EXPECT_EQ(t.decode(t.encode(std::string(1 << 20, 'a'))), std::string(1 << 20, 'a'));
  EXPECT_EQ(t.decode(t.encode(std::string(1 << 20, ' '))), std::string(1 << 20, ' '));
}

TEST(Tokenizer, RefusesIdsOutsideTheVocabulary) {
  Tokenizer t = smallTokenizer();
  for (int id : {-1, 11, 2147483647, -2147483647 - 1}) {
    std::vector<int> ids = {id};
    expectError(ErrorCode::InvalidArgument, "expected a token id from 0 to 10, got",
                [&] { t.decode(ids); });
    expectError(ErrorCode::InvalidArgument, "expected a token id", [&] { t.idToToken(id); });
  }
}

TEST(Tokenizer, RefusesInvalidUtf8) {
  Tokenizer t = smallTokenizer();
  for (std::string bad : {"\xff", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82"})
    expectError(ErrorCode::InvalidArgument, "expected valid UTF-8, got the byte 0x",
                [&] { t.encode("ab" + bad); });
  expectError(ErrorCode::InvalidArgument, "0xff at position 2", [&] { t.encode("ab\xff"); });
}

TEST(Tokenizer, RefusesACharacterWithoutAToken) {
  expectError(ErrorCode::InvalidArgument, "no token for the character \"x\"",
              [] { smallTokenizer().encode("abx"); });
}

// What a piece carries at the beginning or the end of a word.
TEST(Tokenizer, MergesPiecesWithPrefixesAndSuffixes) {
  json file = smallFile();
  file["pre_tokenizer"] = {{"type", "WhitespaceSplit"}};
  json& model = file["model"];
  model["continuing_subword_prefix"] = "#";
  model["end_of_word_suffix"] = ".";
  model["vocab"] =
      json::parse(R"({"a": 0, "#b": 1, "#c.": 2, "a.": 3, "ab": 4, "#bc.": 5, "abc.": 6,
                                   "x": 7, "y": 8})");
  model["merges"] = json::parse(R"(["a #b", "ab #c."])");
  const Tokenizer t = Tokenizer::parse(file.dump(), "f");
  EXPECT_EQ(t.encode("abc a", kPlain), (std::vector<int>{6, 3}));
  expectError(ErrorCode::InvalidArgument, "no token for the character \"b\"",
              [&] { t.encode("ab", kPlain); });
}

// The bytes of a character are those of its spelling, with what it carries at its place.
TEST(Tokenizer, FallsBackOnTheBytesOfPrefixesAndSuffixes) {
  json file = smallFile();
  file["pre_tokenizer"] = {{"type", "WhitespaceSplit"}};
  file["added_tokens"] = json::array();
  file["post_processor"] = nullptr;
  json& model = file["model"];
  model["byte_fallback"] = true;
  model["continuing_subword_prefix"] = "#";
  model["end_of_word_suffix"] = ".";
  model["merges"] = json::array();
  json& vocabulary = model["vocab"] = {{"a", 0}, {"#b", 1}};
  for (int byte = 0; byte < 256; ++byte) {
    char name[8];
    std::snprintf(name, sizeof name, "<0x%02X>", byte);
    vocabulary[name] = 2 + byte;
  }
  const Tokenizer t = Tokenizer::parse(file.dump(), "f");
  EXPECT_EQ(t.encode("ab\u00e9", kPlain),
            (std::vector<int>{0, 1, 2 + '#', 2 + 0xc3, 2 + 0xa9, 2 + '.'}));
  EXPECT_EQ(t.encode("\u00e9a", kPlain),
            (std::vector<int>{2 + 0xc3, 2 + 0xa9, 2 + '#', 2 + 'a', 2 + '.'}));
}

json wordPieceFile() {
  json file = smallFile();
  file["pre_tokenizer"] = {{"type", "WhitespaceSplit"}};
  file["model"] =
      json::parse(R"({"type": "WordPiece", "unk_token": "?", "continuing_subword_prefix": "##",
    "max_input_chars_per_word": 6, "vocab": {"a": 0, "ab": 1, "##b": 2, "##bc": 3, "?": 4, "##a": 5,
    "##": 6, "\u00e9": 7, "##\u00e9": 8}})");
  return file;
}

TEST(Tokenizer, TakesTheLongestPieceOfAWord) {
  const Tokenizer t = Tokenizer::parse(wordPieceFile().dump(), "f");
  EXPECT_EQ(t.encode("ab abc abbc", kPlain), (std::vector<int>{1, 4, 1, 3}));
  EXPECT_EQ(t.encode("aaaaaa aaaaaaa", kPlain), (std::vector<int>{0, 5, 5, 5, 5, 5, 4}));
  EXPECT_EQ(t.encode("\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9", kPlain),
            (std::vector<int>{7, 8, 8, 8, 8, 8}));
  EXPECT_EQ(t.encode("ab##", kPlain), (std::vector<int>{4}));
}

// Older files do not say which model it is.
TEST(Tokenizer, KnowsAModelByItsKeys) {
  json file = wordPieceFile();
  file["model"].erase("type");
  EXPECT_EQ(Tokenizer::parse(file.dump(), "f").encode("ab", kPlain), (std::vector<int>{1}));
  file["model"] =
      json::parse(R"({"unk_id": 8, "vocab": [["a",-1],["b",-1],["ab",-1.5],["c",-9],["d",-9],
    ["e",-9],["f",-9],["g",-9],["?",0]]})");
  EXPECT_EQ(Tokenizer::parse(file.dump(), "f").encode("abba", kPlain), (std::vector<int>{2, 1, 0}));
}

// Scores add up: -2.5 for "ab" + "c" is more than -3 for "a" + "bc", -4 for three letters.
TEST(Tokenizer, TakesTheLikeliestTokensOfAWord) {
  json file = smallFile();
  file["pre_tokenizer"] = {{"type", "WhitespaceSplit"}};
  file["model"] =
      json::parse(R"({"type": "Unigram", "unk_id": 8, "vocab": [["a",-1],["b",-2],["c",-1],
    ["ab",-1.5],["bc",-2],["ca",-9],["<0x78>",-9],["<0xC3>",-9],["?",0]], "byte_fallback": false})");
  Tokenizer t = Tokenizer::parse(file.dump(), "f");
  EXPECT_EQ(t.encode("abc", kPlain), (std::vector<int>{3, 2}));
  EXPECT_EQ(t.encode("axx\u00e9b x", kPlain), (std::vector<int>{0, 8, 1, 8}));
  // Of ways that are equally likely the one with the longer last token counts.
  file["model"]["vocab"][5] = {"cb", -3};
  EXPECT_EQ(Tokenizer::parse(file.dump(), "f").encode("cb", kPlain), (std::vector<int>{5}));
  file["model"]["byte_fallback"] = true;
  t = Tokenizer::parse(file.dump(), "f");
  EXPECT_EQ(t.encode("axxb \u00e9", kPlain), (std::vector<int>{0, 6, 6, 1, 8}));
  file["model"]["unk_id"] = nullptr;
  expectError(ErrorCode::InvalidArgument, "no token for the character \"x\" and no unknown token",
              [&] { Tokenizer::parse(file.dump(), "f").encode("ax", kPlain); });
  // What is written nearly so is no byte.
  file["decoder"] = {{"type", "ByteFallback"}};
  for (const char* token : {"<0x78]", "<0x7g>", "<1x78>", "<0x78", "<0x078>"}) {
    file["model"]["vocab"][6][0] = token;
    EXPECT_EQ(Tokenizer::parse(file.dump(), "f").decode(std::vector<int>{0, 6, 1}),
              std::string("a") + token + "b");
  }
  file["model"]["vocab"][6][0] = "<0x78>";
  EXPECT_EQ(Tokenizer::parse(file.dump(), "f").decode(std::vector<int>{0, 6, 1}), "axb");
}

// Pieces that cut a text may have the ids of a vocabulary besides: one that it lacks is unknown.
TEST(Tokenizer, PiecesHaveTheIdsOfAVocabularyBesides) {
  json file = smallFile();
  file["pre_tokenizer"] = {{"type", "WhitespaceSplit"}};
  file["added_tokens"] = json::array();
  file["post_processor"] = nullptr;
  file["model"] = json::parse(R"({"type": "Unigram", "unk_id": 2, "vocab": {"b": 0, "a": 1, "?": 2},
    "pieces": [["a",-1],["b",-1],["ab",-0.5]]})");
  auto encode = [&](const char* text) {
    return Tokenizer::parse(file.dump(), "f").encode(text, kPlain);
  };
  EXPECT_EQ(encode("ba ab xb"), (std::vector<int>{0, 1, 2, 2, 0}));
  file["model"]["unk_id"] = nullptr;
  expectError(ErrorCode::InvalidFile, "f: model.pieces: a piece has no id, and there is no unk_id",
              [&] { encode("a"); });
  file["model"]["pieces"].erase(2);
  EXPECT_EQ(encode("ba ab"), (std::vector<int>{0, 1, 1, 0})) << "all have one";
}

TEST(Tokenizer, LooksWholeWordsUp) {
  json file = smallFile();
  file["pre_tokenizer"] = {{"type", "Whitespace"}};
  file["model"] =
      json::parse(R"({"type": "WordLevel", "unk_token": "?", "vocab": {"a": 0, "ab": 1, "?": 2,
    "-": 3, "e": 4, "f": 5, "g": 6, "h": 7, "i": 8}})");
  EXPECT_EQ(Tokenizer::parse(file.dump(), "f").encode("ab-a abc", kPlain),
            (std::vector<int>{1, 3, 0, 2}));
  file["model"]["unk_token"] = "none";
  expectError(ErrorCode::InvalidArgument, "no token for the word \"abc\"",
              [&] { Tokenizer::parse(file.dump(), "f").encode("abc", kPlain); });
}

TEST(Tokenizer, UsesTheUnknownTokenWhereThereIsOne) {
  json file = smallFile();
  file["model"]["unk_token"] = "d";
  EXPECT_EQ(Tokenizer::parse(file.dump(), "f").encode("axxb", kPlain),
            (std::vector<int>{0, 3, 3, 1}));
  file["model"]["fuse_unk"] = true;
  for (const char* text : {"axb", "axxb", "axxxb"})
    EXPECT_EQ(Tokenizer::parse(file.dump(), "f").encode(text, kPlain), (std::vector<int>{0, 3, 1}))
        << text;
}

TEST(Tokenizer, StopsAHostilePattern) {
  json file = smallFile();
  file["pre_tokenizer"] = {{"type", "Split"},
                           {"pattern", {{"Regex", "(a+)+$"}}},
                           {"behavior", "Isolated"},
                           {"invert", false}};
  Tokenizer t = Tokenizer::parse(file.dump(), "f");
  expectError(ErrorCode::InvalidFile,
              "f: pre_tokenizer.pattern.Regex: the pattern \"(a+)+$\" is too costly on 41 bytes",
              [&] { t.encode(std::string(40, 'a') + "b", kPlain); });
}

Tokenizer withStage(const char* stage, const json& value) {
  json file = smallFile();
  file[stage] = value;
  return Tokenizer::parse(file.dump(), "f");
}

json splitBy(const std::string& pattern) {
  return {{"type", "Split"}, {"pattern", {{"Regex", pattern}}}, {"behavior", "Isolated"}};
}

// Steps back that explode, where another branch would match too, and groups that call themselves,
// on a text in which no pattern may take longer than the text allows.
class HostilePattern : public testing::TestWithParam<const char*> {};
TEST_P(HostilePattern, EndsWithItsPlace) {
  const std::string text = std::string(60'000, 'a') + "bc";
  expectError(ErrorCode::InvalidFile, "f: pre_tokenizer.pattern.Regex: the pattern ",
              [&] { withStage("pre_tokenizer", splitBy(GetParam())).encode(text, kPlain); });
  const json replace = {
      {"type", "Replace"}, {"pattern", {{"Regex", GetParam()}}}, {"content", "b"}};
  expectError(ErrorCode::InvalidFile, "f: normalizer.normalizers[1].pattern.Regex: the pattern ",
              [&] {
                withStage("normalizer",
                          {{"type", "Sequence"}, {"normalizers", {{{"type", "NFC"}}, replace}}})
                    .encode(text, kPlain);
              });
}
INSTANTIATE_TEST_SUITE_P(Patterns, HostilePattern,
                         testing::Values("(a+)+$", "(a|aa)*b$", "(a+)+b$|a",
                                         "(?<x>a\\g<x>\\g<x>|)b$"));

TEST(Tokenizer, RefusesToReplaceNothing) {
  const json replace = {{"type", "Replace"}, {"pattern", {{"String", ""}}}, {"content", "b"}};
  expectError(ErrorCode::InvalidFile, "expected a pattern that is not empty",
              [&] { withStage("normalizer", replace); });
}

// A replacement for each character, of a length that the text's author did not choose.
TEST(Tokenizer, BoundsWhatNormalizersMake) {
  json replace = {{"type", "Replace"}, {"pattern", {{"String", "a"}}}, {"content", ""}};
  replace["content"] = std::string(100'000, 'a');
  expectError(
      ErrorCode::InvalidFile,
      "f: normalizer: makes more than 1 MiB and 64 bytes for each byte out of a text of 100 "
      "bytes",
      [&] { withStage("normalizer", replace).encode(std::string(100, 'a'), kPlain); });
  replace["content"] = "aa";
  json list = json::array();
  for (int i = 0; i < 32; ++i) list.push_back(replace);
  expectError(ErrorCode::InvalidFile, "f: normalizer.normalizers[", [&] {
    withStage("normalizer", {{"type", "Sequence"}, {"normalizers", list}}).encode("aaa", kPlain);
  });
  list.push_back(replace);
  expectError(ErrorCode::InvalidFile, "f: normalizer.normalizers[32]: more than 32 normalizers",
              [&] { withStage("normalizer", {{"type", "Sequence"}, {"normalizers", list}}); });
  // What every piece between two added tokens gets comes out of one budget.
  const json prepend = {{"type", "Prepend"}, {"prepend", std::string(60'000, 'a')}};
  std::string pieces;
  for (int i = 0; i < 100; ++i) pieces += "<s>a";
  expectError(ErrorCode::InvalidFile, "makes more than 1 MiB and 64 bytes", [&] {
    withStage("normalizer", prepend)
        .encode(pieces, {.addSpecialTokens = false, .allowSpecialText = true});
  });
  // What is put in front counts, before later stages see it.
  const json large = {{"type", "Prepend"}, {"prepend", std::string(1'100'000, 'a')}};
  expectError(ErrorCode::InvalidFile, "f: normalizer: makes more than 1 MiB and 64 bytes",
              [&] { withStage("normalizer", large).encode("a", kPlain); });
}

TEST(Tokenizer, BoundsWhatPreTokenizersMake) {
  json list = json::array();
  for (int i = 0; i < 32; ++i)
    list.push_back({{"type", "ByteLevel"}, {"add_prefix_space", true}, {"use_regex", false}});
  const json sequence = {{"type", "Sequence"}, {"pretokenizers", list}};
  expectError(ErrorCode::InvalidFile, "f: pre_tokenizer.pretokenizers[",
              [&] { withStage("pre_tokenizer", sequence).encode("a", kPlain); });
}

// Marks in the wrong order, half of them to be sorted before the other half.
TEST(Tokenizer, SortsAMegabyteOfMarks) {
  json file = smallFile();
  file["normalizer"] = {{"type", "NFD"}};
  file["model"]["vocab"] = {{"\u00cc", 0}, {"\u0123", 1}, {"\u0143", 2}};
  file["model"]["merges"] = json::array();
  file["model"]["unk_token"] = "\u00cc";
  file["added_tokens"] = json::array();
  file["post_processor"] = nullptr;
  const std::string above = "\u0301", below = "\u0323";
  std::string text, sorted;
  for (int i = 0; i < 250'000; ++i) text += above, sorted += below;
  for (int i = 0; i < 250'000; ++i) text += below, sorted += above;
  const Tokenizer t = Tokenizer::parse(file.dump(), "f");
  EXPECT_EQ(t.encode(text, kPlain), t.encode(sorted, kPlain));
}

// Each token of space takes what follows along, again and again the same.
TEST(Tokenizer, StripsAMegabyteOfSpace) {
  json file = smallFile();
  file["added_tokens"].push_back(
      {{"id", 11}, {"content", " "}, {"rstrip", true}, {"lstrip", true}, {"normalized", false}});
  const Tokenizer t = Tokenizer::parse(file.dump(), "f");
  EXPECT_EQ(t.encode(std::string(1 << 20, ' '), kPlain).size(), size_t(1 << 20));
}

struct BadFile {
  const char* name;
  const char* pointer;  // what to replace in the small file
  const char* value;    // by this JSON
  ErrorCode code;
  const char* message;
};
void PrintTo(const BadFile& b, std::ostream* out) { *out << b.name; }

class BadTokenizer : public testing::TestWithParam<BadFile> {};

TEST_P(BadTokenizer, IsRefusedWithItsReason) {
  const BadFile& bad = GetParam();
  json file = smallFile();
  file[json::json_pointer(bad.pointer)] = json::parse(bad.value);
  expectError(bad.code, bad.message, [&] { Tokenizer::parse(file.dump(), "tokenizer.json"); });
}

constexpr ErrorCode kFile = ErrorCode::InvalidFile, kUnsupported = ErrorCode::Unsupported;
const BadFile kBad[] = {
    {"IdGap", "/model/vocab/aaaa", "20", kFile, "there are 11 tokens: the ids have gaps"},
    {"IdTwice", "/model/vocab/aaaa", "7", kFile, "have the same id 7"},
    {"IdNegative", "/model/vocab/a", "-1", kFile, "model.vocab.a: expected an integer from 0 to"},
    {"IdHuge", "/model/vocab/a", "4294967296", kFile, "expected an integer from 0 to 2147483646"},
    {"IdFloat", "/model/vocab/a", "0.5", kFile, "model.vocab.a: expected an integer, got 0.5"},
    {"IdOfAnotherToken", "/added_tokens/0/id", "8", kFile, "has id 8, which is that of \"aaaa\""},
    {"AddedTwice", "/added_tokens/1/content", "\"<s>\"", kFile, "has id 10 here and 9 elsewhere"},
    {"AddedIdGap", "/added_tokens/1/id", "11", kFile, "the ids have gaps"},
    {"AddedIdNegative", "/added_tokens/0/id", "-5", kFile, "added_tokens[0].id: expected"},
    {"AddedEmpty", "/added_tokens/0/content", "\"\"", kFile, "expected a token, got empty text"},
    {"AddedUnknownKey", "/added_tokens/0/magic", "1", kFile, "added_tokens[0].magic: unknown key"},
    {"AddedObject", "/added_tokens", "{}", kFile, "added_tokens: expected an array, got an object"},
    {"MergesObject", "/model/merges", "{}", kFile,
     "model.merges: expected an array, got an object"},
    {"EmptyToken", "/model/vocab", R"({"": 0})", kFile, "has an empty token"},
    {"VocabIsList", "/model/vocab", "[]", kFile, "expected an object of tokens, got an array"},
    {"MergeUnknownPiece", "/model/merges/0", "\"a z\"", kFile, "needs \"z\", which is not in"},
    {"MergeUnknownResult", "/model/merges/0", "\"a c\"", kFile, "needs \"ac\", which is not in"},
    {"MergeOnePiece", "/model/merges/0", "\"ab\"", kFile, "expected two pieces with one space"},
    {"MergeThreePieces", "/model/merges/1", R"(["a","b","c"])", kFile, "expected two pieces, got"},
    {"MergeNumber", "/model/merges/1", "3", kFile, "expected two pieces, got 3"},
    {"MergesMissing", "/model", R"({"vocab": {"a": 0}})", kFile, "the key \"merges\" is missing"},
    {"UnknownModel", "/model", R"({"type":"Char","vocab":{"a":0}})", kUnsupported,
     "model.type: model \"Char\" is not supported, expected BPE, WordPiece, Unigram or WordLevel"},
    {"UnigramTwice", "/model", R"({"type":"Unigram","vocab":[["a",-1],["a",-2]]})", kFile,
     "model.vocab: the token \"a\" is there twice, as 0 and 1"},
    {"UnigramUnknown", "/model", R"({"type":"Unigram","unk_id":1,"vocab":[["a",-1]]})", kFile,
     "model.unk_id: expected an integer from 0 to 0, got 1"},
    {"UnigramScore", "/model", R"({"type":"Unigram","vocab":[["a"]]})", kFile,
     "model.vocab[0]: expected a token and its score"},
    {"UnigramObject", "/model", R"({"type":"Unigram","vocab":[{"a":0,"b":-1}]})", kFile,
     "model.vocab[0]: expected a token and its score"},
    {"UnigramEmpty", "/model", R"({"type":"Unigram","vocab":[]})", kFile,
     "model.vocab: expected an array of tokens and scores"},
    {"WordPieceUnknown", "/model", R"({"type":"WordPiece","unk_token":"?","vocab":{"a":0},
       "continuing_subword_prefix":"#","max_input_chars_per_word":9})",
     kFile, "model.unk_token: \"?\" is not in the vocabulary"},
    {"Dropout", "/model/dropout", "0.1", kUnsupported, "model.dropout: not supported, got 0.1"},
    {"Suffix", "/model/end_of_word_suffix", "1", kFile,
     "model.end_of_word_suffix: expected a string"},
    {"UnkMissing", "/model/unk_token", "\"<unk>\"", kFile, "\"<unk>\" is not in the vocabulary"},
    {"ModelUnknownKey", "/model/novel", "1", kFile, "model.novel: unknown key"},
    {"NormalizerUnknownKey", "/normalizer", R"({"type":"NFC","form":1})", kFile,
     "normalizer.form: unknown key"},
    {"LowercaseUnknownKey", "/normalizer", R"({"type":"Lowercase","form":1})", kFile,
     "normalizer.form: unknown key"},
    {"BytesUnknownKey", "/normalizer", R"({"type":"ByteLevel","form":1})", kFile,
     "normalizer.form: unknown key"},
    {"DecoderUnknownKey", "/decoder",
     R"({"type":"WordPiece","prefix":"#","cleanup":true,"form":1})", kFile,
     "decoder.form: unknown key"},
    {"FuseUnknownKey", "/decoder", R"({"type":"Fuse","form":1})", kFile,
     "decoder.form: unknown key"},
    {"UnknownNormalizer", "/normalizer", R"({"type":"Uppercase"})", kUnsupported,
     "normalizer \"Uppercase\" is not supported"},
    {"UnknownPreTokenizer", "/pre_tokenizer", R"({"type":"Sentences"})", kUnsupported,
     "pre-tokenizer \"Sentences\" is not supported"},
    {"CharsmapNoBase64", "/normalizer", R"({"type":"Precompiled","precompiled_charsmap":"AA!="})",
     kFile, "normalizer.precompiled_charsmap: expected base64, got the character \"!\""},
    {"CharsmapShort", "/normalizer", R"({"type":"Precompiled","precompiled_charsmap":"CAAAAAAA"})",
     kFile, "expected a trie within its 6 bytes, got one of 8"},
    {"CharsmapLength", "/normalizer", R"({"type":"Precompiled","precompiled_charsmap":"AAAAA"})",
     kFile, "normalizer.precompiled_charsmap: expected base64, got 5 characters"},
    {"SplitUnknownKey", "/pre_tokenizer",
     R"({"type":"Split","pattern":{"String":"a"},"behavior":"Removed","form":1})", kFile,
     "pre_tokenizer.form: unknown key"},
    {"DigitsUnknownKey", "/pre_tokenizer", R"({"type":"Digits","form":1})", kFile,
     "pre_tokenizer.form: unknown key"},
    {"DelimiterUnknownKey", "/pre_tokenizer",
     R"({"type":"CharDelimiterSplit","delimiter":"-","form":1})", kFile,
     "pre_tokenizer.form: unknown key"},
    {"MetaspaceUnknownKey", "/pre_tokenizer", R"({"type":"Metaspace","replacement":"_","form":1})",
     kFile, "pre_tokenizer.form: unknown key"},
    {"LengthUnknownKey", "/pre_tokenizer", R"({"type":"FixedLength","length":1,"form":1})", kFile,
     "pre_tokenizer.form: unknown key"},
    {"SpaceUnknownKey", "/pre_tokenizer", R"({"type":"WhitespaceSplit","form":1})", kFile,
     "pre_tokenizer.form: unknown key"},
    {"DelimiterOfTwo", "/pre_tokenizer", R"({"type":"CharDelimiterSplit","delimiter":"ab"})", kFile,
     "pre_tokenizer.delimiter: expected one character"},
    {"LengthZero", "/pre_tokenizer", R"({"type":"FixedLength","length":0})", kFile,
     "pre_tokenizer.length: expected an integer"},
    {"MetaspaceOfTwo", "/pre_tokenizer", R"({"type":"Metaspace","replacement":"__"})", kFile,
     "pre_tokenizer.replacement: expected one character, got \"__\""},
    {"MetaspaceScheme", "/pre_tokenizer",
     R"({"type":"Metaspace","replacement":"_","prepend_scheme":"last"})", kFile,
     "pre_tokenizer.prepend_scheme: expected always, first or never, got \"last\""},
    {"MetaspaceTwice", "/pre_tokenizer",
     R"({"type":"Metaspace","replacement":"_","prepend_scheme":"first","add_prefix_space":false})",
     kFile, "pre_tokenizer.add_prefix_space: expected what prepend_scheme says, got false"},
    {"StripOfTwo", "/decoder", R"({"type":"Strip","content":"ab","start":1,"stop":0})", kFile,
     "decoder.content: expected one character"},
    {"PatternBehindFuse", "/decoder",
     R"({"type":"Sequence","decoders":[{"type":"Fuse"},
         {"type":"Replace","pattern":{"Regex":"_"},"content":" "}]})",
     kUnsupported,
     "decoders[1]: decoder \"Replace\" behind Fuse or ByteLevel is supported for a text"},
    {"ByteFallbackBehindFuse", "/decoder",
     R"({"type":"Sequence","decoders":[{"type":"Fuse"},{"type":"ByteFallback"}]})", kUnsupported,
     "decoder \"ByteFallback\" is supported in front of Fuse and ByteLevel only"},
    {"UnknownPostProcessor", "/post_processor", R"({"type":"Wrap"})", kUnsupported,
     "post-processor \"Wrap\" is not supported"},
    {"TwoPostProcessors", "/post_processor",
     R"({"type":"Sequence","processors":[{"type":"BertProcessing","sep":["<s>",9],"cls":["<s>",9]},
         {"type":"BertProcessing","sep":["<s>",9],"cls":["<s>",9]}]})",
     kUnsupported, "processors[1]: a second post-processor that adds tokens is not supported"},
    {"BertIdPastVocabulary", "/post_processor",
     R"({"type":"BertProcessing","sep":["<s>",11],"cls":["<s>",9]})", kFile,
     "post_processor.sep[1]: expected an integer from 0 to 10, got 11"},
    {"SuffixEmpty", "/decoder", R"({"type":"BPEDecoder","suffix":""})", kFile,
     "decoder.suffix: expected a suffix, got empty text"},
    {"CtcWithoutPad", "/decoder",
     R"({"type":"CTC","pad_token":"","word_delimiter_token":"|","cleanup":true})", kFile,
     "decoder.pad_token: expected a token, got empty text"},
    {"CtcWithoutDelimiter", "/decoder",
     R"({"type":"CTC","pad_token":"p","word_delimiter_token":"","cleanup":true})", kFile,
     "decoder.word_delimiter_token: expected a token, got empty text"},
    {"BertTokenAlone", "/post_processor",
     R"({"type":"BertProcessing","sep":["<s>"],"cls":["<s>",9]})", kFile,
     "post_processor.sep: expected a token and its id, got an array"},
    {"BertTokenText", "/post_processor", R"({"type":"BertProcessing","sep":["<s>",9],"cls":"<s>"})",
     kFile, "post_processor.cls: expected a token and its id, got \"<s>\""},
    {"RobertaUnknownKey", "/post_processor",
     R"({"type":"RobertaProcessing","sep":["<s>",9],"cls":["<s>",9],"form":1})", kFile,
     "post_processor.form: unknown key"},
    {"TemplateOfB", "/post_processor/single/1/Sequence/id", "\"B\"", kFile,
     "post_processor.single[1].Sequence.id: expected the sequence A, got \"B\""},
    {"TemplateOfC", "/post_processor/pair", R"([{"Sequence":{"id":"A"}},{"Sequence":{"id":"C"}}])",
     kFile, "post_processor.pair[1].Sequence.id: expected the sequence A or B, got \"C\""},
    {"TemplatePairWithoutB", "/post_processor/pair", R"([{"Sequence":{"id":"A"}}])", kFile,
     "post_processor.pair: expected the sequences A and B exactly once"},
    {"TemplatePairOfTwoA", "/post_processor/pair",
     R"([{"Sequence":{"id":"A"}},{"Sequence":{"id":"A"}},{"Sequence":{"id":"B"}}])", kFile,
     "post_processor.pair: expected the sequences A and B exactly once"},
    {"UnknownDecoder", "/decoder", R"({"type":"Letters"})", kUnsupported,
     "decoder \"Letters\" is not supported"},
    {"BadPattern", "/pre_tokenizer",
     R"({"type":"Split","pattern":{"Regex":"(a"},"behavior":"Isolated"})", kFile,
     "pre_tokenizer.pattern.Regex: "},
    {"EmptyPattern", "/pre_tokenizer",
     R"({"type":"Split","pattern":{"String":""},"behavior":"Isolated"})", kFile,
     "expected a pattern that is not empty"},
    {"UnknownBehavior", "/pre_tokenizer",
     R"({"type":"Split","pattern":{"String":"a"},"behavior":"Sideways"})", kFile,
     "unknown behavior \"Sideways\""},
    {"TemplateWithoutText", "/post_processor/single", "[]", kFile, "the sequence A exactly once"},
    {"TemplateUnknownToken", "/post_processor/single/0/SpecialToken/id", "\"<x>\"", kFile,
     "special token \"<x>\" is not listed"},
    {"TemplateIdPastVocabulary", "/post_processor/special_tokens/<s>/ids/0", "11", kFile,
     "expected an integer from 0 to 10, got 11"},
    {"UnknownStage", "/oracle", "{}", kFile, "oracle: unknown key"},
};
INSTANTIATE_TEST_SUITE_P(Files, BadTokenizer, testing::ValuesIn(kBad),
                         [](auto& info) { return std::string(info.param.name); });

// A key that no reader knows may change the ids: of every stage there is, as it is written.
TEST(Tokenizer, EveryStageRefusesKeysThatItDoesNotKnow) {
  const std::pair<const char*, const char*> stages[] = {
      {"normalizer", R"({"type":"Sequence","normalizers":[]})"},
      {"normalizer", R"({"type":"Strip","strip_left":true,"strip_right":true})"},
      {"normalizer", R"({"type":"Prepend","prepend":"a"})"},
      {"normalizer", R"({"type":"Replace","pattern":{"String":"a"},"content":"b"})"},
      {"normalizer", R"({"type":"Precompiled","precompiled_charsmap":""})"},
      {"normalizer", R"({"type":"StripAccents"})"},
      {"normalizer", R"({"type":"BertNormalizer","clean_text":true,"handle_chinese_chars":true,
                         "strip_accents":null,"lowercase":true})"},
      {"pre_tokenizer", R"({"type":"Sequence","pretokenizers":[]})"},
      {"pre_tokenizer", R"({"type":"ByteLevel","add_prefix_space":true,"trim_offsets":true,
                            "use_regex":true})"},
      {"pre_tokenizer", R"({"type":"Punctuation","behavior":"Isolated"})"},
      {"pre_tokenizer", R"({"type":"BertPreTokenizer"})"},
      {"pre_tokenizer", R"({"type":"Whitespace"})"},
      {"pre_tokenizer", R"({"type":"UnicodeScripts"})"},
      {"post_processor", R"({"type":"Sequence","processors":[]})"},
      {"post_processor", R"({"type":"ByteLevel","add_prefix_space":true,"trim_offsets":true,
                             "use_regex":true})"},
      {"post_processor", R"({"type":"TemplateProcessing","single":[{"Sequence":{"id":"A"}}],
                             "special_tokens":{}})"},
      {"decoder", R"({"type":"Sequence","decoders":[]})"},
      {"decoder", R"({"type":"ByteLevel"})"},
      {"decoder", R"({"type":"ByteFallback"})"},
      {"decoder", R"({"type":"Metaspace","replacement":"_"})"},
      {"decoder", R"({"type":"BPEDecoder","suffix":"a"})"},
      {"decoder", R"({"type":"CTC","pad_token":"p","word_delimiter_token":"|","cleanup":true})"},
      {"decoder", R"({"type":"Strip","content":"_","start":1,"stop":0})"},
      {"decoder", R"({"type":"Replace","pattern":{"String":"a"},"content":"b"})"},
      {"model", R"({"type":"Unigram","unk_id":0,"vocab":[["a",-1]],"byte_fallback":false})"},
      {"model", R"({"type":"WordLevel","unk_token":"a","vocab":{"a":0}})"},
      {"model", R"({"type":"WordPiece","unk_token":"a","vocab":{"a":0},
                    "continuing_subword_prefix":"#","max_input_chars_per_word":9})"}};
  for (auto& [stage, value] : stages) {
    json file = smallFile();
    if (std::string_view(stage) == "model") file["added_tokens"] = json::array();
    file["post_processor"] = nullptr;
    file[stage] = json::parse(value);
    auto parse = [&] { Tokenizer::parse(file.dump(), "f"); };
    EXPECT_NO_THROW(parse()) << stage << " " << value;
    file[stage]["form"] = 1;
    SCOPED_TRACE(value);
    expectError(kFile, std::string("f: ") + stage + ".form: unknown key", parse);
  }
}

// An added token of 1024 bytes is found, a longer one refused; one that the normalizer leaves
// nothing of is not looked for.
TEST(Tokenizer, AddedTokensHaveALength) {
  auto with = [](size_t bytes) {
    json file = smallFile();
    file["added_tokens"][0]["content"] = std::string(bytes, '-');
    file["post_processor"] = nullptr;
    return Tokenizer::parse(file.dump(), "f");
  };
  EXPECT_EQ(with(1024).encode("a" + std::string(1024, '-'), {.allowSpecialText = true}),
            (std::vector<int>{0, 9}));
  expectError(kFile, "added_tokens[0].content: an added token of 1025 bytes, expected at most 1024",
              [&] { with(1025); });
  json file = smallFile();
  file["normalizer"] = {{"type", "Replace"}, {"pattern", {{"String", "<s>"}}}, {"content", ""}};
  file["added_tokens"][0].update({{"special", false}, {"normalized", true}});
  EXPECT_EQ(Tokenizer::parse(file.dump(), "f").encode("a<s>b", kPlain), (std::vector<int>{4}));
}

// An added token of which nothing is said is text, and takes no space beside it.
TEST(Tokenizer, AddedTokensAreTextUnlessTheySayMore) {
  auto with = [](const json& more) {
    json file = smallFile();
    file["added_tokens"][1] = {{"id", 10}, {"content", "<x>"}};
    file["added_tokens"][1].update(more);
    return Tokenizer::parse(file.dump(), "f");
  };
  const Tokenizer plain = with(json::object());
  EXPECT_FALSE(plain.isSpecial(10));
  EXPECT_EQ(plain.encode("a<x>b", kPlain), (std::vector<int>{0, 10, 1}));
  for (const char* text : {"a <x>b", "a<x> b"}) {  // no token is a space
    EXPECT_THROW(plain.encode(text, kPlain), Error) << text;
    EXPECT_EQ(with({{"lstrip", true}, {"rstrip", true}}).encode(text, kPlain),
              (std::vector<int>{0, 10, 1}));
  }
  EXPECT_THROW(with({{"lstrip", true}}).encode("a<x> b", kPlain), Error);
  EXPECT_THROW(with({{"rstrip", true}}).encode("a <x>b", kPlain), Error);
  EXPECT_THROW(with({{"single_word", true}}).encode("a<x>b", kPlain), Error);
  EXPECT_EQ(with({{"single_word", true}}).encode("<x>", kPlain), (std::vector<int>{10}));
}
// What stands beside it is text, whether that is of another added token or not.
TEST(Tokenizer, ASingleWordStandsBehindNoWordOfAnotherAddedToken) {
  auto behind = [](const char* other) {
    json file = smallFile();
    file["added_tokens"] = {{{"id", 9}, {"content", other}},
                            {{"id", 10}, {"content", "<x>"}, {"single_word", true}}};
    file["post_processor"] = nullptr;
    return Tokenizer::parse(file.dump(), "f").encode(other + std::string("<x>"), kPlain);
  };
  EXPECT_EQ(behind("<a>"), (std::vector<int>{9, 10}));
  EXPECT_THROW(behind("<a"), Error);  // no token is what is left, "<x>"
}

// 32 stages of each kind are taken, one more is refused by its place.
TEST(Tokenizer, CountsItsStages) {
  const std::tuple<const char*, const char*, const char*, json> kinds[] = {
      {"normalizer", "normalizers", "normalizers", {{"type", "NFC"}}},
      {"pre_tokenizer", "pretokenizers", "pre-tokenizers", {{"type", "Digits"}}},
      {"decoder", "decoders", "decoders", {{"type", "Fuse"}}}};
  for (auto& [stage, list, words, one] : kinds)
    for (size_t count : {32, 33}) {
      json file = smallFile();
      file[stage] = {{"type", "Sequence"}, {list, json::array()}};
      for (size_t i = 0; i < count; ++i) file[stage][list].push_back(one);
      auto parse = [&] { Tokenizer::parse(file.dump(), "tokenizer.json"); };
      if (count == 32)
        EXPECT_NO_THROW(parse()) << stage;
      else
        expectError(
            kFile,
            std::string("tokenizer.json: ") + stage + "." + list + "[32]: more than 32 " + words,
            parse);
    }
}

TEST(Tokenizer, RefusesTextThatIsNoJson) {
  expectError(kFile, "t.json: not valid JSON at byte",
              [] { Tokenizer::parse("{\"model\": ", "t.json"); });
  expectError(kFile, "not valid JSON", [] { Tokenizer::parse(R"({"a": "\ud800"})", "t.json"); });
  expectError(kFile, "not valid JSON", [] { Tokenizer::parse("{\"a\": \"\xff\"}", "t.json"); });
  expectError(kFile, "expected an object, got an array", [] { Tokenizer::parse("[]", "t.json"); });
}

TEST(Tokenizer, RefusesAHugeToken) {
  json file = smallFile();
  file["model"]["vocab"][std::string(10'000'000, 'x')] = 11;
  expectError(kFile, "a token of 10000000 bytes, expected at most 65536",
              [&] { Tokenizer::parse(file.dump(), "t.json"); });
}

TEST(Tokenizer, NamesAMissingFile) {
  test::TemporaryFolder folder;
  expectError(ErrorCode::Io, "tokenizer.json: cannot open: No such file",
              [&] { Tokenizer::load(folder.path()); });
}

}  // namespace
}  // namespace lathe
