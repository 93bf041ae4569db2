// SPDX-License-Identifier: Apache-2.0
// Rows of states that a session keeps for sequences which come and go by themselves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "lathe/lathe.h"
#include "lathe/runtime/error.h"

namespace lathe {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kWidth = 4, kHeads = 2, kCache = 8;

std::string errorOf(const std::function<void()>& run) {
  try {
    run();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

class StateRows : public ::testing::TestWithParam<const char*> {
 protected:
  // Each row adds up what it is given; a cache gets it in every element.
  StateRows() : session_(program(), {.threads = 1, .device = "host"}) {
    session_.setSymbol("cache", kCache);
  }
  static Program program() {
    Graph g;
    const Dim n = g.dim("n", 1, 4), cache = g.dim("cache", 1, 8);
    g.state("sum", DType::F32, {n, kWidth});
    g.state("cache_of_heads", DType::F32, {n, kHeads, cache, 1});
    const Tensor x = g.input("x", DType::F32, {n, kWidth});
    const Tensor sum = g.readState("sum") + x;
    g.writeState("sum", sum);
    g.writeState("cache_of_heads",
                 g.readState("cache_of_heads") + reshape(sliceAxis(x, 1, 0, 1), {n, 1, 1, 1}));
    g.output("y", sum);
    return compile(g, {.backend = GetParam()});
  }
  Array add(int64_t rows, double value) {
    Array x(DType::F32, {rows, kWidth});
    for (int64_t i = 0; i < x.size(); ++i) x.set(i, value * double(1 + i / kWidth));
    return session_.run("forward", {{"x", x}}).at("y").clone();
  }
  // The first number of every row.
  std::vector<double> sums() {
    const Array sum = session_.state("sum");
    std::vector<double> all;
    for (int64_t row = 0; row < sum.shape()[0]; ++row) all.push_back(sum.at(row * kWidth));
    return all;
  }
  Session session_;
};

TEST_P(StateRows, RunsWorkOnThoseThatAreSelected) {
  session_.keepStateRows("n", 4);
  session_.selectStateRows(2);
  add(2, 1);
  session_.selectStateRows(0);
  add(1, 10);
  session_.selectStateRows(3);
  EXPECT_EQ(add(1, 100).at(0), 102);
  EXPECT_EQ(sums(), (std::vector<double>{10, 0, 1, 102}));
  EXPECT_THAT(errorOf([&] { add(2, 1); }), HasSubstr("this run needs 2 from row 3 on"));
  for (int64_t row : {-1, 4})
    EXPECT_THAT(errorOf([&] { session_.selectStateRows(row); }),
                HasSubstr("selectStateRows: expected one of 4 rows"));
  // Kept anew they are clear, and runs begin at the first one.
  session_.keepStateRows("n", 3);
  EXPECT_EQ(add(3, 1).at(0), 1);
  EXPECT_EQ(sums(), (std::vector<double>{1, 2, 3}));
}

TEST_P(StateRows, AreCopiedUpToACount) {
  session_.keepStateRows("n", 3);
  session_.copyStateRow(0, 1, "cache", 2);  // nothing is there yet
  add(3, 1);
  session_.copyStateRow(2, 0, "cache", 2);
  EXPECT_EQ(sums(), (std::vector<double>{3, 2, 3}));
  const Array cache = session_.state("cache_of_heads");
  for (int64_t row = 0; row < 3; ++row)
    for (int64_t head = 0; head < kHeads; ++head)
      for (int64_t i = 0; i < kCache; ++i)
        EXPECT_EQ(cache.at((row * kHeads + head) * kCache + i), row == 0 && i < 2 ? 3 : row + 1)
            << row << " " << head << " " << i;
  for (int64_t count : {int64_t(-1), kCache + 1})
    EXPECT_THAT(errorOf([&] { session_.copyStateRow(2, 0, "cache", count); }),
                HasSubstr("copyStateRow: expected from 0 to 8 of 'cache'"));
  for (int64_t row : {-1, 3}) {
    EXPECT_THAT(errorOf([&] { session_.copyStateRow(row, 0, "cache", 1); }),
                HasSubstr("copyStateRow: expected one of 3 rows"));
    EXPECT_THAT(errorOf([&] { session_.copyStateRow(0, row, "cache", 1); }),
                HasSubstr("copyStateRow: expected one of 3 rows"));
  }
}

// What all sequences have in common is of none of them.
TEST_P(StateRows, AStateWithoutRowsIsNotCopied) {
  Graph g;
  const Dim n = g.dim("n", 1, 4);
  g.state("sum", DType::F32, {n, kWidth});
  g.state("common", DType::F32, {4, kWidth});
  const Tensor x = g.input("x", DType::F32, {n, kWidth});
  for (const char* name : {"sum", "common"})
    g.writeState(name, g.readState(name) + reshape(reduceSum(x, {0}), {1, kWidth}));
  g.output("y", g.readState("sum"));
  Session session(compile(g, {.backend = GetParam()}), {.threads = 1, .device = "host"});
  session.keepStateRows("n", 4);
  Array common(DType::F32, {4, kWidth});
  for (int64_t i = 0; i < common.size(); ++i) common.set(i, double(i));
  session.setState("common", common);
  session.run("forward", {{"x", Array(DType::F32, {4, kWidth})}});
  session.copyStateRow(2, 0, "cache", 2);
  const Array left = session.state("common");
  ASSERT_EQ(left.size(), common.size()) << "no row of it is kept besides";
  for (int64_t i = 0; i < left.size(); ++i) EXPECT_EQ(left.at(i), double(i)) << i;
}

TEST_P(StateRows, AreCopiedAsBlocks) {
  session_.copyStateBlock("n", 0, 1);  // nothing is there yet
  add(3, 1);
  session_.copyStateBlock("n", 2, 0);
  session_.copyStateBlock("n", 1, 1);
  EXPECT_EQ(sums(), (std::vector<double>{3, 2, 3}));
  const Array cache = session_.state("cache_of_heads");
  for (int64_t i = 0; i < cache.size(); ++i)
    EXPECT_EQ(cache.at(i), i / (kHeads * kCache) == 1 ? 2 : 3) << i;
  session_.copyStateBlock("cache", 0, 1);  // no state begins with it
  EXPECT_EQ(sums(), (std::vector<double>{3, 2, 3}));
  for (int64_t row : {-1, 3})
    EXPECT_THAT(errorOf([&] { session_.copyStateBlock("n", 0, row); }),
                HasSubstr("copyStateBlock: expected one of 3 rows of the state"));
}

TEST_P(StateRows, AreGathered) {
  auto gather = [&](std::vector<int64_t> rows) { session_.gatherStateRows("n", rows); };
  gather({7});  // nothing is there yet
  add(3, 1);
  gather({2, 0, 2});
  EXPECT_EQ(sums(), (std::vector<double>{3, 1, 3}));
  for (const std::vector<int64_t>& rows :
       {std::vector<int64_t>{0, 1, 3}, {-1, 0, 1}, {0, 1}, {0, 1, 2, 0}})
    EXPECT_THAT(errorOf([&] { gather(rows); }),
                HasSubstr("gatherStateRows: expected 3 rows from 0 to 2 for the state"));
  EXPECT_EQ(sums(), (std::vector<double>{3, 1, 3}));
}

TEST(StateRowsOfOddSizes, AreRefusedWhereKernelsReadSixteenBytes) {
  Graph g;
  const Dim n = g.dim("n", 1, 4);
  g.state("sum", DType::F32, {n, 3});
  const Tensor sum = g.readState("sum") + g.input("x", DType::F32, {n, 3});
  g.writeState("sum", sum);
  g.output("y", sum);
  const Array x = Array::fromFloats({1, 2, 3}, {1, 3});
  for (const char* backend : {"cpu", "cuda"}) {
    Session session(compile(g, {.backend = backend}), {.device = "host"});
    session.keepStateRows("n", 4);
    for (int64_t row : {0, 2, 4 - 1}) {
      session.selectStateRows(row);
      const std::string said = errorOf([&] { session.run("forward", {{"x", x}}); });
      if (row == 0 || backend == std::string("cpu"))
        EXPECT_EQ(said, "") << backend << " " << row;
      else
        EXPECT_THAT(said, HasSubstr("of f32[4, 3] does not begin at a multiple of 16 bytes"));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, StateRows, ::testing::Values("cpu", "cuda"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace lathe
