// SPDX-License-Identifier: Apache-2.0
// What ends a text: the stop text that comes first in it, wherever tokens cut it, and also where
// the decoder gives its last part only at the end.
#include <limits>

#include <gtest/gtest.h>

#include "lathe/runtime/constraint.h"
#include "lathe/runtime/error.h"
#include "runtime/stop_finder.h"
#include "runtime/text_in_progress.h"

namespace lathe {
namespace {

using Texts = std::vector<std::string>;

TEST(StopTexts, TheFirstInTheTextCounts) {
  struct Case {
    Texts stops, pieces, told;  // what is told behind each piece, and at the end
    bool found;
  };
  for (const Case& c :
       std::vector<Case>{{{"cd", "ab"}, {"xabcdx"}, {"x", ""}, true},
                         {{"ab", "cd"}, {"xabcdx"}, {"x", ""}, true},
                         {{"ab", "cd"}, {"xcdabx"}, {"x", ""}, true},
                         {{"cd", "ab"}, {"xcdabx"}, {"x", ""}, true},
                         // One that begins another: both begin at the same place.
                         {{"abc", "ab"}, {"xab", "c"}, {"x", "", ""}, true},
                         {{"abc", "b"}, {"xab", "c"}, {"xa", "", ""}, true},
                         // Cut by pieces; what is no stop after all is told then.
                         {{"abc"}, {"xa", "b", "cx"}, {"x", "", "", ""}, true},
                         {{"abc"}, {"xa", "b", "d", "a"}, {"x", "", "abd", "", "a"}, false},
                         {{"aab"}, {"aa", "a", "b"}, {"", "a", "", ""}, true},
                         {{"ab", "bcd"}, {"xb", "c", "x"}, {"x", "", "bcx", ""}, false},
                         {{"ab"}, {"a", "a", "a"}, {"", "a", "a", "a"}, false},
                         {{}, {"ab", ""}, {"ab", "", ""}, false},
                         {{"ab"}, {"ab", "x"}, {"", "", ""}, true}}) {
    StopFinder finder(c.stops);
    Texts told;
    for (const std::string& piece : c.pieces) told.push_back(finder.push(piece));
    told.push_back(finder.finish());
    EXPECT_EQ(told, c.told) << testing::PrintToString(c.stops) << testing::PrintToString(c.pieces);
    EXPECT_EQ(finder.found(), c.found) << testing::PrintToString(c.pieces);
  }
  EXPECT_THROW(StopFinder({"a", ""}), Error);
}

// Tokens a. b. c. whose last one is held until the next comes or the text ends.
std::optional<Tokenizer> tokensWithEnds() {
  return Tokenizer::parse(R"({"version": "1.0", "added_tokens": [], "normalizer": null,
    "pre_tokenizer": null, "post_processor": null,
    "decoder": {"type": "BPEDecoder", "suffix": "."},
    "model": {"type": "BPE", "vocab": {"a.": 0, "b.": 1, "c.": 2, "d": 3}, "merges": []}})",
                          "f");
}

struct Made {
  std::string text, told;
  StopReason stopped;
};
Made make(TextGenerationOptions options, std::vector<int> tokens, bool cancels = false) {
  Made made;
  options.onToken = [&](const GenerationEvent& event) {
    made.told += event.text;
    return true;
  };
  const std::optional<Tokenizer> tokenizer = tokensWithEnds();
  TextInProgress text(tokenizer, options, std::vector<int>{0}, 64, 0);
  for (int token : tokens) {
    EXPECT_FALSE(text.ended());
    text.take(token, {});
  }
  if (cancels) text.cancel();
  EXPECT_TRUE(text.ended());
  made.text = text.result().text;
  made.stopped = text.result().stopped;
  return made;
}

TEST(StopTexts, ThatEndWithTheTextAreTold) {
  Made made = make({.newTokens = 2, .stopTexts = {"b"}}, {0, 1});
  EXPECT_EQ(made.text, "a ");
  EXPECT_EQ(made.told, "a ");
  EXPECT_EQ(made.stopped, StopReason::StopText) << "and not its length";
  made = make({.newTokens = 3, .endIds = {3}, .stopTexts = {"b"}}, {0, 1, 3});
  EXPECT_EQ(made.text, "a ");
  EXPECT_EQ(made.stopped, StopReason::StopText) << "and not the token behind it";
  made = make({.newTokens = 2, .stopTexts = {"bx"}}, {0, 1});
  EXPECT_EQ(made.text, "a b");
  EXPECT_EQ(made.told, "a b") << "what was held back is told";
  EXPECT_EQ(made.stopped, StopReason::Length);
  made = make({.newTokens = 5, .stopTexts = {"b"}}, {0, 1}, /*cancels=*/true);
  EXPECT_EQ(made.text, "a ");
  EXPECT_EQ(made.told, "a ");
  EXPECT_EQ(made.stopped, StopReason::Cancelled) << "who cancelled is told so";
  made = make({.newTokens = 5, .stopTexts = {"bx"}}, {0, 1}, /*cancels=*/true);
  EXPECT_EQ(made.text, "a b") << "what was held back is part of the text";
  EXPECT_EQ(made.told, "a ");
}

