// SPDX-License-Identifier: Apache-2.0
#include "frontend/entry_points.h"

#include "lathe/ir/types.h"
#include "lathe/runtime/error.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

using namespace mlir;

namespace lathe {
namespace {

[[noreturn]] void fail(Location at, const std::string& message) {
  std::string text;
  llvm::raw_string_ostream os(text);
  if (auto file = dyn_cast<FileLineColLoc>(at))
    os << file.getFilename().getValue() << ":" << file.getLine() << ": ";
  os << message;
  throw Error(ErrorCode::InvalidFile, text);
}

class Checker {
 public:
  explicit Checker(ModuleOp module) : module_(module) {
    for (auto dim : module.getOps<DimOp>()) symbols_.insert(dim.getSymName());
    for (auto part : module.getOps<DimPartOp>()) symbols_.insert(part.getSymName());
  }

  void check(func::FuncOp f) {
    at_ = f.getLoc();
    where_ = "function '" + f.getName().str() + "': ";
    if (!f.getBody().hasOneBlock()) bad("expected a body of one block");
    std::map<std::string, Type> taken;
    llvm::StringSet<> names;
    for (auto [i, argument] : llvm::enumerate(f.getArguments())) {
      checkType(argument.getType());
      if (auto state = f.getArgAttr(unsigned(i), "lathe.state"))
        checkState(taken, state, argument.getType());
      else
        checkName(names, f.getArgAttr(unsigned(i), "lathe.name"), "input");
    }
    checkBody(f);
    names.clear();
    for (auto [i, type] : llvm::enumerate(f.getResultTypes())) {
      auto state = f.getResultAttr(unsigned(i), "lathe.state");
      if (!state) {
        checkName(names, f.getResultAttr(unsigned(i), "lathe.name"), "output");
        continue;
      }
      auto symbol = dyn_cast<FlatSymbolRefAttr>(state);
      auto it = symbol ? taken.find(symbol.getValue().str()) : taken.end();
      if (it == taken.end() || it->second != type)
        bad("a state is given back that was not taken, or as " + shortType(type));
      taken.erase(it);
    }
    if (!taken.empty()) bad("state '" + taken.begin()->first + "' is taken and not given back");
  }

 private:
  [[noreturn]] void bad(const std::string& message) const { fail(at_, where_ + message); }

  void checkType(Type type) const {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor || !dtypeOf(tensor.getElementType()))
      bad("expected ranked tensors of the dialect's dtypes, got " + shortType(type));
    for (int64_t axis = 0; axis < tensor.getRank(); ++axis) {
      auto dim = dimExprOf(tensor, axis);
      if (!dim) bad("dim " + std::to_string(axis) + " of " + shortType(type) + " has no name");
      for (const std::string& symbol : dim->symbols())
        if (!symbols_.contains(symbol))
          bad("symbol '" + symbol + "' of " + shortType(type) +
              " is not declared; add lathe.dim @" + symbol + " 1 to N");
    }
  }

  void checkState(std::map<std::string, Type>& taken, Attribute mark, Type type) {
    auto symbol = dyn_cast<FlatSymbolRefAttr>(mark);
    auto state = symbol ? module_.lookupSymbol<StateOp>(symbol.getAttr()) : StateOp();
    if (!state) bad("lathe.state names no state of the module");
    if (state.getType() != type)
      bad("state '" + symbol.getValue().str() + "' is " + shortType(state.getType()) + ", got " +
          shortType(type));
    for (StringAttr size : dimsOf(cast<RankedTensorType>(type)))
      for (const std::string& name : exprOf(size).symbols())
        if (module_.lookupSymbol<DimPartOp>(name))
          bad("state '" + symbol.getValue().str() + "' has the size '" + name +
              "', which every run sets anew; give it sizes of lathe.dim alone");
    if (!taken.emplace(symbol.getValue().str(), type).second)
      bad("state '" + symbol.getValue().str() + "' is taken twice");
  }

  void checkName(llvm::StringSet<>& names, Attribute mark, const char* what) const {
    if (!mark) return;
    auto name = dyn_cast<StringAttr>(mark);
    if (!name) bad("lathe.name is a string");
    if (!names.insert(name.getValue()).second)
      bad(std::string(what) + " '" + name.str() + "' is declared twice");
  }

  void checkBody(func::FuncOp f) {
    for (Operation& op : f.getBody().front()) {
      at_ = op.getLoc();
      if (op.getName().getDialectNamespace() != "lathe" && !isa<func::ReturnOp>(op))
        bad("expected ops of the lathe dialect, got " + op.getName().getStringRef().str());
      for (Type type : op.getResultTypes()) checkType(type);
      auto weight = dyn_cast<WeightOp>(op);
      if (!weight) continue;
      Type type = weight.getY().getType();
      auto [it, fresh] = weights_.try_emplace(weight.getName(), type);
      if (!fresh && it->second != type)
        bad("weight '" + weight.getName().str() + "' is " + shortType(it->second) +
            " elsewhere, here " + shortType(type));
    }
  }

  ModuleOp module_;
  llvm::StringSet<> symbols_;
  llvm::StringMap<Type> weights_;
  Location at_ = module_.getLoc();
  std::string where_;
};

}  // namespace

void checkEntryPoints(ModuleOp module) {
  Checker checker(module);
  for (auto f : module.getOps<func::FuncOp>()) checker.check(f);
}

void checkBeforeLayout(ModuleOp module) {
  bool kernel = false, derived = false, sharded = false;
  module.walk([&](Operation* op) {
    kernel |= isa<KernelOp>(op);
    auto weight = dyn_cast<WeightOp>(op);
    sharded |= op->hasTrait<fact::IsOfOneRank>() || (weight && weight.getOf());
    derived |= op->hasAttr("lathe.derived") || isa<PackOp>(op);
    // The weight of a packed layout is one that this pipeline packs itself.
    auto linear = dyn_cast<LinearOp>(op);
    derived |= linear && linear.getLayout() == WeightLayout::packed;
    auto grouped = dyn_cast<GroupedLinearOp>(op);
    derived |= grouped && grouped.getLayout() == WeightLayout::packed;
  });
  if (kernel || derived || sharded)
    throw Error(
        ErrorCode::InvalidArgument,
        std::string("expected a graph as recorded, canonical or fused, got one that holds ") +
            (kernel    ? "a backend's kernel calls"
             : derived ? "laid-out weights"
                       : "the pieces of one of several ranks") +
            "; give the model, or the text of an earlier stage");
}

}  // namespace lathe
