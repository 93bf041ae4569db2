// SPDX-License-Identifier: Apache-2.0
// Collectives through NCCL, of which a mock joins threads of this process: on the null stream of
// host execution, and as work on a GPU's stream, which is a mock's too.
#include "backends/cuda/device/nccl_ranks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <sstream>
#include <thread>

#include "backends/cuda/device/driver.h"
#include "backends/cuda/device/rank_gpu.h"
#include "lathe/runtime/error.h"
#include "runtime/stage_ranks.h"
#include "tests/cuda_mocks/mock_library.h"
#include "tests/unit/test_files.h"

// Only where it is installed; it includes CUDA's headers.
#if __has_include("/usr/local/cuda/include/nccl.h")
#include "/usr/local/cuda/include/nccl.h"
#define LATHE_HAS_NCCL_HEADER 1
#endif

namespace lathe::cuda {
namespace {

using namespace std::chrono_literals;
using test::expectError;
using test::Variable;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Ends = std::vector<std::shared_ptr<Communicator>>;

// What each rank does, in a thread of its own but for rank 0; the words of those that fail.
std::vector<std::string> onEach(const Ends& ends,
                                const std::function<void(std::shared_ptr<Communicator>)>& work) {
  std::vector<std::string> said(ends.size());
  auto one = [&](size_t r) {
    try {
      work(ends[r]);
    } catch (const Error& e) {
      said[r] = e.what();
      ends[r]->abort("rank " + std::to_string(r) + ": " + e.what());
    }
  };
  std::vector<std::thread> threads;
  for (size_t r = 1; r < ends.size(); ++r) threads.emplace_back(one, r);
  one(0);
  for (std::thread& t : threads) t.join();
  return said;
}

class NcclRanksTest : public ::testing::Test {
 protected:
  NcclRanksTest() : library_("LATHE_NCCL", test::mockPath("mock_nccl")) {
    test::mockFunction<void()>("mock_nccl", "mockNcclReset")();
  }
  static std::vector<std::string> lines(const std::string& part) {
    std::string log;
    test::mockFunction<void(std::string*)>("mock_nccl", "mockNcclLog")(&log);
    std::istringstream in(log);
    std::vector<std::string> found;
    for (std::string line; std::getline(in, line);)
      if (line.find(part) != std::string::npos) found.push_back(line);
    return found;
  }
  static void expectAllWell(const std::vector<std::string>& said) {
    for (const std::string& words : said) EXPECT_EQ(words, "");
  }

