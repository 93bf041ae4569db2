// SPDX-License-Identifier: Apache-2.0
#include "backends/common/built_in.h"

#include "backends/cuda/lowering/attention/attention_calls.h"
#include "backends/cuda/lowering/kernel/call_facts.h"
#include "backends/cuda/lowering/kernel/kernel_names.h"
#include "backends/cuda/lowering/kernel_builder.h"
#include "backends/cuda/lowering/region/region_printer.h"
#include "backends/cuda/lowering/kernel/steps.h"
#include "backends/cuda/lowering/tuning_program.h"
#include "lathe/backends/layout_steps.h"
#include "lathe/backends/program_builder.h"
#include "lathe/backends/to_kernels.h"
#include "lathe/passes/region_ops.h"
#include "passes/regions/form_regions.h"

using namespace mlir;

namespace lathe {
namespace {

bool isSixteenOrThirtyTwoBits(Value v) {
  Type e = tensorType(v).getElementType();
  return e.isF32() || e.isBF16() || e.isF16();
}

class CudaBackend final : public Backend {
 public:
  std::string_view name() const override { return "cuda"; }

  BackendFeatures features() const override {
    return {.target = true, .weights = true, .ranks = true};
  }
  std::string whyNot(Operation* op) const override {
    if (auto linear = dyn_cast<LinearOp>(op)) {
      if (!isSixteenOrThirtyTwoBits(linear.getX())) return "linear kernels take f32, bf16 and f16";
      if (linear.getLayout() != WeightLayout::out_in)
        return "the weight is computed at run time and lies as [in, out]";
      if (linear.getUnrounded() && linear.getResidual() &&
          !tensorType(linear.getX()).getElementType().isF32())
        return "linear kernels add residuals of the dtype of x";
    } else if (auto attention = dyn_cast<AttentionOp>(op)) {
      return cuda::whyNotAttention(attention);
    } else if (auto attention = dyn_cast<PagedAttentionOp>(op)) {
      return cuda::whyNotAttention(attention);
    } else if (auto convolution = dyn_cast<ConvolutionOp>(op)) {
      if (tensorType(convolution.getX()).isDynamicDim(1) ||
          tensorType(convolution.getW()).isDynamicDim(0))
        return "convolution kernels want the numbers of channels and filters to be numbers";
    } else if (auto softmax = dyn_cast<SoftmaxOp>(op)) {
      if (int64_t(softmax.getAxis()) != tensorType(softmax.getX()).getRank() - 1)
        return "fused softmax runs over the last axis";
    } else if (isa<RopeAppendOp>(op)) {
      return "the rotation joins the projection, or is one kernel and the write into the cache "
             "another";
    } else if (isa<QuantizedLinearOp>(op)) {
      return "products take floats: integers are widened when weights are loaded";
    } else if (isa<QuantizeOp, DequantizeOp>(op)) {
      return "integers and floats meet in generated code";
    } else if (isa<PackOp>(op)) {
      return "weights stay row-major";
    } else if (!hasOwnKernel(op) && !isa<WeightOp>(op)) {
      return cuda::whyNotPrintable(op);
    }
    return "";
  }

  std::vector<Step> layOut(const BackendRequest& request) const override {
    return layoutSteps(request, isSixteenOrThirtyTwoBits,
                       {"transpose-weights", cuda::transposeWeights},
                       [this](Operation* op) { return whyNot(op); });
  }

  std::vector<Step> lower(const BackendRequest&) const override {
    return {{"drop-single-ramps", cuda::dropSingleRamps},
            // Before strides replace the slices and reshapes that it recognizes.
            {"form-linear-regions", cuda::formLinearRegions, true},
            {"fold-transposes", foldTransposes, true},
            // While updates are ops still.
            {"mark-old-keys", cuda::markOldKeys},
            {"form-regions",
             [](ModuleOp m) {
               formRegions(m, {.joinsTwins = true, .canEmit = cuda::isPrintedFromRegions});
             },
             true},
            {"to-kernels", [](ModuleOp m) { toKernels(m, cuda::kernelConfig); }, true},
            {"join-attention", cuda::joinAttention},
            {"name-kernels", cuda::nameKernels, true}};
  }

  Program build(ModuleOp module, const BackendRequest& request) const override {
    Program program = buildProgram(module);
    program.backend = "cuda";
    if (cuda::isTuningTarget(request.target))
      return cuda::tuningProgram(module, program, request.target);
    cuda::buildKernels(module, request, program);
    return program;
  }
};

}  // namespace

std::unique_ptr<Backend> makeCudaBackend() { return std::make_unique<CudaBackend>(); }

}  // namespace lathe