TEST(TextEnds, EachReasonIsItsOwn) {
  EXPECT_EQ(make({.newTokens = 2}, {0, 1}).stopped, StopReason::Length);
  EXPECT_EQ(make({.newTokens = 2, .endIds = {2, 3}}, {3}).stopped, StopReason::EndToken);
  const Made made = make({.newTokens = 3, .endIds = {1}}, {0, 1});
  EXPECT_EQ(made.text, "a") << "the end has no text";
  EXPECT_EQ(made.stopped, StopReason::EndToken);
  // Positions: the last token is not fed back.
  const std::optional<Tokenizer> tokenizer = tokensWithEnds();
  const TextGenerationOptions options{.newTokens = 9};
  for (auto [prompt, most, count] : {std::tuple(4, 6, 3), {6, 6, 1}, {1, 9, 9}}) {
    TextInProgress text(tokenizer, options, std::vector<int>(size_t(prompt), 0), most, 0);
    EXPECT_EQ(text.left(), count);
    EXPECT_EQ(text.positions(), std::max(prompt, prompt + count - 1));
    while (!text.ended()) text.take(0, {});
    EXPECT_EQ(int(text.result().tokens.size()), count);
    EXPECT_EQ(text.result().stopped, count < 9 ? StopReason::Positions : StopReason::Length);
  }
  EXPECT_THROW(TextInProgress(tokenizer, options, std::vector<int>(7, 0), 6, 0), Error);
}

// The end is drawn where the text is whole, and nowhere else; an end beyond the logits is none.
TEST(TextEnds, AreWhereAConstraintIsMet) {
  const std::optional<Tokenizer> tokenizer = Tokenizer::parse(
      R"({"version": "1.0", "normalizer": null, "pre_tokenizer": null, "post_processor": null,
    "added_tokens": [{"id": 2, "content": "<end>", "single_word": false, "lstrip": false,
                      "rstrip": false, "normalized": false, "special": true}],
    "decoder": {"type": "Fuse"},
    "model": {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": []}})",
      "f");
  TextGenerationOptions options{.newTokens = 9, .endIds = {2, 3, int64_t(1) << 40}};
  options.constraint = Constraint::regex("ab?b", *tokenizer);
  TextInProgress text(tokenizer, options, std::vector<int>{0}, 64, 0);
  const std::vector<float> logits = {1, 2, 3};
  constexpr float kNone = -std::numeric_limits<float>::infinity();
  using Numbers = std::vector<float>;
  auto permitted = [&] {
    const std::span<const float> numbers = text.permitted(logits);
    return Numbers(numbers.begin(), numbers.end());
  };
  EXPECT_EQ(permitted(), (Numbers{1, kNone, kNone}));
  text.take(0, {});
  EXPECT_EQ(permitted(), (Numbers{kNone, 2, kNone}));
  text.take(1, {});
  EXPECT_FALSE(text.ended()) << "it may go on";
  EXPECT_EQ(permitted(), (Numbers{kNone, 2, 3}));
  text.take(1, {});
  EXPECT_TRUE(text.ended());
  EXPECT_EQ(text.result().text, "abb");
  EXPECT_EQ(text.result().stopped, StopReason::Complete);
}

// The first id is one like others.
TEST(TextEnds, TheEndMayBeTheFirstToken) {
  const std::optional<Tokenizer> tokenizer = Tokenizer::parse(
      R"({"version": "1.0", "added_tokens": [{"id": 0, "content": "<end>", "special": true}],
    "decoder": {"type": "Fuse"}, "model": {"type": "BPE", "vocab": {"<end>": 0, "a": 1},
    "merges": []}})",
      "f");
  TextGenerationOptions options{.newTokens = 9, .endIds = {0}};
  options.constraint = Constraint::regex("aa?", *tokenizer);
  TextInProgress text(tokenizer, options, std::vector<int>{1}, 64, 0);
  const std::vector<float> logits = {3, 2};
  EXPECT_EQ(text.permitted(logits)[0], -std::numeric_limits<float>::infinity());
  text.take(1, {});
  EXPECT_EQ(text.permitted(logits)[0], 3) << "the text is whole";
  EXPECT_EQ(text.permitted(logits)[1], 2) << "and may go on";
  text.take(0, {});
  EXPECT_EQ(text.result().text, "a");
  EXPECT_EQ(text.result().stopped, StopReason::EndToken);
}

}  // namespace
}  // namespace lathe
