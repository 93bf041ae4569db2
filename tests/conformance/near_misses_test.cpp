// SPDX-License-Identifier: Apache-2.0
// At least fifty near misses of every fusion: one axis, permutation, constant, predicate, operand
// or use of one of its spellings is changed. Fusions must keep what the changed graph computes;
// where none takes it, the report says which op, attribute or constraint was in the way.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "lathe/ir/types.h"
#include "lathe/passes/passes.h"
#include "lathe/runtime/error.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Pass/PassManager.h"
#include "tests/conformance/mutations.h"
#include "tests/conformance/respell.h"
#include "tests/conformance/square_samples.h"

using namespace mlir;

namespace lathe::conformance {
namespace {

constexpr int kLeast = 50;
constexpr int kMost = 40;  // spellings of a sample, where the decomposition has too few

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

int fusedCount(ModuleOp module) {
  int count = 0;
  for (const OpRow& row : opTable())
    if (row.fused) count += countOps(module, row.op);
  return count;
}

// What a change cuts off is far from the fusion, not near.
bool isWhole(ModuleOp module) {
  return llvm::all_of(opsOf(module), [](Operation* op) { return !op->use_empty(); });
}

class NearMisses : public ::testing::TestWithParam<std::string> {
 protected:
  // Tries all changes of one spelling.
  void check(ModuleOp spelling, const Sample& sample, const std::vector<Array>& plain) {
    const size_t count = opsOf(spelling).size();
    for (size_t i = 0; i < count; ++i) {
      for (const Mutation& mutation : allMutations(opsOf(spelling)[i])) {
        Module mutant(spelling.clone());
        mutation.apply(opsOf(*mutant)[i]);
        checkOne(*mutant, sample, plain, mutation.name + " of op " + std::to_string(i),
                 mutation.inOneOp);
      }
      Module mutant(spelling.clone());
      Operation* op = opsOf(*mutant)[i];
      if (i + 1 == count || isa<ConstantOp, WeightOp>(op)) continue;
      returnToo(op);
      checkOne(*mutant, sample, plain, "one more user of op " + std::to_string(i), true);
    }
  }

  int misses_ = 0;

 private:
  void checkOne(ModuleOp mutant, const Sample& sample, const std::vector<Array>& plain,
                const std::string& what, bool inOneOp) {
    if (!isValid(mutant) || !isWhole(mutant)) return;
    std::vector<Array> before;
    try {
      before = evaluate(mutant, sample, GetParam());
    } catch (const lathe::Error&) {
      return;  // an index outside its table
    }
    if (before.size() == plain.size() && agree(before, plain)) return;
    const std::string text = sample.name + ": " + what + "\n" + textOf(mutant);
    canonicalizeAndFuse(mutant);
    ++misses_;
    EXPECT_TRUE(agree(before, evaluate(mutant, sample, GetParam()))) << text << textOf(mutant);
    // Another op, or the same with what the change gave it, is right as it keeps the meaning.
    if (fusedCount(mutant)) return;
    // Nor is a reason asked for where the formula is another one.
    if (!inOneOp) return;
    // A sum, a product or a lookup alone is near to everything: nothing is said about those.
    if (GetParam() == "lathe.gated_residual" || GetParam() == "lathe.embedding") return;
    const std::vector<std::string> why = reasons(mutant);
    EXPECT_TRUE(std::any_of(why.begin(), why.end(), namesSomething))
        << text << (why.empty() ? "no reason" : why[0]);
  }
};

TEST_P(NearMisses, DeclineWithAReasonOrKeepTheirMeaning) {
  struct Case {
    Sample sample;
    Graph graph;  // owns the context
    Module module;
    std::vector<Array> plain;
  };
  std::vector<std::unique_ptr<Case>> mine;
  for (const auto& [op, sample] : squareSamples(DType::F64)) {
    if (op != GetParam()) continue;
    auto c = std::make_unique<Case>(Case{sample, recordSamples({sample}), {}, {}});
    c->module = elementaryForm(c->graph);
    c->plain = evaluate(*c->module, sample, op);
    check(*c->module, sample, c->plain);
    mine.push_back(std::move(c));
  }
  for (int seed = 0; misses_ < kLeast && seed < kMost; ++seed)
    for (const auto& c : mine) {
      Module spelling(c->module->clone());
      respell(*spelling, uint64_t(seed));
      check(*spelling, c->sample, c->plain);
    }
  EXPECT_GE(misses_, kLeast);
}

std::vector<std::string> fusedOps() {
  std::vector<std::string> ops;
  for (const OpRow& row : opTable())
    if (row.fused && row.isFound) ops.push_back(row.op);
  return ops;
}
INSTANTIATE_TEST_SUITE_P(Conformance, NearMisses, ::testing::ValuesIn(fusedOps()),
                         [](const auto& info) { return info.param.substr(6); });

}  // namespace
}  // namespace lathe::conformance
