// SPDX-License-Identifier: Apache-2.0
// Stages of tokenizer.json at their bounds. Sets of characters and defaults are those of Hugging
// Face's tokenizers (normalizers/unicode.rs, decoders/*.rs).
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "lathe/runtime/tokenizer.h"
#include "runtime/text_normalizer.h"
#include "runtime/utf8.h"

namespace lathe {
namespace {

using nlohmann::json;

std::string normalized(const json& stage, const std::string& text) {
  TextBudget budget(text.size() + 100);
  return TextNormalizer(JsonValue::parse(stage.dump(), "f")).apply(text, budget);
}
std::string textOf(char32_t c) {
  std::string text;
  appendCodePoint(text, c);
  return text;
}

// Control characters go, what looks like space is one.
TEST(TextStages, NmtKnowsEachOfItsCharacters) {
  auto isIn = [](char32_t c, std::initializer_list<std::pair<char32_t, char32_t>> ranges) {
    return std::ranges::any_of(ranges, [&](auto r) { return c >= r.first && c <= r.second; });
  };
  for (char32_t c = 1; c <= 0xffff; ++c) {
    if (c >= 0xd800 && c <= 0xdfff) continue;
    const bool isGone = isIn(
                   c, {{1, 8}, {0xb, 0xb}, {0xe, 0x1f}, {0x7f, 0x7f}, {0x8f, 0x8f}, {0x9f, 0x9f}}),
               isSpace = isIn(c, {{9, 0xa},
                                  {0xc, 0xd},
                                  {0x1680, 0x1680},
                                  {0x200b, 0x200f},
                                  {0x2028, 0x2029},
                                  {0x2581, 0x2581},
                                  {0xfeff, 0xfeff},
                                  {0xfffd, 0xfffd}});
    const std::string want = isGone ? "" : isSpace ? " " : textOf(c);
    if (normalized({{"type", "Nmt"}}, "a" + textOf(c) + "b") != "a" + want + "b")
      ADD_FAILURE() << std::hex << uint32_t(c);
  }
}

// As older converters wrote models without rules.
TEST(TextStages, NoRulesChangeNothing) {
  for (const json& stage : {json{{"type", "Precompiled"}},
                            {{"type", "Precompiled"}, {"precompiled_charsmap", nullptr}},
                            {{"type", "Precompiled"}, {"precompiled_charsmap", ""}}})
    EXPECT_EQ(normalized(stage, "a\u00a0b"), "a\u00a0b") << stage;
}

TEST(TextStages, SpaceIsStrippedAtTheSidesThatAreAsked) {
  const std::string text = "\u00a0 a b\t\u3000";
  for (auto [left, right, want] : {std::tuple(true, true, "a b"),
                                   {true, false, "a b\t\u3000"},
                                   {false, true, "\u00a0 a b"},
                                   {false, false, text.c_str()}})
    EXPECT_EQ(normalized({{"type", "Strip"}, {"strip_left", left}, {"strip_right", right}}, text),
              want);
  EXPECT_EQ(normalized({{"type", "Strip"}, {"strip_left", true}, {"strip_right", true}}, " \t "),
            "");
}

TEST(TextStages, BertTakesAccentsWhereItLowersUnlessTold) {
  auto bert = [](json accents, bool lowercase, bool chinese = true) {
    return normalized({{"type", "BertNormalizer"},
                       {"clean_text", true},
                       {"handle_chinese_chars", chinese},
                       {"strip_accents", accents},
                       {"lowercase", lowercase}},
                      "\u00c9a\u4e2d\t");
  };
  EXPECT_EQ(bert(nullptr, true), "ea \u4e2d  ");
  EXPECT_EQ(bert(nullptr, false), "\u00c9a \u4e2d  ");
  EXPECT_EQ(bert(true, false), "Ea \u4e2d  ");
  EXPECT_EQ(bert(false, true), "\u00e9a \u4e2d  ");
  EXPECT_EQ(bert(false, true, false), "\u00e9a\u4e2d ");
}

// Two texts decoded one token after the other: "\u2581a" and "\u2581\u2581b".
std::string decoded(const json& decoder, std::vector<int> ids) {
  json file = {{"version", "1.0"},
               {"added_tokens", json::array()},
               {"normalizer", nullptr},
               {"pre_tokenizer", nullptr},
               {"post_processor", nullptr},
               {"decoder", decoder},
               {"model",
                {{"type", "BPE"},
                 {"vocab",
                  {{"\u2581", 0},
                   {"\u2581a", 1},
                   {"\u2581\u2581b", 2},
                   {"c", 3},
                   {"<0x41>", 4},
                   {"<0xC3>", 5},
                   {"<0xA9>", 6},
                   {"##d", 7}}},
                 {"merges", json::array()}}}};
  return Tokenizer::parse(file.dump(), "f").decode(ids);
}

TEST(TextStages, MetaspaceTakesTheFirstSpaceUnlessToldOtherwise) {
  const json plain = {{"type", "Metaspace"}, {"replacement", "\u2581"}};
  auto with = [&](json more) {
    json decoder = plain;
    decoder.update(more);
    return decoded(decoder, {1, 2, 3});
  };
  EXPECT_EQ(with(json::object()), "a  bc");
  EXPECT_EQ(with({{"prepend_scheme", "always"}}), "a  bc");
  EXPECT_EQ(with({{"prepend_scheme", "first"}}), "a  bc");
  EXPECT_EQ(with({{"prepend_scheme", "never"}}), " a  bc");
  EXPECT_EQ(with({{"add_prefix_space", true}}), "a  bc");
  EXPECT_EQ(with({{"add_prefix_space", false}}), " a  bc");
}

// Of the text as a whole, however its tokens lie: as many at its ends as are asked for.
TEST(TextStages, StripCountsAcrossTokens) {
  auto stripped = [](int start, int stop, std::vector<int> ids) {
    return decoded({{"type", "Sequence"},
                    {"decoders",
                     {{{"type", "Replace"}, {"pattern", {{"String", "\u2581"}}}, {"content", " "}},
                      {{"type", "Fuse"}},
                      {{"type", "Strip"}, {"content", " "}, {"start", start}, {"stop", stop}}}}},
                   ids);
  };
  EXPECT_EQ(stripped(1, 0, {0, 1}), " a") << "one of two tokens that are space";
  EXPECT_EQ(stripped(1, 0, {0, 0, 1}), "  a");
  EXPECT_EQ(stripped(2, 0, {0, 0, 1}), " a");
  EXPECT_EQ(stripped(3, 0, {0, 2}), "b");
  EXPECT_EQ(stripped(4, 0, {0, 2, 1}), "b a") << "none behind the first letter";
  EXPECT_EQ(stripped(1, 0, {3, 1}), "c a");
  EXPECT_EQ(stripped(0, 1, {1, 0, 0}), " a ");
  EXPECT_EQ(stripped(0, 2, {1, 0, 0}), " a");
  EXPECT_EQ(stripped(0, 2, {1, 0, 3}), " a c");
  EXPECT_EQ(stripped(1, 1, {0, 0, 0}), " ");
}

// Bytes that form no text are one replacement character each.
TEST(TextStages, BytesFallBackTogether) {
  const json decoder = {{"type", "ByteFallback"}};
  EXPECT_EQ(decoded(decoder, {3, 5, 6, 3}), "c\u00e9c");
  EXPECT_EQ(decoded(decoder, {4, 4}), "AA");
  EXPECT_EQ(decoded(decoder, {5, 3}), "\ufffdc");
  EXPECT_EQ(decoded(decoder, {4, 5, 3}), "\ufffd\ufffdc") << "the valid one among them, too";
  EXPECT_EQ(decoded(decoder, {5}), "\ufffd");
}

// Two hexadecimal digits between "<0x" and ">" are a byte, anything else is a token of its own.
TEST(TextStages, BytesAreSpelledWithTwoDigits) {
  for (auto [token, text] : {std::pair("<0x41>", "A"),
                             {"<0x00>", ""},
                             {"<0xc3>", "\ufffd"},
                             {"<0x4>", "<0x4>"},
                             {"<0x4g>", "<0x4g>"},
                             {"<0xg4>", "<0xg4>"},
                             {"<0x411>", "<0x411>"},
                             {"<1x41>", "<1x41>"},
                             {"<0x41)", "<0x41)"},
                             {"<0x+4>", "<0x+4>"}}) {
    const json file = {
        {"decoder", {{"type", "ByteFallback"}}},
        {"model", {{"type", "BPE"}, {"vocab", {{token, 0}}}, {"merges", json::array()}}}};
    const std::string want = std::string_view(token) == "<0x00>" ? std::string(1, '\0') : text;
    EXPECT_EQ(Tokenizer::parse(file.dump(), "f").decode(std::vector<int>{0}), want) << token;
  }
}

// Behind Fuse a text is replaced wherever it comes from, one token or several; before it, a pattern
// is looked for in each token.
TEST(TextStages, TextsAreReplacedWithinAndAcrossTokens) {
  auto decodes = [](const json& decoders, const std::vector<std::string>& tokens) {
    json vocabulary;
    std::vector<int> ids;
    for (const std::string& token : tokens) {
      if (!vocabulary.contains(token)) vocabulary[token] = int(vocabulary.size());
      ids.push_back(vocabulary[token]);
    }
    const json file = {
        {"decoder", {{"type", "Sequence"}, {"decoders", decoders}}},
        {"model", {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", json::array()}}}};
    return Tokenizer::parse(file.dump(), "f").decode(ids);
  };
  auto replace = [](const char* kind, const char* pattern) {
    return json{{"type", "Replace"}, {"pattern", {{kind, pattern}}}, {"content", "<>"}};
  };
  const json fuse = {{"type", "Fuse"}}, bytes = {{"type", "ByteFallback"}};
  EXPECT_EQ(decodes({fuse, replace("String", "ab")}, {"1ab2ab3"}), "1<>2<>3");
  EXPECT_EQ(decodes({fuse, replace("String", "ab")}, {"1a", "b2", "a", "b", "a"}), "1<>2<>a");
  EXPECT_EQ(decodes(json::array({replace("String", "ab")}), {"1ab2ab3", "a", "b"}), "1<>2<>3ab");
  EXPECT_EQ(decodes({bytes, replace("Regex", "[ab]+")}, {"1ab2a", "b", "<0x61>"}), "1<>2<><><>");
  EXPECT_EQ(decodes({bytes, replace("String", "ab")}, {"1a", "b2"}), "1ab2");
}

TEST(TextStages, WordPiecesJoinAndPunctuationIsTidied) {
  const json pieces = {{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", false}};
  EXPECT_EQ(decoded(pieces, {3, 7, 3}), "cd c");
  EXPECT_EQ(decoded(pieces, {7, 7}), "##dd") << "the first one begins a word";
}

// Texts of special tokens are text in both texts of a pair, unless they are asked for.
TEST(TextStages, BothTextsOfAPairAreReadAlike) {
  const Tokenizer t = Tokenizer::load(LATHE_TEST_DATA "/golden/tokenizer/llama3.json");
  const int control = *t.tokenToId("<|eot_id|>");
  const std::string special = "say <|eot_id|>";
  for (bool allowed : {false, true})
    for (auto [first, second] : {std::pair(special, std::string("hi")), {"hi", special}}) {
      const std::vector<int> ids = t.encodePair(first, second, {.allowSpecialText = allowed}).ids;
      EXPECT_EQ(std::ranges::count(ids, control), allowed ? 1 : 0) << first;
    }
}

}  // namespace
}  // namespace lathe
