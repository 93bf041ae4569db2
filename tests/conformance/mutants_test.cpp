// SPDX-License-Identifier: Apache-2.0
// Near misses of every decomposition: another axis, permutation, constant, predicate, operand
// order, one more user. A fusion that takes one must not change what it computes, and must leave a
// value that somebody else uses.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "lathe/ir/types.h"
#include "tests/conformance/mutations.h"
#include "tests/conformance/square_samples.h"

using namespace mlir;

namespace lathe::conformance {
namespace {

TEST(Mutants, KeepTheirMeaningUnderFusion) {
  std::map<std::string, int> different;
  for (const auto& [op, sample] : squareSamples(DType::F32)) {
    const Graph graph = recordSamples({sample});
    Module original = elementaryForm(graph);
    const std::vector<Array> plain = evaluate(*original, sample, op);
    Module fusedOriginal = Module(original->clone());
    canonicalizeAndFuse(*fusedOriginal);
    ASSERT_EQ(countOps(*fusedOriginal, op), 1) << op << " " << sample.name;
    const std::string form = textOf(*fusedOriginal);

    const size_t count = opsOf(*original).size();
    for (size_t i = 0; i < count; ++i) {
      for (const Mutation& mutation : allMutations(opsOf(*original)[i])) {
        Module mutant(original->clone());
        Operation* target = opsOf(*mutant)[i];
        const std::string where = op + " " + sample.name + ": " + mutation.name + " of " +
                                  target->getName().getStringRef().str() + " " + std::to_string(i);
        mutation.apply(target);
        if (!isValid(*mutant)) continue;
        const std::vector<Array> before = evaluate(*mutant, sample, op);
        canonicalizeAndFuse(*mutant);
        EXPECT_TRUE(agree(before, evaluate(*mutant, sample, op))) << where;
        if (agree(before, plain)) continue;
        ++different[op];
        EXPECT_NE(textOf(*mutant), form) << where << " was taken for the op itself";
      }
    }
  }
  // Not a test of nothing.
  for (const OpRow& row : opTable()) {
    if (!row.fused || !row.isFound) continue;
    // Sums and products in any order are the same: nothing about gated_residual can be mistaken.
    if (row.op != "lathe.gated_residual") EXPECT_GE(different[row.op], 1) << row.op;
  }
}

// Values that a fused op may leave for others: weights, what moves data without arithmetic, masks,
// and results of the smaller ops that it is built from step by step.
bool mayEscape(const std::string& fusedOp, Operation* op) {
  if (isa<ConstantOp, WeightOp>(op) || fusedOp == "lathe.linear" ||
      fusedOp == "lathe.grouped_linear")
    return true;
  if (isa<SliceOp>(op) && (fusedOp == "lathe.rope" || fusedOp == "lathe.rope_append")) return true;
  bool onPositions = llvm::all_of(
      op->getOperands(), [](Value v) { return tensorType(v).getElementType().isInteger(); });
  if (fusedOp == "lathe.paged_attention") return onPositions;
  return fusedOp == "lathe.attention" &&
         (isa<TransposeOp, ReshapeOp, BroadcastOp>(op) || onPositions);
}

// Values of the smaller ops that a fused op is built from step by step: with another user one of
// those is found in its place, or the op on a later value.
bool isStep(const std::string& fusedOp, Operation* op) {
  static const std::map<std::string, std::set<std::string>> steps{
      {"lathe.rms_norm", {"lathe.mul"}},
      {"lathe.layer_norm", {"lathe.mul"}},
      {"lathe.add_norm", {"lathe.add", "lathe.mul"}},
      {"lathe.adaln_modulate", {"lathe.reduce_mean", "lathe.sub"}},
      {"lathe.embedding", {"lathe.gather", "lathe.mul"}},
      {"lathe.rope", {"lathe.concat"}},
      {"lathe.rope_append", {"lathe.mul", "lathe.reduce_mean", "lathe.add", "lathe.rsqrt"}},
      {"lathe.softmax", {"lathe.mul", "lathe.div", "lathe.tanh", "lathe.select"}},
  };
  auto found = steps.find(fusedOp);
  return found != steps.end() && found->second.count(op->getName().getStringRef().str());
}

TEST(Mutants, WithOneMoreUserAreNotTaken) {
  for (const auto& [op, sample] : squareSamples(DType::F32)) {
    const Graph graph = recordSamples({sample});
    Module original = elementaryForm(graph);
    const size_t count = opsOf(*original).size();
    for (size_t i = 0; i + 1 < count; ++i) {
      Module mutant(original->clone());
      Operation* target = opsOf(*mutant)[i];
      const bool taken = mayEscape(op, target), step = isStep(op, target);
      const std::string where = op + " " + sample.name + ": " +
                                target->getName().getStringRef().str() + " " + std::to_string(i);
      returnToo(target);
      ASSERT_TRUE(isValid(*mutant)) << where;
      const std::vector<Array> before = evaluate(*mutant, sample, op);
      canonicalizeAndFuse(*mutant);
      EXPECT_TRUE(agree(before, evaluate(*mutant, sample, op))) << where;
      if (step)
        EXPECT_LE(countOps(*mutant, op), 1) << where;
      else
        EXPECT_EQ(countOps(*mutant, op), taken ? 1 : 0) << where;
    }
  }
}

}  // namespace
}  // namespace lathe::conformance
