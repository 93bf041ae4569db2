// SPDX-License-Identifier: Apache-2.0
// Thousands of near misses, drawn from what every pattern matches: whatever the pipeline makes of
// one, it computes what the graph says. With the samples that hold patterns to their values
// (passes/rewrite/value_check.h) and, for most of them, by the patterns' own conditions.
//
//   drawn_near_misses_test SEED COUNT    tries another draw, or with a large count all there are
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "lathe/backends/interpreter.h"
#include "lathe/ir/context.h"
#include "lathe/passes/pipeline.h"
#include "lathe/runtime/error.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/rewrite/value_check.h"
#include "tests/conformance/drawn_mutants.h"
#include "tests/conformance/seeds.h"
#include "tests/depth.h"

using namespace mlir;

namespace lathe::conformance {
namespace {

Seeds seeds{1, test::inDepth() ? 1200 : 500};

// Where the fused graph differs from the mutant on samples; "" if nowhere.
std::string difference(ModuleOp mutant, NumericsMode mode, const Evaluator& evaluate) {
  Module after(mutant.clone());
  try {
    runPipeline(*after, Stage::Fused, {}, {.mode = mode}, {.evaluate = evaluate});
  } catch (const Error& e) {
    return std::string("the pipeline fails: ") + e.what();
  }
  CutOut cut{ModuleOp::create(UnknownLoc::get(mutant.getContext())), {}, {}};
  auto take = [&](ModuleOp from, const char* name) {
    auto copy = from.lookupSymbol<func::FuncOp>("forward").clone();
    copy.setName(name);
    cut.module->push_back(copy);
    return copy;
  };
  cut.was = take(mutant, "was");
  cut.is = take(*after, "is");
  return valueDifference(cut, mutant, interpretFunction).value_or("");
}

class DrawnNearMisses : public testing::Test {
 protected:
  void check(bool compared) {
    std::vector<std::string> forms = matchedForms();
    std::mt19937_64 random(seeds.first);
    std::shuffle(forms.begin(), forms.end(), random);
    int drawn = 0;
    for (const std::string& form : forms) {
      if (drawn >= seeds.count) break;
      auto context = createContext();
      auto module = parseModule(*context, form, "form");
      std::vector<Mutant> mutants = mutantsOf(*module);
      std::shuffle(mutants.begin(), mutants.end(), random);
      // A few of each form: there are hundreds.
      const size_t share = std::max<size_t>(size_t(seeds.count) / forms.size() + 1, 4);
      for (const Mutant& m : ArrayRef(mutants).take_front(share)) {
        ++drawn;
        for (NumericsMode mode : {NumericsMode::Relaxed, NumericsMode::Strict})
          EXPECT_EQ(difference(*m.module, mode, compared ? interpretFunction : Evaluator()), "")
              << nameOf(mode) << ", " << m.what << "\n"
              << textOf(*m.module);
      }
    }
    RecordProperty("drawn", drawn);
    std::printf("%d near misses of %zu forms, first seed %llu\n", drawn, forms.size(),
                static_cast<unsigned long long>(seeds.first));
    EXPECT_GE(drawn, std::min(seeds.count, 1000));
  }
};

TEST_F(DrawnNearMisses, KeepTheirMeaning) { check(true); }
TEST_F(DrawnNearMisses, KeepTheirMeaningByThePatternsOwnConditions) { check(false); }

}  // namespace
}  // namespace lathe::conformance

int main(int argc, char** argv) {
  return lathe::conformance::runWithSeeds(argc, argv, lathe::conformance::seeds);
}
