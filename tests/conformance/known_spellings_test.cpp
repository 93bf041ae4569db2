// SPDX-License-Identifier: Apache-2.0
// Spellings of libraries: what the fusions make of each, that it computes the same, and what is
// answered about those that no fusion takes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "lathe/backends/interpreter.h"
#include "lathe/inspect/why_not.h"
#include "lathe/ir/types.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/rewrite/numerics_scope.h"
#include "tests/conformance/rewriting.h"
#include "tests/conformance/spellings/spellings.h"
#include "tests/conformance/tolerance.h"

namespace lathe::conformance {
namespace {

using namespace mlir;
using ::testing::AnyOf;
using ::testing::HasSubstr;

const std::vector<Symbols> kSizes{{{"p", 2}, {"s", 3}, {"t", 5}}, {{"p", 0}, {"s", 5}, {"t", 4}}};

KnownSpellings allKnown() {
  KnownSpellings all;
  for (auto family : {softmaxSpellings, attentionSpellings, maskSpellings, headSpellings,
                      normSpellings, gateSpellings, ropeSpellings, linearSpellings, tokenSpellings})
    for (KnownSpelling& s : family()) all.push_back(std::move(s));
  return all;
}

// --- values

// Integers are indices and positions below 3.
Array valuesOf(DType dtype, const Shape& shape, std::string_view name) {
  Array array(dtype, shape);
  uint64_t seed = std::hash<std::string_view>()(name);
  for (int64_t i = 0; i < array.size(); ++i) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    const uint64_t r = seed >> 33;
    if (dtype == DType::Bool)
      array.set(i, double(r % 3 != 0));
    else if (isFloat(dtype))
      array.set(i, double(r % 2001) / 500 - 2);
    else
      array.set(i, double(r % 3));
  }
  return array;
}
Array valuesOf(RankedTensorType type, const Symbols& sizes, std::string_view name) {
  return valuesOf(*dtypeOf(type.getElementType()), shapeOf(type, sizes), name);
}
std::vector<Array> run(ModuleOp module, const Symbols& sizes, Precision precision) {
  auto function = module.lookupSymbol<func::FuncOp>("forward");
  std::vector<Array> arguments;
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    arguments.push_back(valuesOf(cast<RankedTensorType>(function.getArgumentTypes()[i]), sizes,
                                 "argument" + std::to_string(i)));
  auto weight = [&](const std::string& name) {
    Array values;
    module.walk([&](WeightOp op) {
      if (op.getName() == name) values = valuesOf(op.getType(), sizes, name);
    });
    return values;
  };
  return interpret(function, arguments, weight, precision, {}, sizes);
}

// --- what is left

std::string computingOps(ModuleOp module) {
  std::multiset<std::string> names;
  for (Operation* op : opsOf(module))
    if (!isa<WeightOp, ConstantOp, ReshapeOp, TransposeOp, BroadcastOp, SliceOp, ConcatOp, CastOp,
             IotaOp>(op))
      names.insert(op->getName().stripDialect().str());
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : " ") + name;
  return text;
}

class Known : public ::testing::TestWithParam<KnownSpelling> {};

TEST_P(Known, IsFusedAndComputesTheSame) {
  Sheet sheet;
  Tensor y = GetParam().record(sheet);
  sheet.g.output("y", y);
  Module plain = moduleOf(sheet.g), fused(plain->clone());
  canonicalizeAndFuse(*fused);
  EXPECT_EQ(computingOps(*fused), GetParam().ops) << textOf(*fused);
  EXPECT_THAT(textOf(*fused), HasSubstr(GetParam().holds));
  // The constants of a 16-bit graph are rounded, those of a fused op are not.
  const bool narrow = y.dtype() == DType::BF16 || y.dtype() == DType::F16;
  const Tolerance tolerance{narrow ? 4e-3 : 2e-6, narrow ? 4e-3 : 2e-6};
  for (const Symbols& sizes : kSizes) {
    const Array want = run(*plain, sizes, Precision::Float64)[0];
    EXPECT_EQ(firstDifference(run(*fused, sizes, Precision::Float64)[0], want, tolerance), "")
        << textOf(*fused);
  }
}

TEST_P(Known, KeepsItsBitsInStrictMode) {
  Sheet sheet;
  sheet.g.output("y", GetParam().record(sheet));
  Module plain = moduleOf(sheet.g), strict(plain->clone());
  NumericsScope scope(plain->getContext(), {.mode = NumericsMode::Strict});
  canonicalizeAndFuse(*strict);
  for (const Symbols& sizes : kSizes)
    EXPECT_EQ(firstOtherBits(run(*plain, sizes, Precision::OwnDtype),
                             run(*strict, sizes, Precision::OwnDtype)),
              "")
        << textOf(*strict);
}

INSTANTIATE_TEST_SUITE_P(Spellings, Known, ::testing::ValuesIn(allKnown()),
                         [](const auto& info) { return info.param.name; });

// --- what is answered

class Unfused : public ::testing::TestWithParam<UnfusedSpelling> {
 protected:
  void SetUp() override { sheet_.g.output("y", GetParam().record(sheet_)); }
  // The answer is there, and about this line.
  void expectAnswer(const std::vector<CompileRecord::Miss>& misses) {
    std::string all;
    for (const CompileRecord::Miss& m : misses) {
      all += m.at + ": " + m.reason + "\n";
      if (m.at != sheet_.line || m.reason.find(GetParam().answer) == std::string::npos) continue;
      EXPECT_EQ(m.pattern.substr(0, GetParam().op.size()), GetParam().op) << m.reason;
      return;
    }
    ADD_FAILURE() << "wanted \"" << GetParam().answer << "\" at " << sheet_.line << ", got\n"
                  << all;
  }
  Sheet sheet_;
};

TEST_P(Unfused, IsExplained) {
  Module module = moduleOf(sheet_.g);
  canonicalizeAndFuse(*module);
  EXPECT_EQ(countOps(*module, "lathe." + GetParam().op), 0) << textOf(*module);
  expectAnswer(whyNot(sheet_.g));
}
TEST_P(Unfused, IsExplainedWhereTheFusedOpIsAskedFor) {
  expectAnswer(whyNot(sheet_.g, {.op = GetParam().op}));
}
TEST_P(Unfused, IsExplainedWhereItsLineIsAskedFor) {
  expectAnswer(whyNot(sheet_.g, {.at = sheet_.line}));
}

INSTANTIATE_TEST_SUITE_P(Spellings, Unfused, ::testing::ValuesIn(unfusedSpellings()),
                         [](const auto& info) { return info.param.name; });

TEST(Spellings, AreManyAndMostAreFused) {
  const size_t fused = allKnown().size(), all = fused + unfusedSpellings().size();
  RecordProperty("spellings", int(all));
  std::cout << fused << " of " << all << " spellings are fused\n";
  std::set<std::string> names;
  for (const KnownSpelling& s : allKnown()) names.insert(s.name);
  for (const UnfusedSpelling& s : unfusedSpellings()) names.insert(s.name);
  EXPECT_EQ(names.size(), all) << "two have the same name";
  EXPECT_GE(all, 143u);
  EXPECT_GE(fused * 143, all * 135);
}

}  // namespace
}  // namespace lathe::conformance
