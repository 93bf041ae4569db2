// SPDX-License-Identifier: Apache-2.0
// Random transformers, compiled as they are: questions about their numbers accuse nobody. bf16
// makes elements equal between which an argmax chooses.
//
//   accused_test SEED COUNT    tries other graphs, or more of them
#include <gtest/gtest.h>

#include <regex>

#include "lathe/inspect/bisect.h"
#include "lathe/inspect/check_numerics.h"
#include "tests/conformance/random_transformers.h"
#include "tests/conformance/seeds.h"

namespace lathe::conformance {
namespace {

Seeds seeds{1, 12};

// Those of bf16 in f16 as well.
std::vector<Graph> graphsOf(uint64_t seed) {
  std::vector<Graph> all;
  all.push_back(randomTransformer(seed));
  const std::string text = all[0].text();
  if (text.find("bf16") != text.npos)
    all.push_back(Graph::parse(std::regex_replace(text, std::regex("bf16"), "f16"), "f16"));
  return all;
}

TEST(Accused, NobodyIsByATableOfNumbers) {
  size_t rewrites = 0;
  for (uint64_t seed = seeds.first; seed < seeds.end(); ++seed)
    for (const Graph& graph : graphsOf(seed)) {
      const Precision precision = seed % 2 ? Precision::OwnDtype : Precision::Float64;
      const NumericsTable table = checkNumerics(graph, {.precision = precision, .seed = seed});
      for (const NumericsRow& row : table.rows) {
        rewrites += row.rewrites;
        EXPECT_TRUE(row.deviation.within)
            << "seed " << seed << " " << row.step << ": " << row.deviation.where;
      }
    }
  EXPECT_GT(rewrites, 0u);
}

// The same by bisecting, which tries larger sizes as well: dearer, so fewer of them.
TEST(Accused, NobodyIsByBisecting) {
  for (uint64_t seed = seeds.first; seed < seeds.end(); seed += 5) {
    BisectOptions options;
    options.trial.seed = seed;
    const BisectResult r = bisect(randomTransformer(seed), options);
    EXPECT_EQ(r.culprit, BisectResult::Culprit::Nobody)
        << "seed " << seed << ": " << nameOf(r.culprit) << " " << r.step << " #" << r.rewrite.number
        << " " << r.rewrite.what << " " << r.op << ": " << r.deviation.where;
  }
}

}  // namespace
}  // namespace lathe::conformance

int main(int argc, char** argv) {
  return lathe::conformance::runWithSeeds(argc, argv, lathe::conformance::seeds);
}
