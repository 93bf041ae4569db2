// SPDX-License-Identifier: Apache-2.0
#include "backends/to_kernels.h"

#include "backends/cpu/lowering/region_emitter_plan.h"
#include "ir/types.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "passes/cost.h"

using namespace mlir;

namespace lathe {
namespace {

class Converter {
 public:
  Converter(ModuleOp module, const ConfigOf& configOf)
      : module(module), configOf(configOf), b(module.getContext()) {}

  void run() {
    SmallVector<func::FuncOp> functions(module.getOps<func::FuncOp>());
    for (func::FuncOp f : functions)
      for (Operation& op : llvm::make_early_inc_range(f.getBody().front().without_terminator()))
        convert(&op);
  }

 private:
  void convert(Operation* op) {
    if (isa<WeightOp, ConstantOp, ReshapeOp, KernelOp>(op)) return;
    b.setInsertionPoint(op);
    if (auto region = dyn_cast<RegionOp>(op)) return outline(region);
    replace(op, op->getName().stripDialect(), FlatSymbolRefAttr(), configOf(op));
  }

  void replace(Operation* op, StringRef kind, FlatSymbolRefAttr callee,
               ArrayRef<NamedAttribute> config) {
    auto kernel = KernelOp::create(b, op->getLoc(), op->getResultTypes(), op->getOperands(),
                                   b.getStringAttr(kind), callee, b.getDictionaryAttr(config),
                                   DenseI64ArrayAttr());
    noteCost(kernel, costOf(op));
    op->replaceAllUsesWith(kernel->getResults());
    op->erase();
  }

  // Every element of the result depends on the same element of an operand of its type.
  static bool isPointwise(Operation* op) {
    return cpu::isElementwise(op) || isa<ConstantOp, SiluGateOp, GatedResidualOp>(op);
  }

  void outline(RegionOp region) {
    if (!kernels) {
      OpBuilder at = OpBuilder::atBlockEnd(module.getBody());
      kernels = ModuleOp::create(at, module.getLoc(), "kernels");
    }
    OpBuilder at = OpBuilder::atBlockEnd(kernels.getBody());
    auto f = func::FuncOp::create(
        at, region.getLoc(), "region",
        at.getFunctionType(region.getInputs().getTypes(), region.getOutputs().getTypes()));
    Block* body = f.addEntryBlock();
    IRMapping map;
    map.map(region.getBody().front().getArguments(), body->getArguments());
    at.setInsertionPointToStart(body);
    bool pointwise = true;
    for (Operation& op : region.getBody().front().without_terminator()) {
      at.clone(op, map);
      pointwise &= isPointwise(&op);
    }
    SmallVector<Value> results;
    for (Value v : region.getBody().front().getTerminator()->getOperands())
      results.push_back(map.lookup(v));
    func::ReturnOp::create(at, region.getLoc(), results);
    std::string text;
    llvm::raw_string_ostream os(text);
    f.print(os, OpPrintingFlags().useLocalScope());
    std::string& name = names[text];
    if (name.empty()) {
      name = "region_" + std::to_string(names.size() - 1);
      f.setName(name);
    } else {
      f.erase();
    }
    SmallVector<NamedAttribute> config;
    if (pointwise && region.getOutputs().size() == 1)
      for (auto [i, v] : llvm::enumerate(region.getInputs()))
        if (config.empty() && v.getType() == region.getOutputs()[0].getType())
          config.push_back(b.getNamedAttr("reuse", b.getI64IntegerAttr(int64_t(i))));
    replace(region, "region", FlatSymbolRefAttr::get(b.getContext(), name), config);
  }

  ModuleOp module, kernels;
  const ConfigOf& configOf;
  OpBuilder b;
  std::map<std::string, std::string> names;  // text of a body -> its function
};

}  // namespace

SmallVector<NamedAttribute> plainConfig(Operation* op) {
  SmallVector<NamedAttribute> config;
  for (NamedAttribute a : op->getAttrDictionary())
    if (isa<IntegerAttr, FloatAttr, DenseI64ArrayAttr>(a.getValue())) config.push_back(a);
  if (isa<UpdateOp>(op))
    config.push_back({StringAttr::get(op->getContext(), "reuse"),
                      IntegerAttr::get(IntegerType::get(op->getContext(), 64), 0)});
  return config;
}

void toKernels(ModuleOp module, const ConfigOf& configOf) { Converter(module, configOf).run(); }

}  // namespace lathe
