// SPDX-License-Identifier: Apache-2.0
// Which entry point runs with which ids at which positions, call by call, and what generators say.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lathe/runtime/batch_generator.h"
#include "lathe/runtime/constraint.h"
#include "lathe/runtime/device.h"
#include "lathe/runtime/generator.h"
#include "lathe/runtime/kv_slots.h"
#include "runtime/text_in_progress.h"
#include "tests/unit/test_files.h"

namespace lathe {
namespace {

using test::messageOf;
using Ids = std::vector<int>;

constexpr int64_t kVocab = 9;

// "prefill [1 2; 3 4] at 0 0"
std::vector<std::string> calls;

class ListingKernel final : public Kernel {
 public:
  explicit ListingKernel(std::string entry) : entry_(std::move(entry)) {}
  size_t bind(const KernelShapes& shapes) override {
    rows_ = shapes.shapes[0][0];
    tokens_ = shapes.shapes[0][1];
    return 0;
  }
  // The logits are the row's number, and one more at its last id.
  void run(void* const* p, std::byte*) override {
    auto* ids = static_cast<const int64_t*>(p[0]);
    auto* positions = static_cast<const int64_t*>(p[1]);
    auto* logits = static_cast<float*>(p[3]);
    std::string text = entry_ + " [";
    for (int64_t row = 0; row < rows_; ++row) {
      for (int64_t i = 0; i < tokens_; ++i)
        text += (i ? " " : row ? "; " : "") + std::to_string(ids[row * tokens_ + i]);
      for (int64_t id = 0; id < kVocab; ++id)
        logits[row * kVocab + id] = float(row + (id == ids[row * tokens_ + tokens_ - 1]));
    }
    text += "] at";
    for (int64_t row = 0; row < rows_; ++row) text += " " + std::to_string(positions[row]);
    calls.push_back(text);
  }

