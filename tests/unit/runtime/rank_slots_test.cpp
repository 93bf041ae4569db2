// SPDX-License-Identifier: Apache-2.0
// Texts that come and go on several ranks: the others do to their pieces of the cache what rank 0
// does to its own, and see the same step.
#include <gmock/gmock.h>

#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "lathe/runtime/batch_engine.h"
#include "lathe/runtime/communicator.h"
#include "tests/unit/fake_language_model.h"
#include "tests/unit/test_files.h"

namespace lathe {
namespace {

using namespace std::chrono_literals;
using test::expectError;
using test::FakeModel;
using test::fakeProgram;
using test::kFakeVocab;
using ::testing::HasSubstr;

// What each rank's kernels saw: entry point, inputs, and the cache behind them.
using Seen = std::vector<std::string>;

class SeeingKernel final : public Kernel {
 public:
  SeeingKernel(const FakeModel& model, const EntryPoint& entry, Seen& seen)
      : entry_(entry), inner_(model, entry.name == "verify"), seen_(seen) {}
  size_t bind(const KernelShapes& shapes) override {
    bytes_.clear();
    for (size_t i = 0; i + 1 < shapes.shapes.size(); ++i)
      bytes_.push_back(bytesOf(entry_.slots[i].dtype, elementCount(shapes.shapes[i])));
    return inner_.bind(shapes);
  }
  void run(void* const* pointers, std::byte* scratch) override {
    inner_.run(pointers, scratch);
    std::string all = entry_.name;
    for (size_t i = 0; i < bytes_.size(); ++i)
      all.append(static_cast<const char*>(pointers[i]), bytes_[i]);
    seen_.push_back(all);
  }

 private:
  const EntryPoint& entry_;
  test::FakeKernel inner_;
  Seen& seen_;
  std::vector<size_t> bytes_;
};

std::vector<Seen>& seenBy() {
  static std::vector<Seen> all(3);
  return all;
}

class SeeingDevice final : public Device {
 public:
  SeeingDevice(const FakeModel& model, int rank) : model_(model), rank_(rank) {}
  std::unique_ptr<Kernel> makeKernel(const Program&, const EntryPoint& entry,
                                     const Call&) override {
    return std::make_unique<SeeingKernel>(model_, entry, seenBy()[size_t(rank_)]);
  }

