// SPDX-License-Identifier: Apache-2.0
// The layout steps as passes, for lathe-opt: a backend calls the same functions with its own
// answers to what it packs and what it generates.
#include "ir/types.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/choose_weight_layout.h"
#include "passes/form_regions.h"
#include "passes/hoist_weights.h"
#include "passes/passes.h"

using namespace mlir;

namespace lathe {
namespace {

struct ChooseWeightLayoutPass : PassWrapper<ChooseWeightLayoutPass, OperationPass<ModuleOp>> {
  LATHE_PASS(ChooseWeightLayoutPass, "lathe-choose-weight-layout",
             "linear ops on checkpoint weights read them packed")
  void runOnOperation() final {
    chooseWeightLayout(getOperation(), [](LinearOp) { return true; });
  }
};

struct HoistWeightsPass : PassWrapper<HoistWeightsPass, OperationPass<ModuleOp>> {
  LATHE_PASS(HoistWeightsPass, "lathe-hoist-weights", "weight-only arithmetic moves to @load")
  void runOnOperation() final { hoistWeights(getOperation()); }
};

struct FormRegionsPass : PassWrapper<FormRegionsPass, OperationPass<ModuleOp>> {
  LATHE_PASS(FormRegionsPass, "lathe-form-regions",
             "what is no contraction, scan or update becomes lathe.region ops")
  void runOnOperation() final {
    formRegions(getOperation(), {.canEmit = [](Operation* op) {
                  return !isa<MatmulOp, ConvolutionOp, LinearOp, AttentionOp, UpdateOp, TopKOp,
                              CumSumOp, RandomBitsOp, PackOp, KernelOp, RegionOp>(op);
                }});
  }
};

}  // namespace

std::unique_ptr<Pass> createChooseWeightLayoutPass() {
  return std::make_unique<ChooseWeightLayoutPass>();
}
std::unique_ptr<Pass> createHoistWeightsPass() { return std::make_unique<HoistWeightsPass>(); }
std::unique_ptr<Pass> createFormRegionsPass() { return std::make_unique<FormRegionsPass>(); }

}  // namespace lathe
