// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/lowering/kernel_calls.h"

#include "lathe/backends/region_plan.h"
#include "backends/cpu/device/gated_config.h"
#include "lathe/backends/call_attributes.h"
#include "lathe/ir/types.h"
#include "llvm/ADT/StringSet.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/rewrite/cost.h"
#include "passes/rewrite/locations.h"

using namespace mlir;

namespace lathe::cpu {
namespace {

// A half of the only argument's last axis, from `start` on.
bool isHalf(Value v, Value of, int64_t start) {
  auto slice = v.getDefiningOp<SliceOp>();
  if (!slice || slice.getX() != of) return false;
  const auto sizes = dimsOf(tensorType(v)), whole = dimsOf(tensorType(of));
  const auto starts = slice.getStarts().getDims();
  for (size_t axis = 0; axis < starts.size(); ++axis) {
    const bool last = axis + 1 == starts.size();
    if (exprOf(starts[axis]).asConstant() != (last ? start : 0)) return false;
    if (slice.getStrides()[axis] != 1 || (!last && sizes[axis] != whole[axis])) return false;
  }
  return tensorType(of).getShape().back() == 2 * tensorType(v).getShape().back();
}

// The gate, if the function computes nothing else.
GluOp gateOf(func::FuncOp f) {
  if (f.getNumArguments() != 1) return {};
  auto values = resultsOf(f);
  auto gate = values.size() == 1 ? values[0].getDefiningOp<GluOp>() : GluOp();
  if (!gate) return {};
  const int64_t half = tensorType(gate.getY()).getShape().back();
  const Value x = f.getArgument(0);
  return half > 0 && isHalf(gate.getGate(), x, 0) && isHalf(gate.getUp(), x, half) ? gate : GluOp();
}

// The config of the call that a layer with a gate becomes; nothing for other calls.
CallAttributes gatedConfig(Builder b, KernelOp layer, Activation gate) {
  if (layer.getKind() == "linear") {
    const auto config = configOf<LinearConfig>(layer);
    if (config.activation == Activation::none && !config.bias && !config.residual && !config.layout)
      return attributesOf(b, GatedLinearConfig{gate});
  } else if (layer.getKind() == "quantized_linear") {
    const auto config = configOf<QuantizedLinearConfig>(layer);
    if (config.activation == Activation::none && !config.bias && !config.residual)
      return attributesOf(b,
                          GatedQuantizedConfig{gate, config.block, config.zero, config.quantizesX});
  }
  return {};
}

void join(KernelOp region, SymbolTable& functions) {
  auto layer =
      region.getInputs().size() == 1 ? region.getInputs()[0].getDefiningOp<KernelOp>() : KernelOp();
  if (!layer || !region.getCallee() || !layer->getResult(0).hasOneUse()) return;
  auto f = functions.lookup<func::FuncOp>(*region.getCallee());
  GluOp gate = f ? gateOf(f) : GluOp();
  if (!gate) return;
  OpBuilder b(region);
  const CallAttributes config = gatedConfig(b, layer, gate.getActivation());
  if (config.empty()) return;
  Origins origins;
  addOrigins(origins, layer.getLoc());
  addOrigins(origins, region.getLoc());
  const bool plain = layer.getKind() == "linear";
  auto joined = KernelOp::create(
      b, fuseOrigins(b.getContext(), origins), region->getResultTypes(), layer.getInputs(),
      b.getStringAttr(plain ? kGatedLinear : kGatedQuantizedLinear), FlatSymbolRefAttr(),
      b.getDictionaryAttr(config), DenseI64ArrayAttr());
  auto cost = costOf(layer);
  if (const auto gated = costOf(region); cost && gated) {
    // The layer's outputs are neither written nor read.
    const DimExpr between = cost->written;
    *cost += *gated;
    cost->written = cost->written - between;
    cost->read = cost->read - between;
    noteCost(joined, cost);
  }
  region->replaceAllUsesWith(joined->getResults());
  region.erase();
  layer.erase();
}

}  // namespace

void joinGates(ModuleOp module) {
  auto kernels = module.lookupSymbol<ModuleOp>("kernels");
  if (!kernels) return;
  SymbolTable functions(kernels);
  SmallVector<KernelOp> regions;
  module.walk([&](KernelOp call) {
    if (call.getKind() == "region") regions.push_back(call);
  });
  for (KernelOp region : regions) join(region, functions);
  llvm::StringSet<> called;
  module.walk([&](KernelOp call) {
    if (call.getCallee()) called.insert(*call.getCallee());
  });
  for (auto f : llvm::make_early_inc_range(kernels.getOps<func::FuncOp>()))
    if (!called.contains(f.getName())) f.erase();
}

}  // namespace lathe::cpu
