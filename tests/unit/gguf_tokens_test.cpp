// SPDX-License-Identifier: Apache-2.0
// What GGUF's keys of tokens mean, as tokenizer.json.
#include <gtest/gtest.h>

#include "lathe/runtime/json_reader.h"
#include "runtime/byte_level.h"
#include "runtime/pre_tokenizer.h"
#include "tests/unit/gguf_models.h"

namespace lathe {
namespace {

using nlohmann::json;
using test::Counts;
using test::expectError;
using test::messageOf;
using Model = test::GgufModel;
using test::Strings;

// Kinds of tokens: 1 normal, 2 unknown, 3 control, 4 of a user, 6 a byte.
Model sentencePieces() {
  Model model("llama");
  model.with("tokenizer.ggml.model", std::string("llama"))
      .with("tokenizer.ggml.tokens", Strings{"<unk>", "<s>", "a", "b", "ab", "ba", "<x>", "abba"})
      .with("tokenizer.ggml.token_type", Counts{2, 3, 1, 1, 1, 1, 4, 1})
      .with("tokenizer.ggml.scores", std::vector<float>{0, 0, -3, -3, -1, -1, 0, -2})
      .with("tokenizer.ggml.bos_token_id", 1u);
  return model;
}

TEST(GgufTokenizers, KindsOfTokensSayWhichAreSpecial) {
  const json tokenizer = sentencePieces().tokenizer();
  std::map<std::string, bool> special;
  for (const json& token : tokenizer["added_tokens"]) {
    special[token["content"]] = token["special"];
    EXPECT_EQ(token["normalized"], false);
  }
  EXPECT_EQ(special, (std::map<std::string, bool>{{"<unk>", true}, {"<s>", true}, {"<x>", false}}));
  EXPECT_EQ(tokenizer["model"]["unk_token"], "<unk>") << "the token of that kind";
  EXPECT_EQ(sentencePieces()
                .with("tokenizer.ggml.unknown_token_id", 2u)
                .tokenizer()["model"]["unk_token"],
            "a")
      << "the key goes before the kind";
}

// The best scores first; of equal ones the pieces in their order, and the shorter left part.
TEST(GgufTokenizers, MergesFollowFromTheScores) {
  EXPECT_EQ(sentencePieces().tokenizer()["model"]["merges"],
            json::parse(R"([["a", "b"], ["b", "a"], ["ab", "ba"]])"));
  const json tokenizer =
      sentencePieces()
          .with("tokenizer.ggml.tokens", Strings{"<unk>", "<s>", "a", "aa", "aaa"})
          .with("tokenizer.ggml.token_type", Counts{2, 3, 1, 1, 1})
          .with("tokenizer.ggml.scores", std::vector<float>{0, 0, 0, -1, -1})
          .tokenizer();
  EXPECT_EQ(tokenizer["model"]["merges"], json::parse(R"([["a", "a"], ["a", "aa"], ["aa", "a"]])"));
}

// Pieces of a user are merged, too, which control tokens are not; scores come in any order.
TEST(GgufTokenizers, MergesAreOfPiecesThatTextHas) {
  const json tokenizer =
      sentencePieces()
          .with("tokenizer.ggml.tokens",
                Strings{"<unk>", "<s>", "a", "b", "ab", "ba", "bb", "abba"})
          .with("tokenizer.ggml.token_type", Counts{2, 3, 1, 1, 1, 4, 3, 1})
          .with("tokenizer.ggml.scores", std::vector<float>{0, 0, -9, -9, -3, -2, 0, -1})
          .tokenizer();
  EXPECT_EQ(tokenizer["model"]["merges"], json::parse(R"([["ab", "ba"], ["b", "a"], ["a", "b"]])"));
}

// The second text of a pair is of type 1, with what stands around it.
TEST(GgufTokenizers, TextsOfAPairHaveTypes) {
  const json processor = sentencePieces().tokenizer()["post_processor"];
  auto typesOf = [&](const char* key) {
    std::vector<int> types;
    for (const json& piece : processor[key])
      types.push_back(piece.begin().value()["type_id"].get<int>());
    return types;
  };
  EXPECT_EQ(typesOf("single"), (std::vector<int>{0, 0}));
  EXPECT_EQ(typesOf("pair"), (std::vector<int>{0, 0, 1, 1}));
}

TEST(GgufTokenizers, WhatStandsAroundATextIsAsked) {
  auto around = [](Model model) {
    const json processor = model.tokenizer()["post_processor"];
    std::vector<std::string> pieces;
    if (processor.is_object())
      for (const json& piece : processor["single"])
        pieces.push_back(piece.contains("Sequence") ? "$" : piece["SpecialToken"]["id"]);
    return pieces;
  };
  using Pieces = std::vector<std::string>;
  const std::string keys = "tokenizer.ggml.";
  EXPECT_EQ(around(sentencePieces()), (Pieces{"<s>", "$"})) << "SentencePiece's begin by default";
  EXPECT_EQ(around(sentencePieces().with(keys + "add_bos_token", false)), Pieces());
  EXPECT_EQ(
      around(sentencePieces().with(keys + "add_eos_token", true).with(keys + "eos_token_id", 6u)),
      (Pieces{"<s>", "$", "<x>"}));
  expectError(ErrorCode::InvalidFile, "tokenizer.ggml.eos_token_id: the key is missing",
              [&] { sentencePieces().with(keys + "add_eos_token", true).tokenizer(); });
  // Of byte-level BPE the kind of its words says it.
  for (auto [kind, begins] : {std::pair("llama-bpe", true),
                              {"gpt-2", false},
                              {"qwen2", false},
                              {"tekken", false},
                              {"llama3", true}}) {
    Model model = sentencePieces();
    model.with(keys + "model", std::string("gpt2")).with(keys + "pre", std::string(kind));
    model.with(keys + "merges", Strings{"a b"});
    EXPECT_EQ(around(std::move(model)), begins ? Pieces({"<s>", "$"}) : Pieces()) << kind;
  }
}

TEST(GgufTokenizers, KindsOfWordsAreTakenApartAsTheirModelsDo) {
  const std::string keys = "tokenizer.ggml.";
  for (auto [kind, steps, ignoresMerges, composes] : {std::tuple("gpt-2", 1, false, false),
                                                      {"llama-bpe", 2, true, false},
                                                      {"qwen2", 2, false, true},
                                                      {"smollm", 2, false, false},
                                                      {"tekken", 2, true, false},
                                                      {"gpt-4o", 2, false, false},
                                                      {"dbrx", 2, false, false}}) {
    Model model = sentencePieces();
    model.with(keys + "model", std::string("gpt2")).with(keys + "pre", std::string(kind));
    model.with(keys + "merges", Strings{"a b"});
    const json tokenizer = model.tokenizer();
    const json& list = tokenizer["pre_tokenizer"]["pretokenizers"];
    EXPECT_EQ(list.size(), size_t(steps)) << kind;
    EXPECT_EQ(list.back()["type"], "ByteLevel");
    const bool cutsItself = std::string(kind) == "gpt-2" || std::string(kind) == "smollm";
    EXPECT_EQ(list.back()["use_regex"], cutsItself) << kind;
    EXPECT_EQ(list.back()["add_prefix_space"], false) << kind;
    const json spaced = Model(model).with(keys + "add_space_prefix", true).tokenizer();
    EXPECT_EQ(spaced["pre_tokenizer"]["pretokenizers"].back()["add_prefix_space"], true) << kind;
    EXPECT_EQ(list[0]["type"] == "Digits", std::string(kind) == "smollm") << kind;
    EXPECT_EQ(tokenizer["model"]["ignore_merges"], ignoresMerges) << kind;
    EXPECT_EQ(tokenizer["normalizer"].is_object(), composes) << kind;
  }
  expectError(ErrorCode::Unsupported, "tokenizer.ggml.pre: expected one of gpt-2, llama-bpe", [&] {
    sentencePieces()
        .with(keys + "model", std::string("gpt2"))
        .with(keys + "pre", std::string("mine"))
        .tokenizer();
  });
}

// Of every kind: how a text is cut, and what else follows from the name.
TEST(GgufTokenizers, EveryKindOfWordsHasItsCutsAndFlags) {
  const std::string text = "I'm HELLO's 12345 fooBar/\n x\u00e9\u00e9  !!";
  using Words = std::vector<std::string>;
  const Words llama3{"I",       "'m",  " HELLO",         "'s", " ",  "123", "45",
                     " fooBar", "/\n", " x\u00e9\u00e9", " ",  " !!"},
      qwen2{"I",       "'m",  " HELLO",         "'s", " ",  "1", "2", "3", "4", "5",
            " fooBar", "/\n", " x\u00e9\u00e9", " ",  " !!"},
      tekken{"I",   "'m",  " HELLO",         "'s", " ",  "1", "2", "3", "4", "5", " foo",
             "Bar", "/\n", " x\u00e9\u00e9", " ",  " !!"},
      gpt4o{"I'm", " HELLO's",       " ", "123", "45", " foo", "Bar",
            "/\n", " x\u00e9\u00e9", " ", " !!"},
      gpt2{"I", "'m", " HELLO", "'s", " 12345", " fooBar", "/", "\n", " x\u00e9\u00e9", " ", " !!"},
      digits{"I", "'m", " HELLO",         "'s", " ",  "1", "2", "3", "4", "5", " fooBar",
             "/", "\n", " x\u00e9\u00e9", " ",  " !!"};
  const struct {
    const char* name;
    const Words& words;
    bool composes, ignoresMerges, addsBegin;
  } kinds[] = {{"gpt-2", gpt2, 0, 0, 0},    {"llama-bpe", llama3, 0, 1, 1},
               {"llama3", llama3, 0, 1, 1}, {"llama-v3", llama3, 0, 1, 1},
               {"dbrx", llama3, 0, 0, 0},   {"smaug-bpe", llama3, 0, 0, 0},
               {"qwen2", qwen2, 1, 0, 0},   {"deepseek-r1-qwen", qwen2, 1, 0, 0},
               {"smollm", digits, 0, 0, 0}, {"starcoder", digits, 0, 0, 0},
               {"refact", digits, 0, 0, 0}, {"command-r", digits, 0, 0, 0},
               {"tekken", tekken, 0, 1, 0}, {"gpt-4o", gpt4o, 0, 0, 0}};
  const std::string keys = "tokenizer.ggml.";
  std::string known;
  for (const auto& kind : kinds) {
    SCOPED_TRACE(kind.name);
    known += (known.empty() ? "" : ", ") + std::string(kind.name);
    Model model = sentencePieces();
    model.with(keys + "model", std::string("gpt2")).with(keys + "pre", std::string(kind.name));
    model.with(keys + "merges", Strings{"a b"});
    const json tokenizer = model.tokenizer();
    const std::string stage = tokenizer["pre_tokenizer"].dump();
    const PreTokenizer cutter(JsonValue::parse(stage, "t.json"));
    TextBudget budget(text.size());
    Words words;
    // ByteLevel spells a space and a byte of a character as characters of their own.
    for (const std::string& word : cutter.split(text, true, budget)) words.push_back(word);
    Words expected;
    for (const std::string& word : kind.words) expected.push_back(spellBytes(word));
    EXPECT_EQ(words, expected);
    EXPECT_EQ(tokenizer["normalizer"],
              kind.composes ? json::parse(R"({"type": "NFC"})") : json(nullptr));
    EXPECT_EQ(tokenizer["model"]["ignore_merges"], kind.ignoresMerges);
    EXPECT_EQ(tokenizer["post_processor"].is_object(), kind.addsBegin);
    EXPECT_EQ(tokenizer["model"]["merges"], json::parse(R"(["a b"])"));
    EXPECT_EQ(tokenizer["version"], "1.0");
  }
  Model other = sentencePieces();
  other.with(keys + "model", std::string("gpt2")).with(keys + "pre", std::string("mine"));
  other.with(keys + "merges", Strings{});
  const std::string said = messageOf([&] { other.tokenizer(); });
  EXPECT_EQ(said.substr(said.find("tokenizer.")),
            "tokenizer.ggml.pre: expected one of " + known + ", got \"mine\"");
}

TEST(GgufTokenizers, NamesOfTokensAreTheirTexts) {
  const json config = sentencePieces()
                          .with("tokenizer.ggml.eos_token_id", 6u)
                          .with("tokenizer.ggml.padding_token_id", 2u)
                          .with("tokenizer.ggml.unknown_token_id", 0u)
                          .tokenizerConfig();
  EXPECT_EQ(config, json::parse(R"({"bos_token": "<s>", "eos_token": "<x>", "unk_token": "<unk>",
                                    "pad_token": "a"})"));
}

TEST(GgufTokenizers, ThatContradictThemselvesAreRefused) {
  const std::string keys = "tokenizer.ggml.";
  auto refuse = [](const Model& model, const char* message, ErrorCode code) {
    expectError(code, message, [&] { model.tokenizer(); });
  };
  const ErrorCode bad = ErrorCode::InvalidFile, unsupported = ErrorCode::Unsupported;
  Model scores = sentencePieces(), kinds = sentencePieces(), twice = sentencePieces(),
        spaces = sentencePieces(), other = sentencePieces(), prefix = sentencePieces();
  refuse(scores.with(keys + "scores", std::vector<float>{0, 0}),
         "scores: expected one for each of 8 tokens, got 2", bad);
  refuse(kinds.with(keys + "token_type", Counts{1}),
         "token_type: expected one for each of 8 tokens, got 1", bad);
  refuse(twice.with(keys + "tokens", Strings{"a", "a"}), "tokens 0 and 1 are both \"a\"", bad);
  refuse(spaces.with(keys + "remove_extra_whitespaces", true),
         "remove_extra_whitespaces: expected false, got true", unsupported);
  refuse(sentencePieces().with(keys + "precompiled_charsmap", Counts{1, 2}),
         "precompiled_charsmap: expected no normalization, got", unsupported);
  EXPECT_NO_THROW(sentencePieces().with(keys + "precompiled_charsmap", Counts{}).tokenizer());
  refuse(other.with(keys + "model", std::string("bert")),
         "model: expected gpt2 (byte-level BPE) or llama", unsupported);
  // Without a prefix nothing is put in front, and nothing is taken away.
  const json plain = prefix.with(keys + "add_space_prefix", false).tokenizer();
  EXPECT_EQ(plain["normalizer"]["normalizers"].size(), 1u);
  EXPECT_EQ(plain["decoder"]["decoders"].size(), 3u);
  EXPECT_EQ(sentencePieces().tokenizer()["decoder"]["decoders"].size(), 4u);
}

}  // namespace
}  // namespace lathe