 private:
  FakeModel model_;
  int rank_;
};

std::shared_ptr<const Program> seenProgram(const FakeModel& model) {
  Program program = fakeProgram(model);
  program.backend = "seen-" + std::to_string(model.block);
  program.ranks = 3;
  registerDevice(program.backend,
                 [model](std::shared_ptr<const Program>, const DeviceOptions& options) {
                   return std::make_unique<SeeingDevice>(model, options.ranks->rank());
                 });
  return std::make_shared<const Program>(std::move(program));
}

// Texts with common beginnings in few slots: rows and blocks are copied from one to another.
std::vector<std::vector<int>> textsOf(BatchEngine& engine) {
  std::vector<std::vector<int>> texts(12);
  for (int i = 0; i < int(texts.size()); ++i) {
    std::vector<int> prompt{1, 2, 3, 4, 5, 6};
    prompt.resize(size_t(3 + i % 4));
    prompt.push_back(i % kFakeVocab);
    engine.submit(
        {.prompt = prompt, .options = {.newTokens = 3 + i % 5}, .onEnd = [&texts, i](TextEnd end) {
           EXPECT_FALSE(end.error) << end.error->what();
           texts[size_t(i)] = end.text.ids();
         }});
    if (i % 3 == 0) engine.step();
  }
  while (engine.step()) continue;
  return texts;
}

std::unique_ptr<KvSlots> slotsOf(const FakeModel& model, Session& session) {
  const GeneratorLimits limits{kFakeVocab, model.maxPositions};
  return model.block ? pagedSlots(session, limits, 3, 64) : contiguousSlots(session, limits, 3, 64);
}

TEST(RankSlots, TheOthersDoWhatRankZeroDoes) {
  for (int64_t block : {0, 4}) {
    const FakeModel model{.seed = 21, .maxPositions = 64, .block = block};
    seenBy().assign(3, {});
    std::vector<std::vector<int>> alone;
    {
      Session session(fakeProgram(model));
      BatchEngine engine(slotsOf(model, session), std::nullopt);
      alone = textsOf(engine);
    }
    const auto program = seenProgram(model);
    const auto ends = threadRanks(3, 60s);
    std::vector<std::thread> others;
    for (size_t r : {1, 2})
      others.emplace_back([&, r] { Session(program, {.ranks = ends[r]}).serve(); });
    {
      Session session(program, {.ranks = ends[0]});
      BatchEngine engine(slotsOf(model, session), std::nullopt);
      EXPECT_EQ(textsOf(engine), alone) << "blocks of " << block;
      EXPECT_GT(engine.counts().reusedTokens, 0);
    }
    for (std::thread& t : others) t.join();
    EXPECT_GT(seenBy()[0].size(), 20u);
    EXPECT_TRUE(seenBy()[1] == seenBy()[0]) << "blocks of " << block;
    EXPECT_TRUE(seenBy()[2] == seenBy()[0]) << "blocks of " << block;
  }
}

// Told before the others hear of it; they go on.
TEST(RankSlots, AMistakeEndsNothing) {
  const auto program = seenProgram({.seed = 21, .maxPositions = 64});
  const auto ends = threadRanks(3, 60s);
  std::vector<std::thread> others;
  for (size_t r : {1, 2})
    others.emplace_back([&, r] { Session(program, {.ranks = ends[r]}).serve(); });
  {
    Session session(program, {.ranks = ends[0]});
    expectError(ErrorCode::InvalidArgument, "keepStateRows: expected from 1 to 8 rows, got 9",
                [&] { session.keepStateRows("batch", 9); });
    session.keepStateRows("batch", 3);
    expectError(ErrorCode::InvalidArgument, "copyStateRow: expected one of 3 rows",
                [&] { session.copyStateRow(0, 3, "cache", 1); });
    expectError(ErrorCode::InvalidArgument, "selectStateRows: expected one of 3 rows",
                [&] { session.selectStateRows(3); });
    session.copyStateRow(0, 2, "cache", 1);
    session.selectStateRows(1);
  }
  for (std::thread& t : others) t.join();
}

TEST(RankSlots, OnlyRankZeroIsAsked) {
  const auto program = seenProgram({.seed = 21, .maxPositions = 64});
  const auto ends = threadRanks(3, 60s);
  std::vector<std::thread> others;
  for (size_t r : {1, 2})
    others.emplace_back([&, r] {
      Session session(program, {.ranks = ends[r]});
      for (const auto& call : std::vector<std::function<void()>>{
               [&] { session.keepStateRows("batch", 3); }, [&] { session.selectStateRows(0); },
               [&] { session.copyStateRow(0, 1, "cache", 1); },
               [&] { session.copyStateBlock("batch", 0, 1); }})
        expectError(ErrorCode::InvalidArgument, "which does what rank 0 does: call serve()", call);
      session.serve();
    });
  {
    Session session(program, {.ranks = ends[0]});
  }
  for (std::thread& t : others) t.join();
}

// A server would answer every later text with the same error.
TEST(RankSlots, TheEngineEndsWithTheJob) {
  for (int64_t block : {0, 4}) {
    const FakeModel model{.seed = 21, .maxPositions = 64, .block = block};
    const auto program = seenProgram(model);
    const auto ends = threadRanks(3, 60s);
    std::vector<std::thread> others;
    for (size_t r : {1, 2})
      others.emplace_back([&, r] {
        Session session(program, {.ranks = ends[r]});
        expectError(ErrorCode::Io, "rank 2: the disk is full", [&] { session.serve(); });
      });
    {
      Session session(program, {.ranks = ends[0]});
      BatchEngine engine(slotsOf(model, session), std::nullopt);
      std::string said;
      engine.submit({.prompt = {1, 2}, .onEnd = [&](TextEnd end) { said = end.error->what(); }});
      ends[2]->abort("rank 2: the disk is full");
      expectError(ErrorCode::Io, "rank 2: the disk is full",
                  [&] { block ? void(engine.step()) : engine.run(); });
      EXPECT_EQ(said, "rank 2: the disk is full") << "blocks of " << block;
    }
    for (std::thread& t : others) t.join();
  }
}

}  // namespace
}  // namespace lathe
