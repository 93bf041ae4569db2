// SPDX-License-Identifier: Apache-2.0
// At least fifty near misses of every fusion: one axis, permutation, constant, predicate, operand
// or use of one of its spellings is changed. Fusions must keep what the changed graph computes;
// where none takes it, the report says which op, attribute or constraint was in the way.
#include <gtest/gtest.h>

#include <map>

#include "ir/types.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Pass/PassManager.h"
#include "passes/passes.h"
#include "tests/conformance/mutations.h"
#include "tests/conformance/respell.h"
#include "tests/conformance/square_samples.h"

using namespace mlir;

namespace lathe::conformance {
namespace {

constexpr int kLeast = 50;
constexpr int kSpellings = 6;  // of each sample, besides the decomposition itself

// The remarks of lathe-why-not.
std::vector<std::string> reasons(ModuleOp module) {
  std::vector<std::string> all;
  ScopedDiagnosticHandler collect(module.getContext(), [&](Diagnostic& d) {
    all.push_back(d.str());
    return success();
  });
  PassManager manager(module.getContext());
  manager.addPass(createWhyNotPass());
  EXPECT_TRUE(succeeded(manager.run(module)));
  return all;
}

// "pattern: 3 of 5 ops, then WHAT at LOCATION": WHAT names an op, an attribute or a constraint.
bool namesSomething(const std::string& reason) {
  const size_t then = reason.find(" ops, then ");
  if (then == std::string::npos) return false;
  const std::string what = reason.substr(then + 11);
  for (const char* word : {"lathe.", "'", "wanted ", "axis", "axes", "dim", "rounded", "differ",
                           "mask", "angles", "sum", "gain", "bias", "another user", "halves"})
    if (what.find(word) != std::string::npos) return true;
  return false;
}

class NearMisses : public ::testing::TestWithParam<std::string> {};

TEST_P(NearMisses, DeclineWithAReasonOrKeepTheirMeaning) {
  const std::string& op = GetParam();
  int misses = 0, silent = 0;
  std::map<std::string, std::string> quiet;
  for (const auto& [name, sample] : squareSamples(DType::F64)) {
    if (name != op) continue;
    const Graph graph = recordSamples({sample});
    Module original = elementaryForm(graph);
    const std::vector<Array> plain = evaluate(*original, sample, op);
    for (int seed = -1; seed < kSpellings; ++seed) {
      Module spelling(original->clone());
      if (seed >= 0) respell(*spelling, uint64_t(seed));
      const size_t count = opsOf(*spelling).size();
      auto check = [&](const std::string& what, size_t i, auto&& change) {
        Module mutant(spelling->clone());
        Operation* target = opsOf(*mutant)[i];
        const std::string where = sample.name + " spelling " + std::to_string(seed) + ": " + what +
                                  " of " + target->getName().getStringRef().str() + " " +
                                  std::to_string(i);
        change(*mutant, target);
        if (!isValid(*mutant)) return;
        std::vector<Array> before;
        try {
          before = evaluate(*mutant, sample, op);
        } catch (const std::exception&) {
          return;  // an index outside its table
        }
        const bool another = before.size() != plain.size();
        if (!another && agree(before, plain)) return;
        canonicalizeAndFuse(*mutant);
        EXPECT_TRUE(agree(before, evaluate(*mutant, sample, op))) << where;
        // Found although it computes something else: the op on other operands or attributes.
        if (countOps(*mutant, op)) return;
        ++misses;
        const std::vector<std::string> why = reasons(*mutant);
        if (std::any_of(why.begin(), why.end(), namesSomething)) return;
        ++silent;
        quiet[where] = textOf(*mutant) + (why.empty() ? "" : why[0]);
      };
      for (size_t i = 0; i < count; ++i) {
        for (const Mutation& mutation : mutationsOf(opsOf(*spelling)[i])) {
          if (seed >= 0 && mutation.name == "argument") continue;
          check(mutation.name, i, [&](ModuleOp, Operation* o) { mutation.apply(o); });
        }
        if (i + 1 < count) check("one more user", i, returnToo);
      }
    }
  }
  RecordProperty("misses", misses);
  EXPECT_GE(misses, kLeast);
  EXPECT_EQ(silent, 0) << quiet.begin()->first << "\n" << quiet.begin()->second;
}

std::vector<std::string> fusedOps() {
  std::vector<std::string> ops;
  for (const OpRow& row : opTable())
    if (row.fused) ops.push_back(row.op);
  return ops;
}
INSTANTIATE_TEST_SUITE_P(Conformance, NearMisses, ::testing::ValuesIn(fusedOps()),
                         [](const auto& info) { return info.param.substr(6); });

}  // namespace
}  // namespace lathe::conformance