  Variable library_;
};

TEST_F(NcclRanksTest, ThreeRanksHaveTheSameSums) {
  std::vector<std::vector<float>> sums(3), pieces(3);
  std::vector<std::vector<int64_t>> largest(3);
  expectAllWell(onEach(threadRanks(3, 60s), [&](std::shared_ptr<Communicator> end) {
    const auto rank = size_t(end->rank());
    auto ranks = NcclRanks::open(end, {});
    EXPECT_EQ(ranks->size(), 3);
    EXPECT_EQ(ranks->rank(), end->rank());
    std::vector<float> values(7);
    for (size_t i = 0; i < values.size(); ++i) values[i] = float(100 * rank + i);
    ranks->allReduce(values.data(), values.size(), DType::F32, Combine::sum);
    sums[rank] = values;
    std::vector<int64_t> whole{int64_t(rank), -int64_t(rank), (int64_t(1) << 60) + int64_t(rank)};
    ranks->allReduce(whole.data(), whole.size(), DType::I64, Combine::max);
    largest[rank] = whole;
    std::vector<float> all(6, float(rank + 1));
    all[5] = 10;
    pieces[rank].resize(2);
    ranks->reduceScatter(all.data(), pieces[rank].data(), 2, DType::F32, Combine::sum);
  }));
  for (size_t rank = 0; rank < 3; ++rank) {
    EXPECT_THAT(sums[rank], ElementsAre(300, 303, 306, 309, 312, 315, 318));
    EXPECT_THAT(largest[rank], ElementsAre(2, 0, (int64_t(1) << 60) + 2));
    EXPECT_THAT(pieces[rank], ElementsAre(6, rank == 2 ? 30 : 6));
  }
  EXPECT_EQ(lines("ncclCommDestroy").size(), 3u);
  EXPECT_TRUE(lines("ncclCommAbort").empty());
}

TEST_F(NcclRanksTest, SixteenBitFloatsAreJoinedInTheirOwnDType) {
  expectAllWell(onEach(threadRanks(2, 60s), [&](std::shared_ptr<Communicator> end) {
    auto ranks = NcclRanks::open(end, {});
    // 256 + 1 is a tie in bf16, and 2048 + 1 in f16: both go to the even neighbour.
    uint16_t brain = floatToBf16(end->rank() ? 1 : 256), half = floatToF16(end->rank() ? 1 : 2048);
    ranks->allReduce(&brain, 1, DType::BF16, Combine::sum);
    ranks->allReduce(&half, 1, DType::F16, Combine::sum);
    EXPECT_EQ(bf16ToFloat(brain), 256);
    EXPECT_EQ(f16ToFloat(half), 2048);
  }));
}

TEST_F(NcclRanksTest, PiecesStandInTheOrderOfTheRanks) {
  expectAllWell(onEach(threadRanks(3, 60s), [&](std::shared_ptr<Communicator> end) {
    auto ranks = NcclRanks::open(end, {});
    const std::array<char, 3> mine{char('a' + end->rank()), '-', '.'};
    std::string all(9, ' ');
    ranks->allGather(mine.data(), all.data(), mine.size());
    EXPECT_EQ(all, "a-.b-.c-.");
    std::string parts(9, ' ');
    const std::string own = std::string(2, mine[0]) + "0" + std::string(2, mine[0]) + "1" +
                            std::string(2, mine[0]) + "2";
    ranks->allToAll(own.data(), parts.data(), 3);
    const std::string to = std::to_string(end->rank());
    EXPECT_EQ(parts, "aa" + to + "bb" + to + "cc" + to);
    int64_t number = end->rank() == 0 ? 5 : 0;
    ranks->broadcast(&number, sizeof number);
    EXPECT_EQ(number, 5);
  }));
}

TEST_F(NcclRanksTest, MessagesArriveInTheirOrder) {
  expectAllWell(onEach(threadRanks(3, 60s), [&](std::shared_ptr<Communicator> end) {
    auto ranks = NcclRanks::open(end, {});
    const int next = (end->rank() + 1) % 3, last = (end->rank() + 2) % 3;
    for (int round = 0; round < 3; ++round) {
      std::vector<int> mine(size_t(round) + 1, 10 * round + end->rank()), got(mine.size());
      auto give = [&] { ranks->send(next, mine.data(), mine.size() * sizeof(int)); };
      if (end->rank() == 0) give();
      ranks->receive(last, got.data(), got.size() * sizeof(int), false);
      if (end->rank() != 0) give();
      EXPECT_EQ(got, std::vector<int>(got.size(), 10 * round + last));
    }
  }));
  EXPECT_EQ(lines("ncclSend").size(), 9u);
}

TEST_F(NcclRanksTest, AMessageThatNobodyTakesIsToldAtTheDeadline) {
  const auto said = onEach(threadRanks(2, 300ms), [&](std::shared_ptr<Communicator> end) {
    auto ranks = NcclRanks::open(end, {});
    char byte = 1;
    if (end->rank() == 0) ranks->send(1, &byte, 1);
    if (end->rank() == 1) std::this_thread::sleep_for(600ms);
  });
  EXPECT_THAT(said[0], HasSubstr("send of 1 bytes to rank 1 of rank 0 of 2: another rank has not "
                                 "come within 300 ms"));
}

TEST_F(NcclRanksTest, AStageOfSeveralRanksIsRefused) {
  const auto ends = threadRanks(4, 60s);
  expectError(ErrorCode::Unsupported,
              "on GPUs a stage of a pipeline has one rank; take as many stages as ranks, or one",
              [&] { NcclRanks::open(std::make_shared<StageRanks>(ends[0], 2), {}); });
}

TEST_F(NcclRanksTest, RefusesWhatNcclHasNot) {
  expectAllWell(onEach(threadRanks(1, 60s), [&](std::shared_ptr<Communicator> end) {
    auto ranks = NcclRanks::open(end, {});
    std::array<float, 4> values{};
    expectError(ErrorCode::Unsupported, "NCCL's largest of floats drops NaN",
                [&] { ranks->allReduce(values.data(), 4, DType::F32, Combine::max); });
    expectError(ErrorCode::Unsupported, "all_reduce sum of 4 i16: NCCL has no such dtype",
                [&] { ranks->allReduce(values.data(), 4, DType::I16, Combine::sum); });
    // Nothing has been called: others may go on.
    ranks->allReduce(values.data(), 4, DType::F32, Combine::sum);
  }));
}

TEST_F(NcclRanksTest, NamesThePackageThatIsMissing) {
  const auto end = threadRanks(1, 60s)[0];
  {
    Variable nowhere("LATHE_NCCL", "/nowhere/libnccl.so.2");
    expectError(ErrorCode::Unsupported,
                "LATHE_NCCL=/nowhere/libnccl.so.2: ", [&] { NcclRanks::open(end, {}); });
    expectError(ErrorCode::Unsupported,
                "install NVIDIA's package libnccl2, or the wheel nvidia-nccl-cu13",
                [&] { NcclRanks::open(end, {}); });
  }
  {
    Variable other("LATHE_NCCL", "libm.so.6");
    expectError(ErrorCode::Unsupported, "libm.so.6 has no ncclGetVersion",
                [&] { NcclRanks::open(end, {}); });
  }
  Variable old("LATHE_MOCK_NCCL_VERSION", "21301");
  expectError(ErrorCode::Unsupported, "is NCCL 2.13.1, expected 2.14.0 or later",
              [&] { NcclRanks::open(end, {}); });
}

TEST_F(NcclRanksTest, TellsItsVersion) {
  EXPECT_EQ(NcclRanks::open(threadRanks(1, 60s)[0], {})->name(),
            "NCCL 2.28.9, " + test::mockPath("mock_nccl"));
}

TEST_F(NcclRanksTest, WhatFailsIsToldInNcclsWords) {
  for (const char* call : {"ncclGetUniqueId", "ncclCommInitRankConfig", "ncclAllReduce"}) {
    Variable fail("LATHE_MOCK_NCCL_FAIL", std::string(call) + ":6");
    const auto said = onEach(threadRanks(1, 60s), [&](std::shared_ptr<Communicator> end) {
      float value = 0;
      NcclRanks::open(end, {})->allReduce(&value, 1, DType::F32, Combine::sum);
    });
    EXPECT_THAT(said[0], HasSubstr("mock: remote process exited or there was a network error: "
                                   "mock: the last error; NCCL_DEBUG=INFO"))
        << call;
  }
}

TEST_F(NcclRanksTest, ARankThatDoesNotConnectIsToldAtTheDeadline) {
  const auto said = onEach(threadRanks(2, 300ms), [&](std::shared_ptr<Communicator> end) {
    if (end->rank() == 0) {
      NcclRanks::open(end, {});
      return;
    }
    char id[128];
    end->broadcast(id, sizeof id);  // and then it does nothing
  });
  EXPECT_EQ(said[0],
            "the connection of NCCL of rank 0 of 2: another rank has not come within 300 ms "
            "(LATHE_RANKS_TIMEOUT, in seconds)");
  EXPECT_EQ(lines("ncclCommAbort").size(), 1u);
}

TEST_F(NcclRanksTest, ARankThatDoesNotComeIsToldAtTheDeadline) {
  const auto said = onEach(threadRanks(2, 300ms), [&](std::shared_ptr<Communicator> end) {
    auto ranks = NcclRanks::open(end, {});
    float value = 1;
    if (end->rank() == 1) return;
    expectError(ErrorCode::Io,
                "all_reduce sum of 1 f32 of rank 0 of 2: another rank has not come within 300 ms",
                [&] { ranks->allReduce(&value, 1, DType::F32, Combine::sum); });
    // Whatever is called after that says why.
    expectError(ErrorCode::Io, "the ranks' connection has ended: all_reduce sum of 1 f32 of rank 0",
                [&] { ranks->allGather(&value, &value, 1); });
  });
  EXPECT_EQ(said[0], "");
}

TEST_F(NcclRanksTest, TheErrorOfOneRankIsToldToThoseThatWaitForIt) {
  const auto said = onEach(threadRanks(3, 60s), [&](std::shared_ptr<Communicator> end) {
    auto ranks = NcclRanks::open(end, {});
    int64_t met[3];
    const int64_t rank = end->rank();
    end->allGather(&rank, met, sizeof rank);  // all are connected
    if (rank == 2) return end->abort("rank 2: id 9 is outside of the table");
    float value = 1;
    ranks->allReduce(&value, 1, DType::F32, Combine::sum);
  });
  EXPECT_EQ(said[0], "rank 2: id 9 is outside of the table");
  EXPECT_EQ(said[1], "rank 2: id 9 is outside of the table");
}

TEST_F(NcclRanksTest, ALostRankIsToldBeforeTheDeadline) {
  const auto said = onEach(threadRanks(2, 60s), [&](std::shared_ptr<Communicator> end) {
    auto ranks = NcclRanks::open(end, {});
    int64_t met[2];
    const int64_t rank = end->rank();
    end->allGather(&rank, met, sizeof rank);  // both are connected
    float value = 1;
    if (rank == 1) return;
    Variable lost("LATHE_MOCK_NCCL_LOST", "1");
    ranks->allReduce(&value, 1, DType::F32, Combine::sum);
  });
  EXPECT_THAT(said[0], HasSubstr("all_reduce sum of 1 f32 of rank 0 of 2: mock: remote process"));
}

TEST_F(NcclRanksTest, PlacesAreCountedOnAHost) {
  expectAllWell(onEach(threadRanks(3, 60s), [&](std::shared_ptr<Communicator> end) {
    EXPECT_EQ(placeOnHost(*end), end->rank());
  }));
}

// Rank 0 has a GPU, which is mock_cuda's; rank 1 is on the null stream.
class NcclOnAGpuTest : public NcclRanksTest {
 protected:
  NcclOnAGpuTest() : cuda_("LATHE_LIBCUDA", test::mockPath("mock_cuda")) {
    test::mockFunction<void()>("mock_cuda", "mockReset")();
  }
  ~NcclOnAGpuTest() override {
    EXPECT_EQ(test::mockFunction<int()>("mock_cuda", "mockLive")(), 0) << "was not given back";
  }
  static std::string cudaLog() {
    return test::mockFunction<const char*()>("mock_cuda", "mockLog")();
  }
  static std::unique_ptr<NcclRanks> joinWithoutGpu(const std::shared_ptr<Communicator>& end) {
    expectOwnGpus(*end, GpuId{"another"});
    return NcclRanks::open(end, {});
  }
  /// Rank 0 has a sum on its stream when rank 1 says that it has failed; then it does `what`.
  static void whenTheOtherFails(const std::function<void(Driver&)>& what) {
    const auto said = onEach(threadRanks(2, 60s), [&](std::shared_ptr<Communicator> end) {
      if (end->rank() == 1) {
        auto ranks = joinWithoutGpu(end);
        char isPut;
        end->broadcast(&isPut, 1);
        return end->abort("rank 1: a kernel has failed");
      }
      auto driver = openGpu();
      Communicator& ranks = *driver->join(end);
      void* values = driver->allocate(sizeof(float), "values");
      ranks.allReduce(values, 1, DType::F32, Combine::sum);
      char isPut = 1;
      end->broadcast(&isPut, 1);
      what(*driver);
      driver->release(values);
    });
    EXPECT_EQ(said[0], "");
  }

