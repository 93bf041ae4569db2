// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/function_values.h"

#include <algorithm>
#include <filesystem>
#include <limits>

#include "lathe/ir/types.h"
#include "tests/conformance/rewriting.h"

using namespace mlir;

namespace lathe::conformance {
namespace {

const Symbols kSizes{{"batch", 2}, {"seq", 3}, {"past", 2}};

const std::vector<double>& specialValues() {
  using Limits = std::numeric_limits<float>;
  static const std::vector<double> values{0.0,
                                          -0.0,
                                          1.0,
                                          -1.0,
                                          Limits::quiet_NaN(),
                                          Limits::infinity(),
                                          -Limits::infinity(),
                                          0.3,
                                          -2.5,
                                          1e-3,
                                          7.0,
                                          Limits::max(),
                                          Limits::lowest(),
                                          Limits::denorm_min(),
                                          -1e-40,
                                          88.0,
                                          -88.0,
                                          1e30,
                                          -3.0,
                                          0x1p-126};
  return values;
}

Array valuesOf(Type type, bool special, uint64_t& state) {
  auto tensor = cast<RankedTensorType>(type);
  Array array(*dtypeOf(tensor.getElementType()), shapeOf(tensor, kSizes));
  for (int64_t i = 0; i < array.size(); ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const uint64_t r = state >> 33;
    if (array.dtype() == DType::Bool)
      array.set(i, double(r % 2));
    else if (!isFloat(array.dtype()))
      array.set(i, double(r % 8));
    else if (special)
      array.set(i, specialValues()[r % specialValues().size()]);
    else
      array.set(i, double(r % 2001) / 500 - 2);
  }
  return array;
}

}  // namespace

std::vector<Array> runOn(func::FuncOp function, bool special, Precision precision, uint64_t seed) {
  std::vector<Array> arguments;
  for (Type t : function.getArgumentTypes()) arguments.push_back(valuesOf(t, special, seed));
  auto weight = [&](const std::string&) {
    Array w;
    function.walk([&](WeightOp op) {
      uint64_t fixed = 7;
      w = valuesOf(op.getType(), false, fixed);
    });
    return w;
  };
  return interpret(function, arguments, weight, precision, {}, kSizes);
}

std::vector<std::string> canonicalFiles() {
  std::vector<std::string> names;
  for (auto& entry : std::filesystem::directory_iterator(LATHE_TEST_DATA "/lit/passes"))
    if (std::string name = entry.path().stem(); name.starts_with("canonical_"))
      names.push_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace lathe::conformance
