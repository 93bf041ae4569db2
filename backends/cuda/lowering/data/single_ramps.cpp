// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/lowering/kernel/steps.h"

#include "lathe/ir/ops.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

namespace lathe::cuda {

static bool isSingleRamp(Value v) {
  while (auto view = v.getDefiningOp<ReshapeOp>()) v = view.getX();
  auto ramp = v.getDefiningOp<IotaOp>();
  if (!ramp || isa<FloatType>(tensorType(v).getElementType())) return false;
  const auto axis = int64_t(ramp.getAxis());
  return !tensorType(v).isDynamicDim(axis) && tensorType(v).getDimSize(axis) == 1;
}

void dropSingleRamps(ModuleOp module) {
  for (auto f : module.getOps<func::FuncOp>())
    for (auto sum : llvm::make_early_inc_range(f.getOps<AddOp>()))
      for (auto [x, ramp] : {std::pair(sum.getA(), sum.getB()), std::pair(sum.getB(), sum.getA())})
        if (x.getType() == sum.getType() && isSingleRamp(ramp)) {
          sum.replaceAllUsesWith(Value(x));
          sum.erase();
          break;
        }
}

}  // namespace lathe::cuda
