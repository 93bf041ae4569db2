// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/lowering/kernel_builder.h"

#include "backends/cuda/device/program_code.h"
#include "backends/cuda/lowering/call_facts.h"
#include "backends/cuda/lowering/fused_linear.h"
#include "backends/cuda/lowering/data_calls.h"
#include "backends/cuda/lowering/kernel_cache.h"
#include "backends/cuda/lowering/product_calls.h"
#include "backends/cuda/lowering/region_printer.h"
#include "backends/cuda/lowering/variant_pruning.h"
#include "llvm/ADT/StringSwitch.h"
#include "passes/locations.h"
#include "runtime/error.h"

using namespace mlir;

namespace lathe::cuda {
namespace {

Error unsupported(Operation* op, const std::string& why) {
  return Error(ErrorCode::Unsupported, why + " at " + originText(op->getLoc()));
}

bool hasGpu() {
  try {
    return openGpu() != nullptr;
  } catch (const Error&) {
    return false;
  }
}

// Machine code where it was asked for, or where this process could run it.
void addMachineCode(std::vector<KernelCode>& kernels, const std::string& target) {
  if (target.empty() && !hasGpu()) return;
  if (!target.empty() && target != "sm_90a")
    throw Error(ErrorCode::InvalidArgument,
                "target '" + target + "' is not known; the cuda backend has sm_90a");
  std::vector<KernelText> sources;
  for (const KernelCode& k : kernels) sources.push_back({k.name, k.source});
  const std::vector<CompiledKernel> compiled = compileKernels(sources);
  for (size_t i = 0; i < kernels.size(); ++i) {
    kernels[i].cubin = compiled[i].cubin;
    kernels[i].ptx = compiled[i].ptx;
  }
}

}  // namespace

KernelSet printedRegion(func::FuncOp region, const std::string& name) {
  std::string said;
  ScopedDiagnosticHandler diagnostics(region.getContext(), [&](Diagnostic& d) {
    said += (said.empty() ? "" : "; ") + d.str();
    return success();
  });
  const std::vector<RegionSchedule> schedules = schedulesOf(region);
  FailureOr<PrintedRegion> printed =
      printRegion(region, name, schedules.empty() ? RegionSchedule{} : schedules.front());
  if (failed(printed)) throw unsupported(region, "no kernel for region " + name + ": " + said);
  KernelSet set;
  Variant variant;
  variant.what = schedules.front().text();
  variant.scratchBytes = printed->scratchBytes;
  for (const PrintedKernel& k : printed->kernels) {
    set.kernels.push_back(k.kernel);
    variant.launches.push_back(k.launch);
  }
  set.variants.push_back(std::move(variant));
  return set;
}

bool isPrintedFromRegions(Operation* op) {
  return !isa<MatmulOp, ConvolutionOp, UpdateOp, TopKOp, CumSumOp, RandomBitsOp, LinearOp,
              AttentionOp, KernelOp, RegionOp>(op) &&
         whyNotPrintable(op).empty();
}

KernelSet kernelsOf(KernelOp call, const std::string& name) {
  using Maker = KernelSet (*)(KernelOp, const std::string&);
  const Maker maker = llvm::StringSwitch<Maker>(call.getKind())
                          .Case("attention",
                                [](KernelOp c, const std::string& n) {
                                  return attentionKernels(attentionOf(c, n));
                                })
                          .Case("linear", linearKernels)
                          .Case("matmul", matmulKernels)
                          .Case("convolution", convolutionKernels)
                          .Case("update", updateKernels)
                          .Case("top_k", topKKernels)
                          .Case("cumsum", cumSumKernels)
                          .Case("random_bits", randomBitsKernels)
                          .Default(nullptr);
  if (!maker) throw unsupported(call, "no kernel of kind '" + call.getKind().str() + "'");
  return maker(call, name);
}

void buildKernels(ModuleOp module, const BackendOptions& options, Program& program) {
  KernelTable table;
  std::vector<KernelCode> kernels;
  auto regions = module.lookupSymbol<ModuleOp>("kernels");
  module.walk([&](KernelOp call) {
    const std::string callee = call.getCallee()->str();
    if (table.count(callee)) return;
    auto region =
        call.getKind() == "region" ? regions.lookupSymbol<func::FuncOp>(callee) : func::FuncOp();
    KernelSet set = !region                             ? kernelsOf(call, callee)
                    : region.getOps<LinearOp>().empty() ? printedRegion(region, callee)
                                                        : fusedLinearKernels(region, callee);
    pruneVariants(set, program.symbols);
    if (set.variants.empty()) throw unsupported(call, "no kernel for " + callee);
    table[callee] = std::move(set.variants);
    for (KernelText& k : set.kernels) {
      if (options.onCode) options.onCode(k.name, "sm_90a", "cuda", k.source);
      kernels.push_back({std::move(k.name), std::move(k.source), {}, {}});
    }
  });
  addMachineCode(kernels, options.target);
  if (options.onCode)
    for (const KernelCode& k : kernels)
      if (!k.ptx.empty()) options.onCode(k.name, "sm_90a", "ptx", k.ptx);
  storeKernels(program, table, kernels);
}

}  // namespace lathe::cuda
