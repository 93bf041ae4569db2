// SPDX-License-Identifier: Apache-2.0
// The layout steps as passes, for lathe-opt: a backend calls the same functions with its own
// answers to what it packs and what it generates.
#include "lathe/ir/types.h"
#include "lathe/passes/hoist_weights.h"
#include "lathe/passes/passes.h"
#include "lathe/passes/region_ops.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/layout/choose_weight_layout.h"
#include "passes/layout/fold_norm_gain.h"
#include "passes/layout/merge_linears.h"
#include "passes/regions/form_regions.h"

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

struct MergeLinearsPass : PassWrapper<MergeLinearsPass, OperationPass<ModuleOp>> {
  LATHE_PASS(MergeLinearsPass, "lathe-merge-linears",
             "linear ops on one input become one wider linear op (qkv, gate and up)")
  void runOnOperation() final {
    mergeLinears(getOperation(), [](ArrayRef<LinearOp>) { return true; });
  }
};

struct FoldNormGainPass : PassWrapper<FoldNormGainPass, OperationPass<ModuleOp>> {
  LATHE_PASS(FoldNormGainPass, "lathe-fold-norm-gain",
             "a norm's gain moves into the weights that follow (mode fast)")
  void runOnOperation() final { foldNormGain(getOperation()); }
};

struct HoistWeightsPass : PassWrapper<HoistWeightsPass, OperationPass<ModuleOp>> {
  LATHE_PASS(HoistWeightsPass, "lathe-hoist-weights", "weight-only arithmetic moves to @load")
  void runOnOperation() final { hoistWeights(getOperation()); }
};

struct FormRegionsPass : PassWrapper<FormRegionsPass, OperationPass<ModuleOp>> {
  LATHE_PASS(FormRegionsPass, "lathe-form-regions",
             "what is no contraction, scan or update becomes lathe.region ops")
  void runOnOperation() final {
    formRegions(getOperation(), {.canEmit = [](Operation* op) { return !hasOwnKernel(op); }});
  }
};

}  // namespace

std::unique_ptr<Pass> createChooseWeightLayoutPass() {
  return std::make_unique<ChooseWeightLayoutPass>();
}
std::unique_ptr<Pass> createMergeLinearsPass() { return std::make_unique<MergeLinearsPass>(); }
std::unique_ptr<Pass> createFoldNormGainPass() { return std::make_unique<FoldNormGainPass>(); }
std::unique_ptr<Pass> createHoistWeightsPass() { return std::make_unique<HoistWeightsPass>(); }
std::unique_ptr<Pass> createFormRegionsPass() { return std::make_unique<FormRegionsPass>(); }

}  // namespace lathe
