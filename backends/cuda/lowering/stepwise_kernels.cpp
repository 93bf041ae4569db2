// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/lowering/stepwise_kernels.h"

#include "lathe/backends/region_plan.h"
#include "backends/cuda/lowering/kernel/call_facts.h"
#include "backends/cuda/lowering/kernel/index_checks.h"
#include "backends/cuda/lowering/kernel/kernel_names.h"
#include "backends/cuda/lowering/kernel/kernel_sequence.h"
#include "backends/cuda/lowering/kernel_builder.h"
#include "backends/cuda/lowering/region/region_printer.h"
#include "lathe/backends/to_kernels.h"
#include "lathe/passes/region_ops.h"
#include "passes/regions/form_regions.h"

using namespace mlir;

namespace lathe::cuda {
namespace {

// The op that moves the rows of `norm`'s result and reads nothing else of it.
Operation* rowMoveOf(RmsNormOp norm) {
  if (!norm->hasOneUse()) return nullptr;
  Operation* next = *norm->getUsers().begin();
  const int64_t last = tensorType(norm.getY()).getRank() - 1;
  if (auto t = dyn_cast<TransposeOp>(next)) return t.getPermutation().back() == last ? t : nullptr;
  auto r = dyn_cast<ReshapeOp>(next);
  const bool keepsRows = r && tensorType(r.getY()).getRank() > 0 &&
                         dimExprs(r.getY()).back() == dimExprs(norm.getY()).back();
  return keepsRows ? r : nullptr;
}

// Norms of heads move behind the transpose to heads, to the rotation that they are one kernel with.
void sinkNorms(func::FuncOp function) {
  SmallVector<RmsNormOp> norms(function.getOps<RmsNormOp>());
  for (RmsNormOp norm : norms)
    while (Operation* move = rowMoveOf(norm)) {
      Value x = norm.getX(), moved = move->getResult(0);
      moved.replaceAllUsesWith(norm.getY());
      move->setOperand(0, x);
      norm.getXMutable().assign(moved);
      norm.getY().setType(cast<RankedTensorType>(moved.getType()));
      norm->moveAfter(move);
    }
}

class Steps {
 public:
  Steps(ModuleOp module, func::FuncOp function, const std::string& name)
      : module(module), function(function), name(name) {
    for (BlockArgument v : function.getArguments()) place(v, int(v.getArgNumber()));
    auto returned = resultsOf(function);
    for (auto [i, v] : llvm::enumerate(returned)) {
      // A view of a kernel's result is that result's buffer.
      Value owner = v;
      while (auto view = owner.getDefiningOp<ReshapeOp>()) owner = view.getX();
      place(owner, int(function.getNumArguments() + i));
    }
  }

  KernelSet kernels() {
    auto regions = module.lookupSymbol<ModuleOp>("kernels");
    for (Operation& op : function.getBody().front().without_terminator()) {
      if (auto view = dyn_cast<ReshapeOp>(op)) {
        places.try_emplace(view.getY(), placeOf(view.getX()));
        continue;
      }
      auto call = cast<KernelOp>(op);
      SequenceStep step;
      const std::string callee = call.getCallee()->str();
      step.kernels =
          call.getKind() == "region"
              ? printedRegion(regions.lookupSymbol<func::FuncOp>(callee), name + "_" + callee)
              : kernelsOf(call, name + "_" + callee);
      for (Value v : call.getInputs()) step.buffers.push_back(placeOf(v));
      for (Value v : call.getOutputs()) step.buffers.push_back(placeOf(v));
      steps.push_back(std::move(step));
    }
    return sequenceOf(steps, temporaries);
  }

 private:
  void place(Value v, int buffer) { places[v] = Argument{Argument::Kind::Buffer, buffer, 0}; }

  // Where a value is; a result that stays inside gets memory of its own.
  Argument placeOf(Value v) {
    auto [it, isNew] = places.try_emplace(v);
    if (isNew) {
      const DimExpr elements = productOf(dimExprs(v));
      temporaries.push_back(elements * DimExpr(int64_t(sizeOf(elementOf(v)))));
      it->second = Argument{Argument::Kind::Scratch, int(temporaries.size()), 0};
    }
    return it->second;
  }

  ModuleOp module;
  func::FuncOp function;
  std::string name;
  llvm::DenseMap<Value, Argument> places;
  std::vector<DimExpr> temporaries;
  std::vector<SequenceStep> steps;
};

}  // namespace

KernelSet stepwiseKernels(func::FuncOp region, const std::string& name) {
  OwningOpRef<ModuleOp> module = ModuleOp::create(region.getLoc());
  OpBuilder b = OpBuilder::atBlockEnd(module->getBody());
  auto function = cast<func::FuncOp>(b.clone(*region.getOperation()));
  numberChecks(function);
  sinkNorms(function);
  foldTransposes(*module);
  formRegions(*module, {.canEmit = isPrintedFromRegions});
  toKernels(*module, kernelConfig);
  nameKernels(*module);
  return Steps(*module, function, name).kernels();
}

}  // namespace lathe::cuda
