// SPDX-License-Identifier: Apache-2.0
// Every fusion finds its op in at least fifty spellings, made mechanically from its decomposition.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "tests/conformance/respell.h"
#include "tests/conformance/square_samples.h"

namespace lathe::conformance {
namespace {

constexpr size_t kLeast = 50;  // spellings of each fused op
constexpr int kMost = 400;     // attempts on one sample

// How often each op is there: one op more or less is a piece left over.
std::map<std::string, int> opNames(mlir::ModuleOp module) {
  std::map<std::string, int> names;
  for (mlir::Operation* op : opsOf(module)) ++names[op->getName().getStringRef().str()];
  return names;
}

class Spellings : public ::testing::TestWithParam<std::string> {};

TEST_P(Spellings, AreFoundAndKeepTheirMeaning) {
  const std::string& op = GetParam();
  std::vector<Sample> mine;
  for (auto& [name, sample] : squareSamples(DType::F64))
    if (name == op) mine.push_back(sample);
  ASSERT_FALSE(mine.empty());
  std::set<std::string> texts;
  const size_t each = 2 * kLeast / mine.size() + 1;
  for (const Sample& sample : mine) {
    const Graph graph = recordSamples({sample});
    Module original = elementaryForm(graph);
    Module fused(original->clone());
    canonicalizeAndFuse(*fused);
    ASSERT_EQ(countOps(*fused, op), 1) << sample.name << "\n" << textOf(*fused);
    const std::map<std::string, int> form = opNames(*fused);
    const std::vector<Array> plain = evaluate(*original, sample, op);
    const size_t had = texts.size();
    for (int seed = 0; seed < kMost && texts.size() < had + each; ++seed) {
      Module other(original->clone());
      respell(*other, uint64_t(seed));
      const std::string text = textOf(*other);
      if (!texts.insert(sample.name + text).second) continue;
      ASSERT_TRUE(agree(evaluate(*other, sample, op), plain)) << sample.name << "\n" << text;
      canonicalizeAndFuse(*other);
      EXPECT_EQ(opNames(*other), form) << sample.name << "\n" << text << textOf(*other);
      EXPECT_TRUE(agree(evaluate(*other, sample, op), plain)) << sample.name << "\n" << text;
    }
  }
  EXPECT_GE(texts.size(), kLeast);
}

std::vector<std::string> fusedOps() {
  std::vector<std::string> ops;
  for (const OpRow& row : opTable())
    if (row.fused && row.isFound) ops.push_back(row.op);
  return ops;
}
INSTANTIATE_TEST_SUITE_P(Conformance, Spellings, ::testing::ValuesIn(fusedOps()),
                         [](const auto& info) { return info.param.substr(6); });

}  // namespace
}  // namespace lathe::conformance
