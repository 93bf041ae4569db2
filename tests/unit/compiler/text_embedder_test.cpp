// SPDX-License-Identifier: Apache-2.0
// Texts as rows of a batch: what a text gives does not depend on those that it is padded for.
#include "lathe/runtime/text_embedder.h"

#include <gmock/gmock.h>

#include "lathe/lathe.h"
#include "tests/unit/test_files.h"

namespace lathe {
namespace {

constexpr int64_t kPad = 9, kRows = 4, kLongest = 48;

// Sums over a row: of the ids that count, of how many there are, and of the padding.
Graph sums(bool withTypes) {
  Graph g;
  g.entry("embed");
  const Dim batch = g.dim("batch", 1, kRows), seq = g.dim("seq", 1, kLongest);
  const Tensor ids = cast(g.input("input_ids", DType::I64, {batch, seq}), DType::F32);
  const Tensor mask = cast(g.input("attention_mask", DType::I64, {batch, seq}), DType::F32);
  Tensor types = mask * 0.0;
  if (withTypes) types = cast(g.input("token_type_ids", DType::I64, {batch, seq}), DType::F32);
  auto sum = [&](const Tensor& x) { return reduceSum(x, {1}, true); };
  g.output("embeddings",
           concat({sum(ids * mask), sum(mask), sum(ids * (1.0 - mask)), sum(types)}, 1));
  return g;
}

Tokenizer letters() {
  return Tokenizer::parse(
      R"({"model": {"type": "WordLevel", "vocab": {"_": 0, "a": 1, "b": 2, "c": 3, "d": 4}},
          "pre_tokenizer": {"type": "FixedLength", "length": 1}, "decoder": {"type": "Fuse"}})",
      "letters");
}

TEST(TextEmbedder, TextsAreWhatTheyAreAlone) {
  for (bool withTypes : {false, true}) {
    Session session(compile(sums(withTypes), {.backend = "reference"}));
    TextEmbedder embedder(session, letters(), 40, kPad);
    // More than a batch has rows, and one that is much longer than the first of its batch.
    std::vector<std::vector<int>> texts;
    for (const char* text : {"ab", "c", "dddd", "a", "abcd", "b", "bc"})
      texts.push_back(embedder.encode(text));
    texts.insert(texts.begin() + 3, std::vector<int>(30, 2));
    const Array all = embedder.embed(texts);
    ASSERT_EQ(all.shape(), (Shape{int64_t(texts.size()), 4}));
    for (size_t i = 0; i < texts.size(); ++i) {
      SCOPED_TRACE(i);
      double sum = 0;
      for (int id : texts[i]) sum += id;
      EXPECT_EQ(all.at(int64_t(i) * 4), sum);
      EXPECT_EQ(all.at(int64_t(i) * 4 + 1), double(texts[i].size()));
      EXPECT_EQ(all.at(int64_t(i) * 4 + 3), 0);
      const Array alone = embedder.embed({&texts[i], 1});
      for (int64_t c : {0, 1, 3}) EXPECT_EQ(alone.at(c), all.at(int64_t(i) * 4 + c));
      EXPECT_EQ(alone.at(2), 0);
    }
    // "c" is padded to the four tokens of "dddd".
    EXPECT_EQ(all.at(1 * 4 + 2), 3 * double(kPad));
  }
}

TEST(TextEmbedder, TextsThatCannotBeRows) {
  Session session(compile(sums(false), {.backend = "reference"}));
  const TextEmbedder embedder(session, letters(), 5, kPad);
  test::expectError(ErrorCode::InvalidArgument, "the text has no tokens",
                    [&] { embedder.encode(""); });
  EXPECT_EQ(embedder.encode("abcda").size(), 5u);
  test::expectError(ErrorCode::InvalidArgument, "6 tokens, the model takes at most 5",
                    [&] { embedder.encode("abcdab"); });
  // The program's own limit holds where the model has more positions.
  const TextEmbedder wide(session, letters(), kLongest + 1, kPad);
  EXPECT_EQ(wide.encode(std::string(kLongest, 'a')).size(), size_t(kLongest));
  test::expectError(ErrorCode::InvalidArgument, "49 tokens, the model takes at most 48",
                    [&] { wide.encode(std::string(kLongest + 1, 'a')); });
}

// What a program lacks that gives no embeddings of texts.
TEST(TextEmbedder, NamesWhatAProgramLacks) {
  struct Given {
    std::string entry = "embed", ids = "input_ids", mask = "attention_mask", more,
                output = "embeddings", second;
    DType dtype = DType::I64, result = DType::F32;
    bool isRow = false, isWide = false, isDeep = false;
  };
  auto embedder = [](const Given& given) {
    Graph g;
    g.entry(given.entry);
    const Dim batch = g.dim("batch", 1, kRows), seq = g.dim("seq", 1, kLongest);
    Tensor sum;
    for (const std::string& name : {given.ids, given.mask, given.more})
      if (!name.empty()) {
        const bool isRow = given.isRow && name == given.ids;
        Tensor x = g.input(name, name == given.ids ? given.dtype : DType::I64,
                           isRow ? Dims{seq} : Dims{batch, seq});
        x = cast(x, DType::F32);
        sum = sum.defined() ? sum + x : x;
      }
    const Tensor row = reduceSum(sum, {1}, true);
    g.output(given.output, cast(given.isWide   ? sum
                                : given.isDeep ? reshape(row, {batch, 1, 1})
                                               : row,
                                given.result));
    if (!given.second.empty()) g.output(given.second, row);
    Session session(compile(g, {.backend = "reference"}));
    TextEmbedder(session, letters(), 5, kPad);
  };
  EXPECT_NO_THROW(embedder({}));
  EXPECT_NO_THROW(embedder({.more = "token_type_ids"}));
  const std::string inputs =
                        "expected the inputs input_ids, attention_mask and token_type_ids, i64 "
                        "[batch, seq], got '",
                    both = "expected the inputs input_ids and attention_mask",
                    result = "expected embeddings to be f32 [batch, hidden]",
                    one = "expected the one output embeddings";
  for (const auto& [given, message] : std::vector<std::pair<Given, std::string>>{
           {{.entry = "forward"},
            "it has no entry point 'embed', which BERT, RoBERTa and MiniLM have"},
           {{.more = "positions"}, inputs + "positions'"},
           {{.dtype = DType::I32}, inputs + "input_ids'"},
           {{.isRow = true}, inputs + "input_ids'"},
           {{.mask = ""}, both},
           {{.ids = "token_type_ids"}, both},
           {{.output = "hidden"}, one},
           {{.second = "more"}, one},
           {{.result = DType::F64}, result},
           {{.isWide = true}, result},
           {{.isDeep = true}, result}}) {
    SCOPED_TRACE(message);
    test::expectError(ErrorCode::Unsupported, "the model gives no embeddings of texts: " + message,
                      [&] { embedder(given); });
  }
}

}  // namespace
}  // namespace lathe
