// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/lowering/tuning/variant_pruning.h"

#include <gtest/gtest.h>

#include "backends/cuda/lowering/kernel/kernel_sequence.h"

namespace lathe::cuda {
namespace {

Variant variant(const char* kernel, std::vector<Condition> when) {
  Variant v;
  v.when = std::move(when);
  v.launches.resize(1);
  v.launches[0].kernel = kernel;
  return v;
}
DimExpr dim(const char* text) { return *DimExpr::parse(text); }

std::vector<std::string> namesOf(const KernelSet& set) {
  std::vector<std::string> names;
  for (const KernelText& k : set.kernels) names.push_back(k.name);
  return names;
}

KernelSet rowsSet(const DimExpr& rows) {
  KernelSet set;
  for (const char* name : {"few", "some", "many"}) set.kernels.push_back({name, ""});
  set.variants = {variant("few", {{rows, 0, 1}}), variant("some", {{rows, 2, 16}}),
                  variant("many", {{rows, 17, int64_t(1) << 40}})};
  return set;
}

TEST(VariantPruning, LeavesOutWhatTheRangesExclude) {
  KernelSet set = rowsSet(dim("batch*seq"));
  pruneVariants(set, {{"batch", 1, 4, 1}, {"seq", 2, 4, 1}});
  EXPECT_EQ(namesOf(set), std::vector<std::string>{"some"});
  EXPECT_TRUE(set.variants.at(0).when.empty());
}

TEST(VariantPruning, KeepsWhatSomeSizesTake) {
  KernelSet set = rowsSet(dim("batch"));
  pruneVariants(set, {{"batch", 1, 64, 1}});
  EXPECT_EQ(set.variants.size(), 3u);
  EXPECT_EQ(set.variants[0].when.size(), 1u);
}

TEST(VariantPruning, KeepsWhatTheEndsOfARangeTake) {
  KernelSet set = rowsSet(dim("n"));
  pruneVariants(set, {{"n", 1, 17, 1}});
  EXPECT_EQ(set.variants.size(), 3u) << "1 is few, 17 are many";
  set = rowsSet(dim("n"));
  pruneVariants(set, {{"n", 2, 16, 1}});
  EXPECT_EQ(namesOf(set), std::vector<std::string>{"some"});
  // What takes all sizes but the last is asked.
  set = rowsSet(dim("n"));
  pruneVariants(set, {{"n", 2, 17, 1}});
  ASSERT_EQ(set.variants.size(), 2u);
  EXPECT_EQ(set.variants[0].when.size(), 1u);
}

// A difference of sizes may be anything between its ends.
TEST(VariantPruning, DoesNotJudgeDifferences) {
  KernelSet set = rowsSet(dim("cache-seq"));
  pruneVariants(set, {{"cache", 1, 8, 1}, {"seq", 1, 4, 1}});
  EXPECT_EQ(set.variants.size(), 3u);
}

TEST(VariantPruning, WhatAlwaysHoldsIsTheLast) {
  KernelSet set = rowsSet(dim("n"));
  set.variants[0].when = {};
  pruneVariants(set, {{"n", 1, 64, 1}});
  EXPECT_EQ(namesOf(set), std::vector<std::string>{"few"});
}

// A variant of two steps serves the sizes that both of its kernels do, the ends among them.
TEST(KernelSequence, ConditionsOfStepsHoldTogether) {
  std::vector<Condition> both{{dim("n"), 2, 16}};
  EXPECT_TRUE(addConditions(both, {{dim("n"), 1, 8}, {dim("m"), 0, 4}}));
  ASSERT_EQ(both.size(), 2u);
  EXPECT_EQ(both[0].low, 2);
  EXPECT_EQ(both[0].high, 8);
  EXPECT_EQ(both[1].value.text(), "m");
  for (const auto& [low, high, fits] :
       {std::tuple(8, 20, true), {9, 20, false}, {0, 2, true}, {0, 1, false}}) {
    std::vector<Condition> more = both;
    EXPECT_EQ(addConditions(more, {{dim("n"), low, high}}), fits) << low << " to " << high;
  }
  for (const auto& [value, fits] :
       {std::pair(3, false), {4, true}, {5, true}, {6, true}, {7, false}}) {
    EXPECT_EQ(addConditions(both, {{DimExpr(value), 4, 6}}), fits) << value;
    EXPECT_EQ(both.size(), 2u) << "a number is not asked for";
  }
}

// Where the operands of a step's launch are in the whole call, also those that a library takes in
// its kernel's place.
TEST(KernelSequence, OperandsOfALibraryAreThoseOfTheCall) {
  auto buffer = [](int i) { return Argument{Argument::Kind::Buffer, i, 0}; };
  auto scratch = [](int i) { return Argument{Argument::Kind::Scratch, i, 0}; };
  SequenceStep product, attention;
  product.kernels.variants = {variant("product", {})};
  Launch& multiplies = product.kernels.variants[0].launches[0];
  multiplies.matmul =
      PlainMatmul{DType::BF16, 1, 1, 1, buffer(0), buffer(1), buffer(2), buffer(3), buffer(4)};
  multiplies.unlessSame = {0, 2};
  product.buffers = {buffer(7), buffer(6), scratch(1), buffer(5), buffer(4)};
  attention.kernels.variants = {variant("attention", {})};
  Launch& attends = attention.kernels.variants[0].launches[0];
  attends.attention.emplace();
  PlainAttention& a = *attends.attention;
  a.q.buffer = buffer(0), a.k.buffer = buffer(1), a.v.buffer = buffer(2), a.y.buffer = buffer(4);
  a.lengths = scratch(0);
  attends.unlessSame = {1, 4};
  attention.buffers = {scratch(1), buffer(9), buffer(8), buffer(3), buffer(2)};
  const KernelSet all = sequenceOf({product, attention}, {DimExpr(64)});
  ASSERT_EQ(all.variants.size(), 1u);
  const Launch &first = all.variants[0].launches.at(0), &second = all.variants[0].launches.at(1);
  using Place = std::pair<Argument::Kind, int>;
  auto at = [](const Argument& argument) { return Place{argument.kind, argument.index}; };
  const auto kBuffer = Argument::Kind::Buffer, kScratch = Argument::Kind::Scratch;
  EXPECT_EQ(at(first.matmul->x), Place(kBuffer, 7));
  EXPECT_EQ(at(first.matmul->weight), Place(kBuffer, 6));
  EXPECT_EQ(at(first.matmul->result), Place(kScratch, 1));
  EXPECT_EQ(at(*first.matmul->bias), Place(kBuffer, 5));
  EXPECT_EQ(at(*first.matmul->residual), Place(kBuffer, 4));
  EXPECT_EQ(first.unlessSame[0], -1) << "a temporary is no buffer of the call";
  EXPECT_EQ(at(second.attention->q.buffer), Place(kScratch, 1));
  EXPECT_EQ(at(second.attention->k.buffer), Place(kBuffer, 9));
  EXPECT_EQ(at(second.attention->v.buffer), Place(kBuffer, 8));
  EXPECT_EQ(at(second.attention->y.buffer), Place(kBuffer, 2));
  EXPECT_EQ(at(*second.attention->lengths), Place(kScratch, 3))
      << "behind what steps hand on and the first one's own";
  EXPECT_EQ(second.unlessSame, (std::array<int, 2>{9, 2}));
}

}  // namespace
}  // namespace lathe::cuda
