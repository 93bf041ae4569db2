// SPDX-License-Identifier: Apache-2.0
#include "runtime/bound_weights.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "lathe/runtime/thread_pool.h"
#include "tests/unit/test_files.h"

namespace lathe {
namespace {

TensorInfo matrix(DType dtype) { return {"layer.weight", dtype, {DimExpr(700), DimExpr(601)}}; }

Array onThreads(int threads, const TensorInfo& info) {
  ThreadPool::setGlobalThreads(threads);
  return randomWeight(info, 5);
}

TEST(RandomWeight, ThreadsDoNotChangeIt) {
  for (DType dtype : {DType::F32, DType::BF16, DType::F16}) {
    Array one = onThreads(1, matrix(dtype)), many = onThreads(5, matrix(dtype));
    EXPECT_EQ(std::memcmp(one.data(), many.data(), one.bytes()), 0) << nameOf(dtype);
  }
}

// SplitMix64 as its authors write it: a state that steps from element to element.
TEST(RandomWeight, FollowsTheGenerator) {
  uint64_t state = 5 * 0x9e3779b97f4a7c15u;
  for (unsigned char c : std::string("layer.weight")) state = (state ^ c) * 0x100000001b3u;
  Array weight = onThreads(3, matrix(DType::F32));
  const float scale = 1.0f / std::sqrt(601.0f);
  for (float value : weight.as<float>()) {
    uint64_t z = (state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    ASSERT_EQ(value, scale * (float(int64_t(z ^ (z >> 31)) >> 40) * 0x1p-23f));
  }
}

// Every dtype has the values of f32, as it rounds them.
TEST(RandomWeight, DtypesRoundTheSameValues) {
  const Array exact = onThreads(2, matrix(DType::F32));
  for (DType dtype : {DType::BF16, DType::F16, DType::F64}) {
    const Array weight = onThreads(2, matrix(dtype)), wanted = exact.to(dtype);
    EXPECT_EQ(std::memcmp(weight.data(), wanted.data(), wanted.bytes()), 0) << nameOf(dtype);
  }
}

TEST(RandomWeight, NameAndSeedChangeIt) {
  TensorInfo info = matrix(DType::F32), other = info;
  other.name = "layer.bias";
  Array first = randomWeight(info, 5);
  EXPECT_NE(std::memcmp(first.data(), randomWeight(other, 5).data(), first.bytes()), 0);
  EXPECT_NE(std::memcmp(first.data(), randomWeight(info, 6).data(), first.bytes()), 0);
}

TEST(RandomWeight, PiecesHaveTheValuesOfTheWhole) {
  TensorInfo piece{
      "w@1/3", DType::F32, {DimExpr(2), DimExpr(2), DimExpr(5)}, WeightPiece{"w", 1, 3}};
  const Array all = randomWeight({"w", DType::F32, {DimExpr(2), DimExpr(6), DimExpr(5)}}, 5);
  for (int64_t rank = 0; rank < 6; ++rank) {
    const Array own = randomWeight(piece, 5, rank, 6), cut = partOf(all, piece.own(rank, 6), "w");
    ASSERT_EQ(own.shape(), cut.shape());
    EXPECT_EQ(std::memcmp(own.data(), cut.data(), own.bytes()), 0) << rank;
    for (int64_t i = 0; i < 2; ++i)
      for (int64_t j = 0; j < 10; ++j)
        EXPECT_EQ(own.at(i * 10 + j), all.at(i * 30 + rank / 2 * 10 + j));
  }
}

// The keys of a tensor that holds queries and values, too; rows of all groups.
TEST(RandomWeight, PartsOfAnAxisHaveTheValuesOfTheWhole) {
  const Array all = randomWeight({"w", DType::F32, {DimExpr(24), DimExpr(5)}}, 5);
  const TensorInfo keys{
      "k", DType::F32, {DimExpr(4), DimExpr(5)}, WeightPiece{"w", 0, 2, 1, 8, 24}};
  EXPECT_EQ(keys.sourceShape(), (SymbolicShape{DimExpr(24), DimExpr(5)}));
  const TensorInfo groups{"g", DType::F32, {DimExpr(12), DimExpr(5)}, WeightPiece{"w", 0, 2, 3}};
  EXPECT_EQ(groups.sourceShape(), keys.sourceShape());
  for (int64_t rank : {0, 1}) {
    const Array k = randomWeight(keys, 5, rank, 2), g = randomWeight(groups, 5, rank, 2);
    for (int64_t i = 0; i < 20; ++i) EXPECT_EQ(k.at(i), all.at((8 + rank * 4) * 5 + i));
    for (int64_t i = 0; i < 60; ++i)
      EXPECT_EQ(g.at(i), all.at((i / 20 * 8 + rank * 4) * 5 + i % 20)) << i;
    EXPECT_EQ(std::memcmp(ownPiece(keys, all, rank, 2).data(), k.data(), k.bytes()), 0);
    EXPECT_EQ(std::memcmp(ownPiece(groups, all, rank, 2).data(), g.data(), g.bytes()), 0);
  }
}

TEST(RandomWeight, VectorsLieNearOne) {
  Array gains = randomWeight({"norm", DType::F32, {DimExpr(300)}}, 1);
  for (float value : gains.as<float>()) ASSERT_NEAR(value, 1.0f, 0.1f);
}

TEST(FetchedWeights, TwentyMistakesAreToldAndTheOthersCounted) {
  for (int count : {1, 20, 21, 25}) {
    Program program;
    std::string told = std::to_string(count) + " weights do not fit the program:";
    for (int i = 0; i < count; ++i) {
      program.weights.push_back({"w" + std::to_string(i), DType::F32, {DimExpr(2)}});
      if (i < 20) told += "\n  missing: w" + std::to_string(i) + " f32[2]";
    }
    if (count > 20) told += "\n  ... and " + std::to_string(count - 20) + " more";
    EXPECT_EQ(test::messageOf([&] { fetchWeights(program, [](auto&) { return Array(); }); }), told);
  }
}

}  // namespace
}  // namespace lathe
