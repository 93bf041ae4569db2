// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/lowering/kernel/kernel_names.h"

#include <map>

#include "backends/cuda/lowering/kernel/index_checks.h"
#include "lathe/backends/to_kernels.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

namespace lathe::cuda {

bool hasConstantWeight(LinearOp linear) {
  return linear.getW().getDefiningOp<WeightOp>() || linear->hasAttr(kConstantWeight);
}

CallAttributes kernelConfig(Operation* op) {
  Builder b(op->getContext());
  if (auto region = dyn_cast<RegionOp>(op)) {
    ArrayAttr origins = originsOfChecks(region);
    if (origins.empty()) return {};
    return {b.getNamedAttr("origins", origins)};
  }
  if (auto linear = dyn_cast<LinearOp>(op)) {
    LinearConfig config = configOf(linear);
    config.constantWeight = hasConstantWeight(linear);
    return attributesOf(b, config);
  }
  if (auto update = dyn_cast<UpdateOp>(op))
    return attributesOfUpdate(b, {.axis = int64_t(update.getAxis()), .check = notedCheck(op)});
  return plainConfig(op);
}

bool isCollective(KernelOp call) {
  for (StringRef name :
       {AllReduceOp::getOperationName(), ReduceScatterOp::getOperationName(),
        AllGatherOp::getOperationName(), AllToAllOp::getOperationName(),
        AllSliceOp::getOperationName(), SendOp::getOperationName(), ReceiveOp::getOperationName()})
    if (name.ends_with(("." + call.getKind()).str())) return true;
  return false;
}

void nameKernels(ModuleOp module) {
  std::map<std::string, std::string> names;  // what is called -> its name
  std::map<std::string, int> count;
  for (auto f : module.getOps<func::FuncOp>())
    f.walk([&](KernelOp op) {
      if (op.getCallee() || isCollective(op)) return;
      std::string key = op.getKind().str();
      llvm::raw_string_ostream os(key);
      os << op.getConfig() << op->getOperandTypes() << op->getResultTypes();
      std::string& name = names[key];
      if (name.empty())
        name = op.getKind().str() + "_" + std::to_string(count[op.getKind().str()]++);
      op.setCalleeAttr(FlatSymbolRefAttr::get(op.getContext(), name));
    });
}

}  // namespace lathe::cuda
