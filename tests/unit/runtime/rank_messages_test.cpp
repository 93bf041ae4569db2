// SPDX-License-Identifier: Apache-2.0
// Messages between two ranks, the collectives of one stage of a pipeline that are made of them, and
// a call that gathers what several ranks share.
#include <gmock/gmock.h>

#include <functional>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "lathe/runtime/communicator.h"
#include "lathe/runtime/error.h"
#include "lathe/runtime/program.h"
#include "runtime/collective_kernels.h"
#include "runtime/rank_commands.h"
#include "runtime/stage_ranks.h"
#include "tests/unit/test_files.h"

namespace lathe {
namespace {

using namespace std::chrono_literals;
using test::expectError;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

void onEach(const std::vector<std::shared_ptr<Communicator>>& ends,
            const std::function<void(std::shared_ptr<Communicator>)>& run) {
  std::vector<std::thread> threads;
  for (const auto& end : ends) threads.emplace_back([&run, end] { run(end); });
  for (std::thread& t : threads) t.join();
}

TEST(RankMessages, ArriveInTheirOrderAndNobodyWaitsForTheReceiver) {
  auto ends = threadRanks(3, 60s);
  // All is sent before anybody receives: from two ranks, of several sizes, none of them kept.
  for (int from : {0, 2})
    for (int i = 0; i < 8; ++i) {
      std::vector<int> values(size_t(i), 100 * from + i);
      ends[size_t(from)]->send(1, values.data(), values.size() * sizeof(int));
      std::ranges::fill(values, -1);
    }
  for (int from : {2, 0})
    for (int i = 0; i < 8; ++i) {
      std::vector<int> values(size_t(i), -2);
      ends[1]->receive(from, values.data(), values.size() * sizeof(int));
      EXPECT_EQ(values, std::vector<int>(size_t(i), 100 * from + i));
    }
}

TEST(RankMessages, WhoeverIsFarAheadWaits) {
  auto ends = threadRanks(2, 50ms);
  int sent = 0;
  expectError(ErrorCode::Io, "send of 4 bytes of rank 0 of 2: no sign of rank 1 within 50 ms", [&] {
    for (; sent < 1000; ++sent) ends[0]->send(1, &sent, sizeof sent);
  });
  EXPECT_GE(sent, 4);
  EXPECT_LE(sent, 64);
}

TEST(RankMessages, ARankThatSendsNothingIsNamedAtTheDeadline) {
  auto ends = threadRanks(2, 50ms);
  char byte = 0;
  const char* said = "receive of 1 bytes of rank 1 of 2: no sign of rank 0 within 50 ms";
  expectError(ErrorCode::Io, said, [&] { ends[1]->receive(0, &byte, 1); });
  // The job has ended for all.
  expectError(ErrorCode::Io, said, [&] { ends[0]->send(1, &byte, 1); });
}

// Of who waits for the next command, by a message or by what rank 0 tells all.
TEST(RankMessages, PatienceHasNoDeadlineButAnEnd) {
  for (bool byBroadcast : {false, true}) {
    auto ends = threadRanks(2, 20ms);
    std::string said;
    std::thread patient([&] {
      char byte = 0;
      try {
        byBroadcast ? ends[1]->broadcast(&byte, 1) : ends[1]->receive(0, &byte, 1, true);
      } catch (const Error& e) {
        said = e.what();
      }
    });
    std::this_thread::sleep_for(100ms);
    ends[0]->abort("rank 0: the disk is full");
    patient.join();
    EXPECT_EQ(said, "rank 0: the disk is full") << byBroadcast;
  }
}

// Whoever waited for a rank that has failed fails, too: what all are told is why the job ended.
TEST(RankMessages, TheFirstReasonIsToldToAll) {
  auto ends = threadRanks(3, 60s);
  ends[1]->abort("rank 1: the disk is full");
  ends[2]->abort("rank 2: rank 1: the disk is full");
  ends[0]->abort("rank 0 has left");
  for (const auto& end : ends)
    EXPECT_EQ(test::messageOf([&] { end->throwIfEnded(); }), "rank 1: the disk is full");
}

TEST(RankMessages, AnotherSizeIsNoMessage) {
  auto ends = threadRanks(2, 60s);
  int value = 5;
  ends[0]->send(1, &value, sizeof value);
  char byte = 0;
  expectError(ErrorCode::InvalidArgument,
              "the ranks have parted: receive of 1 bytes of rank 1 of 2, rank 0 sent 4",
              [&] { ends[1]->receive(0, &byte, 1); });
  EXPECT_EQ(byte, 0);
}

TEST(RankMessages, AreForRanksThatThereAre) {
  auto ends = threadRanks(2, 60s);
  char byte = 0;
  expectError(ErrorCode::InvalidArgument, "send: rank 2 is none of 2",
              [&] { ends[0]->send(2, &byte, 1); });
  expectError(ErrorCode::InvalidArgument, "receive: rank -1 is none of 2",
              [&] { ends[0]->receive(-1, &byte, 1); });
}

// Rank 0 says what comes next while the others are behind.
TEST(RankMessages, CommandsAreReadLater) {
  auto ends = threadRanks(3, 60s);
  for (int64_t i = 0; i < 4; ++i)
    announce(*ends[0],
             {.kind = RankCommand::Kind::Run,
              .number = i,
              .times = i + 1,
              .wantsOutputs = i == 3,
              .inputs = {Array(DType::I64, {i})}},
             CommandWay::Messages);
  for (int rank : {2, 1})
    for (int64_t i = 0; i < 4; ++i) {
      const RankCommand command = awaitCommand(*ends[size_t(rank)], CommandWay::Messages);
      EXPECT_EQ(command.kind, RankCommand::Kind::Run);
      EXPECT_EQ(command.number, i);
      EXPECT_EQ(command.times, i + 1);
      EXPECT_EQ(command.wantsOutputs, i == 3);
      ASSERT_EQ(command.inputs.size(), 1u);
      EXPECT_EQ(command.inputs[0].shape(), Shape{i});
    }
}

// Two stages of three ranks: what one does the other does not see, and the numbers are those of
// three ranks alone.
TEST(StageRanks, CollectivesAreOfTheStage) {
  auto all = threadRanks(6, 60s);
  std::vector<std::shared_ptr<Communicator>> alone = threadRanks(3, 60s);
  auto run = [](Communicator& end, float scale) {
    std::vector<float> results;
    auto keep = [&](const std::vector<float>& v) {
      results.insert(results.end(), v.begin(), v.end());
    };
    const int rank = end.rank();
    std::vector<float> values(7);
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = scale * (1.1f * float(rank + 1) + float(i) / 3);
    std::vector<float> sum = values, largest = values, mine(2), gathered(21), parts(6), got(6);
    end.allReduce(sum.data(), sum.size(), DType::F32, Combine::sum);
    keep(sum);
    end.allReduce(largest.data(), largest.size(), DType::F32, Combine::max);
    keep(largest);
    for (size_t i = 0; i < parts.size(); ++i) parts[i] = scale * float(rank * 10) + float(i);
    end.reduceScatter(parts.data(), mine.data(), 2, DType::F32, Combine::sum);
    keep(mine);
    end.allGather(values.data(), gathered.data(), values.size() * sizeof(float));
    keep(gathered);
    end.allToAll(parts.data(), got.data(), 2 * sizeof(float));
    keep(got);
    float told = rank == 0 ? scale : -1;
    end.broadcast(&told, sizeof told);
    keep({told});
    // Fewer elements than ranks.
    float one = values[0];
    end.allReduce(&one, 1, DType::F32, Combine::sum);
    keep({one});
    return results;
  };
  std::vector<std::vector<float>> expected(6), found(6);
  for (int stage = 0; stage < 2; ++stage)
    onEach(alone, [&](std::shared_ptr<Communicator> end) {
      expected[size_t(3 * stage + end->rank())] = run(*end, float(stage + 1));
    });
  onEach(all, [&](std::shared_ptr<Communicator> end) {
    StageRanks own(end, 3);
    EXPECT_EQ(own.size(), 3);
    EXPECT_EQ(own.rank(), end->rank() % 3);
    found[size_t(end->rank())] = run(own, float(end->rank() / 3 + 1));
  });
  EXPECT_EQ(found, expected);
}

// [2, 6] of an axis in fewer parts than there are ranks: neighbours hold the same part of it.
TEST(Collectives, RanksThatShareAPartGiveItOnce) {
  Program program;
  program.ranks = 4;
  EntryPoint entry;
  entry.slots = {{SlotKind::Argument, DType::F32, {DimExpr(2), DimExpr(3)}, 0, -1},
                 {SlotKind::Result, DType::F32, {DimExpr(2), DimExpr(6)}, 0, -1}};
  const Call gather{"all_gather", "",  R"({"combine": "sum", "axis": 1, "parts": 2, "ranks": 4})",
                    {0},          {1}, ""};
  onEach(threadRanks(4, 60s), [&](std::shared_ptr<Communicator> end) {
    const auto kernel = makeCollective(program, entry, gather, end.get(), nullptr);
    std::vector<std::byte> scratch(kernel->bind({.shapes = {{2, 3}, {2, 6}}}));
    const float part = end->rank() < 2 ? 0 : 10;
    std::vector<float> piece, whole(12);
    for (float row : {100.0f, 200.0f})
      for (float column : {1.0f, 2.0f, 3.0f}) piece.push_back(row + part + column);
    void* const pointers[] = {piece.data(), whole.data()};
    kernel->run(pointers, scratch.data());
    EXPECT_THAT(whole, ElementsAre(101, 102, 103, 111, 112, 113, 201, 202, 203, 211, 212, 213))
        << end->rank();
  });
}

TEST(StageRanks, MessagesGoToTheSamePlaceOfAnotherStage) {
  onEach(threadRanks(6, 60s), [&](std::shared_ptr<Communicator> end) {
    StageRanks own(end, 2);
    const int stage = end->rank() / 2;
    int value = 10 * stage + own.rank();
    own.send((stage + 1) % 3, &value, sizeof value);
    own.receive((stage + 2) % 3, &value, sizeof value, false);
    EXPECT_EQ(value, 10 * ((stage + 2) % 3) + own.rank());
  });
}

}  // namespace
}  // namespace lathe
