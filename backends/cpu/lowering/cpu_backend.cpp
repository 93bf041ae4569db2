// SPDX-License-Identifier: Apache-2.0
#include "backends/common/built_in.h"

#include <future>
#include <map>
#include <string>

#include "backends/cpu/device/cpu_features.h"
#include "backends/cpu/device/quantized_linear.h"
#include "backends/cpu/lowering/codegen.h"
#include "backends/cpu/lowering/kernel_calls.h"
#include "backends/cpu/lowering/region_emitter.h"
#include "lathe/backends/layout_steps.h"
#include "lathe/backends/program_builder.h"
#include "lathe/backends/region_plan.h"
#include "lathe/backends/to_kernels.h"
#include "lathe/ir/types.h"
#include "lathe/passes/region_ops.h"
#include "lathe/runtime/error.h"
#include "llvm/Support/JSON.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/PatternMatch.h"
#include "passes/layout/choose_weight_layout.h"
#include "passes/layout/quantize_weights.h"
#include "passes/regions/form_regions.h"
#include "passes/rewrite/locations.h"

using namespace mlir;

namespace lathe {
namespace {

bool isF32OrBf16(Value v) {
  Type e = tensorType(v).getElementType();
  return e.isF32() || e.isBF16();
}

// A sum of f16 products in f32, which no elementary op gives.
bool isDenseF16(LinearOp op) {
  return tensorType(op.getX()).getElementType().isF16() && op.getUnrounded() &&
         op.getLayout() != WeightLayout::packed && !op.getBias() && !op.getResidual() &&
         op.getActivation() == Activation::none;
}

// The tiers that this machine picks from when it loads code: the best one is enough.
std::vector<cpu::Tier> hostTiers() {
  const cpu::KernelIsa isa = cpu::KernelIsa::of(cpu::detectIsa());
  std::string best = isa.tier == cpu::Isa::Avx2 ? "avx2" : isa.bf16 ? "avx512bf16" : "avx512";
  std::vector<cpu::Tier> tiers = cpu::codegenTiers();
  std::erase_if(tiers, [&](const cpu::Tier& t) { return t.name != best; });
  return tiers;
}

// Why no kernel takes the layer, its weight packed or to be.
std::string whyNotQuantized(QuantizedLinearOp op) {
  auto dtype = [](Value v) { return *dtypeOf(tensorType(v).getElementType()); };
  if (op.getZero() && dtype(op.getZero()) != dtype(op.getScale())) {
    // Bytes are whole numbers that every dtype of scales holds.
    const bool isByte = dtype(op.getZero()) == DType::I8 || dtype(op.getZero()) == DType::U8;
    if (!isByte || op.getLayout() == WeightLayout::packed)
      return "zero points are bytes, or have the dtype of the scales";
  }
  auto q = tensorType(op.getQ());
  return cpu::whyNotQuantized(
      {.weights = {dtype(op.getQ()), q.getDimSize(1), q.getDimSize(0), int64_t(op.getBlock())},
       .dtype = dtype(op.getX()),
       .scaleDType = dtype(op.getScale()),
       .hasZero = bool(op.getZero()),
       .activation = op.getActivation()});
}

std::string whyNotAttention(Value q, Value mask) {
  if (!isF32OrBf16(q)) return "the attention kernel takes f32 and bf16";
  if (mask && !tensorType(mask).getElementType().isInteger(1) && !isF32OrBf16(mask))
    return "the attention kernel takes masks of bool, f32 and bf16";
  return "";
}

class CpuBackend final : public Backend {
 public:
  std::string_view name() const override { return "cpu"; }

  BackendFeatures features() const override { return {.weights = true, .ranks = true}; }

