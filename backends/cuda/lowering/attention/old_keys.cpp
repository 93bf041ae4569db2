// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/lowering/kernel/steps.h"

#include "lathe/backends/region_plan.h"
#include "lathe/ir/ops.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

namespace lathe::cuda {
namespace {

constexpr const char* kState = "lathe.state";

// x and the positions of the update that makes `v`, as values outside of a region around it.
struct Append {
  Value x, positions;
};
Append appendOf(Value v) {
  Operation* op = v.getDefiningOp();
  if (auto update = dyn_cast_or_null<UpdateOp>(op)) return {update.getX(), update.getPositions()};
  if (auto kernel = dyn_cast_or_null<KernelOp>(op); kernel && kernel.getKind() == "update")
    return {kernel.getInputs()[0], kernel.getInputs()[2]};
  auto region = dyn_cast_or_null<RegionOp>(op);
  if (!region) return {};
  Block& body = region.getBody().front();
  Value inner = body.getTerminator()->getOperand(cast<OpResult>(v).getResultNumber());
  auto update = inner.getDefiningOp<UpdateOp>();
  if (!update) return {};
  auto outside = [&](Value value) -> Value {
    auto argument = dyn_cast<BlockArgument>(value);
    return argument ? region.getInputs()[argument.getArgNumber()] : Value();
  };
  return {outside(update.getX()), outside(update.getPositions())};
}

bool isOfEntry(func::FuncOp f, Value v) {
  auto argument = dyn_cast_or_null<BlockArgument>(v);
  return argument && argument.getOwner() == &f.getBody().front();
}

// `v` is a state's only use and its new value: it is written in place.
bool isAppended(func::FuncOp f, Value v, Value positions) {
  const Append append = appendOf(v);
  if (!isOfEntry(f, append.x) || append.positions != positions || !append.x.hasOneUse())
    return false;
  auto state =
      f.getArgAttrOfType<FlatSymbolRefAttr>(cast<BlockArgument>(append.x).getArgNumber(), kState);
  auto returned = resultsOf(f);
  for (auto [i, value] : llvm::enumerate(returned))
    if (state && value == v &&
        f.getResultAttrOfType<FlatSymbolRefAttr>(unsigned(i), kState) == state)
      return true;
  return false;
}

}  // namespace

void markOldKeys(ModuleOp module) {
  for (auto f : module.getOps<func::FuncOp>()) {
    if (f.isExternal()) continue;
    for (auto call : f.getOps<KernelOp>()) {
      auto causal = call.getConfig().getAs<StringAttr>("causal");
      if (call.getKind() != "attention" || !causal || causal != "positions") continue;
      Value positions = call.getInputs().back();
      if (!isOfEntry(f, positions) || !isAppended(f, call.getInputs()[1], positions) ||
          !isAppended(f, call.getInputs()[2], positions))
        continue;
      NamedAttrList config(call.getConfig());
      config.set(kOldKeys, UnitAttr::get(call.getContext()));
      call.setConfigAttr(config.getDictionary(call.getContext()));
    }
  }
}

}  // namespace lathe::cuda
