// SPDX-License-Identifier: Apache-2.0
// Generator on a device of the test's own, which notes what each step was asked.
#include "lathe/runtime/generator.h"

#include <algorithm>
#include <numeric>

#include <gmock/gmock.h>

#include "lathe/runtime/batch_generator.h"
#include "lathe/runtime/device.h"
#include "tests/unit/test_files.h"

namespace lathe {
namespace {

using test::expectError;
using ::testing::ElementsAre;

constexpr int64_t kVocab = 11;

struct Step {
  int64_t tokens, position, capacity, lastId;
  bool operator==(const Step&) const = default;
};
std::vector<Step> steps;

// Operands: ids [batch, tokens], positions [batch], state [batch, cache]. The likeliest token is
// (last id + position of the last id) mod vocab.
class NotingKernel final : public Kernel {
 public:
  size_t bind(const KernelShapes& shapes) override {
    tokens_ = shapes.shapes[0][1];
    capacity_ = shapes.shapes[2][1];
    return 0;
  }
  void run(void* const* pointers, std::byte*) override {
    auto* ids = static_cast<const int64_t*>(pointers[0]);
    int64_t position = *static_cast<const int64_t*>(pointers[1]);
    auto* logits = static_cast<float*>(pointers[3]);
    std::fill_n(logits, kVocab, 0.0f);
    logits[(ids[tokens_ - 1] + position + tokens_ - 1) % kVocab] = 1;
    steps.push_back({tokens_, position, capacity_, ids[tokens_ - 1]});
  }