  std::string whyNot(Operation* op) const override {
    if (auto linear = dyn_cast<LinearOp>(op)) {
      if (isDenseF16(linear)) return "";
      if (!isF32OrBf16(linear.getX())) return "packed weights are f32 or bf16";
      if (linear.getLayout() != WeightLayout::packed) return "the weight is computed at run time";
    } else if (auto linear = dyn_cast<QuantizedLinearOp>(op)) {
      if (std::string why = whyNotQuantized(linear); !why.empty()) return why;
      if (linear.getLayout() != WeightLayout::packed) return "the weight is computed at run time";
    } else if (isa<QuantizeOp, DequantizeOp>(op)) {
      return "integers and floats meet in generated code";
    } else if (auto attention = dyn_cast<AttentionOp>(op)) {
      return whyNotAttention(attention.getQ(), attention.getMask());
    } else if (auto attention = dyn_cast<PagedAttentionOp>(op)) {
      return whyNotAttention(attention.getQ(), attention.getMask());
    } else if (auto softmax = dyn_cast<SoftmaxOp>(op)) {
      if (int64_t(softmax.getAxis()) != tensorType(softmax.getX()).getRank() - 1)
        return "fused softmax runs over the last axis";
    } else if (isa<RopeAppendOp>(op)) {
      return "the rotation is one kernel and the write into the cache another";
    } else if (!hasOwnKernel(op) && !isa<WeightOp, ConstantOp>(op)) {
      return whyNotInRows(op);
    }
    return "";
  }

  std::vector<Step> layOut(const BackendRequest& request) const override {
    auto pack = [](ModuleOp m) {
      chooseWeightLayout(m, isF32OrBf16);
      packQuantizedWeights(m, [](QuantizedLinearOp op) { return whyNotQuantized(op).empty(); });
    };
    return layoutSteps(request, isF32OrBf16, {"choose-weight-layout", pack},
                       [this](Operation* op) { return whyNot(op); });
  }

  std::vector<Step> lower(const BackendRequest&) const override {
    auto canEmit = [](Operation* op) { return !hasOwnKernel(op) && whyNotInRows(op).empty(); };
    return {{"fold-transposes", foldTransposes, true},
            {"form-regions", [=](ModuleOp m) { formRegions(m, {.canEmit = canEmit}); }, true},
            {"to-kernels", [](ModuleOp m) { toKernels(m, cpu::kernelConfig); }, true},
            {"join-gates", cpu::joinGates, true}};
  }

  Program build(ModuleOp module, const BackendRequest& request) const override {
    Program program = buildProgram(module);
    program.backend = "cpu";
    auto kernels = module.lookupSymbol<ModuleOp>("kernels");
    if (!kernels) return program;
    DialectRegistry dialects;
    cpu::registerKernelDialects(dialects);
    module.getContext()->appendDialectRegistry(dialects);
    module.getContext()->loadAllAvailableDialects();
    llvm::json::Object regions;
    std::map<std::string, std::future<std::string>> objects;
    for (const cpu::Tier& tier : request.allTiers ? cpu::codegenTiers() : hostTiers()) {
      OwningOpRef<ModuleOp> code = ModuleOp::create(kernels.getLoc());
      for (auto f : kernels.getOps<func::FuncOp>()) {
        FailureOr<cpu::RegionKernel> kernel = cpu::emitRegion(f, tier, *code);
        if (failed(kernel))
          throw Error(ErrorCode::Unsupported,
                      "no code for region " + f.getName().str() + " at " + originText(f.getLoc()));
        llvm::json::Object info{{"rows", kernel->rows},
                                {"cost", kernel->costPerRow},
                                {"scratch", kernel->scratchBytes},
                                {"buffers", f.getNumArguments() + f.getNumResults()},
                                {"sizes", llvm::json::Array(kernel->sizes)}};
        regions[tier.name + "/" + kernel->name] = std::move(info);
      }
      objects["code." + tier.name] = cpu::compileKernels(*code, tier, request.onCode);
    }
    for (auto& [name, object] : objects) program.blobs[name] = object.get();
    std::string text;
    llvm::raw_string_ostream(text) << llvm::json::Value(std::move(regions));
    program.blobs["regions"] = text;
    return program;
  }
};

}  // namespace

std::unique_ptr<Backend> makeCpuBackend() { return std::make_unique<CpuBackend>(); }

}  // namespace lathe
