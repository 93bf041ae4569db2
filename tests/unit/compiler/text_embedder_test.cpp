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
    for (const char* text : {"ab", "c", "dddd", "a", "abcd", "b"})
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
}

}  // namespace
}  // namespace lathe