  Variable cuda_;
};

TEST_F(NcclOnAGpuTest, CollectivesAreNodesOfTheGraph) {
  expectAllWell(onEach(threadRanks(2, 60s), [&](std::shared_ptr<Communicator> end) {
    if (end->rank() == 1) {
      auto ranks = joinWithoutGpu(end);
      for (int run = 0; run < 3; ++run) {
        std::array<int, 2> values{10, 20}, all[2];
        ranks->allReduce(values.data(), 2, DType::I32, Combine::sum);
        ranks->allGather(values.data(), all, sizeof values);
        int mine = 0;
        ranks->reduceScatter(values.data(), &mine, 1, DType::I32, Combine::sum);
      }
      return;
    }
    auto driver = openGpu();
    Communicator& ranks = *driver->join(end);
    EXPECT_THAT(driver->ranksReport(), HasSubstr("collectives: NCCL 2.28.9, "));
    Driver::Function increment = driver->load({{"increment", "", "cubin increment", ""}})[0];
    auto* values = static_cast<int*>(driver->allocate(2 * sizeof(int), "values"));
    auto* all = static_cast<int*>(driver->allocate(4 * sizeof(int), "all"));
    auto* columns = static_cast<int*>(driver->allocate(4 * sizeof(int), "columns"));
    auto* mine = static_cast<int*>(driver->allocate(sizeof(int), "mine"));
    auto recorded = driver->record([&] {
      void* pointer = values;
      void* arguments[] = {&pointer};
      driver->launch(increment, {}, arguments);
      ranks.allReduce(values, 2, DType::I32, Combine::sum);
      ranks.allGather(values, all, 2 * sizeof(int));
      ranks.reduceScatter(values, mine, 1, DType::I32, Combine::sum);
      // The second columns of two rows become the first of another matrix.
      driver->copyRows(columns, 8, all + 1, 8, 4, 2);
    });
    EXPECT_THAT(cudaLog(), HasSubstr("\ncuStreamEndCapture 5\n"));
    EXPECT_THAT(lines("ncclAll"), ::testing::Contains("ncclAllReduce on a stream, 2"));
    for (int run = 0; run < 3; ++run) {
      const int given[2] = {run, 5};
      driver->upload(values, given, sizeof given);
      driver->zero(columns, 4 * sizeof(int));
      driver->replay(*recorded);
      int got[4], piece;
      driver->download(got, all, sizeof got);
      EXPECT_THAT(got, ElementsAre(run + 11, 25, run + 11, 25));
      driver->download(got, columns, sizeof got);
      EXPECT_THAT(got, ElementsAre(25, 0, 25, 0));
      driver->download(&piece, mine, sizeof piece);
      EXPECT_EQ(piece, 2 * (run + 11));
    }
    driver->synchronize();
    for (int* memory : {values, all, columns, mine}) driver->release(memory);
  }));
  EXPECT_EQ(lines("ncclAllReduce on a stream").size(), 1u) << "replays are the graph's";
  EXPECT_TRUE(lines("ncclCommAbort").empty());
}

TEST_F(NcclOnAGpuTest, WaitingForTheStreamEndsAtTheDeadline) {
  for (const bool downloads : {false, true}) {
    const auto said = onEach(threadRanks(2, 300ms), [&](std::shared_ptr<Communicator> end) {
      if (end->rank() == 1) {
        auto ranks = joinWithoutGpu(end);
        return;
      }
      auto driver = openGpu();
      Communicator& ranks = *driver->join(end);
      void* values = driver->allocate(sizeof(float), "values");
      ranks.allReduce(values, 1, DType::F32, Combine::sum);
      float value;
      expectError(
          ErrorCode::Io, "the work of rank 0 of 2: another rank has not come within 300 ms", [&] {
            downloads ? driver->download(&value, values, sizeof value) : driver->synchronize();
          });
      driver->release(values);
    });
    EXPECT_EQ(said[0], "");
  }
}

TEST_F(NcclOnAGpuTest, WhatOneRankSaysEndsTheOthersWait) {
  whenTheOtherFails([](Driver& driver) {
    expectError(ErrorCode::Io, "rank 1: a kernel has failed", [&] { driver.synchronize(); });
  });
}

// Memory that an error gives back waits for the stream, too.
TEST_F(NcclOnAGpuTest, NothingHangsWhenWorkIsLeftOnTheStream) {
  whenTheOtherFails([](Driver&) {});
}

TEST_F(NcclOnAGpuTest, EveryRankHasAGpuOfItsOwn) {
  const auto said = onEach(threadRanks(2, 60s), [&](std::shared_ptr<Communicator> end) {
    if (end->rank() == 1) {
      GpuId first;
      first.fill(1);
      expectOwnGpus(*end, first);
      return;
    }
    openGpu()->join(end);
  });
  for (const std::string& words : said)
    EXPECT_THAT(words, HasSubstr("ranks 0 and 1 have one GPU, expected one for each"));
}

TEST_F(NcclOnAGpuTest, TakesTheGpuOfItsPlace) {
  Variable four("LATHE_MOCK_DEVICES", "4");
  const auto said = onEach(threadRanks(2, 60s), [&](std::shared_ptr<Communicator> end) {
    GpuId third;
    third.fill(3);
    if (end->rank() == 1) return expectOwnGpus(*end, third);
    openGpu(6)->join(end);
  });
  EXPECT_THAT(said[0], HasSubstr("have one GPU"));
}

#ifdef LATHE_HAS_NCCL_HEADER
// Two C interfaces agree where every parameter has the same size and is a pointer in both or none.
template <class... A>
constexpr bool sameInterface(int (*)(A...), auto other) {
  return []<class... B>(ncclResult_t (*)(B...)) {
    if constexpr (sizeof...(A) != sizeof...(B))
      return false;
    else
      return ((sizeof(A) == sizeof(B) && std::is_pointer_v<A> == std::is_pointer_v<B>) && ...);
  }(other);
}

TEST(NcclApiTest, IsTheLibrarysInterface) {
  nccl::Api a;
#define LATHE_COMPARE(member, name, parameters) \
  static_assert(sameInterface(decltype(a.member)(), decltype (&::name)()), #name);
  LATHE_NCCL_FUNCTIONS(LATHE_COMPARE)
#undef LATHE_COMPARE
  static_assert(sizeof(nccl::UniqueId) == sizeof(ncclUniqueId));
  static_assert(offsetof(nccl::Config, magic) == offsetof(ncclConfig_t, magic));
  static_assert(offsetof(nccl::Config, version) == offsetof(ncclConfig_t, version));
  static_assert(offsetof(nccl::Config, blocking) == offsetof(ncclConfig_t, blocking));
  constexpr ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  static_assert(nccl::kConfigMagic == config.magic);
  static_assert(nccl::kLowestVersion == NCCL_VERSION(2, 14, 0));
  static_assert(int(nccl::kSuccess) == ncclSuccess && int(nccl::kInProgress) == ncclInProgress);
  static_assert(int(nccl::kInt8) == ncclInt8 && int(nccl::kUint8) == ncclUint8);
  static_assert(int(nccl::kInt32) == ncclInt32 && int(nccl::kInt64) == ncclInt64);
  static_assert(int(nccl::kFloat16) == ncclFloat16 && int(nccl::kFloat32) == ncclFloat32);
  static_assert(int(nccl::kFloat64) == ncclFloat64 && int(nccl::kBfloat16) == ncclBfloat16);
  static_assert(int(nccl::kSum) == ncclSum && int(nccl::kMax) == ncclMax);
}
#endif

}  // namespace
}  // namespace lathe::cuda
