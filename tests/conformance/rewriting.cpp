// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/rewriting.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <stdexcept>

#include "frontend/graph_impl.h"
#include "lathe/backends/interpreter.h"
#include "lathe/ir/types.h"
#include "lathe/passes/passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"
#include "passes/rewrite/locations.h"

using namespace mlir;

namespace lathe::conformance {
namespace {

template <class... Passes>
void run(ModuleOp module, Passes... passes) {
  PassManager manager(module.getContext());
  (manager.addPass(std::move(passes)), ...);
  ASSERT_TRUE(succeeded(manager.run(module)));
}

}  // namespace

Module moduleOf(const Graph& graph) { return graph.impl().finished().clone(); }
void decompose(ModuleOp module) { run(module, createDecomposePass()); }
void canonicalize(ModuleOp module) { run(module, createCanonicalizePass(), createCsePass()); }
void fuse(ModuleOp module) { run(module, createFusePass()); }
void canonicalizeAndFuse(ModuleOp module) {
  canonicalize(module);
  fuse(module);
  canonicalize(module);
}

Shape shapeOf(RankedTensorType type, const Symbols& sizes) {
  Shape shape;
  for (int64_t axis = 0; axis < type.getRank(); ++axis) {
    const auto size = dimExprOf(type, axis)->evaluate(sizes);
    if (!size)
      throw std::invalid_argument("the test has no size for dim " + std::to_string(axis) + " of " +
                                  shortType(type));
    shape.push_back(*size);
  }
  return shape;
}

std::string textOf(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream(text) << module;
  return text;
}

std::vector<Operation*> opsOf(ModuleOp module) {
  std::vector<Operation*> ops;
  module.walk([&](Operation* op) {
    if (op->getName().getDialectNamespace() == "lathe" && !isa<DimOp, DimPartOp, StateOp>(op))
      ops.push_back(op);
  });
  return ops;
}

int countOps(ModuleOp module, const std::string& op) {
  return int(llvm::count_if(opsOf(module),
                            [&](Operation* o) { return o->getName().getStringRef() == op; }));
}

std::vector<std::string> linesOf(Operation* op) {
  Origins origins;
  addOrigins(origins, op->getLoc());
  std::vector<std::string> lines;
  for (Location origin : origins) {
    while (auto named = dyn_cast<NameLoc>(origin)) origin = named.getChildLoc();
    auto file = dyn_cast<FileLineColLoc>(origin);
    std::string line;
    if (file)
      line = file.getFilename().str() + ":" + std::to_string(file.getLine()) + ":" +
             std::to_string(file.getColumn());
    else
      llvm::raw_string_ostream(line) << origin;
    if (!llvm::is_contained(lines, line)) lines.push_back(line);
  }
  return lines;
}

std::string firstOtherBits(const std::vector<Array>& a, const std::vector<Array>& b) {
  if (a.size() != b.size()) return "another number of results";
  for (size_t r = 0; r < a.size(); ++r) {
    if (a[r].dtype() != b[r].dtype() || a[r].shape() != b[r].shape()) return "another type";
    for (int64_t i = 0; i < a[r].size(); ++i) {
      if (a[r].dtype() == DType::I64) {  // a double does not hold every one
        const int64_t x = a[r].as<int64_t>()[size_t(i)], y = b[r].as<int64_t>()[size_t(i)];
        if (x != y)
          return "result " + std::to_string(r) + " element " + std::to_string(i) + ": " +
                 std::to_string(x) + " and " + std::to_string(y);
        continue;
      }
      const double x = a[r].at(i), y = b[r].at(i);
      const bool bothNan = std::isnan(x) && std::isnan(y);
      if (!bothNan && std::memcmp(&x, &y, sizeof x) != 0)
        return "result " + std::to_string(r) + " element " + std::to_string(i) + ": " +
               std::to_string(x) + " and " + std::to_string(y);
    }
  }
  return "";
}

std::vector<Array> evaluate(ModuleOp module, const Sample& sample, const std::string& salt) {
  const Data data = makeData({sample}, allSizes()[1], salt);
  std::vector<Array> arguments;
  for (size_t i = 0; i < sample.inputs.size(); ++i)
    if (!sample.inputs[i].weight) arguments.push_back(data.inputs.at("0.in" + std::to_string(i)));
  return interpret(
      module.lookupSymbol<func::FuncOp>("forward"), arguments,
      [&](const std::string& name) { return data.weights.at(name); }, Precision::Float64);
}

}  // namespace lathe::conformance
