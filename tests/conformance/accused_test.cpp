// SPDX-License-Identifier: Apache-2.0
// Random transformers in f32 and bf16, compiled as they are: bisecting accuses nobody.
//
//   accused_test SEED COUNT    tries other graphs, or more of them
#include <gtest/gtest.h>

#include "frontend/questions/bisect.h"
#include "tests/conformance/random_transformers.h"
#include "tests/conformance/seeds.h"

namespace lathe::conformance {
namespace {

Seeds seeds{1, 12};

TEST(Accused, NobodyIsWhereNothingIsWrong) {
  size_t rewrites = 0;
  for (uint64_t seed = seeds.first; seed < seeds.end(); ++seed) {
    BisectOptions options;
    options.trial.seed = seed;
    const BisectResult r = bisect(randomTransformer(seed), options);
    rewrites += r.rewrites;
    EXPECT_EQ(r.culprit, BisectResult::Culprit::Nobody)
        << "seed " << seed << ": " << nameOf(r.culprit) << " " << r.step << " #" << r.rewrite.number
        << " " << r.rewrite.what << " " << r.op << ": " << r.deviation.where;
  }
  EXPECT_GT(rewrites, 0u);
}

}  // namespace
}  // namespace lathe::conformance

int main(int argc, char** argv) {
  return lathe::conformance::runWithSeeds(argc, argv, lathe::conformance::seeds);
}