 private:
  std::string entry_;
  int64_t rows_ = 0, tokens_ = 0;
};

class ListingDevice final : public Device {
 public:
  std::unique_ptr<Kernel> makeKernel(const Program&, const EntryPoint& entry,
                                     const Call&) override {
    return std::make_unique<ListingKernel>(entry.name);
  }
};

const bool registered = [] {
  registerDevice("listing", [](std::shared_ptr<const Program>, const DeviceOptions&) {
    return std::make_unique<ListingDevice>();
  });
  return true;
}();

Program program(int64_t chunk = 64, bool positionsFirst = false, int64_t cacheStep = 1) {
  Program p;
  p.backend = "listing";
  const DimExpr batch = DimExpr::symbol("batch"), seq = DimExpr::symbol("seq"),
                cache = DimExpr::symbol("cache");
  p.symbols = {{"batch", 1, 4, 1}, {"seq", 1, chunk, 1}, {"cache", 1, 128, cacheStep}};
  p.states = {{"k", DType::F32, {batch, cache}}};
  for (const char* name : {"decode", "prefill"}) {
    EntryPoint e;
    e.name = name;
    const DimExpr tokens = e.name == "decode" ? DimExpr(1) : seq;
    e.slots = {{SlotKind::Argument, DType::I64, {batch, tokens}, 0, -1},
               {SlotKind::Argument, DType::I64, {batch}, 1, -1},
               {SlotKind::State, DType::F32, {batch, cache}, 0, -1},
               {SlotKind::Result, DType::F32, {batch, DimExpr(kVocab)}, 0, -1}};
    e.inputs = {{"input_ids", 0}, {"positions", 1}};
    if (positionsFirst) {
      std::swap(e.inputs[0], e.inputs[1]);
      std::swap(e.slots[0].index, e.slots[1].index);
    }
    e.outputs = {{"logits", 3}};
    e.statesIn = e.statesOut = {{"k", 2}};
    e.calls = {{"list", "", "{}", {0, 1, 2}, {3}, "test"}};
    p.entries.push_back(std::move(e));
  }
  return p;
}

std::vector<std::string> taken() { return std::exchange(calls, {}); }
using Lines = std::vector<std::string>;

TEST(BatchCalls, PromptsOfOneLengthRunTogether) {
  ASSERT_TRUE(registered);
  Session session(program());
  BatchGenerator generator(session, {kVocab, 128});
  EXPECT_EQ(generator.maxRows(), 4);
  EXPECT_EQ(generator.maxPositions(), 128);
  generator.reserve(2, 10);
  const std::span<const float> logits = generator.prefill(std::vector<Ids>{{1, 2}, {3, 4}});
  EXPECT_EQ(taken(), (Lines{"prefill [1 2; 3 4] at 0 0"}));
  EXPECT_EQ(logits.size(), size_t(2 * kVocab));
  EXPECT_EQ(logits[size_t(kVocab) + 4], 2);
  generator.next(Ids{5, BatchGenerator::kRest});
  EXPECT_EQ(taken(), (Lines{"decode [5; 0] at 2 2"}));
  generator.next(Ids{6, 7});
  EXPECT_EQ(taken(), (Lines{"decode [6; 7] at 3 2"}));
  generator.gather(std::vector<int64_t>{1, 0});
  generator.next(Ids{1, 2});
  EXPECT_EQ(taken(), (Lines{"decode [1; 2] at 3 4"}));
}

TEST(BatchCalls, PromptsOfOtherLengthsEndWithADecode) {
  Session session(program());
  BatchGenerator generator(session, {kVocab, 128});
  generator.reserve(3, 10);
  generator.prefill(std::vector<Ids>{{1, 2, 3, 4}, {5}, {6, 7, 8}});
  // The last of the longest runs with those of the others, each where its text ends.
  EXPECT_EQ(taken(),
            (Lines{"prefill [1 2 3; 5 5 5; 6 7 8] at 0 0 0", "decode [4; 5; 8] at 3 0 2"}));
  generator.next(Ids{1, 2, 3});
  EXPECT_EQ(taken(), (Lines{"decode [1; 2; 3] at 4 1 3"}));
}

TEST(BatchCalls, InputsMayStandInEitherOrder) {
  Session session(program(64, true));
  BatchGenerator generator(session, {kVocab, 128});
  generator.reserve(2, 10);
  generator.prefill(std::vector<Ids>{{1, 2, 3}, {4}});
  generator.next(Ids{5, 6});
  EXPECT_EQ(taken(),
            (Lines{"prefill [1 2; 4 4] at 0 0", "decode [3; 4] at 2 0", "decode [5; 6] at 3 1"}));
  const auto slots = contiguousSlots(session, {kVocab, 128}, 2, 20);
  slots->prefill(1, Ids{7, 8});
  slots->next(std::vector<int64_t>{1}, Ids{1});
  EXPECT_EQ(taken(), (Lines{"prefill [7 8] at 0", "decode [1] at 2"}));
}

TEST(BatchCalls, RoomIsAMultipleOfTheProgramsStep) {
  Session session(program(64, false, 48));
  BatchGenerator generator(session, {kVocab, 128});
  generator.reserve(1, 49);
  EXPECT_EQ(messageOf([&] { generator.prefill(std::vector<Ids>{Ids(97, 1)}); }),
            "row 0: 97 tokens at position 0 end past the 96 positions that were reserved");
  EXPECT_EQ(messageOf([&] { generator.reserve(1, 97); }), "expected at most 96 positions, got 97");
}

TEST(BatchCalls, LongPromptsRunInChunks) {
  Session session(program(2));
  BatchGenerator generator(session, {kVocab, 128});
  generator.reserve(1, 10);
  generator.prefill(std::vector<Ids>{{1, 2, 3, 4, 5}});
  EXPECT_EQ(taken(), (Lines{"prefill [1 2] at 0", "prefill [3 4] at 2", "prefill [5] at 4"}));
}

// A row that rests at the end of its room writes over its last place.
TEST(BatchCalls, RowsThatRestStayInTheirRoom) {
  Session session(program());
  BatchGenerator generator(session, {kVocab, 128});
  generator.reserve(2, 64);
  generator.prefill(std::vector<Ids>{Ids(63, 1), {2}});
  generator.next(Ids{3, 4});
  taken();
  generator.next(Ids{BatchGenerator::kRest, 5});
  EXPECT_EQ(taken(), (Lines{"decode [0; 5] at 63 2"}));
  EXPECT_EQ(messageOf([&] { generator.next(Ids{3, 5}); }),
            "row 0: 1 tokens at position 64 end past the 64 positions that were reserved");
  EXPECT_TRUE(taken().empty());
}

TEST(BatchCalls, MistakesAreToldBeforeAnythingRuns) {
  Session session(program());
  BatchGenerator generator(session, {kVocab, 128});
  for (int64_t rows : {0, 5})
    EXPECT_EQ(messageOf([&] { generator.reserve(rows, 10); }),
              "expected from 1 to 4 texts at once, got " + std::to_string(rows));
  generator.reserve(4, 10);
  generator.reserve(2, 10);
  auto prefill = [&](std::vector<Ids> prompts) {
    return messageOf([&] { generator.prefill(prompts); });
  };
  EXPECT_EQ(prefill({{1}}), "expected a prompt for each of 2 rows, got 1");
  EXPECT_EQ(prefill({{1}, {}}), "row 1: expected at least one token, got none");
  EXPECT_EQ(prefill({{1}, {2, 9}}), "token 1: expected an id from 0 to 8, got 9");
  EXPECT_EQ(prefill({{1}, Ids(65, 2)}),
            "row 1: 65 tokens at position 0 end past the 64 positions that were reserved");
  EXPECT_TRUE(taken().empty());
  EXPECT_EQ(prefill({{1}, {2}}), "");
  EXPECT_EQ(prefill({{1}, {2}}),
            "expected texts at their beginning; call reserve() before another prefill");
  EXPECT_EQ(messageOf([&] { generator.next(Ids{1}); }),
            "expected a token for each of 2 rows, got 1");
  EXPECT_EQ(messageOf([&] { generator.next(Ids{1, 9}); }),
            "token 0: expected an id from 0 to 8, got 9");
  EXPECT_EQ(taken().size(), 1u);
}

TEST(GeneratorCalls, GoOnWhereTheTextDoes) {
  Session session(program());
  Generator generator(session, {kVocab, 128});
  generator.reserve(64);
  generator.prefill(Ids{1, 2, 3});
  generator.next(4);
  EXPECT_EQ(taken(), (Lines{"prefill [1 2 3] at 0", "decode [4] at 3"}));
  EXPECT_EQ(generator.position(), 4);
  // As much as both have, and one token less than the prompt.
  generator.resume(Ids{1, 2, 5}, 10);
  EXPECT_EQ(generator.position(), 2);
  generator.resume(Ids{1, 2}, 64);
  EXPECT_EQ(generator.position(), 1);
  generator.prefill(Ids{2, 3});
  generator.rewind(3);
  EXPECT_EQ(generator.position(), 3);
  for (int64_t position : {-1, 4})
    EXPECT_EQ(messageOf([&] { generator.rewind(position); }),
              "expected a position from 0 to 3, got " + std::to_string(position));
  generator.resume(Ids{1, 2, 3}, 65);
  EXPECT_EQ(generator.position(), 0) << "it needs more room";
  EXPECT_EQ(messageOf([&] { generator.prefill({}); }), "expected at least one token, got none");
  EXPECT_EQ(messageOf([&] { generator.prefill(Ids(129, 1)); }),
            "129 tokens at position 0 end past the 128 positions that were reserved (the model has "
            "128)");
  taken();
}

TEST(SlotCalls, RowsBetweenRest) {
  Session session(program(8));
  const auto slots = contiguousSlots(session, {kVocab, 128}, 4, 20);
  EXPECT_EQ(slots->slots(), 4);
  EXPECT_EQ(slots->vocab(), kVocab);
  EXPECT_EQ(slots->positions(), 20);
  EXPECT_EQ(slots->maxChunk(), 8);
  slots->begin(1, 1, 0, 20);
  slots->prefill(1, Ids{1, 2});
  slots->begin(3, 3, 0, 20);
  slots->prefill(3, Ids{3});
  EXPECT_EQ(taken(), (Lines{"prefill [1 2] at 0", "prefill [3] at 0"}));
  const std::vector<int64_t> both{3, 1};
  const std::span<const float> logits = slots->next(both, Ids{4, 5});
  EXPECT_EQ(taken(), (Lines{"decode [5; 0; 4] at 2 0 1"}));
  // In the order that was asked for: slot 3 is the third row.
  EXPECT_EQ(logits[4], 3);
  EXPECT_EQ(logits[size_t(kVocab) + 5], 1);
  EXPECT_EQ(Ids(slots->ids(3).begin(), slots->ids(3).end()), (Ids{3, 4}));
  slots->begin(0, 1, 2, 20);
  EXPECT_EQ(Ids(slots->ids(0).begin(), slots->ids(0).end()), (Ids{1, 2}));
  for (int64_t count : {-1, 4})
    EXPECT_EQ(messageOf([&] { slots->begin(0, 1, count, 20); }),
              "expected from 0 to 3 tokens to go on from, got " + std::to_string(count));
  EXPECT_EQ(messageOf([&] { slots->prefill(2, Ids(9, 1)); }), "expected from 1 to 8 tokens, got 9");
  EXPECT_EQ(messageOf([&] { slots->prefill(2, {}); }), "expected from 1 to 8 tokens, got 0");
  EXPECT_EQ(messageOf([&] { slots->prefill(2, Ids{9}); }),
            "token 0: expected an id from 0 to 8, got 9");
  for (int i = 0; i < 2; ++i) slots->prefill(2, Ids(8, 1));
  EXPECT_EQ(messageOf([&] { slots->prefill(2, Ids(5, 1)); }),
            "slot 2: 5 tokens at position 16 end past the 20 positions that it has");
  slots->clear(2);
  EXPECT_TRUE(slots->ids(2).empty());
  EXPECT_EQ(messageOf([&] { contiguousSlots(session, {kVocab, 128}, 5, 20); }),
            "expected from 1 to 4 texts at once, got 5");
  taken();
}

//===--- texts ------------------------------------------------------------------------------===//

TEST(TextOptions, ThatMakeNoSenseAreToldSo) {
  auto refusal = [](const TextGenerationOptions& options, bool hasTokenizer = true) {
    return messageOf([&] { checkTextOptions(options, hasTokenizer); });
  };
  EXPECT_EQ(refusal({.newTokens = 1, .logProbabilities = 0}), "");
  EXPECT_EQ(refusal({.newTokens = 0}), "expected at least 1 token to add, got 0");
  EXPECT_EQ(refusal({.newTokens = 1, .logProbabilities = -1}),
            "expected a count of likeliest tokens >= 0, got -1");
  EXPECT_EQ(refusal({.newTokens = 1, .stopTexts = {"a"}}, false),
            "expected a tokenizer for stop texts, got none; give the model's folder its tokenizer, "
            "or leave that out");
  EXPECT_EQ(refusal({.newTokens = 1, .stopTexts = {"a"}}), "");
  // A constraint that was made with a tokenizer does not give the text one.
  const std::shared_ptr<Constraint> constraint = Constraint::regex(
      "a*", Tokenizer::parse(R"({"version": "1.0", "added_tokens": [], "normalizer": null,
                                 "pre_tokenizer": null, "post_processor": null,
                                 "decoder": {"type": "ByteLevel"},
                                 "model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}})",
                             "f"));
  EXPECT_EQ(refusal({.newTokens = 1, .constraint = constraint}, false),
            "expected a tokenizer for a constraint, got none; give the model's folder its "
            "tokenizer, or leave that out");
  EXPECT_EQ(refusal({.newTokens = 1, .constraint = constraint}), "");
  // How many tokens are drafted counts where somebody drafts.
  NgramDrafter drafter;
  for (const int64_t count : {0, -1})
    EXPECT_EQ(refusal({.newTokens = 1, .drafter = &drafter, .draftTokens = count}),
              "expected at least 1 token to draft, got " + std::to_string(count) +
                  "; leave the drafter out to draft none");
  EXPECT_EQ(refusal({.newTokens = 1, .drafter = &drafter, .draftTokens = 1}), "");
  EXPECT_EQ(refusal({.newTokens = 1, .draftTokens = 0}), "");
  EXPECT_EQ(messageOf([] { TextInProgress(std::nullopt, {.newTokens = 1}, Ids(7, 0), 6, 0); }),
            "the prompt has 7 tokens, the model takes at most 6 positions");
}

TEST(TextOptions, ReasonsHaveNames) {
  const std::pair<StopReason, const char*> names[] = {
      {StopReason::Length, "length"},       {StopReason::Positions, "positions"},
      {StopReason::EndToken, "eos"},        {StopReason::StopText, "stop"},
      {StopReason::Cancelled, "cancelled"}, {StopReason::Complete, "complete"}};
  for (const auto& [reason, name] : names) EXPECT_EQ(nameOf(reason), name);
}

// Without a tokenizer: ids and their probabilities alone.
TEST(TextOptions, LikeliestTokensAreAsManyAsAreAskedFor) {
  const TextGenerationOptions options{.newTokens = 3, .logProbabilities = 2};
  TextInProgress text(std::nullopt, options, Ids{0}, 64, 0);
  const std::vector<float> logits{0, std::log(2.0f), std::log(5.0f)};
  text.take(1, logits);
  const GeneratedToken& token = text.result().tokens[0];
  EXPECT_EQ(token.id, 1);
  EXPECT_NEAR(token.logProbability, std::log(2.0 / 8), 1e-6);
  ASSERT_EQ(token.likeliest.size(), 2u);
  EXPECT_EQ(token.likeliest[0].id, 2);
  EXPECT_NEAR(token.likeliest[0].probability, std::log(5.0 / 8), 1e-6);
  EXPECT_EQ(token.likeliest[1].id, 1);
  EXPECT_EQ(text.left(), 2);
  EXPECT_EQ(text.last(), 1);
  EXPECT_FALSE(text.ended());
  text.cancel();
  EXPECT_TRUE(text.ended());
  EXPECT_EQ(text.result().stopped, StopReason::Cancelled);
  const TextGenerationOptions withoutOthers{.newTokens = 1, .logProbabilities = 0};
  TextInProgress none(std::nullopt, withoutOthers, Ids{0}, 64, 0);
  none.take(2, logits);
  EXPECT_TRUE(none.result().tokens[0].likeliest.empty());
  EXPECT_NEAR(none.result().tokens[0].logProbability, std::log(5.0 / 8), 1e-6);
  none.cancel();
  EXPECT_EQ(none.result().stopped, StopReason::Length) << "it had ended";
}

}  // namespace
}  // namespace lathe
