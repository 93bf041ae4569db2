// SPDX-License-Identifier: Apache-2.0
// The functions of tests/lit/passes/fuse_*.mlir hold every fusion, its spellings and near misses of
// it. Their values are the other half of that test: what the fusions make of them computes the
// same.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "lathe/backends/interpreter.h"
#include "lathe/ir/context.h"
#include "lathe/ir/types.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "tests/conformance/rewriting.h"
#include "tests/conformance/tolerance.h"

namespace lathe::conformance {
namespace {

using namespace mlir;
namespace fs = std::filesystem;

const Symbols kSizes{{"batch", 2}, {"seq", 3}, {"cache", 5}, {"n", 4}, {"t", 5}};

// Integers are indices of tables with at least three rows.
Array valuesOf(RankedTensorType type, uint64_t seed) {
  Array array(*dtypeOf(type.getElementType()), shapeOf(type, kSizes));
  for (int64_t i = 0; i < array.size(); ++i) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    const uint64_t r = seed >> 33;
    if (array.dtype() == DType::Bool)
      array.set(i, double(r % 3 != 0));
    else if (isFloat(array.dtype()))
      array.set(i, double(r % 2001) / 400 - 2.5);
    else
      array.set(i, double(r % 3));
  }
  return array;
}

std::vector<Array> run(func::FuncOp function, uint64_t seed) {
  std::vector<Array> arguments;
  for (Type t : function.getArgumentTypes())
    arguments.push_back(valuesOf(cast<RankedTensorType>(t), seed++));
  auto weight = [&](const std::string& name) {
    Array values;
    function.walk([&](WeightOp op) {
      if (op.getName() == name) values = valuesOf(op.getType(), std::hash<std::string>()(name));
    });
    return values;
  };
  return interpret(function, arguments, weight, Precision::Float64, {}, kSizes);
}

// The constants of a 16-bit graph are rounded, those of a fused op are not.
Tolerance toleranceOf(Type result) {
  const double t =
      cast<RankedTensorType>(result).getElementType().getIntOrFloatBitWidth() == 16 ? 4e-3 : 1e-6;
  return {t, t};
}

std::vector<std::string> files() {
  std::vector<std::string> names;
  for (auto& entry : fs::directory_iterator(LATHE_TEST_DATA "/lit/passes"))
    if (std::string name = entry.path().stem(); name.starts_with("fuse_")) names.push_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

class FusedFiles : public ::testing::TestWithParam<std::string> {};

TEST_P(FusedFiles, ComputeTheSame) {
  auto context = createContext();
  std::ifstream in(LATHE_TEST_DATA "/lit/passes/" + GetParam() + ".mlir");
  std::stringstream text;
  text << in.rdbuf();
  Module plain = parseModule(*context, text.str(), GetParam());
  Module fusedAlone(plain->clone()), canonicalToo(plain->clone());
  fuse(*fusedAlone);
  canonicalizeAndFuse(*canonicalToo);
  for (auto function : plain->getOps<func::FuncOp>())
    for (ModuleOp other : {*fusedAlone, *canonicalToo})
      for (uint64_t seed : {1, 20}) {
        SCOPED_TRACE(function.getName().str());
        const std::vector<Array> want = run(function, seed);
        const std::vector<Array> got =
            run(other.lookupSymbol<func::FuncOp>(function.getName()), seed);
        ASSERT_EQ(got.size(), want.size());
        for (size_t i = 0; i < want.size(); ++i)
          EXPECT_EQ(firstDifference(got[i], want[i], toleranceOf(function.getResultTypes()[i])),
                    "");
      }
}

INSTANTIATE_TEST_SUITE_P(Conformance, FusedFiles, ::testing::ValuesIn(files()),
                         [](const auto& info) { return info.param.substr(5); });

}  // namespace
}  // namespace lathe::conformance
