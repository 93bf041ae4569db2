// SPDX-License-Identifier: Apache-2.0
// Near misses of every decomposition: another axis, permutation, constant, predicate, operand
// order, one more user. A fusion that takes one must not change what it computes, and must leave a
// value that somebody else uses.
#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "ir/types.h"
#include "lathe/lathe.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Verifier.h"
#include "tests/conformance/mutations.h"
#include "tests/conformance/rewriting.h"
#include "tests/conformance/tolerance.h"

using namespace mlir;

namespace lathe::conformance {
namespace {

// Every axis has four elements, so that types hold whatever the axis is.
std::vector<std::pair<std::string, Sample>> squareSamples() {
  const DType f = DType::F32;
  const Dims cube{4, 4, 4}, deep{4, 4, 4, 4}, square{4, 4};
  auto make = [](const char* name, std::vector<Input> inputs,
                 std::function<Tensor(const std::vector<Tensor>&)> r) {
    return Sample{name, std::move(inputs),
                  [r](Graph&, const std::vector<Tensor>& t) { return std::vector<Tensor>{r(t)}; }};
  };
  using Ts = const std::vector<Tensor>&;
  std::vector<std::pair<std::string, Sample>> all;
  for (const char* row : {"nan", "zero", "uniform"})
    all.push_back({"lathe.softmax", make(row, {{f, cube, Fill::MaskedRows}}, [=](Ts t) {
                     return fused::softmax(t[0], 2, {.maskedRow = row});
                   })});
  all.push_back({"lathe.rms_norm", make("plain", {{f, cube}, {f, {4}}},
                                        [](Ts t) { return fused::rmsNorm(t[0], t[1], 0x1p-17); })});
  for (const char* pairing : {"half", "interleaved"})
    all.push_back({"lathe.rope", make(pairing, {{f, deep}, {f, {4, 2}}, {f, {4, 2}}}, [=](Ts t) {
                     return fused::rope(t[0], t[1], t[2], pairing);
                   })});
  for (const char* activation : {"silu", "gelu", "gelu_tanh", "relu"})
    all.push_back({"lathe.silu_gate", make(activation, {{f, square}, {f, square}}, [=](Ts t) {
                     return fused::siluGate(t[0], t[1], activation);
                   })});
  const Input q{f, deep};
  all.push_back({"lathe.attention", make("plain", {q, q, q}, [](Ts t) {
                   return fused::attention(t[0], t[1], t[2], {.scale = 0.5});
                 })});
  all.push_back({"lathe.attention", make("causal", {q, q, q}, [](Ts t) {
                   return fused::attention(t[0], t[1], t[2], {.scale = 0.5, .causal = "top_left"});
                 })});
  all.push_back({"lathe.attention",
                 make("masked", {q, q, q, {DType::Bool, square, Fill::MaskedRows}}, [](Ts t) {
                   return fused::attention(t[0], t[1], t[2],
                                           {.scale = 0.5, .mask = t[3], .maskedRow = "zero"});
                 })});
  all.push_back(
      {"lathe.attention", make("positions", {q, q, q, {DType::I64, {4}, Fill::Index, 3}}, [](Ts t) {
         return fused::attention(t[0], t[1], t[2],
                                 {.scale = 0.5, .positions = t[3], .causal = "positions"});
       })});
  all.push_back({"lathe.attention",
                 make("grouped", {q, {f, {4, 2, 4, 4}}, {f, {4, 2, 4, 4}}},
                      [](Ts t) { return fused::attention(t[0], t[1], t[2], {.scale = 0.5}); })});
  const Input w{f, square, Fill::Normal, 0, true};
  all.push_back({"lathe.linear",
                 make("plain", {{f, cube}, w}, [](Ts t) { return fused::linear(t[0], t[1]); })});
  all.push_back(
      {"lathe.linear",
       make("epilogue", {{f, cube}, w, {f, {4}, Fill::Normal, 0, true}, {f, cube}},
            [](Ts t) { return fused::linear(t[0], t[1], {.bias = t[2], .residual = t[3]}); })});
  all.push_back({"lathe.embedding", make("plain", {{DType::I64, {4}, Fill::Index, 4}, w},
                                         [](Ts t) { return fused::embedding(t[0], t[1]); })});
  return all;
}

// Quietly: most mutants are no valid modules.
bool isValid(ModuleOp module) {
  ScopedDiagnosticHandler quiet(module.getContext(), [](Diagnostic&) { return success(); });
  return succeeded(verify(module));
}

bool agree(const std::vector<Array>& a, const std::vector<Array>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (!firstDifference(a[i], b[i], {1e-12, 1e-12}).empty()) return false;
  return true;
}

// Canonical elementary form of a sample.
Module elementaryForm(const Graph& graph) {
  Module module = moduleOf(graph);
  decompose(*module);
  canonicalize(*module);
  return module;
}

TEST(Mutants, KeepTheirMeaningUnderFusion) {
  std::map<std::string, int> different;
  for (const auto& [op, sample] : squareSamples()) {
    const Graph graph = recordSamples({sample});
    Module original = elementaryForm(graph);
    const std::vector<Array> plain = evaluate(*original, sample, op);
    Module fusedOriginal = Module(original->clone());
    canonicalizeAndFuse(*fusedOriginal);
    ASSERT_EQ(countOps(*fusedOriginal, op), 1) << op << " " << sample.name;
    const std::string form = textOf(*fusedOriginal);

    const size_t count = opsOf(*original).size();
    for (size_t i = 0; i < count; ++i)
      for (const Mutation& mutation : mutationsOf(opsOf(*original)[i])) {
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
  // Not a test of nothing.
  for (const OpRow& row : opTable()) {
    if (!row.fused) continue;
    EXPECT_GE(different[row.op], 1) << row.op;
  }
}

// Values that a fused op may leave for others: weights, what moves data without arithmetic, masks,
// and the products that a linear op can give by itself.
bool mayEscape(const std::string& fusedOp, Operation* op) {
  if (isa<ConstantOp, WeightOp>(op) || fusedOp == "lathe.linear") return true;
  bool onPositions = llvm::all_of(
      op->getOperands(), [](Value v) { return tensorType(v).getElementType().isInteger(); });
  return fusedOp == "lathe.attention" &&
         (isa<TransposeOp, ReshapeOp, BroadcastOp>(op) || onPositions);
}

TEST(Mutants, WithOneMoreUserAreNotTaken) {
  for (const auto& [op, sample] : squareSamples()) {
    const Graph graph = recordSamples({sample});
    Module original = elementaryForm(graph);
    const size_t count = opsOf(*original).size();
    for (size_t i = 0; i + 1 < count; ++i) {
      Module mutant(original->clone());
      Operation* target = opsOf(*mutant)[i];
      const bool taken = mayEscape(op, target);
      const std::string where = op + " " + sample.name + ": " +
                                target->getName().getStringRef().str() + " " + std::to_string(i);
      auto function = mutant->lookupSymbol<func::FuncOp>("forward");
      Operation* end = function.getBody().front().getTerminator();
      end->insertOperands(end->getNumOperands(), target->getResults());
      SmallVector<Type> results(function.getResultTypes());
      llvm::append_range(results, target->getResultTypes());
      function.setType(
          FunctionType::get(function.getContext(), function.getArgumentTypes(), results));
      function.setAllResultAttrs(ArrayRef<DictionaryAttr>(
          SmallVector<DictionaryAttr>(results.size(), DictionaryAttr::get(function.getContext()))));
      ASSERT_TRUE(isValid(*mutant)) << where;
      const std::vector<Array> before = evaluate(*mutant, sample, op);
      canonicalizeAndFuse(*mutant);
      EXPECT_TRUE(agree(before, evaluate(*mutant, sample, op))) << where;
      EXPECT_EQ(countOps(*mutant, op), taken ? 1 : 0) << where;
    }
  }
}

}  // namespace
}  // namespace lathe::conformance
