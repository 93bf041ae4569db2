// SPDX-License-Identifier: Apache-2.0
// The layout steps as passes, for lathe-opt: a backend calls the same functions with its own
// answers to what it packs and what it generates.
#include "lathe/ir/types.h"
#include "lathe/passes/hoist_weights.h"
#include "lathe/passes/passes.h"
#include "lathe/passes/region_ops.h"
#include "lathe/runtime/error.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/layout/choose_weight_layout.h"
#include "passes/layout/fold_norm_gain.h"
#include "passes/layout/merge_linears.h"
#include "passes/layout/quantize_weights.h"
#include "passes/regions/form_regions.h"

using namespace mlir;

namespace lathe {
#define GEN_PASS_DEF_CHOOSEWEIGHTLAYOUTPASS
#define GEN_PASS_DEF_MERGELINEARSPASS
#define GEN_PASS_DEF_QUANTIZEWEIGHTSPASS
#define GEN_PASS_DEF_FOLDNORMGAINPASS
#define GEN_PASS_DEF_HOISTWEIGHTSPASS
#define GEN_PASS_DEF_FORMREGIONSPASS
#include "lathe/passes/passes.h.inc"
namespace {

struct ChooseWeightLayoutPass : impl::ChooseWeightLayoutPassBase<ChooseWeightLayoutPass> {
  void runOnOperation() final {
    chooseWeightLayout(getOperation(), [](Value) { return true; });
  }
};

struct MergeLinearsPass : impl::MergeLinearsPassBase<MergeLinearsPass> {
  void runOnOperation() final {
    mergeLinears(getOperation(), [](Value) { return true; });
  }
};

struct FoldNormGainPass : impl::FoldNormGainPassBase<FoldNormGainPass> {
  void runOnOperation() final { foldNormGain(getOperation()); }
};

struct QuantizeWeightsPass : impl::QuantizeWeightsPassBase<QuantizeWeightsPass> {
  using Base::Base;
  void runOnOperation() final {
    WeightFormats read;
    try {
      read = parseWeightFormats(std::string(formats));
    } catch (const Error& e) {
      getOperation().emitError(e.what());
      return signalPassFailure();
    }
    fuseDequantize(getOperation());
    quantizeWeights(getOperation(), read);
    if (packed) packQuantizedWeights(getOperation(), [](QuantizedLinearOp) { return true; });
  }
};

struct HoistWeightsPass : impl::HoistWeightsPassBase<HoistWeightsPass> {
  void runOnOperation() final { hoistWeights(getOperation()); }
};

struct FormRegionsPass : impl::FormRegionsPassBase<FormRegionsPass> {
  void runOnOperation() final {
    formRegions(getOperation(), {.canEmit = [](Operation* op) { return !hasOwnKernel(op); }});
  }
};

}  // namespace
}  // namespace lathe
