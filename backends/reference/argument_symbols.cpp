// SPDX-License-Identifier: Apache-2.0
#include "backends/reference/argument_symbols.h"

#include "backends/reference/interpreter_ops.h"
#include "lathe/runtime/axis_piece.h"
#include "lathe/runtime/error.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

using namespace mlir;

namespace lathe::reference {
namespace {

std::string argumentName(func::FuncOp function, unsigned i) {
  if (auto name = function.getArgAttrOfType<StringAttr>(i, "lathe.name"))
    return "argument '" + name.str() + "'";
  if (auto state = function.getArgAttrOfType<FlatSymbolRefAttr>(i, "lathe.state"))
    return "state '" + state.getValue().str() + "'";
  return "argument " + std::to_string(i);
}

void checkRanges(func::FuncOp function, const Symbols& symbols) {
  auto module = function->getParentOfType<ModuleOp>();
  if (!module) return;
  for (auto dim : module.getOps<DimOp>()) {
    auto it = symbols.find(std::string_view(dim.getSymName()));
    if (it == symbols.end()) continue;
    int64_t lo = int64_t(dim.getLo()), hi = int64_t(dim.getHi()), step = int64_t(dim.getMultiple());
    if (it->second < lo || it->second > hi || it->second % step != 0)
      throw Error(ErrorCode::InvalidArgument,
                  "symbol '" + it->first + "': expected " + std::to_string(lo) + " to " +
                      std::to_string(hi) +
                      (step > 1 ? " in multiples of " + std::to_string(step) : std::string()) +
                      ", got " + std::to_string(it->second));
  }
}

// Sizes that the others give.
void addParts(func::FuncOp function, Symbols& symbols) {
  auto module = function->getParentOfType<ModuleOp>();
  if (!module) return;
  for (auto part : module.getOps<DimPartOp>())
    if (auto of = exprOf(part.getOf().getDims()[0]).evaluate(symbols))
      symbols[part.getSymName().str()] = sizeOfPart(*of, int64_t(part.getParts()));
}

}  // namespace

std::vector<Dense> checkedArguments(func::FuncOp function, const std::vector<Array>& arguments,
                                    Precision precision) {
  if (arguments.size() != function.getNumArguments())
    throw Error(ErrorCode::InvalidArgument,
                "function '" + function.getName().str() + "': expected " +
                    std::to_string(function.getNumArguments()) + " arguments, got " +
                    std::to_string(arguments.size()));
  std::vector<Dense> values;
  for (unsigned i = 0; i < arguments.size(); ++i) {
    auto type = dyn_cast<RankedTensorType>(function.getArgument(i).getType());
    if (!type || !dtypeOf(type.getElementType()))
      throw Error(ErrorCode::Unsupported, argumentName(function, i) +
                                              ": expected a tensor type, got " +
                                              shortType(function.getArgument(i).getType()));
    values.push_back(checkedArray(argumentName(function, i), arguments[i], type, precision));
  }
  return values;
}

Symbols bindSymbols(func::FuncOp function, const std::vector<Array>& arguments,
                    const Symbols& given) {
  Symbols symbols = given;
  std::map<std::string, std::string, std::less<>> boundBy;
  for (auto& [name, value] : given) boundBy[name] = "the caller";
  auto eachNamedDim = [&](auto visit) {
    for (unsigned i = 0; i < arguments.size(); ++i) {
      auto type = cast<RankedTensorType>(function.getArgument(i).getType());
      for (int64_t axis = 0; axis < type.getRank(); ++axis)
        if (StringAttr dim = dimOf(type, axis))
          visit(i, axis, exprOf(dim), arguments[i].shape()[size_t(axis)]);
    }
  };
  eachNamedDim([&](unsigned i, int64_t axis, const DimExpr& dim, int64_t got) {
    std::vector<std::string> names = dim.symbols();
    if (names.size() != 1 || !(dim == DimExpr::symbol(names[0]))) return;
    if (symbols.emplace(names[0], got).second)
      boundBy[names[0]] = argumentName(function, i) + ", dim " + std::to_string(axis);
  });
  addParts(function, symbols);
  eachNamedDim([&](unsigned i, int64_t axis, const DimExpr& dim, int64_t got) {
    std::string where = argumentName(function, i) + ", dim " + std::to_string(axis) + ": ";
    auto expected = dim.evaluate(symbols);
    if (!expected)
      throw Error(ErrorCode::InvalidArgument,
                  where + "expected a value for every symbol of '" + dim.text() +
                      "', got none or an overflow; pass the symbols that no argument binds");
    if (*expected == got) return;
    std::string origin;
    for (auto& name : dim.symbols())
      origin += "; " + name + " = " + std::to_string(symbols.find(name)->second) + " comes from " +
                boundBy[name];
    throw Error(ErrorCode::InvalidArgument, where + "expected " + dim.text() + " = " +
                                                std::to_string(*expected) + ", got " +
                                                std::to_string(got) + origin);
  });
  checkRanges(function, symbols);
  return symbols;
}

}  // namespace lathe::reference
