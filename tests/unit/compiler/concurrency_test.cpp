// SPDX-License-Identifier: Apache-2.0
// Programs, sessions and graphs of several threads, and of a forked process. Built with
// LATHE_SANITIZE=thread it looks for races as well.
#include <atomic>
#include <cmath>
#include <cstring>
#include <thread>

#include <gtest/gtest.h>
#include <lathe/lathe.h>
#include <sys/wait.h>
#include <unistd.h>

namespace lathe {
namespace {

constexpr int kThreads = 8;

// An MLP and its norm, with a symbol, a state, a constant and weights that `load` packs.
Graph model() {
  Graph g;
  const Dim batch = g.dim("batch", 1, 4);
  Tensor x = g.input("x", DType::F32, {batch, 16});
  g.state("sum", DType::F32, {batch, 16});
  Tensor y = nn::RMSNorm(g, "norm", 16)(nn::SwiGLU(g, "mlp", 16, 32)(x));
  Tensor sum = g.readState("sum") + y;
  g.writeState("sum", sum);
  g.output("y", nn::softmax(y * 2.0));
  return g;
}
std::shared_ptr<const Program> program() {
  return std::make_shared<const Program>(compile(model(), {.backend = "cpu"}));
}
Array input(int seed) {
  Array x(DType::F32, {2, 16});
  for (int64_t i = 0; i < x.size(); ++i) x.set(i, std::sin(double(seed * 37 + i)));
  return x;
}
Session boundSession(const std::shared_ptr<const Program>& program, int threads) {
  Session session(program, {.threads = threads});
  session.bindRandomWeights(7);
  return session;
}
Array run(Session& session, int seed) {
  std::vector<Array> out;
  session.run(0, std::vector<Array>{input(seed)}, out);
  return out.at(0).clone();
}
bool same(const Array& a, const Array& b) {
  return a.shape() == b.shape() && std::memcmp(a.data(), b.data(), a.bytes()) == 0;
}
std::vector<Array> wanted(const std::shared_ptr<const Program>& program) {
  Session session = boundSession(program, 1);
  std::vector<Array> results;
  for (int t = 0; t < kThreads; ++t) results.push_back(run(session, t));
  return results;
}
void inThreads(int count, const std::function<void(int)>& work) {
  std::vector<std::thread> threads;
  for (int t = 0; t < count; ++t) threads.emplace_back([&, t] { work(t); });
  for (std::thread& t : threads) t.join();
}

TEST(Concurrency, EightThreadsRunOneProgramAThousandTimesEach) {
  const auto shared = program();
  const std::vector<Array> want = wanted(shared);
  std::atomic<int> wrong{0};
  inThreads(kThreads, [&](int t) {
    Session session = boundSession(shared, 1);
    for (int i = 0; i < 1000; ++i) wrong += !same(run(session, t), want[size_t(t)]);
  });
  EXPECT_EQ(wrong, 0);
}

TEST(Concurrency, SessionsOfOneTeamOfThreadsTakeTurns) {
  const auto shared = program();
  const std::vector<Array> want = wanted(shared);
  std::atomic<int> wrong{0};
  inThreads(4, [&](int t) {
    Session session = boundSession(shared, 2);
    for (int i = 0; i < 100; ++i) wrong += !same(run(session, t), want[size_t(t)]);
  });
  EXPECT_EQ(wrong, 0);
}

TEST(Concurrency, SessionsAndProgramsGoWhileOthersRun) {
  std::atomic<int> wrong{0};
  inThreads(kThreads, [&](int t) {
    for (int round = 0; round < 2; ++round) {
      auto own = program();
      Session session = boundSession(own, 1);
      own.reset();  // the session keeps it
      const Array first = run(session, t);
      Session moved = std::move(session);
      for (int i = 0; i < 50; ++i) wrong += !same(run(moved, t), first);
    }
  });
  EXPECT_EQ(wrong, 0);
}

TEST(Concurrency, GraphsAreCompiledSideBySide) {
  const Graph first = model();
  const std::string want = irAt(first, "fused");
  std::atomic<int> wrong{0};
  inThreads(4, [&](int) {
    for (const char* backend : {"cpu", "reference"}) {
      const Graph own = model();
      compile(own, {.backend = backend});
      wrong += irAt(own, "fused") != want;
    }
  });
  EXPECT_EQ(wrong, 0);
}

TEST(Concurrency, OneGraphIsCompiledBySeveralThreads) {
  const Graph shared = model();
  const std::string want = irAt(shared, "fused");
  std::atomic<int> wrong{0};
  inThreads(4, [&](int) {
    compile(shared, {.backend = "reference"});
    wrong += irAt(shared, "fused") != want;
    wrong += shared.text().empty();
  });
  EXPECT_EQ(wrong, 0);
}

// Whoever comes second is told; nobody gets a wrong result.
TEST(Concurrency, ASessionOfTwoThreadsRefusesOneOfThem) {
  const auto shared = program();
  const std::vector<Array> want = wanted(shared);
  Session session = boundSession(shared, 1);
  std::atomic<int> wrong{0}, ran{0};
  inThreads(2, [&](int) {
    for (int i = 0; i < 500; ++i) try {
        wrong += !same(run(session, 3), want[3]);
        ++ran;
      } catch (const Error& e) {
        wrong += !std::strstr(e.what(), "running in another thread");
      }
  });
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(ran, 0);
}

// A child has none of the team's threads: it takes their shares itself, with the same bits.
TEST(Concurrency, AForkedProcessRunsWithoutItsParentsThreads) {
  const auto shared = program();
  Session session = boundSession(shared, 3);
  const Array want = run(session, 1);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::alarm(20);  // a hang ends
    ::_exit(same(run(session, 1), want) ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_TRUE(same(run(session, 1), want));
}

}  // namespace
}  // namespace lathe