 private:
  int64_t tokens_ = 0, capacity_ = 0;
};

class NotingDevice final : public Device {
 public:
  std::unique_ptr<Kernel> makeKernel(const Program&, const EntryPoint&, const Call&) override {
    return std::make_unique<NotingKernel>();
  }
};

const bool registered = [] {
  auto open = [](std::shared_ptr<const Program>, const DeviceOptions&) {
    return std::make_unique<NotingDevice>();
  };
  registerDevice("noting", open);
  registerDevice("noting-700", open, 700);
  return true;
}();

struct Sizes {
  int64_t maxSeq = 4096, maxCache = 4096, vocab = kVocab;
  std::string cache = "cache", ids = "input_ids";
};

EntryPoint makeEntry(const std::string& name, const DimExpr& tokens, const Sizes& sizes) {
  DimExpr batch = DimExpr::symbol("batch");
  EntryPoint e;
  e.name = name;
  e.slots = {{SlotKind::Argument, DType::I64, {batch, tokens}, 0, -1},
             {SlotKind::Argument, DType::I64, {batch}, 1, -1},
             {SlotKind::State, DType::F32, {batch, DimExpr::symbol(sizes.cache)}, 0, -1},
             {SlotKind::Result, DType::F32, {batch, DimExpr(sizes.vocab)}, 0, -1}};
  e.inputs = {{sizes.ids, 0}, {"positions", 1}};
  e.outputs = {{"logits", 3}};
  e.statesIn = e.statesOut = {{"k", 2}};
  e.calls = {{"note", "", "{}", {0, 1, 2}, {3}, "test"}};
  return e;
}

Program makeProgram(const Sizes& sizes = {}) {
  Program p;
  p.backend = "noting";
  p.symbols = {
      {"batch", 1, 4, 1}, {"seq", 1, sizes.maxSeq, 1}, {sizes.cache, 1, sizes.maxCache, 1}};
  p.states = {{"k", DType::F32, {DimExpr::symbol("batch"), DimExpr::symbol(sizes.cache)}}};
  p.entries.push_back(makeEntry("prefill", DimExpr::symbol("seq"), sizes));
  p.entries.push_back(makeEntry("decode", DimExpr(1), sizes));
  return p;
}

int likeliest(std::span<const float> logits) {
  return int(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

std::vector<int> ids(size_t count) {
  std::vector<int> list(count);
  for (size_t i = 0; i < count; ++i) list[i] = int(i % kVocab);
  return list;
}

class GeneratorTest : public ::testing::Test {
 protected:
  void SetUp() override { steps.clear(); }
};

TEST_F(GeneratorTest, LongPromptsRunInChunksWithTheirOffsets) {
  Session session(makeProgram());
  Generator generator(session, {kVocab, 4096});
  generator.reserve(1100);
  std::span<const float> logits = generator.prefill(ids(1100));
  ASSERT_EQ(steps.size(), 3u);
  EXPECT_EQ(steps[0], (Step{512, 0, 1152, 511 % kVocab}));
  EXPECT_EQ(steps[1], (Step{512, 512, 1152, 1023 % kVocab}));
  EXPECT_EQ(steps[2], (Step{76, 1024, 1152, 1099 % kVocab}));
  ASSERT_EQ(logits.size(), size_t(kVocab));
  EXPECT_EQ(likeliest(logits), (1099 % kVocab + 1099) % kVocab);
  EXPECT_EQ(generator.position(), 1100);
}

TEST_F(GeneratorTest, ADeviceSaysHowLongChunksAre) {
  Program program = makeProgram();
  program.backend = "noting-700";
  Session session(std::move(program));
  Generator generator(session, {kVocab, 4096});
  generator.reserve(1100);
  generator.prefill(ids(1100));
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[0], (Step{700, 0, 1152, 699 % kVocab}));
  EXPECT_EQ(steps[1], (Step{400, 700, 1152, 1099 % kVocab}));
  EXPECT_EQ(promptTokensOf("noting"), kPromptTokens);
  EXPECT_EQ(promptTokensOf("no such device"), kPromptTokens);
  expectError(ErrorCode::InvalidArgument, "expected promptTokens of 1 or more, got 0",
              [] { registerDevice("none", nullptr, 0); });
}

// Rows side by side share what one pass takes, down to passes that are too short to be fast.
TEST_F(GeneratorTest, PromptsSideBySideRunInShorterChunks) {
  for (size_t rows : {1u, 3u, 4u}) {
    steps.clear();
    Session session(makeProgram());
    BatchGenerator generator(session, {kVocab, 4096});
    generator.reserve(int64_t(rows), 600);
    generator.prefill(std::vector(rows, ids(600)));
    ASSERT_FALSE(steps.empty());
    EXPECT_EQ(steps[0].tokens, 512 / int64_t(rows));
    EXPECT_EQ(steps.back().lastId, 599 % kVocab);
  }
}

TEST_F(GeneratorTest, ChunksKeepToTheProgramsLongestCall) {
  Session session(makeProgram({.maxSeq = 40}));
  Generator generator(session, {kVocab, 4096});
  generator.reserve(100);
  generator.prefill(ids(100));
  std::vector<int64_t> tokens;
  for (const Step& s : steps) tokens.push_back(s.tokens);
  EXPECT_THAT(tokens, ElementsAre(40, 40, 20));
}

TEST_F(GeneratorTest, DecodeContinuesAfterThePrompt) {
  Session session(makeProgram());
  Generator generator(session, {kVocab, 4096});
  generator.reserve(10);
  generator.prefill(std::vector<int>{3, 4});
  EXPECT_EQ(likeliest(generator.next(6)), (6 + 2) % kVocab);
  EXPECT_EQ(likeliest(generator.next(7)), (7 + 3) % kVocab);
  EXPECT_EQ(steps.back(), (Step{1, 3, 64, 7}));
}

TEST_F(GeneratorTest, CapacityIsAMultipleOf64UpToTheModelsLength) {
  Session session(makeProgram());
  Generator generator(session, {kVocab, 100});
  generator.reserve(64);
  generator.next(1);
  generator.reserve(65);
  generator.next(1);
  EXPECT_EQ(steps[0].capacity, 64);
  EXPECT_EQ(steps[1].capacity, 100);
}

TEST_F(GeneratorTest, CapacityKeepsToTheMultipleOfTheProgram) {
  struct Row {
    int64_t multiple, most, positions;
    int64_t capacity;  // 0: refused
  };
  for (const Row& row : std::vector<Row>{{1, 4096, 1, 64},
                                         {32, 4096, 1, 64},
                                         {64, 4096, 65, 128},
                                         {48, 4096, 1, 48},
                                         {48, 4096, 48, 48},
                                         {48, 4096, 49, 96},
                                         {128, 4096, 1, 128},
                                         {48, 100, 96, 96},
                                         {48, 100, 97, 0},
                                         {64, 130, 128, 128},
                                         {64, 130, 129, 0},
                                         {1, 130, 130, 130}}) {
    SCOPED_TRACE(std::to_string(row.positions) + " positions in multiples of " +
                 std::to_string(row.multiple) + " up to " + std::to_string(row.most));
    steps.clear();
    Program program = makeProgram();
    program.symbols[2].multiple = row.multiple;
    Session session(std::move(program));
    Generator generator(session, {kVocab, row.most});
    if (!row.capacity) {
      expectError(ErrorCode::InvalidArgument,
                  "expected at most " + std::to_string(row.most / row.multiple * row.multiple) +
                      " positions, got " + std::to_string(row.positions),
                  [&] { generator.reserve(row.positions); });
      continue;
    }
    generator.reserve(row.positions);
    generator.next(1);
    EXPECT_EQ(steps[0].capacity, row.capacity);
  }
}

TEST_F(GeneratorTest, OnePositionIsTheLeast) {
  Session session(makeProgram());
  expectError(ErrorCode::InvalidArgument, "expected at least 1 of the model's positions, got 0",
              [&] { Generator(session, {kVocab, 0}); });
  Generator generator(session, {kVocab, 1});
  expectError(ErrorCode::InvalidArgument, "expected from 1 to 1 positions",
              [&] { generator.reserve(0); });
  generator.reserve(1);
  EXPECT_EQ(likeliest(generator.next(3)), 3);
}

TEST_F(GeneratorTest, EntryPointsMayStandInEitherOrder) {
  Program program = makeProgram();
  std::swap(program.entries[0], program.entries[1]);
  Session session(std::move(program));
  Generator generator(session, {kVocab, 70});
  generator.reserve(10);
  EXPECT_EQ(likeliest(generator.prefill(ids(4))), (3 + 3) % kVocab);
  EXPECT_EQ(likeliest(generator.next(5)), (5 + 4) % kVocab);
}

TEST_F(GeneratorTest, AProgramCompiledForLessLowersTheMaximum) {
  Session session(makeProgram({.maxCache = 50}));
  Generator generator(session, {kVocab, 100});
  EXPECT_EQ(generator.maxPositions(), 50);
  expectError(ErrorCode::InvalidArgument,
              "expected from 1 to 50 positions, the model's maximum, got 51",
              [&] { generator.reserve(51); });
}

TEST_F(GeneratorTest, StepsAllocateNothing) {
  Session session(makeProgram());
  Generator generator(session, {kVocab, 4096});
  generator.reserve(1000);
  generator.prefill(ids(5));
  generator.next(1);
  const uint64_t before = Session::allocations();
  for (int i = 0; i < 100; ++i) generator.next(i % int(kVocab));
  EXPECT_EQ(Session::allocations(), before);
}

TEST_F(GeneratorTest, RestartGoesBackToPositionZero) {
  Session session(makeProgram());
  Generator generator(session, {kVocab, 4096});
  generator.reserve(10);
  generator.prefill(ids(5));
  generator.restart();
  generator.prefill(ids(3));
  EXPECT_EQ(steps.back().position, 0);
  EXPECT_EQ(generator.position(), 3);
}

TEST_F(GeneratorTest, IdsOutsideTheVocabularyAreToldBeforeAnythingRuns) {
  Session session(makeProgram());
  Generator generator(session, {kVocab, 4096});
  generator.reserve(10);
  expectError(ErrorCode::InvalidArgument, "token 1: expected an id from 0 to 10, got 11",
              [&] { generator.prefill(std::vector<int>{3, 11}); });
  expectError(ErrorCode::InvalidArgument, "expected an id from 0 to 10, got -1",
              [&] { generator.next(-1); });
  expectError(ErrorCode::InvalidArgument, "expected at least one token, got none",
              [&] { generator.prefill({}); });
  EXPECT_TRUE(steps.empty());
}

TEST_F(GeneratorTest, PositionsPastWhatWasReservedAreErrors) {
  Session session(makeProgram());
  Generator generator(session, {kVocab, 70});
  generator.reserve(70);
  generator.prefill(ids(69));
  generator.next(1);
  const size_t ran = steps.size();
  expectError(ErrorCode::InvalidArgument,
              "1 tokens at position 70 end past the 70 positions that were reserved",
              [&] { generator.next(1); });
  EXPECT_EQ(steps.size(), ran);
}

TEST_F(GeneratorTest, NothingRunsBeforeReserve) {
  Session session(makeProgram());
  Generator generator(session, {kVocab, 70});
  expectError(ErrorCode::InvalidArgument, "end past the 0 positions", [&] { generator.next(1); });
}

TEST_F(GeneratorTest, ProgramsWithOtherEntryPointsAreRefused) {
  Session other(makeProgram({.ids = "tokens"}));
  expectError(ErrorCode::InvalidArgument,
              "expected the inputs input_ids i64 [batch, seq] and positions i64 [batch]",
              [&] { Generator(other, {kVocab, 70}); });
  Session vocabulary(makeProgram({.vocab = 12}));
  expectError(ErrorCode::InvalidArgument, "it has logits for 12 tokens, the model has 11",
              [&] { Generator(vocabulary, {kVocab, 70}); });
  Session noCache(makeProgram({.cache = "memory"}));
  expectError(ErrorCode::InvalidArgument, "the program has no symbol 'cache'",
              [&] { Generator(noCache, {kVocab, 70}); });
}

// Each of the two entry points by itself, in everything that the generator relies on.
TEST_F(GeneratorTest, EachEntryPointIsChecked) {
  struct Row {
    const char* name;
    void (*change)(EntryPoint&);
    const char* words;
  };
  const char *inputs = "expected the inputs input_ids", *output = "expected the one output logits",
             *logits = "expected logits to be f32 [batch, vocab]";
  const std::vector<Row> rows{
      {"ids", [](EntryPoint& e) { e.inputs[0].name = "tokens"; }, inputs},
      {"positions", [](EntryPoint& e) { e.inputs[1].name = "places"; }, inputs},
      {"ids of i32", [](EntryPoint& e) { e.slots[0].dtype = DType::I32; }, inputs},
      {"positions of i32", [](EntryPoint& e) { e.slots[1].dtype = DType::I32; }, inputs},
      {"ids in a row", [](EntryPoint& e) { e.slots[0].shape.pop_back(); }, inputs},
      {"a position per token", [](EntryPoint& e) { e.slots[1].shape.push_back(DimExpr(1)); },
       inputs},
      {"ids alone", [](EntryPoint& e) { e.inputs.pop_back(); }, inputs},
      {"another output", [](EntryPoint& e) { e.outputs[0].name = "hidden"; }, output},
      {"two outputs", [](EntryPoint& e) { e.outputs.push_back({"more", 3}); }, output},
      {"no output", [](EntryPoint& e) { e.outputs.clear(); }, output},
      {"logits of i32", [](EntryPoint& e) { e.slots[3].dtype = DType::I32; }, logits},
      {"logits per token", [](EntryPoint& e) { e.slots[3].shape.push_back(DimExpr(1)); }, logits},
      {"more logits", [](EntryPoint& e) { e.slots[3].shape[1] = DimExpr(kVocab + 1); },
       "it has logits for 12 tokens, the model has 11"},
      {"fewer logits", [](EntryPoint& e) { e.slots[3].shape[1] = DimExpr(kVocab - 1); },
       "it has logits for 10 tokens, the model has 11"},
  };
  for (size_t entry : {0, 1})
    for (const Row& row : rows) {
      SCOPED_TRACE(std::string(entry ? "decode: " : "prefill: ") + row.name);
      Program program = makeProgram();
      row.change(program.entries[entry]);
      Session session(std::move(program));
      expectError(ErrorCode::InvalidArgument, row.words, [&] { Generator(session, {kVocab, 70}); });
      expectError(ErrorCode::InvalidArgument, entry ? "decode" : "prefill",
                  [&] { Generator(session, {kVocab, 70}); });
    }
}

TEST_F(GeneratorTest, InputsMayStandInEitherOrder) {
  for (size_t entry : {0, 1}) {
    Program program = makeProgram();
    EntryPoint& e = program.entries[entry];
    std::swap(e.inputs[0], e.inputs[1]);
    std::swap(e.slots[0].index, e.slots[1].index);
    Session session(std::move(program));
    Generator generator(session, {kVocab, 70});
    generator.reserve(10);
    EXPECT_EQ(likeliest(generator.prefill(ids(4))), (3 + 3) % kVocab);
    EXPECT_EQ(likeliest(generator.next(5)), (5 + 4) % kVocab);
  }
}

}  // namespace
}  // namespace lathe
