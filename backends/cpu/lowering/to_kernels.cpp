// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/lowering/to_kernels.h"

#include "backends/cpu/device/packed_weights.h"
#include "backends/cpu/lowering/region_emitter_plan.h"
#include "ir/types.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "passes/cost.h"

using namespace mlir;

namespace lathe::cpu {
namespace {

class Converter {
 public:
  explicit Converter(ModuleOp module) : module(module), b(module.getContext()) {}

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
    SmallVector<NamedAttribute> config;
    if (auto linear = dyn_cast<LinearOp>(op)) {
      config = {b.getNamedAttr("activation",
                               b.getStringAttr(stringifyActivation(linear.getActivation()))),
                b.getNamedAttr("bias", b.getBoolAttr(bool(linear.getBias()))),
                b.getNamedAttr("residual", b.getBoolAttr(bool(linear.getResidual())))};
    } else if (auto pack = dyn_cast<PackOp>(op)) {
      // Packed bytes are padded to whole panels and blocks: the buffer is larger than the type
      // says.
      auto type = tensorType(pack.getY());
      PackedShape shape{*dtypeOf(type.getElementType()), type.getDimSize(1), type.getDimSize(0)};
      config = {
          b.getNamedAttr("out_in", b.getBoolAttr(pack.getSource() == WeightLayout::out_in)),
          b.getNamedAttr("buffer", b.getDenseI64ArrayAttr({shape.panels() * kPanelColumns,
                                                           shape.blocks() * shape.blockK()}))};
    } else {
      for (NamedAttribute a : op->getAttrDictionary())
        if (isa<IntegerAttr, FloatAttr, DenseI64ArrayAttr>(a.getValue())) config.push_back(a);
      // The new value of a state is written over the old one.
      if (isa<UpdateOp>(op)) config.push_back(b.getNamedAttr("reuse", b.getI64IntegerAttr(0)));
    }
    replace(op, op->getName().stripDialect(), FlatSymbolRefAttr(), config);
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
    return isElementwise(op) || isa<ConstantOp, SiluGateOp, GatedResidualOp>(op);
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
  OpBuilder b;
  std::map<std::string, std::string> names;  // text of a body -> its function
};

}  // namespace

void toKernels(ModuleOp module) { Converter(module).run(); }

}  // namespace lathe::cpu
