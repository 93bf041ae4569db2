// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/lowering/tuning/variant_pruning.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace lathe::cuda
